"""DESCRIBE TABLE and DESCRIBE of a column: as the log tells them, in the rows of Spark's own answer to tables of its
catalogs' interface, which is what delta-spark answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.sql.call import Call, texts
from alluvium.api.sql.tables.properties import shown_properties
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import UnsupportedFeature
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.edit import find_path
from alluvium.schema.types import Field
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.naming.types import to_spark
from alluvium.spark.sessions.catalog import CatalogTable, find_entry

_Row = tuple[str, str | None, str | None]

_HEADER: _Row = ("# col_name", "data_type", "comment")
_NAMES = ("col_name", "data_type", "comment")
_COLUMNS = StructType([StructField(name, StringType(), name == "comment") for name in _NAMES])
_ONE = StructType([StructField(name, StringType(), False) for name in ("info_name", "info_value")])


def run(call: Call) -> DataFrame | None:
    """Carries out `DESCRIBE [TABLE] [EXTENDED] t [column]`.

    Raises:
        UnsupportedFeature: `PARTITION (...)`.
    """
    # The relation, whatever the node calls it.
    access = call.table(call.plan.productElement(0))
    if access is None:
        return None
    if str(call.plan.nodeName()) == "DescribeColumn":
        return _column(call, access)
    if _is_of_one_partition(call.plan):
        raise UnsupportedFeature(
            "DESCRIBE ... PARTITION is not for Delta tables, whose log has the partitions",
            code="unsupported-statement",
            url=access.url,
            hint="SHOW PARTITIONS tells which there are",
        )
    return call.rows_of(_COLUMNS, list(_rows(call, access, bool(call.plan.isExtended()))))


def _is_of_one_partition(plan: JavaObject) -> bool:
    """Whether `PARTITION (...)` was said, for which Spark 4.3 has a node of its own."""
    if str(plan.nodeName()) == "DescribeTablePartition":
        return True
    names = str(plan.productElementNames().mkString(" ")).split(" ")
    return "partitionSpec" in names and not plan.partitionSpec().isEmpty()


def _rows(call: Call, access: TableAccess, is_extended: bool) -> Iterator[_Row]:
    snapshot = access.snapshot()
    yield from map(_row, snapshot.config.schema.fields)
    partitions = [snapshot.config.schema.find(name) for name in snapshot.config.partition_columns]
    if partitions:
        yield ("# Partition Information", "", "")
        yield _HEADER
        yield from (_row(f) for f in partitions if f is not None)
    if is_extended:
        yield ("", "", "")
        yield ("# Detailed Table Information", "", "")
        yield from _details(call, access, snapshot)


def _row(f: Field) -> _Row:
    comment = f.metadata.get("comment")
    return f.name, to_spark(f.type).simpleString(), None if comment is None else str(comment)


def _details(call: Call, access: TableAccess, snapshot: Snapshot) -> Iterator[_Row]:
    entry = access.entry
    catalog, database, name = ("spark_catalog", "delta", access.url) if entry is None else entry.parts
    is_managed = entry is not None and entry.is_managed
    described = snapshot.config.metadata.description
    known = {
        "Catalog": catalog,
        "Namespace": database,
        "Database": database,
        "Table": name,
        "Type": "MANAGED" if is_managed else "EXTERNAL",
        "Comment": described,
        "Location": snapshot.store.uri(""),
        "Provider": "delta",
        "Owner": _owner(call, entry),
        "Is_managed_location": "true" if is_managed else None,
        "Table Properties": f"[{','.join(f'{k}={v}' for k, v in shown_properties(call, snapshot.config).items())}]",
    }
    yield from ((title, text, "") for title, text in known.items() if text)


def _owner(call: Call, entry: CatalogTable | None) -> str:
    """Whom the catalog takes for the table's owner: Hive's knows one."""
    found = None if entry is None else find_entry(call.spark, entry.parts)
    return "" if found is None else str(found.java.owner())


def _column(call: Call, access: TableAccess) -> DataFrame | None:
    """`DESCRIBE [EXTENDED] t column`; None for a field within a column, which Spark refuses.

    Raises:
        InvalidRequest: There is no such column (`unknown-column`).
    """
    parts = texts(call.plan.column().nameParts())
    _, _, found = find_path(access.snapshot().config.schema, parts)
    if found is None or len(parts) > 1:
        return None
    name, kind, comment = _row(found)
    shown = str(found.metadata.get(CHAR_VARCHAR, kind))
    return call.rows_of(_ONE, [("col_name", name), ("data_type", shown), ("comment", comment or "NULL")])

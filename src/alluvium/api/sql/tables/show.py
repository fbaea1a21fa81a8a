"""SHOW COLUMNS, SHOW PARTITIONS and SHOW CREATE TABLE of tables of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.sql.call import Call, some
from alluvium.api.sql.tables.like import wanted_like
from alluvium.api.sql.tables.partitions import show_partitions
from alluvium.api.sql.tables.properties import without_secrets
from alluvium.api.sql.tables.statement_text import statement_text
from alluvium.codecs.partition_path import DEFAULT_PARTITION
from alluvium.delta.view.partitions import partition_constants, partition_fields
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest
from alluvium.schema.types import Struct
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.types import to_spark
from alluvium.spark.sessions.catalog import quoted_name

_COLUMN = StructType([StructField("col_name", StringType(), False)])
_STATEMENT = StructType([StructField("createtab_stmt", StringType(), False)])


def run(call: Call) -> DataFrame | None:
    """Carries out `SHOW COLUMNS IN t`, `SHOW PARTITIONS t [PARTITION (...)]` or `SHOW CREATE TABLE t`."""
    kind = str(call.plan.nodeName())
    access = call.table(call.plan.table() if kind == "ShowPartitions" else call.plan.child())
    if access is None:
        paimon = call.paimon(call.plan.table()) if kind == "ShowPartitions" else None
        return None if paimon is None else show_partitions(call, paimon)
    if kind == "ShowColumns":
        return call.rows_of(_COLUMN, [(name,) for name in access.snapshot().config.schema.names])
    return _partitions(call, access.snapshot()) if kind == "ShowPartitions" else _statement(call, access)


def _partitions(call: Call, snapshot: Snapshot) -> DataFrame:
    """The partitions that there are, a row each, of the columns' own types.

    Raises:
        InvalidRequest: The table is not partitioned (`not-partitioned`), or not by a column that is asked for
            (`invalid-partition-column`).
    """
    fields = partition_fields(snapshot.config)
    if not fields:
        raise InvalidRequest(
            "the table is not partitioned",
            code="not-partitioned",
            url=snapshot.store.url,
            hint="DESCRIBE DETAIL tells how many files it has",
        )
    constants = partition_constants(snapshot.files, snapshot.config, snapshot.time_zone)
    known = pa.Table.from_batches([pa.RecordBatch.from_struct_array(constants)])
    distinct = known.group_by(known.column_names, use_threads=False).aggregate([]).select(known.column_names)
    rows = call.spark.createDataFrame(distinct, to_spark(Struct(fields)))
    names = [f.name for f in fields]
    for name, value in _asked(call, names).items():
        column = sf.col(quote(name))
        rows = rows.where(
            column.isNull() if value is None else column.eqNullSafe(sf.lit(value).cast(rows.schema[name].dataType))
        )
    return rows.sort(*(sf.col(quote(name)) for name in names))


def _asked(call: Call, names: list[str]) -> Mapping[str, str | None]:
    """The values of `PARTITION (...)` by columns as the table spells them."""
    pattern = some(call.plan.pattern())
    if pattern is None:
        return {}
    by_folded = {name.lower(): name for name in names}
    found: dict[str, str | None] = {}
    given = dict(call.java.jvm.scala.jdk.javaapi.CollectionConverters.asJava(pattern.spec()))
    for name, value in given.items():
        if name.lower() not in by_folded:
            raise InvalidRequest(
                f"the table is not partitioned by {name!r}",
                code="invalid-partition-column",
                column=name,
                hint=suggest(name, names),
            )
        found[by_folded[name.lower()]] = None if value is None or value == DEFAULT_PARTITION else str(value)
    return found


def _statement(call: Call, access: TableAccess) -> DataFrame:
    """A statement that makes such a table; delta-spark refuses to say one."""
    if call.plan.asSerde():
        raise UnsupportedFeature(
            "a Delta table has no serde", code="unsupported-statement", url=access.url, hint="leave AS SERDE out"
        )
    wanted = wanted_like(access)
    wanted = replace(wanted, properties=without_secrets(call, wanted.properties))
    if access.entry is None:
        return call.rows_of(_STATEMENT, [(statement_text(f"delta.{quote(access.url)}", wanted),)])
    location = None if access.entry.is_managed else access.url
    text = statement_text(_name(access.entry.parts), wanted, location)
    return call.rows_of(_STATEMENT, [(text,)])


def _name(parts: tuple[str, ...]) -> str:
    """As Spark shows it, with quotes only where they are needed."""
    return ".".join(part if part.isidentifier() and part.isascii() else quoted_name((part,)) for part in parts)

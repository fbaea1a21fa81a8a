"""Tables of warehouses that are made of rows: CREATE TABLE ... AS SELECT, `saveAsTable`, `writeTo(...).create()`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from alluvium.api.delta.creation.request import Mode
from alluvium.api.engine import session_opener
from alluvium.api.names.paimon_access import PaimonAccess
from alluvium.api.names.warehouses import (
    NamedTable,
    described_table,
    ensure_makeable,
    has_named,
    url_of,
    warehouses_of,
)
from alluvium.api.paimon.paimon_writer import parse_paimon_options, write_paimon
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.log.warehouse import ensure_database
from alluvium.paimon.schema.logical import written_schema
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.plan.changes import Committed
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.schema.types import DataType, Struct
from alluvium.schema.walk import as_nullable
from alluvium.spark.naming.types import from_spark_declared
from alluvium.spark.sessions.session import ensure_native
from alluvium.spark.values.columns import Assignment, align


@dataclass(frozen=True, slots=True)
class MadeOfRows:
    """What is said of a table to make of rows.

    Attributes:
        mode: What becomes of one that is there.
        partitions: Partition keys.
        properties: As CREATE TABLE has them: options of the table, keys, the comment, the format.
        options: Of the writer; those of tables among them are properties, as in Java.
    """

    mode: Mode
    partitions: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)


def make_of_rows(rows: DataFrame, named: NamedTable, wanted: MadeOfRows) -> Committed:
    """Makes a table of a warehouse with its first rows, by one commit: where they fail there is no table.

    Raises:
        InvalidRequest: There is one already (`"table-exists"`), no such database (`"unknown-database"`), or the rows,
            keys or options make no table.
        NotFound: There is none to be replaced.
        UnsupportedFeature: One that is described otherwise is to be replaced (`"unsupported-statement"`).
    """
    spark = rows.sparkSession
    ensure_native(spark)
    ensure_makeable(named)
    access = PaimonAccess(spark, url_of(spark, named)) if has_named(spark, named) else None
    if access is None and wanted.mode is Mode.REPLACE:
        raise NotFound(
            f"there is no table {named.text} to replace", code="not-a-table", url=url_of(spark, named), hint="create it"
        )
    if access is not None and wanted.mode is Mode.CREATE_IF_NOT_EXISTS:
        return Committed.nothing(access.target().version)
    if access is not None and not wanted.mode.replaces:
        raise InvalidRequest(f"there is a table {named.text} already", code="table-exists", url=access.url)
    if access is None:
        ensure_database(session_opener(spark, None)(warehouses_of(spark)[named.catalog]), named.database)
    table, options = _described(rows, wanted)
    if access is not None:
        ensure_alike(table, access)
        return access.insert(rows, True, options)
    given = align(rows, written_schema(table), Assignment.CAST)
    store = session_opener(spark, None)(url_of(spark, named))
    return write_paimon(given, store, "ErrorIfExists", (), options, DEFAULT_RETRY, created=table)


def of_no_warehouse(name: str) -> UnsupportedFeature:
    """The error of who makes a Paimon table under a name of no warehouse."""
    return UnsupportedFeature(
        f"Paimon tables are made and replaced by the names of a warehouse, and {name} is none",
        code="unsupported-catalog",
        hint='alluvium.enable(spark, catalogs={"lake": "/warehouse"}); or save("/path")',
    )


def ensure_alike(table: TableSchema, access: PaimonAccess) -> None:
    """Lets a table be replaced by one that is described alike: that is an overwrite of its rows.

    In Java any other is dropped first, and gone should the rows fail.

    Raises:
        UnsupportedFeature: It is described otherwise.
    """
    differing = ", ".join(_differing(table, access.snapshot().schema))
    if differing:
        raise UnsupportedFeature(
            f"tables of a warehouse are not replaced by others, and this one has other {differing}",
            code="unsupported-statement",
            features=("REPLACE TABLE",),
            url=access.url,
            hint="INSERT OVERWRITE (insertInto with overwrite) keeps the table; or DROP TABLE first",
        )


def _described(rows: DataFrame, wanted: MadeOfRows) -> tuple[TableSchema, dict[str, str]]:
    """The table to make, and the options that are left to the writer."""
    told = parse_paimon_options(wanted.options)
    known = dict(told.known)
    if known.pop("branch", None) is not None:
        raise InvalidRequest("a table is made without branches", code="invalid-option", hint="leave branch out")
    path = known.pop("path", None)
    elsewhere = {} if path is None else {"location": path}
    # As Spark's own tables of rows: what a query happens to know of nulls is no rule for rows to come.
    columns = as_nullable(from_spark_declared(rows.schema))
    assert isinstance(columns, Struct), "rows have columns"
    table = described_table(columns, wanted.partitions, {**told.table, **elsewhere, **wanted.properties})
    return table, {**told.engine, **known}


def _differing(table: TableSchema, there: TableSchema) -> Iterator[str]:
    if _columns(table) != _columns(there):
        yield "columns"
    if table.partition_keys != there.partition_keys:
        yield "partition keys"
    if table.primary_keys != there.primary_keys:
        yield "primary keys"
    if dict(table.options) != dict(there.options):
        yield "options"
    if table.comment not in (None, there.comment):
        yield "words about it"


def _columns(table: TableSchema) -> list[tuple[str, DataType]]:
    return [(f.name, as_nullable(f.type)) for f in written_schema(table).fields]

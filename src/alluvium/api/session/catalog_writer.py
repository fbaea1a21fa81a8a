"""Writing to tables by name: saveAsTable, insertInto, and the verbs of writeTo.

Where rows go into a table that is there (`insertInto`, `append`, `overwrite`) a temporary view of the name hides it,
and Spark says what it thinks of writing into a view. Where a table may be made (`saveAsTable`, `create`) the name is
the table's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from pyspark.sql import DataFrame

from alluvium.api.delta.delta_access import PROVIDER, TableAccess, named_access, table_access
from alluvium.api.engine import engine_of
from alluvium.api.options import WRITE, WRITE_LATER, Options, parse_options
from alluvium.api.writer import parse_mode, write_parsed
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest, NotFound
from alluvium.plan.changes import Committed, Operation
from alluvium.schema.types import JsonValue
from alluvium.spark.sessions.catalog import default_location, ensure_nameable, find_table, register_table
from alluvium.spark.values.columns import Assignment


def save_as_table(
    df: DataFrame, name: str, mode: str, partition_by: Sequence[str], options: Mapping[str, object]
) -> Committed:
    """Rows into a table by name; one that does not exist is created and registered. Types are cast as INSERT does.

    Args:
        df: The rows; columns go by name.
        name: Of the table, or delta.`/path`.
        mode: A save mode.
        partition_by: Partition columns of a table to create.
        options: Of the writer; `path` says where a table to create goes.

    Raises:
        InvalidRequest: The rows do not fit, or there is a table of another format under that name.
    """
    save_mode = parse_mode(mode)
    parsed = parse_options(options, WRITE, WRITE_LATER)
    access = table_access(df.sparkSession, name)
    if access is None:
        return create_named(df, name, partition_by, parsed)
    existing = access.newest()
    if existing is None:
        return create_at(df, access, partition_by, parsed, "CREATE TABLE AS SELECT", is_managed=False)
    if save_mode == "ErrorIfExists":
        raise InvalidRequest(
            f"there is a table {name!r} already", code="table-exists", hint='say mode("append") or mode("overwrite")'
        )
    if save_mode == "Ignore":
        return Committed.nothing(existing.version)
    if save_mode == "Append":
        return write_parsed(
            df, access.store(), save_mode, partition_by, parsed, assignment=Assignment.CAST, open_elsewhere=access.store
        )
    said: dict[str, JsonValue] = {"isV1SaveAsTableOverwrite": True}
    if parsed.flag("overwriteSchema"):
        said["canOverwriteSchema"] = True

    def operation_of(config: TableConfig) -> Operation:
        is_managed = access.entry is not None and access.entry.is_managed
        return _creation(df, "CREATE OR REPLACE TABLE AS SELECT", config, is_managed, said)

    return write_parsed(
        df,
        access.store(),
        save_mode,
        partition_by,
        parsed,
        assignment=Assignment.CAST,
        operation_of=operation_of,
        open_elsewhere=access.store,
    )


def insert_into(df: DataFrame, access: TableAccess, overwrite: bool, options: Mapping[str, object]) -> Committed:
    """Rows into a table, columns by their place. Types are cast as INSERT does.

    Raises:
        InvalidRequest: Another number of columns, or types that cannot be cast.
    """
    names = access.snapshot().config.schema.names
    if len(names) != len(df.columns):
        raise InvalidRequest(
            f"the table has {len(names)} columns, the data {len(df.columns)}",
            code="schema-mismatch",
            hint="insertInto takes columns by their place; saveAsTable takes them by name",
        )
    parsed = parse_options(options, WRITE, WRITE_LATER)
    mode = "Overwrite" if overwrite else "Append"
    return write_parsed(
        df.toDF(*names), access.store(), mode, (), parsed, assignment=Assignment.CAST, open_elsewhere=access.store
    )


def create_named(df: DataFrame, name: str, partition_by: Sequence[str], parsed: Options) -> Committed:
    """A table out of rows, registered under a name once it stands.

    Raises:
        InvalidRequest: There is a table of another format under that name, or rows lie there already.
    """
    spark = df.sparkSession
    other = find_table(spark, name)
    if other is not None:
        raise InvalidRequest(
            f"{name!r} is a table of format {other.provider or 'view'}, not {PROVIDER}", code="table-exists"
        )
    ensure_nameable(spark, name)
    path = parsed.get("path")
    access = TableAccess(spark, path or default_location(spark, name))
    done = create_at(df, access, partition_by, parsed, "CREATE TABLE AS SELECT", is_managed=path is None)
    register_table(spark, name, access.url, PROVIDER, path is None)
    return done


def create_at(
    df: DataFrame, access: TableAccess, partition_by: Sequence[str], parsed: Options, operation: str, is_managed: bool
) -> Committed:
    """A table out of rows, at a place where there is none."""
    return write_parsed(
        df,
        access.store(),
        "ErrorIfExists",
        partition_by,
        parsed,
        operation_of=lambda config: _creation(df, operation, config, is_managed, {}),
    )


def existing_access(df: DataFrame, name: str) -> TableAccess:
    """The table of that name.

    Raises:
        NotFound: There is none.
    """
    access = named_access(df.sparkSession, name)
    if access is None or access.newest() is None:
        raise NotFound(f"{name!r} is not the name of a Delta table", code="not-a-table")
    return access


def _creation(
    df: DataFrame, name: str, config: TableConfig, is_managed: bool, said: Mapping[str, JsonValue]
) -> Operation:
    parameters: dict[str, JsonValue] = {
        **said,
        "partitionBy": msgspec.json.encode(config.partition_columns).decode(),
        "clusterBy": "[]",
        "description": config.metadata.description,
        "isManaged": str(is_managed).lower(),
        "properties": msgspec.json.encode(config.metadata.configuration).decode(),
    }
    return Operation(name, parameters, {}, engine_of(df.sparkSession))

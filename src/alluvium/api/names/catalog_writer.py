"""Writing to tables by name: saveAsTable, insertInto, and the verbs of writeTo.

Where rows go into a table that is there (`insertInto`, `append`, `overwrite`) a temporary view of the name hides it,
and Spark says what it thinks of writing into a view. Where a table may be made (`saveAsTable`, `create`) the name is
the table's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
from pyspark.sql import DataFrame

from alluvium.api.delta.creation.create import create
from alluvium.api.delta.creation.request import Mode, Wanted
from alluvium.api.delta.delta_access import TableAccess, named_access, table_access
from alluvium.api.delta.delta_columns import GENERATION
from alluvium.api.delta.frames.session_options import forget_version, with_session
from alluvium.api.delta.frames.writer import write_parsed
from alluvium.api.delta.written.options import (
    engine_options,
    parse_clusters,
    parse_description,
    parse_rebalance,
    parse_txn,
    sorted_as,
)
from alluvium.api.engine import engine_of
from alluvium.api.options import WRITE, WRITE_LATER, Options, parse_options
from alluvium.api.writer import parse_mode
from alluvium.delta.features.columns.column_defaults import KEY as DEFAULT
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest, NotFound
from alluvium.plan.changes import Committed, Operation
from alluvium.schema.types import JsonValue
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
    existing = None if access is None else access.newest()
    if access is None or existing is None:
        wanted = Wanted(Mode.CREATE, name, partition_by=tuple(partition_by), cluster_by=parse_clusters(parsed))
        return create_of_rows(df, wanted, parsed)
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
    else:
        _ensure_partitioned(df, existing.config)

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


def _ensure_partitioned(df: DataFrame, config: TableConfig) -> None:
    """As in the reference, rows that take the place of all others say in which partitions they are.

    Raises:
        InvalidRequest: They do not, and the table does not compute it.
    """
    brought = {name.lower() for name in df.columns}
    for name in config.partition_columns:
        found = config.schema.find(name)
        is_filled = found is not None and any(key in found.metadata for key in (DEFAULT, GENERATION))
        if name.lower() not in brought and not is_filled:
            raise InvalidRequest(
                f"the data lacks the partition column {name!r}",
                code="schema-mismatch",
                column=name,
                hint="add it, with null for rows of no partition; or say overwriteSchema",
            )


def insert_into(df: DataFrame, access: TableAccess, overwrite: bool, options: Mapping[str, object]) -> Committed:
    """Rows into a table, columns by their place. Types are cast as INSERT does.

    Raises:
        InvalidRequest: Another number of columns, or types that cannot be cast.
    """
    names = access.snapshot().config.schema.names
    if len(names) != len(df.columns):
        raise InvalidRequest(
            f"{'not enough' if len(df.columns) < len(names) else 'too many'} columns: the table has {len(names)}, "
            f"the data {len(df.columns)}",
            code="schema-mismatch",
            hint="insertInto takes columns by their place; saveAsTable takes them by name",
        )
    return insert_named(df.toDF(*names), access, overwrite, options)


def insert_named(df: DataFrame, access: TableAccess, overwrite: bool, options: Mapping[str, object]) -> Committed:
    """Rows into a table, columns by name; those that are left out are what the table makes of them.

    Raises:
        InvalidRequest: Columns that the table lacks, or types that cannot be cast.
    """
    parsed = parse_options(options, WRITE, WRITE_LATER)
    mode = "Overwrite" if overwrite else "Append"
    return write_parsed(df, access.store(), mode, (), parsed, assignment=Assignment.CAST, open_elsewhere=access.store)


def create_of_rows(df: DataFrame, wanted: Wanted, parsed: Options) -> Committed:
    """A table out of rows, or in the place of another, under its name once it stands.

    Args:
        df: The rows.
        wanted: The table, but for what the options say of it.
        parsed: Options of the writer; `path` says where the table goes, if nothing else does.

    Raises:
        InvalidRequest: The table is there and must not, one of another format has its name, or the rows fit no table.
        NotFound: There is no table to be replaced.
    """
    spark = df.sparkSession
    given, parsed = parsed, with_session(spark, parsed)
    txn = parse_txn(parsed)
    said = parse_description(parsed).get("comment")
    _, committed = create(
        spark,
        replace(
            wanted,
            rows=df,
            location=wanted.location or parsed.get("path"),
            properties={**parsed.properties, **sorted_as(parsed), **wanted.properties},
            comment=said if wanted.comment is None else wanted.comment,
            options=engine_options(parsed),
            txn=txn,
            rebalance=parse_rebalance(parsed),
            user_metadata=parsed.get("userMetadata"),
        ),
    )
    forget_version(spark, txn, given)
    return committed


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

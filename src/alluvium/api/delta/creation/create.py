"""Creating tables, and putting them in the place of others: first the log, then the catalog's entry.

Whoever is interrupted between the two leaves a table without a name, never a name without a table; the next attempt
is told how to give it one.
"""

from __future__ import annotations

import msgspec
from pyspark.sql import SparkSession

from alluvium.api.delta.creation.alike import ensure_alike
from alluvium.api.delta.creation.request import Mode, Wanted
from alluvium.api.delta.delta_access import PROVIDER, TableAccess, path_access, path_in_name, table_access
from alluvium.api.delta.delta_columns import GENERATION, IDENTITY
from alluvium.api.delta.delta_errors import NotATable, TableExists
from alluvium.api.delta.frames.session_options import default_properties
from alluvium.api.delta.optimize.auto import after_rows, renewed
from alluvium.commands.create import create_table, create_table_of_rows
from alluvium.delta.description.create import NewTable, as_nullable, resolve_partition_columns
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import AlluviumError, CommitConflict, InvalidRequest
from alluvium.plan.changes import Committed, Operation
from alluvium.schema import types as t
from alluvium.schema.types import JsonValue, Struct
from alluvium.spark.naming.types import from_spark
from alluvium.spark.sessions.catalog import (
    default_location,
    ensure_nameable,
    find_table,
    is_same_place,
    qualified_location,
    register_table,
)
from alluvium.spark.sessions.entry_changes import set_comment
from alluvium.spark.statements.conditions import expression_type
from alluvium.storage.store import Store


def create(spark: SparkSession, wanted: Wanted) -> tuple[TableAccess, Committed]:
    """Creates or replaces a table, and gives it its name.

    Returns:
        The table, and what the commit came to; where the table was left as it is, its version.

    Raises:
        InvalidRequest: The table exists and must not, or columns, properties and rows do not fit together.
        NotFound: The table to replace does not exist.
        UnsupportedFeature: A column or property needs what we do not write yet.
        CommitConflict: Another writer won.
    """
    access = place_of(spark, wanted)
    existing = access.newest()
    ensure_replaceable(wanted, access, existing)
    _ensure_asked_well(wanted)
    if existing is not None:
        access = owned(existing, wanted, access)
    left = None if existing is None else _left_alone(existing, wanted, access)
    committed = left if left is not None else _write(access, existing, wanted)
    if wanted.name is None or not is_registrable(spark, wanted.name):
        return access, committed
    if access.entry is None:
        return named(spark, access, wanted, committed), committed
    if left is None:
        set_comment(spark, access.entry.parts, wanted.comment)
    return access, committed


def is_registrable(spark: SparkSession, name: str) -> bool:
    """Whether the catalog can keep that name: it is no path."""
    return path_in_name(spark, name) is None


def place_of(spark: SparkSession, wanted: Wanted) -> TableAccess:
    """Where the table is, or is to be."""
    if wanted.name is None:
        if wanted.location is None:
            raise InvalidRequest("either a table name or a location is needed", code="no-path")
        return path_access(spark, wanted.location)
    known = table_access(spark, wanted.name)
    if known is not None:
        _ensure_same_place(spark, known, wanted)
        return known
    _ensure_free(spark, wanted.name, wanted.mode)
    if wanted.mode is Mode.REPLACE:
        raise NotATable(f"the table {wanted.name!r} to replace cannot be found", code="not-a-table")
    ensure_nameable(spark, wanted.name)
    if wanted.location is None:
        return path_access(spark, default_location(spark, wanted.name))
    return path_access(spark, qualified_location(spark, wanted.name, wanted.location))


def _ensure_free(spark: SparkSession, name: str, mode: Mode) -> None:
    other = find_table(spark, name)
    if other is not None:
        kind = f"a table of format {other.provider}" if other.provider else "a view"
        raise TableExists(
            f"{name!r} is {kind}, {'which no Delta table replaces' if mode.replaces else 'not a Delta table'}",
            code="table-exists",
            hint=f"drop it first: DROP {'TABLE' if other.provider else 'VIEW'} {other.name}",
        )


def _ensure_same_place(spark: SparkSession, known: TableAccess, wanted: Wanted) -> None:
    if wanted.location is None or wanted.name is None or not (wanted.mode.replaces or known.entry is None):
        return
    place = qualified_location(spark, wanted.name, wanted.location) if known.entry else wanted.location
    if not is_same_place(spark, known.url, place):
        raise InvalidRequest(
            f"the table {wanted.name!r} {'is at' if known.entry else 'names'} another place than {wanted.location!r}",
            code="location-mismatch",
            url=known.url,
            hint="leave the location out, or drop the table first",
        )


def ensure_replaceable(wanted: Wanted, access: TableAccess, existing: Snapshot | None) -> None:
    """Refuses to replace what is not there.

    Raises:
        NotFound: `"not-a-table"`.
    """
    if existing is None and wanted.mode is Mode.REPLACE:
        raise NotATable(
            f"there is no table to replace{f' behind the name {wanted.name!r}' if access.entry else ''}",
            code="not-a-table",
            url=access.url,
            hint="CREATE OR REPLACE TABLE, or createOrReplace, makes one",
        )


def _ensure_asked_well(wanted: Wanted) -> None:
    if wanted.mode.replaces and not wanted.columns and wanted.rows is None:
        raise InvalidRequest(
            "a table that takes the place of another needs columns", code="no-columns", hint="addColumn(name, type)"
        )
    if wanted.partition_by and not wanted.columns and wanted.rows is None:
        raise InvalidRequest(
            "a table without columns cannot be partitioned",
            code="no-columns",
            hint="an existing table keeps its partitioning: leave PARTITIONED BY out",
        )
    if wanted.partition_by and wanted.columns:
        # What no table can be is refused before one that is there already is looked at.
        resolve_partition_columns(Struct(wanted.columns), wanted.partition_by)


def owned(existing: Snapshot, wanted: Wanted, access: TableAccess) -> TableAccess:
    """A table that lies where a managed one would be, if it has that name.

    Without one it is somebody else's: to drop what would be made of it would delete its files.

    Raises:
        InvalidRequest: `"location-not-empty"`.
    """
    name = wanted.name if access.entry is None and wanted.location is None else None
    if name is None or not is_registrable(access.spark, name):
        return access
    # Whoever makes it at the same time has named it by now.
    known = table_access(access.spark, name)
    if known is not None:
        return known
    raise InvalidRequest(
        f"where the table {name!r} would be there is one already, of which the catalog does not know",
        code="location-not-empty",
        url=existing.store.url,
        version=existing.version,
        hint=f"CREATE TABLE {name} USING delta LOCATION {existing.store.url!r} names it, as after a statement "
        "that was interrupted; or choose another name, or remove the files",
    )


def _left_alone(existing: Snapshot, wanted: Wanted, access: TableAccess) -> Committed | None:
    """What came of it where the table stays what it is; None: it is to be replaced.

    Raises:
        InvalidRequest: It must not be there, or not be like this.
    """
    # A name may be given to a table that lies there already, if nothing else is said of it.
    takes_over = access.entry is None and wanted.name is not None
    is_path = takes_over and not is_registrable(access.spark, wanted.name or "")
    if wanted.mode.replaces:
        # As the reference: where the catalog has no such table, none is there to be replaced by columns alone.
        if not (takes_over and wanted.compares and wanted.rows is None):
            return None
    elif wanted.mode is Mode.CREATE_IF_NOT_EXISTS:
        if not takes_over or is_path or not wanted.compares:
            return Committed.nothing(existing.version)
    elif not takes_over or is_path:
        raise TableExists(
            f"the table {wanted.name!r} already exists" if wanted.name else "the table already exists",
            code="table-exists",
            url=existing.store.url,
            version=existing.version,
            hint="createIfNotExists leaves it, createOrReplace replaces it",
        )
    ensure_alike(existing, wanted)
    return Committed.nothing(existing.version)


def _write(access: TableAccess, existing: Snapshot | None, wanted: Wanted) -> Committed:
    spark, store = access.spark, access.store()
    if existing is None:
        ensure_empty(store, has_columns=bool(wanted.columns) or wanted.rows is not None)
    properties = {**default_properties(spark), **wanted.properties}
    managed = wanted.location is None and wanted.name is not None and is_registrable(spark, wanted.name)
    is_managed = managed if access.entry is None else access.entry.is_managed

    def operation_of(config: TableConfig) -> Operation:
        return _operation(access, wanted, config, is_managed, existing is None)

    schema = Struct(wanted.columns) if wanted.rows is None else _columns_of_rows(wanted)
    table = NewTable(schema, wanted.partition_by, properties, wanted.comment, wanted.cluster_by)
    try:
        if wanted.rows is not None:
            done = create_table_of_rows(
                wanted.rows,
                store,
                table,
                existing,
                operation_of,
                wanted.options,
                wanted.txn,
                wanted.rebalance,
                or_replaces=wanted.mode.replaces,
            )
            return after_rows(spark, store.url, properties, done, access.snapshot)
        _ensure_generated(spark, schema)
        return renewed(spark, store.url, create_table(store, table, existing, operation_of))
    except CommitConflict:
        if wanted.mode is not Mode.CREATE_IF_NOT_EXISTS:
            raise
        return Committed.nothing(access.snapshot().version)


def _columns_of_rows(wanted: Wanted) -> Struct:
    assert wanted.rows is not None
    schema = as_nullable(from_spark(wanted.rows.schema))
    assert isinstance(schema, Struct)
    return schema


def _operation(access: TableAccess, wanted: Wanted, config: TableConfig, is_managed: bool, is_new: bool) -> Operation:
    parameters: dict[str, JsonValue] = {
        **wanted.said,
        "partitionBy": _json(config.partition_columns),
        "clusterBy": _json(wanted.cluster_by),
        "description": config.metadata.description,
        "isManaged": str(is_managed).lower(),
        "properties": _json(config.metadata.configuration),
    }
    name, metrics = wanted.mode.operation, dict[str, str]()
    if wanted.rows is not None:
        name = f"{name} AS SELECT"
        # The reference counts what was replaced, be it nothing.
        metrics = {"numRemovedFiles": "0", "numRemovedBytes": "0"} if wanted.mode.replaces and is_new else {}
    return Operation(name, parameters, metrics, access.engine, wanted.user_metadata)


def named(spark: SparkSession, access: TableAccess, wanted: Wanted, committed: Committed) -> TableAccess:
    """The table under its new name.

    Raises:
        InvalidRequest: The catalog takes no such entry; the table stands, and the hint says how to name it.
    """
    assert wanted.name is not None
    try:
        entry = register_table(spark, wanted.name, access.url, PROVIDER, wanted.location is None, wanted.comment)
    except AlluviumError as error:
        error.url = error.url or access.url
        error.hint = (
            f"the table itself stands at version {committed.version}: once the catalog takes the name, "
            f"CREATE TABLE {wanted.name} USING delta LOCATION {access.url!r} gives it; or delete the folder"
        )
        raise
    return TableAccess(spark, access.url, access.options, entry)


def _ensure_generated(spark: SparkSession, schema: Struct) -> None:
    """Generated columns give what they say, out of columns that are there; identity columns can count."""
    plain = Struct(tuple(f for f in schema.fields if GENERATION not in f.metadata))
    for f in schema.fields:
        if f"{IDENTITY}start" in f.metadata and f.type != t.LONG:
            raise InvalidRequest(
                f"an identity column must be bigint, not {f.type}",
                code="invalid-identity",
                column=f.name,
                hint="declare it as BIGINT",
            )
        expression = f.metadata.get(GENERATION)
        if not isinstance(expression, str):
            continue
        found = expression_type(spark, plain, expression, f.name)
        if found != f.type:
            raise InvalidRequest(
                f"the column is {f.type}, but what it is generated as ({expression}) is {found}",
                code="invalid-expression",
                column=f.name,
                hint=f"cast({expression} as {f.type})",
            )


def ensure_empty(store: Store, has_columns: bool = True) -> None:
    """Refuses a place where something else lies.

    Args:
        store: The place.
        has_columns: Whether columns are told, or those of a table that is there were meant.

    Raises:
        InvalidRequest: `"location-not-empty"`.
    """
    if next(iter(store.list_tree("")), None) is not None:
        raise InvalidRequest(
            "the location is not empty, and what lies there is not a Delta table"
            + ("" if has_columns else "; no columns are told, as for a table that is there"),
            code="location-not-empty",
            url=store.url,
            hint="choose another location, or remove the files; CONVERT TO DELTA makes a table of Parquet files",
        )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()

"""Paimon tables as DataFrames: rows, changes and system tables, each on the lane that can read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from alluvium.api.calls import narrowed, read_condition, read_source
from alluvium.api.paimon.paimon_range import named_range
from alluvium.api.server_scan import WorkerRequest, read_by_workers, resolve_columns
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms.spec import ROW_ID
from alluvium.paimon.view.changes import BINLOG, PLACES, ROW_KIND
from alluvium.paimon.view.changes import KINDS as KIND_NAMES
from alluvium.paimon.view.merge import KIND, SEQUENCE
from alluvium.paimon.view.source import (
    AUDIT,
    CHANGES,
    DIFF_AFTER,
    DIFF_BEFORE,
    OPTIMIZED,
    PLACED,
    TRACKING,
    PaimonSource,
    View,
    has_ids,
)
from alluvium.paimon.view.system.system_tables import read_system_table
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_from_arrow
from alluvium.schema.types import Array, Map, Struct
from alluvium.spark.naming.names import nullable_schema, quote, quote_text
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan.native_lane.native import unreadable
from alluvium.spark.sessions.session import LaneChoice, naming_readers
from alluvium.storage.locating import locating

#: How texts name the ids of rows.
_IDS = re.compile(rf"\b({ROW_ID}|{SEQUENCE})\b", re.IGNORECASE)
#: System tables that are views of the table's rows.
_SECOND = "_IS_SECOND"
_VIEWS = {"audit_log": AUDIT, "binlog": AUDIT, "ro": OPTIMIZED, "row_tracking": TRACKING, "row_lineage": TRACKING}


def read_view(
    spark: SparkSession,
    request: WorkerRequest,
    choice: LaneChoice,
    where: str | Column | None,
    columns: Sequence[str] | None,
    system: str | None,
    row_ids: bool = False,
) -> DataFrame:
    """The table's rows, or one of its system tables; arguments as of `read_rows` and `read_system`.

    Args:
        row_ids: Whether the rows' ids and sequence numbers are columns, too; they are where `columns` names them.

    Raises:
        InvalidRequest: The table does not track rows (`"row-tracking-disabled"`).
    """
    if system is None:
        snapshot = _snapshot(request)
        own = snapshot.schema.names
        if columns is None and not row_ids and _asks_for_ids(where, snapshot):
            columns = own
            request = _of(request, snapshot, View(TRACKING))
        elif row_ids or _names_ids(columns, own) or _asks_for_ids(where, snapshot):
            if columns is not None and not isinstance(columns, str):
                columns = [each for name in columns for each in (own if name == "*" else (name,))]
            request = _of(request, snapshot, View(TRACKING))
        return read_rows(spark, request, choice, where, columns)
    frame = read_system(spark, request, choice, system)
    names = None if columns is None else resolve_columns(columns, frame.columns)
    return narrowed(frame, where, names)


def _asks_for_ids(where: str | Column | None, snapshot: Snapshot) -> bool:
    """Whether a condition's text may name the ids of rows; a column names what the rows have."""
    return isinstance(where, str) and has_ids(snapshot.schema) and _IDS.search(where) is not None


def _names_ids(columns: Sequence[str] | None, own: Sequence[str]) -> bool:
    if columns is None or isinstance(columns, str):
        return False
    known = {name.lower() for name in own}
    return any(name.upper() in (ROW_ID, SEQUENCE) and name.lower() not in known for name in columns)


def read_rows(
    spark: SparkSession,
    request: WorkerRequest,
    choice: LaneChoice,
    where: str | Column | None = None,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """A view of a table: by Spark's own reader and operators where they know the files and the merge, else by workers.

    Args:
        spark: The session.
        request: What to read; its source is of a Paimon table.
        choice: The lane that the session takes.
        where: Rows to keep.
        columns: Names of the view's columns.
    """
    plan = request.source.plan_scan(None)
    predicate = read_condition(spark, where, plan.schema, request.time_zone, choice)
    names = None if columns is None else resolve_columns(columns, plan.schema.names)
    if choice.lane != "python":
        problem = unreadable(plan)
        if problem is None:
            choice = naming_readers(choice, {part.file_format for part in plan.parts})
            return narrowed(read_source(spark, request.source, choice, request.is_pinned), where, names)
        request = replace(request, why=f"{problem}; Python workers read instead")
    return read_by_workers(spark, request, names, where, predicate)


def read_system(spark: SparkSession, request: WorkerRequest, choice: LaneChoice, name: str) -> DataFrame:
    """A system table, in the columns of `PaimonView.system`.

    Raises:
        InvalidRequest: There is no such table (`"unknown-system-table"`).
    """
    snapshot = _snapshot(request)
    view = _VIEWS.get(name)
    if view is None:
        with locating(snapshot.store, snapshot.version):
            table = read_system_table(snapshot, name)
        # Without a schema, Spark takes times without a zone for times of the session's.
        schema = to_spark(nullable_schema(schema_from_arrow(table.schema)))
        return spark.createDataFrame(table, schema=schema)
    frame = read_rows(spark, _of(request, snapshot, View(view)), choice)
    if view != AUDIT:
        return frame
    rows = kinds_first(frame, "rowkind")
    return _as_arrays(rows) if name == "binlog" else rows


def read_changes(
    spark: SparkSession,
    request: WorkerRequest,
    choice: LaneChoice,
    start: object,
    end: object,
    mode: str,
) -> DataFrame:
    """The changes between two snapshots, in the columns of `PaimonView.changes`."""
    snapshot = _snapshot(request)
    with locating(snapshot.store, None):
        chosen = named_range(snapshot, start, end, mode)
    if chosen.mode != "diff":
        # Rows without a key are added, and never updated.
        is_packed = mode == BINLOG and bool(snapshot.schema.primary_keys)
        view = View(PLACED if is_packed else CHANGES, chosen.start, chosen.end, chosen.mode)
        rows = read_rows(spark, _of(request, snapshot, view), choice)
        told = kinds_first(_packed(rows) if is_packed else rows, ROW_KIND)
        return _as_arrays(told) if mode == BINLOG and not is_packed else told
    if not snapshot.schema.primary_keys:
        raise InvalidRequest("the mode diff needs a primary key", code="invalid-mode", hint='use mode="delta"')
    views = [View(name, chosen.start, chosen.end) for name in (DIFF_AFTER, DIFF_BEFORE)]
    after, before = (read_rows(spark, _of(request, snapshot, view), choice) for view in views)
    schema = PaimonSource(snapshot, views[0]).schema
    return kinds_first(_difference(after, before, schema), ROW_KIND)


def _snapshot(request: WorkerRequest) -> Snapshot:
    assert isinstance(request.source, PaimonSource)
    return request.source.snapshot


def _of(request: WorkerRequest, snapshot: Snapshot, view: View) -> WorkerRequest:
    source = PaimonSource(snapshot, view)
    return replace(request, source=source, is_pinned=source.is_pinned)


def kinds_first(frame: DataFrame, name: str) -> DataFrame:
    """Numbers of kinds as `+I`, `-U`, `+U`, `-D`."""
    names = ", ".join(quote_text(kind) for kind in KIND_NAMES)
    own = [quote(column) for column in frame.columns if column != KIND]
    return frame.select(sql_column(f"element_at(array({names}), {quote(KIND)} + 1)").alias(name), *own)


def _packed(rows: DataFrame) -> DataFrame:
    """As `changes.packed`, of the same columns."""
    file, row = map(sf.col, PLACES)
    window = Window.partitionBy(file).orderBy(row)
    before, after = map(KIND_NAMES.index, ("-U", "+U"))
    kind, own = sf.col(quote(KIND)), [name for name in rows.columns if name not in (KIND, *PLACES)]
    is_first = (kind == before) & (sf.coalesce(sf.lead(kind).over(window), sf.lit(-1)) == after)
    is_second = (kind == after) & (sf.coalesce(sf.lag(kind).over(window), sf.lit(-1)) == before)
    values = [sf.col(quote(name)) for name in own]
    both = [
        sf.when(is_first, sf.array(value, sf.lead(value).over(window))).otherwise(sf.array(value)) for value in values
    ]
    kinds = sf.when(is_first, sf.lit(after)).otherwise(kind).alias(KIND)
    told = rows.select(
        kinds, *(value.alias(name) for value, name in zip(both, own, strict=True)), is_second.alias(_SECOND)
    )
    return told.where(~sf.col(_SECOND)).drop(_SECOND)


def _as_arrays(rows: DataFrame) -> DataFrame:
    """As `changes.as_arrays`."""
    kind, *own = rows.columns
    return rows.select(quote(kind), *(sql_column(f"array({quote(name)})").alias(name) for name in own))


def _difference(after: DataFrame, before: DataFrame, schema: Struct) -> DataFrame:
    """Rows of one state that the other does not have.

    Specification: `IncrementalDiffSplitRead`; keys that are gone are left out, as batch reads leave deletions out.
    """
    texts = []
    # Whether the same values came as an insert or an update makes no difference between two states.
    for f in (f for f in schema.fields if f.name != KIND):
        own, other = f"a.{quote(f.name)}", f"b.{quote(f.name)}"
        if isinstance(f.type, Map):
            own, other = f"map_entries({own})", f"map_entries({other})"
        if _is_incomparable(f.type.value if isinstance(f.type, Map) else f.type):
            raise UnsupportedFeature(
                f"Spark cannot compare values of type {f.type}",
                code="unsupported-changes",
                column=f.name,
                features=("diff",),
                hint="read the changes without Spark: alluvium.open(url).changes(start, end, mode='diff')",
            )
        texts.append(f"{own} <=> {other}")
    condition = " and ".join(texts)
    a, b = after.alias("a"), before.alias("b")
    return a.join(b, sql_column(condition), "left_anti")


def _is_incomparable(kind: t.DataType) -> bool:
    if isinstance(kind, Struct):
        return any(_is_incomparable(f.type) for f in kind.fields)
    if isinstance(kind, Array):
        return _is_incomparable(kind.element)
    return isinstance(kind, Map) or kind == t.VARIANT

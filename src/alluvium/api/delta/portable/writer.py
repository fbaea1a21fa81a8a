"""Rows of Arrow into Delta tables, without Spark."""

from __future__ import annotations

from functools import partial

import alluvium
from alluvium.api.delta.table import Table
from alluvium.api.delta.written.options import (
    engine_options,
    is_dynamic,
    parse_data_change,
    parse_sort_by,
    parse_txn,
    write_operation,
)
from alluvium.api.delta.written.target import NewRows, ensure_welcome, write_target
from alluvium.api.doors import ArrowWriting
from alluvium.api.options import WRITE, WRITE_LATER, Options, parse_options
from alluvium.commands.rows_here.replace import replace_rows_here
from alluvium.commands.rows_here.write import write_batches
from alluvium.commands.written import Request
from alluvium.delta.terms.partition_values import format_partition_values
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import is_understood
from alluvium.plan.changes import Committed, ReadScope, Replace
from alluvium.schema.arrow import schema_from_arrow
from alluvium.storage.places import same_place
from alluvium.storage.store import Store


def write_arrow(writing: ArrowWriting) -> Committed:
    """`alluvium.write` into a Delta table, of rows that no session has.

    Raises:
        InvalidRequest: The rows or options do not fit.
        UnsupportedFeature: The table, or an option, needs Spark.
    """
    rows, store, save_mode, names = writing.rows, writing.store, writing.save_mode, writing.partition_by
    parsed = parse_options(writing.options, WRITE, WRITE_LATER)
    own = own_version(writing.source, store)
    new = NewRows(partial(schema_from_arrow, rows.schema), names, parsed, save_mode)
    target = write_target(store, new, writing.retry, base=own)
    txn = parse_txn(parsed)
    if target.snapshot is not None:
        ensure_welcome(save_mode, target.snapshot)
        if save_mode == "Ignore" or target.snapshot.has_come_to(txn):
            return Committed.nothing(target.snapshot.version)
    replaces = _replace(parsed, save_mode, target)
    request = Request(
        replaces,
        write_operation(f"Alluvium/{alluvium.__version__}", save_mode, names, parsed),
        # Of rows in memory nobody says where they come from.
        ReadScope.nothing() if own is None else ReadScope.table(),
        txn,
        engine_options(parsed),
        parse_data_change(parsed, save_mode, target),
        parse_sort_by(parsed, target.config.schema),
    )
    if target.replaces_rows(replaces):
        return replace_rows_here(rows, target, request)
    return write_batches(rows, target, request, format_partition_values)


def own_version(data: object, store: Store) -> Snapshot | None:
    """The version whose rows data are, where it is one of this very table: what came since they have not seen.

    Args:
        data: What the caller gave for rows.
        store: The table's objects.
    """
    return data.snapshot if isinstance(data, Table) and same_place(data.url, store.url) else None


def _replace(parsed: Options, save_mode: str, target: DeltaTarget) -> Replace | None:
    """What an overwrite replaces; None: it is none."""
    if save_mode != "Overwrite":
        return None
    asked = next((name for name in ("replaceUsing", "replaceOn") if parsed.get(name) is not None), None)
    if asked is not None:
        raise UnsupportedFeature(
            f"{asked} needs Spark", code="needs-spark", features=(asked,), hint="say replaceWhere, or use a session"
        )
    where, dynamic = parsed.get("replaceWhere"), is_dynamic(parsed) and bool(target.config.partition_columns)
    if where is None:
        return Replace(dynamic=dynamic)
    if dynamic:
        raise InvalidRequest(
            "replaceWhere and dynamic partition overwrite exclude each other",
            code="contradicting-options",
            hint="replaceWhere names what is replaced; leave partitionOverwriteMode out",
        )
    schema = target.schema if target.snapshot is None else target.snapshot.config.schema
    condition = parse_predicate(where, schema)
    if not is_understood(condition):
        raise UnsupportedFeature(
            f"the condition of replaceWhere: {where}: only Spark can evaluate this",
            code="needs-spark",
            features=("replaceWhere",),
            hint="write by a session: alluvium.write(spark.createDataFrame(...), url, ...)",
        )
    return Replace(condition, where)

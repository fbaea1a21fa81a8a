"""DELETE, UPDATE and MERGE of Delta tables without Spark, from a request to the commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec
import pyarrow as pa

from alluvium.commands.repeating import Txn, repeat_until_committed
from alluvium.commands.rows.remove_whole import remove_whole
from alluvium.commands.rows.verb import Verb, delete_metrics, merge_metrics, update_metrics
from alluvium.commands.rows_here.apply import RowsHere
from alluvium.commands.rows_here.delete import Deletion
from alluvium.commands.rows_here.judged import Judge
from alluvium.commands.rows_here.merge import ClauseText, Merging
from alluvium.commands.rows_here.names import Names, ensure_distinct
from alluvium.commands.rows_here.new_rows import Values, assigned
from alluvium.commands.rows_here.update import Update
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows.append_only import ensure_removable
from alluvium.delta.rows.candidates import candidates_of, choose_candidates
from alluvium.delta.rows.modes import row_change_mode
from alluvium.delta.rows.row_edits import live_counts
from alluvium.delta.view.scan import decided_files
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.expr.tree import Expression, names_only, within
from alluvium.plan.changes import (
    Committed,
    Operation,
    Preview,
)
from alluvium.plan.merging import When, clause_problem, merge_parameters
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.types import JsonValue, Struct
from alluvium.storage.locating import locating


@dataclass(frozen=True, slots=True)
class Asked:
    """How a verb is to be carried out.

    Attributes:
        engine: Who does it.
        alias: The table's name in expressions.
        dry_run: Whether only to tell what would change.
        retry: How often a lost commit is tried again.
        txn: An application's id and version.
        has_read: Whether rows that come were read from the very version of the table that the verb begins with.
        time_zone: In which expressions are evaluated.
    """

    engine: str
    alias: str
    dry_run: bool = False
    retry: RetryPolicy = DEFAULT_RETRY
    txn: Txn | None = None
    has_read: bool = False
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class MergeText:
    """A merge as it was asked for.

    Attributes:
        rows: The source, under the types of a table.
        schema: Its columns.
        name: Of the source in expressions.
        condition: Which of its rows meet which of the table, as SQL.
        clauses: In order.
    """

    rows: pa.Table
    schema: Struct
    name: str
    condition: str
    clauses: tuple[ClauseText, ...] = ()

    @property
    def removes(self) -> bool:
        """Whether rows of the table may go, or change."""
        return any(clause.when is not When.NOT_MATCHED for clause in self.clauses)

    def parameters(self) -> dict[str, JsonValue]:
        """As the history shows them."""
        clauses = [(clause.when, clause.action, clause.condition) for clause in self.clauses]
        return merge_parameters(self.condition, clauses)


def delete_here(snapshot: Snapshot, condition: str | None, asked: Asked) -> Committed | Preview:
    """Deletes the rows for which a condition is true; without one, all.

    Raises:
        InvalidRequest: The condition does not parse or names no column, or the table is append-only.
        UnsupportedFeature: Only Spark evaluates it (`"needs-spark"`), or the table needs a writer that we are not.
        CommitConflict: Another writer touched what was read, and the verb could not be repeated.
    """
    return _carried_out(snapshot, asked, partial(_delete, condition, asked, time.monotonic()))


def update_here(
    snapshot: Snapshot, condition: str | None, values: Mapping[str, str], asked: Asked
) -> Committed | Preview:
    """Updates the rows for which a condition is true; without one, all.

    Raises:
        InvalidRequest: The condition or a value does not parse, columns are unknown or set twice, new rows do not fit
            the table, or it is append-only.
        UnsupportedFeature: As of `delete_here`.
        CommitConflict: As of `delete_here`.
    """
    return _carried_out(snapshot, asked, partial(_update, condition, values, asked, time.monotonic()))


def merge_here(snapshot: Snapshot, request: MergeText, asked: Asked) -> Committed | Preview:
    """Merges a source into the table.

    Raises:
        InvalidRequest: Expressions do not parse, a row of the table has several matches (`multiple-matches`), clauses
            are missing or never reached, or new rows do not fit the table.
        UnsupportedFeature: As of `delete_here`; or the condition compares nothing by `=`.
        CommitConflict: As of `delete_here`.
    """
    problem = clause_problem([(clause.when, clause.condition is not None) for clause in request.clauses])
    if problem is not None:
        raise problem
    ensure_distinct({asked.alias: snapshot.config.schema, request.name: request.schema})
    return _carried_out(snapshot, asked, partial(_merge, request, asked, time.monotonic()), removes=request.removes)


def _carried_out(
    snapshot: Snapshot,
    asked: Asked,
    verb: Callable[[DeltaTarget, Snapshot], Committed | Preview],
    *,
    removes: bool = True,
) -> Committed | Preview:
    def attempt(base: Snapshot, policy: RetryPolicy) -> Committed | Preview:
        with locating(base.store, base.version):
            ensure_writable(base.config)
            if removes:
                ensure_removable(base.config)
            return verb(DeltaTarget(base.store, base.config, base, policy), base)

    obstacle = "its source was read from the table itself" if asked.has_read else None
    return repeat_until_committed(snapshot, asked.retry, attempt, lambda: obstacle, asked.txn)


def _delete(
    condition: str | None, asked: Asked, started: float, target: DeltaTarget, snapshot: Snapshot
) -> Committed | Preview:
    where = _condition(condition, snapshot, asked, "DELETE")
    shown = msgspec.json.encode([condition or "true"]).decode()
    verb = Verb(Operation("DELETE", {"predicate": shown}, {}, asked.engine), delete_metrics, started, txn=asked.txn)
    decided = decided_files(snapshot, where)
    if decided is not None and live_counts(snapshot, decided).null_count == 0:
        return remove_whole(target, candidates_of(snapshot, decided), where, verb, asked.dry_run)
    candidates = choose_candidates(snapshot, where)
    mode = row_change_mode(target.config, candidates, masks=True)
    judge: Judge = Deletion(where, asked.time_zone)
    return _done(RowsHere(target, candidates, judge, where, verb, mode, asked.time_zone), asked)


def _update(
    condition: str | None,
    values: Mapping[str, str],
    asked: Asked,
    started: float,
    target: DeltaTarget,
    snapshot: Snapshot,
) -> Committed | Preview:
    where, schema = _condition(condition, snapshot, asked, "UPDATE"), snapshot.config.schema
    names = Names({asked.alias: schema}, asked.time_zone)
    found = Values(schema, assigned(values, schema, names, asked.alias), asked.time_zone)
    partitions = {(name,) for name in snapshot.config.partition_columns}
    is_whole = where is None or names_only(where, partitions)
    shown = msgspec.json.encode([] if condition is None else [condition]).decode()
    operation = Operation("UPDATE", {"predicate": shown}, {}, asked.engine)
    verb = Verb(operation, partial(update_metrics, is_whole), started, txn=asked.txn)
    candidates = choose_candidates(snapshot, where)
    # Where every row changes there is nothing to keep behind masks.
    mode = row_change_mode(target.config, candidates, masks=where is not None)
    judge: Judge = Update(where, found, names, asked.alias)
    return _done(RowsHere(target, candidates, judge, where, verb, mode, asked.time_zone), asked)


def _merge(
    request: MergeText, asked: Asked, started: float, target: DeltaTarget, snapshot: Snapshot
) -> Committed | Preview:
    judge = Merging(
        snapshot.config.schema,
        request.rows,
        request.schema,
        asked.alias,
        request.name,
        request.condition,
        request.clauses,
        asked.time_zone,
    )
    source = {"numSourceRows": request.rows.num_rows}
    operation = Operation("MERGE", request.parameters(), {}, asked.engine)
    verb = Verb(operation, partial(merge_metrics, source), started, txn=asked.txn)
    candidates = choose_candidates(snapshot, judge.where)
    mode = row_change_mode(target.config, candidates, masks=True)
    # A source that is the table's own depends on rows that the condition does not speak of.
    scope = None if asked.has_read else judge.where
    return _done(RowsHere(target, candidates, judge, scope, verb, mode, asked.time_zone), asked)


def _condition(text: str | None, snapshot: Snapshot, asked: Asked, verb: str) -> Expression | None:
    if text is None:
        return None
    names = Names({asked.alias: snapshot.config.schema}, asked.time_zone)
    return within(names.condition(text, f"the condition of {verb}"), asked.alias)


def _done(rows: RowsHere, asked: Asked) -> Committed | Preview:
    return rows.preview() if asked.dry_run else rows.apply()

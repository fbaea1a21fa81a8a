"""MERGE: a source's rows joined to the table's, and what each pair, or each row without a partner, comes to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.commands.delete import TABLE
from alluvium.commands.layout import session_layout
from alluvium.commands.merge.merge_clauses import Action, Clause, When, ensure_clauses, taken_columns, taken_names
from alluvium.commands.merge.merge_explain import MergeExplanation, explain_merge
from alluvium.commands.merge.merge_rows import MergeRows, hidden_name
from alluvium.commands.merge.merge_source import BROADCAST_BYTES, MergeSource, SourceFigures, keep_source
from alluvium.commands.own_reads import ensure_current, own_table
from alluvium.commands.repeat import Txn, is_recorded, until_committed
from alluvium.commands.rows.apply_changes import apply_changes
from alluvium.commands.rows.row_changes import Counts, Join, RowChanges, Verb, mode_of
from alluvium.delta.description.merge_schema import merged_config
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.rows.candidates import Candidates, choose_candidates
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest
from alluvium.expr.tree import Expression, conjunction
from alluvium.plan.changes import Committed, EditFigures, Operation, Preview, ReadScope, RowChangeMode
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.schema.types import JsonValue, Struct
from alluvium.spark.naming.types import from_spark
from alluvium.spark.positions import Located
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.scan.numbering import skips_within_files
from alluvium.spark.statements.resolve import (
    Qualifier,
    Resolved,
    condition_tree,
    named_rows,
    resolve_condition,
    shown_text,
)
from alluvium.storage.locating import locating


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What to merge.

    Attributes:
        source: The rows that come.
        condition: Which of them meet which rows of the table.
        clauses: In order.
        name: Of the table in expressions.
        evolves: Whether the table takes over new columns of the source.
    """

    source: DataFrame
    condition: Column | str
    clauses: tuple[Clause, ...] = ()
    name: Qualifier = (TABLE,)
    evolves: bool = False

    def of(self, when: When) -> tuple[Clause, ...]:
        """The clauses about some rows, in order."""
        return tuple(c for c in self.clauses if c.when is when)


def merge_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    request: MergeRequest,
    engine: str,
    dry_run: bool = False,
    retry: RetryPolicy = DEFAULT_RETRY,
    txn: Txn | None = None,
) -> Committed | Preview:
    """Merges a source into a table.

    Raises:
        InvalidRequest: Expressions do not resolve (`invalid-expression`), a row of the table has several matches
            (`multiple-matches`), clauses are missing or never reached, or new rows do not fit the table.
        UnsupportedFeature: The table needs a writer that we are not.
        CommitConflict: Another writer touched what was read, and the verb could not be repeated; or the source shows
            an older version of the table itself.
    """
    started = time.monotonic()

    def attempt(base: Snapshot, policy: RetryPolicy) -> Committed | Preview:
        with _merging(spark, base, request, source, policy, started) as merge:
            return merge.run(base, engine, dry_run, txn)

    with _kept(snapshot, request) as source:
        # Rows that were read from an older version would be merged into a newer one.
        if not is_recorded(snapshot, txn):
            ensure_current(source.reads, snapshot, source.scope, admits_blind=False)
        obstacle = "its source was read from the table itself" if source.reads else None
        return until_committed(spark, snapshot, retry, attempt, obstacle, txn)


def explain_rows(spark: SparkSession, snapshot: Snapshot, request: MergeRequest) -> MergeExplanation:
    """How the source would be merged; it is counted, the table is not read.

    Raises:
        InvalidRequest: Expressions do not resolve (`invalid-expression`), or clauses are missing or never reached.
        UnsupportedFeature: The table needs a writer that we are not.
    """
    started = time.monotonic()
    with (
        _kept(snapshot, request) as source,
        _merging(spark, snapshot, request, source, DEFAULT_RETRY, started) as merge,
    ):
        planned = merge.plan(snapshot)
        broadcasts = planned.rows.broadcasts
        return explain_merge(planned.candidates, planned.mode, planned.figures, request.clauses, broadcasts=broadcasts)


@contextmanager
def _kept(snapshot: Snapshot, request: MergeRequest) -> Iterator[MergeSource]:
    """The source, computed once however often the merge is carried out."""
    ensure_clauses(request.clauses)
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        source = keep_source(request.source, own_table(snapshot))
        try:
            yield source
        finally:
            source.release()


@contextmanager
def _merging(
    spark: SparkSession,
    snapshot: Snapshot,
    request: MergeRequest,
    source: MergeSource,
    retry: RetryPolicy,
    started: float,
) -> Iterator[_Merge]:
    with locating(snapshot.store, snapshot.version):
        ensure_writable(snapshot.config)
        request = replace(request, source=source.rows)
        target = replace(_target(snapshot, request, retry), layout=session_layout(spark))
        rows = MergeRows(spark, target, source, request.condition, request.clauses, request.name, request.evolves)
        yield _Merge(spark, target, request, rows, started)


def _target(snapshot: Snapshot, request: MergeRequest, retry: RetryPolicy) -> DeltaTarget:
    config = snapshot.config
    if request.evolves:
        names = taken_names(request.clauses, request.name)
        # Of no other column anything need be known: it may be of a type that no table has.
        chosen = [f for f in request.source.schema.fields if names is None or f.name.casefold() in names]
        data = from_spark(StructType(chosen))
        assert isinstance(data, Struct)
        config = merged_config(config, taken_columns(request.clauses, data, request.name), casts=True)
    return DeltaTarget(snapshot.store, config, snapshot, retry)


@dataclass(frozen=True, slots=True)
class _Planned:
    """What is known before the table is read."""

    table: DataFrame
    condition: Resolved
    figures: SourceFigures
    rows: MergeRows
    where: Expression | None
    candidates: Candidates
    mode: RowChangeMode


@dataclass(frozen=True, slots=True)
class _Merge:
    spark: SparkSession
    target: DeltaTarget
    request: MergeRequest
    rows: MergeRows
    started: float
    figures: dict[str, int] = field(default_factory=dict)

    def plan(self, snapshot: Snapshot) -> _Planned:
        """Resolves everything, counts the source, chooses files."""
        request = self.request
        table = named_rows(read_native(self.spark, DeltaSource(snapshot)), request.name)
        joined = table.join(request.source)
        condition = resolve_condition(joined, request.condition, "the condition of MERGE")
        self.rows.ensure_resolvable(table)
        figures = self._measured(table, condition, snapshot)
        own = condition_tree(table, condition, snapshot.config.schema, request.name)
        skips = skips_within_files(own, snapshot.config.partition_columns)
        rows = replace(self.rows, broadcasts=self._broadcasts(figures), skips=skips)
        where = None if request.of(When.NOT_MATCHED_BY_SOURCE) else conjunction((own, *figures.bounds))
        candidates = choose_candidates(snapshot, where)
        mode = RowChangeMode.MASK_ROWS if rows.only_inserts else mode_of(self.target, candidates)
        return _Planned(table, condition, figures, rows, where, candidates, mode)

    def run(self, snapshot: Snapshot, engine: str, dry_run: bool, txn: Txn | None) -> Committed | Preview:
        """Carries the merge out."""
        p = self.plan(snapshot)
        operation = Operation("MERGE", self._parameters(p.rows, p.table, p.condition), {}, engine)
        join = Join(
            inserts=bool(self.request.of(When.NOT_MATCHED)),
            numbered=p.rows.numbered,
            ensure_single=lambda located: self._ensure_single(p.rows, p.candidates, located),
        )
        # A source that is the table's own depends on rows that the condition does not speak of.
        where = ReadScope.rows(p.where).beside(p.rows.source.scope).where
        changes = RowChanges(p.rows.first_pass, p.candidates, where, join)
        verb = Verb(operation, self._metrics, self.started, txn=txn)
        return apply_changes(self.spark, self.target, changes, verb, p.mode, dry_run=dry_run)

    def _measured(self, table: DataFrame, condition: Resolved, snapshot: Snapshot) -> SourceFigures:
        begun = time.monotonic()
        lonely = bool(self.request.of(When.NOT_MATCHED_BY_SOURCE))
        figures = self.rows.source.measure(table, None if lonely else condition, snapshot.config.schema)
        self.figures["numSourceRows"] = figures.rows
        self.figures["materializeSourceTimeMs"] = int((time.monotonic() - begun) * 1000)
        return figures

    def _broadcasts(self, figures: SourceFigures) -> bool:
        """Whether the source is sent to the table's rows, unless the user forbids that altogether."""
        allowed = self.spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
        return figures.size_bytes <= BROADCAST_BYTES and not str(allowed).startswith("-")

    def _ensure_single(self, rows: MergeRows, candidates: Candidates, located: Located) -> None:
        """A row may have several matches only where all of them come to the same: it goes."""
        matched = self.request.of(When.MATCHED)
        is_plain = len(matched) == 1 and matched[0].action is Action.DELETE and matched[0].condition is None
        if not matched or is_plain or located.total("matches") == located.total("matched"):
            return
        raise InvalidRequest(
            f"{located.total('matches') - located.total('matched')} rows of the source are one too many: they match "
            f"rows of the table that others match, too{rows.examples(candidates)}",
            code="multiple-matches",
            hint="make the source's keys unique first, e.g. by dropDuplicates()",
        )

    def _parameters(self, rows: MergeRows, table: DataFrame, condition: Resolved) -> dict[str, JsonValue]:
        def listed(when: When) -> str:
            return msgspec.json.encode(
                [_shown(c, rows.condition_text(c, table)) for c in self.request.of(when)]
            ).decode()

        return {
            "predicate": msgspec.json.encode([shown_text(table, condition, hidden_name(self.request.name))]).decode(),
            "matchedPredicates": listed(When.MATCHED),
            "notMatchedPredicates": listed(When.NOT_MATCHED),
            "notMatchedBySourcePredicates": listed(When.NOT_MATCHED_BY_SOURCE),
        }

    def _metrics(self, counts: Counts, figures: EditFigures) -> Mapping[str, int]:
        return {
            **self.figures,
            "numTargetRowsInserted": counts.inserted,
            "numTargetRowsUpdated": counts.updated,
            "numTargetRowsMatchedUpdated": counts.updated - counts.unmatched_updated,
            "numTargetRowsNotMatchedBySourceUpdated": counts.unmatched_updated,
            "numTargetRowsDeleted": counts.deleted,
            "numTargetRowsMatchedDeleted": counts.deleted - counts.unmatched_deleted,
            "numTargetRowsNotMatchedBySourceDeleted": counts.unmatched_deleted,
            "numTargetRowsCopied": counts.copied,
            "numOutputRows": counts.copied + counts.updated + counts.inserted,
            "numTargetFilesAdded": figures.files_added,
            "numTargetBytesAdded": figures.bytes_added,
            "numTargetFilesRemoved": figures.files_removed,
            "numTargetBytesRemoved": figures.bytes_removed,
            "numTargetDeletionVectorsAdded": figures.masks_added,
            "numTargetDeletionVectorsUpdated": figures.masks_updated,
            "numTargetDeletionVectorsRemoved": figures.masks_removed,
            "numTargetChangeFilesAdded": figures.change_files,
            "scanTimeMs": counts.scan_ms,
            "rewriteTimeMs": counts.rewrite_ms,
        }


def _shown(clause: Clause, condition: str | None) -> dict[str, str]:
    shown = {} if condition is None else {"predicate": condition}
    return {**shown, "actionType": clause.action.value}

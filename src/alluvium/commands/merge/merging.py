"""One attempt at a MERGE, of whichever table: the source is measured, files are chosen, the changes are applied."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession

from alluvium.commands.any_rows import read_any
from alluvium.commands.delete import TABLE
from alluvium.commands.merge.merge_clauses import Clause
from alluvium.commands.merge.merge_rows import MergeRows, hidden_name
from alluvium.commands.merge.merge_source import BROADCAST_BYTES, SourceFigures
from alluvium.commands.own_reads import unpinned
from alluvium.commands.repeating import Txn
from alluvium.commands.rows.apply_changes import apply_changes
from alluvium.commands.rows.row_changes import Join, RowChanges
from alluvium.commands.rows.verb import Verb, merge_metrics
from alluvium.errors import InvalidRequest
from alluvium.expr.tree import Expression, conjunction
from alluvium.plan.changes import Committed, Operation, Preview, ReadScope, RowChangeMode
from alluvium.plan.merging import Action, When, merge_parameters
from alluvium.plan.ports import RowPlaces, RowTable, RowTarget
from alluvium.schema.types import JsonValue
from alluvium.spark.positions import Located
from alluvium.spark.scan.numbering import skips_within_files
from alluvium.spark.statements.resolve import (
    Qualifier,
    Resolved,
    condition_tree,
    named_rows,
    resolve_condition,
    shown_text,
)
from alluvium.spark.statements.statement import reads_so_far
from alluvium.spark.statements.table_reads import TableRead
from alluvium.storage.store import OpenStore


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


@dataclass(frozen=True, slots=True)
class Planned:
    """What is known before the table is read."""

    parameters: dict[str, JsonValue]
    figures: SourceFigures
    rows: MergeRows
    where: Expression | None
    candidates: RowPlaces
    mode: RowChangeMode


@dataclass(frozen=True, slots=True)
class Merge:
    """One attempt at a merge.

    Attributes:
        spark: The session.
        target: The table as it will be.
        request: What to merge.
        rows: What rows come to.
        started: When the verb began (`time.monotonic`).
        ensure_current: Raises where scans of the table itself, in subqueries, show what is no longer so.
        open_store: The table's objects for Python workers.
        figures: Of the source.
    """

    spark: SparkSession
    target: RowTarget
    request: MergeRequest
    rows: MergeRows
    started: float
    ensure_current: Callable[[tuple[TableRead, ...]], None]
    open_store: OpenStore | None = None
    figures: dict[str, int] = field(default_factory=dict)

    def plan(self, version: RowTable) -> Planned:
        """Resolves everything, counts the source, chooses files."""
        request = self.request
        table = named_rows(read_any(self.spark, version.source, self.open_store), request.name)
        joined = table.join(request.source)
        condition = resolve_condition(joined, request.condition, "the condition of MERGE")
        self.rows.ensure_resolvable(table)
        self.ensure_current(unpinned(reads_so_far()))
        figures = self._measured(table, condition, version)
        own = condition_tree(table, condition, version.schema, request.name)
        skips = skips_within_files(own, tuple(version.partition_columns))
        rows = replace(self.rows, skips=skips)
        return self.planned(version, rows, self._parameters(table, condition), figures, own)

    def planned(
        self,
        version: RowTable,
        rows: MergeRows,
        parameters: dict[str, JsonValue],
        figures: SourceFigures,
        own: Expression | None,
    ) -> Planned:
        """Chooses files.

        Args:
            version: Of the table.
            rows: What rows come to.
            parameters: As the history shows the merge.
            figures: Of the source.
            own: What rows of the table that meet one have in common; None: nothing is known.
        """
        known = figures.bounds if own is None else (own, *figures.bounds)
        where = None if self.request.of(When.NOT_MATCHED_BY_SOURCE) else conjunction(tuple(known))
        candidates = version.candidates(where)
        mode = version.mode(candidates)
        if rows.only_inserts and mode in (RowChangeMode.REWRITE_FILES, RowChangeMode.PATCH_COLUMNS):
            mode = RowChangeMode.MASK_ROWS
        rows = replace(rows, broadcasts=self._broadcasts(figures))
        return Planned(parameters, figures, rows, where, candidates, mode)

    def run(self, version: RowTable, engine: str, dry_run: bool, txn: Txn | None) -> Committed | Preview:
        """Carries the merge out."""
        p = self.plan(version)
        operation = Operation("MERGE", p.parameters, {}, engine)
        join = Join(
            inserts=bool(self.request.of(When.NOT_MATCHED)),
            numbered=p.rows.numbered,
            ensure_single=lambda located: self._ensure_single(p.rows, p.candidates, located),
        )
        # A source that is the table's own, or a value, depends on rows that the condition does not speak of.
        has_read = bool(unpinned(reads_so_far()))
        where = None if has_read else ReadScope.rows(p.where).beside(p.rows.source.scope).where
        changes = RowChanges(p.rows.first_pass, p.candidates, where, join, assigned=p.rows.assigned)
        verb = Verb(operation, partial(merge_metrics, self.figures), self.started, txn=txn, open_store=self.open_store)
        return apply_changes(self.spark, self.target, changes, verb, p.mode, dry_run=dry_run)

    def _measured(self, table: DataFrame, condition: Resolved, version: RowTable) -> SourceFigures:
        lonely = bool(self.request.of(When.NOT_MATCHED_BY_SOURCE))
        known, source = None if lonely else condition, self.rows.source
        return self.noted(lambda: source.measure(table, known, version.schema))

    def noted(self, measure: Callable[[], SourceFigures]) -> SourceFigures:
        """What a measure of the source tells, which the history tells, too."""
        begun = time.monotonic()
        figures = measure()
        self.figures["numSourceRows"] = figures.rows
        self.figures["materializeSourceTimeMs"] = int((time.monotonic() - begun) * 1000)
        return figures

    def _broadcasts(self, figures: SourceFigures) -> bool:
        """Whether the source is sent to the table's rows, unless the user forbids that altogether."""
        allowed = self.spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
        return figures.size_bytes <= BROADCAST_BYTES and not str(allowed).startswith("-")

    def _ensure_single(self, rows: MergeRows, candidates: RowPlaces, located: Located) -> None:
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

    def _parameters(self, table: DataFrame, condition: Resolved) -> dict[str, JsonValue]:
        clauses = [(c.when, c.action, self.rows.condition_text(c, table)) for c in self.request.clauses]
        return merge_parameters(shown_text(table, condition, hidden_name(self.request.name)), clauses)

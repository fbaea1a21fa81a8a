"""The builder behind DeltaTable.merge, with the methods of `delta.tables.DeltaMergeBuilder` 4.4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession

from alluvium.api.counterparts.raising import raises_counterparts
from alluvium.api.delta import row_verbs
from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.delta_expressions import expression_argument, set_argument
from alluvium.api.delta.frames.session_options import forget_version, session_txn
from alluvium.api.delta.optimize.auto import compacting
from alluvium.commands.merge.merge_clauses import Clause
from alluvium.commands.merge.merge_explain import MergeExplanation
from alluvium.commands.merge.merging import MergeRequest
from alluvium.plan.changes import Preview
from alluvium.plan.merging import Action, When
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.sessions.settings import read_flag
from alluvium.spark.statements.own_columns import OwnColumns

_Expression = Column | str
_Values = Mapping[str, _Expression]
#: Where a session asks for `withSchemaEvolution` in all merges.
_EVOLVE = "spark.databricks.delta.schema.autoMerge.enabled"


@raises_counterparts("merge")
@dataclass(frozen=True, slots=True)
class DeltaMergeBuilder:
    """A merge in the making: clauses apply in order, the first whose condition holds; see `DeltaTable.merge`.

    Methods return a new builder; nothing happens before `execute`.
    """

    _spark: SparkSession
    _access: TableAccess
    _request: MergeRequest
    _own: OwnColumns

    def whenMatchedUpdate(self, condition: _Expression | None = None, set: _Values | None = None) -> DeltaMergeBuilder:
        """Sets columns of the table's rows that have a match (for which the condition holds)."""
        return self._with(When.MATCHED, Action.UPDATE, condition, set_argument(set, "'set' in whenMatchedUpdate"))

    def whenMatchedUpdateAll(self, condition: _Expression | None = None) -> DeltaMergeBuilder:
        """Sets all columns from the source's columns of the same names, without regard to case."""
        return self._with(When.MATCHED, Action.UPDATE, condition, None)

    def whenMatchedDelete(self, condition: _Expression | None = None) -> DeltaMergeBuilder:
        """Deletes rows that have a match."""
        return self._with(When.MATCHED, Action.DELETE, condition, None)

    def whenNotMatchedInsert(
        self, condition: _Expression | None = None, values: _Values | None = None
    ) -> DeltaMergeBuilder:
        """Inserts rows of the source that have no match; columns that are not given have their default, or are null."""
        given = set_argument(values, "'values' in whenNotMatchedInsert")
        return self._with(When.NOT_MATCHED, Action.INSERT, condition, given)

    def whenNotMatchedInsertAll(self, condition: _Expression | None = None) -> DeltaMergeBuilder:
        """Inserts rows of the source, columns by name."""
        return self._with(When.NOT_MATCHED, Action.INSERT, condition, None)

    def whenNotMatchedBySourceUpdate(
        self, condition: _Expression | None = None, set: _Values | None = None
    ) -> DeltaMergeBuilder:
        """Sets columns of the table's rows that have no match."""
        given = set_argument(set, "'set' in whenNotMatchedBySourceUpdate")
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, given)

    def whenNotMatchedBySourceDelete(self, condition: _Expression | None = None) -> DeltaMergeBuilder:
        """Deletes the table's rows that have no match."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition, None)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Columns that only the source has become columns of the table, where clauses set them or take all columns.

        The session's `spark.databricks.delta.schema.autoMerge.enabled` asks for the same.
        """
        return replace(self, _request=replace(self._request, evolves=True))

    def execute(self, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> DataFrame | Preview:
        """Carries the merge out.

        Args:
            dry_run: Only tell how many rows, and which files, would be touched.
            retry: How often a commit that lost a race is tried again, and the verb carried out anew.

        Returns:
            One row: `num_affected_rows`, `num_updated_rows`, `num_deleted_rows`, `num_inserted_rows`. All figures
            stand in the table's history.

        Raises:
            InvalidRequest: Expressions do not resolve (`invalid-expression`), a row of the table has several matches
                (`multiple-matches`), there are no clauses or unreachable ones, or new rows do not fit the table.
            UnsupportedFeature: The table needs a writer that we are not.
            CommitConflict: Another writer touched what was read, and repeating was of no avail; the error names it.
        """
        txn = None if dry_run else session_txn(self._spark)
        more = (self._asked(), self._access.engine, dry_run, retry, txn)
        done = compacting(self._access, lambda snapshot: row_verbs.merge(self._spark, snapshot, *more))
        forget_version(self._spark, txn)
        if isinstance(done, Preview):
            return done
        kinds = ("Updated", "Deleted", "Inserted")
        counts = [int(done.metrics.get(f"numTargetRows{kind}", 0)) for kind in kinds]
        names = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
        figures = zip((sum(counts), *counts), names, strict=True)
        return self._spark.range(1).selectExpr(*(f"cast({n} as bigint) as {name}" for n, name in figures))

    def explain(self) -> MergeExplanation:
        """How the merge would be carried out: files that may hold matches, the join, the passes over the table.

        The source is counted, and the smallest and greatest of its keys are found; the table is not read. How many rows
        would change tells `execute(dry_run=True)`, which reads what the merge would read, and writes nothing.

        Raises:
            InvalidRequest: As `execute`, as far as it shows without the rows.
            UnsupportedFeature: The table needs a writer that we are not.
        """
        return row_verbs.explain_merge(self._spark, self._access.snapshot(), self._asked())

    def _asked(self) -> MergeRequest:
        """The merge as the session has it at this moment; columns of the table's frames are called by name."""
        request = self._request

        condition = self._own.by_name(self._spark, request.condition, request.name, request.source)
        evolves = request.evolves or read_flag(self._spark, _EVOLVE, False)
        return replace(request, condition=condition, clauses=tuple(map(self._named, request.clauses)), evolves=evolves)

    def _named(self, clause: Clause) -> Clause:
        """The clause with columns of the table's frames called by name, where the table's columns can be meant."""
        if clause.when is When.NOT_MATCHED:
            # There is no row of the table: a column that comes out of one of its frames is the source's.
            return clause
        # Without a row of the source there is nothing that a column could be mistaken for.
        others = self._request.source if clause.when is When.MATCHED else None

        def named(given: _Expression) -> _Expression:
            return self._own.by_name(self._spark, given, self._request.name, others)

        return replace(
            clause,
            condition=None if clause.condition is None else named(clause.condition),
            values=None if clause.values is None else {c: named(value) for c, value in clause.values.items()},
        )

    def _with(
        self, when: When, action: Action, condition: _Expression | None, values: _Values | None
    ) -> DeltaMergeBuilder:
        given = None if condition is None else expression_argument(condition, "'condition'")
        if action is Action.UPDATE and values is not None and not values:
            # As in delta-spark, an update of no columns is no clause.
            return self
        clauses = (*self._request.clauses, Clause(when, action, given, values))
        return replace(self, _request=replace(self._request, clauses=clauses))

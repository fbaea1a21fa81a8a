"""The builder behind `PaimonTable.merge`, with the methods of `DeltaTable.merge`'s."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession

from alluvium.api.paimon.paimon_rows import session_of
from alluvium.commands.merge.merge_clauses import Clause
from alluvium.commands.merge.merge_explain import MergeExplanation
from alluvium.commands.merge.merging import MergeRequest
from alluvium.commands.merge.paimon_merge import explain_paimon_merge, merge_into_paimon
from alluvium.commands.paimon.upserts import TABLE
from alluvium.errors import WrongType
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.merging import Action, When
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.spark.sessions.session import time_zone
from alluvium.spark.statements.resolve import Qualifier
from alluvium.storage.open import StoreOpener
from alluvium.storage.store import Store

_Expression = Column | str
_Values = Mapping[str, _Expression]


def merge_builder(
    store: Store,
    storage_options: Mapping[str, str] | None,
    source: object,
    condition: object,
    name: Qualifier | None,
    spark: SparkSession | None,
) -> PaimonMergeBuilder:
    """A builder without clauses; arguments as of `PaimonTable.merge`.

    Raises:
        InvalidRequest: The arguments are of other types (`"wrong-type"`), or there is no session (`"no-session"`).
    """
    if not isinstance(source, DataFrame):
        raise _wrong("the source of a merge is a DataFrame", source)
    if not isinstance(condition, (Column, str)):
        raise _wrong("the condition of a merge is SQL text or a column", condition)
    session = session_of(spark or source.sparkSession, store)
    opened = StoreOpener(store.url, storage_options)
    return PaimonMergeBuilder(session, store, opened, MergeRequest(source, condition, name=name or TABLE))


@dataclass(frozen=True, slots=True)
class PaimonMergeBuilder:
    """A merge in the making: clauses apply in order, the first whose condition holds.

    Methods return a new builder; nothing happens before `execute`.
    """

    _spark: SparkSession
    _store: Store
    _open_store: Callable[[], Store]
    _request: MergeRequest

    def whenMatchedUpdate(self, condition: _Expression | None = None, set: _Values | None = None) -> PaimonMergeBuilder:
        """Sets columns of the table's rows that have a match (for which the condition holds)."""
        return self._with(When.MATCHED, Action.UPDATE, condition, _given(set, "set"))

    def whenMatchedUpdateAll(self, condition: _Expression | None = None) -> PaimonMergeBuilder:
        """Sets all columns from the source's columns of the same names, without regard to case."""
        return self._with(When.MATCHED, Action.UPDATE, condition, None)

    def whenMatchedDelete(self, condition: _Expression | None = None) -> PaimonMergeBuilder:
        """Deletes rows that have a match."""
        return self._with(When.MATCHED, Action.DELETE, condition, None)

    def whenNotMatchedInsert(
        self, condition: _Expression | None = None, values: _Values | None = None
    ) -> PaimonMergeBuilder:
        """Inserts rows of the source that have no match; columns that are not given have their default, or are null."""
        return self._with(When.NOT_MATCHED, Action.INSERT, condition, _given(values, "values"))

    def whenNotMatchedInsertAll(self, condition: _Expression | None = None) -> PaimonMergeBuilder:
        """Inserts rows of the source, columns by name."""
        return self._with(When.NOT_MATCHED, Action.INSERT, condition, None)

    def whenNotMatchedBySourceUpdate(
        self, condition: _Expression | None = None, set: _Values | None = None
    ) -> PaimonMergeBuilder:
        """Sets columns of the table's rows that have no match."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, _given(set, "set"))

    def whenNotMatchedBySourceDelete(self, condition: _Expression | None = None) -> PaimonMergeBuilder:
        """Deletes the table's rows that have no match."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition, None)

    def withSchemaEvolution(self) -> PaimonMergeBuilder:
        """Refused when the merge is carried out: the columns of a Paimon table change by `alter`."""
        return replace(self, _request=replace(self._request, evolves=True))

    def execute(self, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> DataFrame | Preview:
        """Carries the merge out.

        Args:
            dry_run: Only tell how many rows, and which files, would be touched.
            retry: How often a commit that lost a race is tried again, and the verb carried out anew.

        Returns:
            One row: `num_affected_rows`, `num_updated_rows`, `num_deleted_rows`, `num_inserted_rows`.

        Raises:
            InvalidRequest: As of `merge_into_paimon`.
            UnsupportedFeature: The table does not take what a clause does (`"unsupported-row-change"`).
            CommitConflict: Another writer touched what was read, and repeating was of no avail.
        """
        done = merge_into_paimon(self._spark, self._snapshot(), self._request, self._open_store, dry_run, retry)
        if isinstance(done, Preview):
            return done
        assert isinstance(done, Committed)
        kinds = ("Updated", "Deleted", "Inserted")
        counts = [int(done.metrics.get(f"numTargetRows{kind}", 0)) for kind in kinds]
        names = ("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
        figures = zip((sum(counts), *counts), names, strict=True)
        return self._spark.range(1).selectExpr(*(f"cast({n} as bigint) as {name}" for n, name in figures))

    def explain(self) -> MergeExplanation:
        """How the merge would be carried out; the source is counted, the table is not read."""
        return explain_paimon_merge(self._spark, self._snapshot(), self._request, self._open_store)

    def _snapshot(self) -> Snapshot:
        return load_snapshot(self._store, At(), time_zone=time_zone(self._spark))

    def _with(
        self, when: When, action: Action, condition: _Expression | None, values: _Values | None
    ) -> PaimonMergeBuilder:
        if condition is not None and not isinstance(condition, (Column, str)):
            raise _wrong("a condition is SQL text or a column", condition)
        if action is Action.UPDATE and values is not None and not values:
            # As of Delta's builder, an update of no columns is no clause.
            return self
        clauses = (*self._request.clauses, Clause(when, action, condition, values))
        return replace(self, _request=replace(self._request, clauses=clauses))


def _given(values: object, argument: str) -> dict[str, _Expression]:
    if not isinstance(values, Mapping):
        raise _wrong(f"{argument!r} is a dict of columns and their values", values)
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, (Column, str)):
            raise _wrong(f"{argument!r} has names of columns, and SQL text or columns as their values", (name, value))
    return dict(values)


def _wrong(rule: str, given: object) -> WrongType:
    return WrongType(f"{rule}, not {given!r}")

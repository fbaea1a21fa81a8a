"""Rows in the place of those that they meet: `replaceUsing` by equal columns, `replaceOn` by any condition.

A deletion and an append in one commit, as an overwrite by a condition is (`rows.replace_rows`); here the rows that go
are found by a join with those that come. A row of the table that meets none of them stays, and every new row is
written, whether it met one or not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.commands.delete import TABLE
from alluvium.commands.merge.merge_source import MergeSource, keep_source
from alluvium.commands.own_reads import ensure_current, own_table
from alluvium.commands.rows.replace_rows import judged_rows, replace_found
from alluvium.commands.write import WriteRequest
from alluvium.delta.features.rows.append_only import ensure_removable
from alluvium.delta.rows.candidates import choose_candidates
from alluvium.delta.view.source import DeltaSource
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import InvalidRequest
from alluvium.expr.tree import conjunction
from alluvium.plan.changes import Committed, ReadScope
from alluvium.plan.ports import RowPlaces
from alluvium.schema.types import Struct
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.text_lengths import padded_text, pads_when_reading
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.statements.existence import with_existence
from alluvium.spark.statements.resolve import Qualifier, condition_tree, named_rows, resolve_condition
from alluvium.spark.values.columns import Assignment, align
from alluvium.storage.locating import locating

_SOURCE, _MEETS = "__alluvium_source", "__alluvium_meets"


@dataclass(frozen=True, slots=True)
class Matching:
    """Which rows of a table go: those that meet a new row.

    Attributes:
        columns: Columns that must be equal in both; a null equals nothing. None: see `condition`.
        condition: Text over the columns of both.
        name: How the table is called in it.
    """

    columns: tuple[str, ...] | None = None
    condition: str | None = None
    name: Qualifier = (TABLE,)

    def stored(self, df: DataFrame, target: DeltaTarget, assignment: Assignment) -> DataFrame:
        """The rows as they will be kept, where columns are compared: two that are kept alike are one key.

        Args:
            df: The rows.
            target: The table.
            assignment: What may go into its columns.

        Raises:
            InvalidRequest: They do not fit the table (`schema-mismatch`).
        """
        if self.columns is None:
            return df
        brought = {name.lower() for name in df.columns}
        own = Struct(tuple(f for f in target.schema.fields if f.name.lower() in brought))
        return align(df, own, assignment).alias(_SOURCE)

    @property
    def what(self) -> str:
        """For errors."""
        return "the condition of replaceOn" if self.columns is None else "the columns of replaceUsing"

    def text(self, schema: Struct, *, pads: bool) -> str:
        """The condition.

        Args:
            schema: The table's.
            pads: Whether texts of char(n) that are read come with their blanks.
        """
        if self.columns is None:
            return self.condition or "true"
        equal = []
        for name in self.columns:
            f, new = schema.find(name), f"{quote(_SOURCE)}.{quote(name)}"
            equal.append(f"{quote(TABLE)}.{quote(name)} = {new if f is None or not pads else padded_text(new, f)}")
        return " AND ".join(equal)


def replace_matching(df: DataFrame, target: DeltaTarget, request: WriteRequest, matching: Matching) -> Committed:
    """Deletes the rows of a table that meet some of these rows, and writes these, in one commit.

    Where there are no new rows nothing is replaced, and nothing is committed.

    Raises:
        InvalidRequest: The rows do not fit the table, the condition does not resolve (`invalid-expression`), or one of
            both lacks a column (`unknown-column`); the table is as it was.
        CommitConflict: Another writer touched what was read.
        UnsupportedFeature: The table needs a writer that we are not.
    """
    snapshot = target.snapshot
    assert snapshot is not None
    with locating(snapshot.store, snapshot.version):
        ensure_removable(snapshot.config)
        _ensure_columns(df, target, matching)
        source = keep_source(matching.stored(df, target, request.assignment), own_table(snapshot), target.schema.names)
        try:
            ensure_current(source.reads, snapshot, source.scope, admits_blind=False)
            return _replaced(source, target, request, matching)
        finally:
            source.release()


def _ensure_columns(df: DataFrame, target: DeltaTarget, matching: Matching) -> None:
    assert target.snapshot is not None
    sides = (target.snapshot.config.schema.names, tuple(df.columns))
    for name in matching.columns or ():
        for side, names in zip(("the table", "the data"), sides, strict=True):
            if name.lower() not in {other.lower() for other in names}:
                raise InvalidRequest(
                    f"replaceUsing names {name!r}, which {side} lacks",
                    code="unknown-column",
                    column=name,
                    hint=f"columns: {', '.join(names)}",
                )


def _replaced(source: MergeSource, target: DeltaTarget, request: WriteRequest, matching: Matching) -> Committed:
    snapshot, spark = target.snapshot, source.rows.sparkSession
    assert snapshot is not None
    schema = snapshot.config.schema
    table = named_rows(read_native(spark, DeltaSource(snapshot)), matching.name)
    text = matching.text(schema, pads=pads_when_reading(spark))
    condition = resolve_condition(table.join(source.rows), text, matching.what)
    figures = source.measure(table, condition, schema)
    if not figures.rows:
        return Committed.nothing(snapshot.version)
    where = conjunction((condition_tree(table, condition, schema, matching.name), *figures.bounds))
    candidates = choose_candidates(snapshot, where)
    # A source that is the table's own depends on rows that the condition does not speak of.
    scope = ReadScope.rows(where).beside(source.scope).where

    def found(some: RowPlaces) -> DataFrame:
        return _found(source, target, matching, text, some)

    return replace_found(source.rows, target, replace(request, replace=None), candidates, scope, found)


def _found(source: MergeSource, target: DeltaTarget, matching: Matching, text: str, candidates: RowPlaces) -> DataFrame:
    """The candidates' rows, and whether they go."""
    rows = named_rows(read_native(source.rows.sparkSession, candidates), matching.name)
    joined = rows.join(source.rows)
    condition = resolve_condition(joined, text, matching.what)
    return judged_rows(with_existence(joined, condition, _MEETS), candidates, target, sf.col(_MEETS))

"""The builder of a MERGE without a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

import pyarrow as pa

from alluvium.api.delta.portable.arguments import text_argument, values_argument
from alluvium.commands.rows_here.merge import ClauseText
from alluvium.commands.rows_here.verbs import Asked, MergeText, merge_here
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import UnsupportedFeature
from alluvium.plan.changes import Committed, Preview
from alluvium.plan.merging import Action, When
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.portable.writing.arrow_rows import arrow_rows
from alluvium.portable.writing.fit import fit_columns
from alluvium.schema.arrow import schema_from_arrow, schema_to_arrow
from alluvium.schema.types import Struct


def source_of(data: object) -> tuple[pa.Table, Struct]:
    """The rows of a source in memory, under the types of a table.

    Raises:
        InvalidRequest: It is no data (`"not-rows"`), or has a column twice (`"schema-mismatch"`).
        UnsupportedFeature: A type that no table has.
    """
    reader = arrow_rows(data)
    schema = schema_from_arrow(reader.schema)
    columns = fit_columns(reader.schema, schema)
    wanted = pa.schema([f.with_nullable(True) for f in schema_to_arrow(schema)])
    batches = [pa.table([columns[name].of(batch) for name in schema.names], schema=wanted) for batch in reader]
    return pa.concat_tables([wanted.empty_table(), *batches]), schema


@dataclass(frozen=True, slots=True)
class MergeBuilder:
    """A merge in the making, with the names and arguments of `delta.tables.DeltaMergeBuilder`.

    Clauses apply in order, the first whose condition holds. Methods return a new builder; nothing happens before
    `execute`. What they take is checked at once: SQL as text, and columns with their values (`"wrong-type"`).
    """

    _open: Callable[[], Snapshot]
    _asked: Asked
    _rows: pa.Table
    _schema: Struct
    _name: str
    _condition: str
    _clauses: tuple[ClauseText, ...] = ()

    def whenMatchedUpdate(self, condition: str | None = None, set: Mapping[str, str] | None = None) -> MergeBuilder:
        """Sets columns of the table's rows that have a match (for which the condition holds)."""
        given = values_argument(set, "'set' in whenMatchedUpdate")
        return self._with(When.MATCHED, Action.UPDATE, condition, given)

    def whenMatchedUpdateAll(self, condition: str | None = None) -> MergeBuilder:
        """Sets all columns from the source's columns of the same names, without regard to case."""
        return self._with(When.MATCHED, Action.UPDATE, condition, None)

    def whenMatchedDelete(self, condition: str | None = None) -> MergeBuilder:
        """Deletes rows that have a match."""
        return self._with(When.MATCHED, Action.DELETE, condition, None)

    def whenNotMatchedInsert(
        self, condition: str | None = None, values: Mapping[str, str] | None = None
    ) -> MergeBuilder:
        """Inserts rows of the source that have no match; columns that are not given have their default, or are null."""
        given = values_argument(values, "'values' in whenNotMatchedInsert")
        return self._with(When.NOT_MATCHED, Action.INSERT, condition, given)

    def whenNotMatchedInsertAll(self, condition: str | None = None) -> MergeBuilder:
        """Inserts rows of the source, columns by name."""
        return self._with(When.NOT_MATCHED, Action.INSERT, condition, None)

    def whenNotMatchedBySourceUpdate(
        self, condition: str | None = None, set: Mapping[str, str] | None = None
    ) -> MergeBuilder:
        """Sets columns of the table's rows that have no match."""
        given = values_argument(set, "'set' in whenNotMatchedBySourceUpdate")
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, given)

    def whenNotMatchedBySourceDelete(self, condition: str | None = None) -> MergeBuilder:
        """Deletes the table's rows that have no match."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition, None)

    def withSchemaEvolution(self) -> NoReturn:
        """Refused: columns of the source become columns of the table in a session alone.

        Raises:
            UnsupportedFeature: Always (`needs-spark`).
        """
        raise UnsupportedFeature(
            "withSchemaEvolution needs Spark",
            code="needs-spark",
            hint="alluvium.alter(url).add_columns(...) first, or DeltaTable.forPath(spark, path)",
        )

    def execute(self, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> Committed | Preview:
        """Carries the merge out.

        Args:
            dry_run: Only tell how many rows, and which files, would be touched.
            retry: How often a commit that lost a race is tried again, and the verb carried out anew.

        Raises:
            InvalidRequest: Expressions do not parse, a row of the table has several matches (`multiple-matches`), there
                are no clauses or unreachable ones, or new rows do not fit the table.
            UnsupportedFeature: Only Spark evaluates an expression, or finds matches (`"needs-spark"`).
            CommitConflict: Another writer touched what was read, and repeating was of no avail.
        """
        request = MergeText(self._rows, self._schema, self._name, self._condition, self._clauses)
        return merge_here(self._open(), request, replace(self._asked, dry_run=dry_run, retry=retry))

    def _with(
        self, when: When, action: Action, condition: str | None, values: Mapping[str, str] | None
    ) -> MergeBuilder:
        text = text_argument(condition, "condition")
        if action is Action.UPDATE and values is not None and not values:
            # As in delta-spark, an update of no columns is no clause.
            return self
        return replace(self, _clauses=(*self._clauses, ClauseText(when, action, text, values)))

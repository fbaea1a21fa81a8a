"""The condition of a DELETE or an UPDATE: over rows that are read once for their places, and again to be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from alluvium.expr.tree import Expression
from alluvium.schema.types import Struct
from alluvium.spark.kept import release_rows
from alluvium.spark.statements.resolve import (
    Qualifier,
    Resolved,
    condition_tree,
    named_rows,
    resolve_condition,
    shown_text,
)
from alluvium.spark.statements.subqueries import keep_subqueries, with_identities


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition that resolves.

    Attributes:
        given: As it was asked for; None: all rows.
        what: For errors: `"the condition of DELETE"`.
        name: Of the table in expressions.
        first: Rows of the table under its name, over which it was resolved.
        found: What it is over them.
    """

    given: Column | str | None
    what: str
    name: Qualifier
    first: DataFrame
    found: Resolved | None

    @property
    def over_first(self) -> tuple[DataFrame, Column]:
        """The rows that it was resolved over, and the condition over them: for who needs them once."""
        return self.first, sf.lit(True) if self.found is None else self.found.column

    def over(self, rows: DataFrame) -> tuple[DataFrame, Column]:
        """Rows of the table under its name, and the condition over them."""
        if self.found is None or self.given is None:
            return named_rows(rows, self.name), sf.lit(True)
        if self.found.has_subquery:
            return named_rows(with_identities(rows, self.first), self.name), self.found.column
        named = named_rows(rows, self.name)
        return named, resolve_condition(named, self.given, self.what).column

    def where(self, schema: Struct) -> Expression | None:
        """What it says of the table's columns, as far as it is understood; None: nothing."""
        return None if self.found is None else condition_tree(self.first, self.found, schema, self.name)

    @property
    def shown(self) -> str | None:
        """For the history; None: there is none."""
        return None if self.found is None else shown_text(self.first, self.found, self.name[-1])


@contextmanager
def row_condition(rows: DataFrame, given: Column | str | None, what: str, name: Qualifier) -> Iterator[RowCondition]:
    """A condition, resolved once; what its subqueries say is kept as long as it is in use.

    Args:
        rows: Of the table, with all its columns.
        given: The condition; None: all rows.
        what: For errors.
        name: Of the table in expressions.

    Raises:
        InvalidRequest: It does not resolve (`invalid-expression`).
    """
    named = named_rows(rows, name)
    if given is None:
        yield RowCondition(None, what, name, named, None)
        return
    found = resolve_condition(named, given, what, subqueries=True)
    if not found.has_subquery:
        yield RowCondition(given, what, name, named, found)
        return
    spark = rows.sparkSession
    expression, kept = keep_subqueries(spark, found.java)
    try:
        yield RowCondition(given, what, name, named, found.of(spark, expression))
    finally:
        for frame in kept:
            release_rows(frame)

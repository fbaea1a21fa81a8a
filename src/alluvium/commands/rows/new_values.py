"""Values that a table makes itself, in rows that a verb changes: generated columns and defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from alluvium.delta.features.columns.generated_columns import generation_expressions
from alluvium.delta.features.columns.identity_columns import identities
from alluvium.plan.changes import ChangeKind
from alluvium.plan.ports import RowTarget, Target
from alluvium.plan.write import Derived
from alluvium.schema.types import Struct
from alluvium.spark.naming.names import quote
from alluvium.spark.positions import KIND
from alluvium.spark.statements.resolve import Qualifier
from alluvium.spark.values.assign import assigned_columns, is_default
from alluvium.spark.values.derive import derived_values


def without_made(
    values: Mapping[str, Column | str], target: RowTarget, table: Qualifier, *, is_insert: bool
) -> dict[str, Column | str]:
    """A SET list without the columns that it sets to `default`, and that the table computes or numbers where they are
    not given. In rows that are there no number is made.

    Raises:
        InvalidRequest: `"unknown-column"`.
    """
    schema = target.schema
    made = set(generation_expressions(schema)) | ({i.column for i in identities(schema)} if is_insert else set())
    return {
        name: value
        for name, value in values.items()
        if not (is_default(value, schema) and assigned_columns((name,), target.schema, table) <= made)
    }


def default_values(target: Target, rows: DataFrame) -> dict[str, Column]:
    """What columns are where nothing is given, each of its column's type.

    Args:
        target: The table.
        rows: Any rows of the session.
    """
    constant = [d for d in target.plan_write(None, ()).derived if d.is_constant]
    return derived_values(rows, target.schema, constant)


def generated(target: RowTarget) -> tuple[Derived, ...]:
    """The table's generated columns, as its write plan has them."""
    names = generation_expressions(target.schema).keys()
    return tuple(d for d in target.plan_write(None, ()).derived if d.column in names)


def with_generated(rows: DataFrame, schema: Struct, wanted: Mapping[str, tuple[Derived, str]]) -> DataFrame:
    """The rows with some columns computed anew.

    Args:
        rows: They have the table's columns, with their new values.
        schema: Of the table.
        wanted: What computes a column, and for which rows (SQL), by the column's name.
    """
    if not wanted:
        return rows
    values = derived_values(rows, schema, [derived for derived, _ in wanted.values()])
    columns = []
    for name in rows.columns:
        column = sf.col(quote(name))
        if name in wanted:
            column = sf.when(sf.expr(wanted[name][1]), values[name]).otherwise(column).alias(name)
        columns.append(column)
    return rows.select(*columns)


def with_new_rows_filled(rows: DataFrame, schema: Struct, filled: Sequence[Derived]) -> DataFrame:
    """The rows, in new ones other values for nulls; those that were there before keep theirs.

    Args:
        rows: They have the table's columns, and `KIND`.
        schema: Of the table.
        filled: What stands for null, by columns (`WritePlan.filled`).
    """
    is_new = f"{KIND} = {int(ChangeKind.INSERT)}"
    return with_generated(rows, schema, {d.column: (d, f"{is_new} and {quote(d.column)} is null") for d in filled})

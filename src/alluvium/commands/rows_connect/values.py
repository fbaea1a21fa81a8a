"""New values over Spark Connect: computed as the caller says under names of ours, then cast into their columns' types.

On a classic session a value is one resolved expression. Here nobody shows what the server has resolved: a projection
computes the values, each in its own type, and the next one converts them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as s

from alluvium.delta.features.types.type_widening import is_widening
from alluvium.schema import types as t
from alluvium.schema.types import DataType
from alluvium.spark.jvm.failures import Unresolvable, analysis_problem
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.scan.connect_lane.explained import analysed_tree, is_without_subquery
from alluvium.spark.sessions.session import analysed
from alluvium.spark.values.assign import Path
from alluvium.spark.values.conversion import Misfit, Rules, conversion, value_type
from alluvium.spark.values.storing import StorePolicy

_ANSI = "spark.sql.ansi.enabled"
#: Who forbids a cast, for errors.
_BOTH = f"spark.sql.storeAssignmentPolicy, with {_ANSI} as this Connect session has it,"


@dataclass(frozen=True, slots=True)
class Asked:
    """A value that somebody wants to be stored.

    Attributes:
        column: Of the server, over the rows that it may name.
        type: Of the column or field that it is for.
        what: For errors: `"the value of 'n' in UPDATE"`.
    """

    column: Column
    type: DataType
    what: str


@dataclass(frozen=True, slots=True)
class Stored:
    """The same, as two projections make it.

    Attributes:
        name: Of the column in which it is computed.
        raw: What is computed there.
        text: From there to its column's type: SQL.
    """

    name: str
    raw: Column
    text: str

    @property
    def value(self) -> Column:
        """It as one of its column's type, over rows that have `name`."""
        return sql_column(self.text)


def stored(
    rows: DataFrame, values: Mapping[Path, Asked], policy: StorePolicy, prefix: str, *, fills: bool
) -> dict[Path, Stored]:
    """Has values checked.

    Args:
        rows: Whose columns they may name; they are analysed, not read.
        values: By the path of the column or field.
        policy: What becomes of values that do not fit.
        prefix: Of names for them, that no column has.
        fills: Whether fields that a struct lacks are null; otherwise it is refused.

    Raises:
        InvalidRequest: `"invalid-expression"`: a value is none of single rows; `"schema-mismatch"`: it can never be one
            of its column's type.
    """
    if not values:
        return {}
    names = {path: f"{prefix}{number}" for number, path in enumerate(values)}
    types = _types(rows, values, names)
    rules = Rules(_castable(rows.sparkSession, policy), fills, _BOTH)
    found: dict[Path, Stored] = {}
    for path, asked in values.items():
        name, column = names[path], ".".join(path)
        try:
            source = value_type(types[name], asked.what)
            text = conversion(quote(name), source, asked.type, column, rules)
        except Misfit as misfit:
            raise _misfit(column, asked.type, str(misfit), misfit.hint) from None
        found[path] = Stored(name, asked.column, text)
    _ensure_castable(rows, values, found)
    return found


def _types(rows: DataFrame, values: Mapping[Path, Asked], names: Mapping[Path, str]) -> dict[str, s.DataType]:
    """What the server makes of the values."""
    try:
        selected = rows.select(*(asked.column.alias(names[path]) for path, asked in values.items()))
        found = {f.name: f.dataType for f in selected.schema.fields}
        # Neither an aggregate nor a window or a generator may stand in a filter.
        asking: Any = rows.where(reduce(or_, (asked.column.isNull() for asked in values.values())))
        tree = analysed_tree(str(asking._explain_string(extended=True)))
    except (AnalysisException, ParseException) as error:
        raise _unusable(rows, values, error) from None
    if tree is None or not is_without_subquery(tree, "Filter"):
        raise Unresolvable(
            f"{' or '.join(asked.what for asked in values.values())} cannot be used: subqueries are not supported",
            code="invalid-expression",
            hint="run the subquery first, or use a merge",
        )
    return found


def _unusable(rows: DataFrame, values: Mapping[Path, Asked], error: AnalysisException | ParseException) -> Unresolvable:
    """Which of the values it is, where there are several."""
    for asked in values.values():
        try:
            analysed(rows.where(asked.column.isNull()))
        except (AnalysisException, ParseException) as own:
            return Unresolvable(f"{asked.what} cannot be used: {analysis_problem(own)}", code="invalid-expression")
    what = " or ".join(asked.what for asked in values.values())
    return Unresolvable(f"{what} cannot be used: {analysis_problem(error)}", code="invalid-expression")


def _ensure_castable(rows: DataFrame, values: Mapping[Path, Asked], found: Mapping[Path, Stored]) -> None:
    """Raises for the first value that Spark has no cast for."""
    casts = {path: each for path, each in found.items() if each.text != quote(each.name)}
    if not casts:
        return
    given = rows.select(*(each.raw.alias(each.name) for each in casts.values()))
    try:
        analysed(given.select(*(each.value for each in casts.values())))
    except AnalysisException:
        for path, each in casts.items():
            try:
                analysed(given.select(each.value))
            except AnalysisException as error:
                raise _misfit(".".join(path), values[path].type, analysis_problem(error), None) from None
        raise


def _misfit(column: str, wanted: DataType, problem: str, hint: str | None) -> Unresolvable:
    return Unresolvable(
        f"the value for {column!r} cannot be stored as {wanted}: {problem}",
        code="schema-mismatch",
        column=column,
        hint=hint,
    )


def _castable(spark: SparkSession, policy: StorePolicy) -> Callable[[DataType, DataType], bool]:
    """Which casts do here what the policy says: how one behaves is fixed where the server analyses it, which is in the
    caller's session.
    """
    is_ansi = str(spark.conf.get(_ANSI)).lower() == "true"
    wants_ansi = policy is not StorePolicy.LEGACY
    if policy is not StorePolicy.STRICT and is_ansi == wants_ansi:
        return lambda source, target: True
    return _cannot_fail


def _cannot_fail(source: DataType, target: DataType) -> bool:
    return source == t.VOID or is_widening(source, target) or (target == t.STRING and source in t.INTEGRAL)

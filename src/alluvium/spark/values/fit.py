"""Values into the types of a table's columns, for verbs that compute them: by the conversions that writers use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame

from alluvium.schema.types import DataType
from alluvium.spark.jvm.failures import Unresolvable, analysis_problem
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.naming.names import quote
from alluvium.spark.values.conversion import Misfit, Rules, conversion
from alluvium.spark.values.storing import StorePolicy, castable, select_stored, who_forbids


@dataclass(frozen=True, slots=True)
class NewValue:
    """A value for a column, or for a field of one.

    Attributes:
        column: Its name, dotted, for errors.
        value: Resolved over some rows.
        source: The value's type.
        target: The column's.
    """

    column: str
    value: Column
    source: DataType
    target: DataType


def fit(rows: DataFrame, values: Sequence[NewValue], policy: StorePolicy, *, fills: bool = True) -> list[Column]:
    """The values, each as one of its column's type; fields of structs go by their names.

    Args:
        rows: Whose columns they name.
        values: What to store.
        policy: What becomes of values that do not fit.
        fills: Whether fields that a struct lacks are null; otherwise it is refused.

    Raises:
        InvalidRequest: `"schema-mismatch"`: a value can never be one of its column's type: Spark has no such cast, or
            the policy forbids it; a struct has a field that the column has not, or lacks one.
    """
    rules = Rules(castable(rows.sparkSession, policy), fills, who_forbids(policy))
    fitted = [new.value for new in values]
    texts = {
        number: text
        for number, new in enumerate(values)
        if (text := _text(new, quote(_name(number)), rules)) != quote(_name(number))
    }
    if texts:
        for number, column in zip(texts, _converted(rows, values, texts, policy), strict=True):
            fitted[number] = column
    return fitted


def _name(number: int) -> str:
    return f"__alluvium_value_{number}"


def _text(new: NewValue, name: str, rules: Rules) -> str:
    try:
        return conversion(name, new.source, new.target, new.column, rules)
    except Misfit as misfit:
        raise _misfit(new, str(misfit), misfit.column, misfit.hint) from None


def _converted(rows: DataFrame, values: Sequence[NewValue], texts: dict[int, str], policy: StorePolicy) -> list[Column]:
    """The conversions with the values themselves in place of the names under which they are analysed."""
    given = rows.select(*(values[number].value.alias(_name(number)) for number in texts))
    try:
        plan = select_stored(given, [f"{text} as {quote(_name(n))}" for n, text in texts.items()], policy)
    except AnalysisException:
        _ensure_each(given, values, texts, policy)
        raise
    java = java_of(rows.sparkSession)
    project, below = plan._jdf.queryExecution().analyzed(), given._jdf.queryExecution().analyzed()
    names, computed, made = below.output(), below.expressions(), project.expressions()
    known = java.jvm.java.util.HashMap()
    for place in range(len(texts)):
        known.put(names.apply(place), computed.apply(place).child())
    # A Scala map is a partial function.
    values_of = java.python_utils.toScalaMap(known)
    converted = (made.apply(place).child() for place in range(len(texts)))
    return [Column(java.expression_utils.column(found.transformDown(values_of))) for found in converted]


def _ensure_each(given: DataFrame, values: Sequence[NewValue], texts: dict[int, str], policy: StorePolicy) -> None:
    """Raises for the first value that has no conversion."""
    for number, text in texts.items():
        try:
            select_stored(given, [text], policy)
        except AnalysisException as error:
            raise _misfit(values[number], analysis_problem(error), values[number].column, None) from None


def _misfit(new: NewValue, problem: str, column: str, hint: str | None) -> Unresolvable:
    return Unresolvable(
        f"the value for {new.column!r} cannot be stored as {new.target}: {problem}",
        code="schema-mismatch",
        column=column,
        hint=hint,
    )

"""Rows of any schema as rows of a table's schema: names, order, missing columns, casts.

The rules are those that the reference engine was seen to follow, see docs/write-schema-rules.md.
"""

from __future__ import annotations

import enum

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from alluvium.errors import InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.diff import schema_diff
from alluvium.schema.types import DataType, Field, Struct
from alluvium.spark.jvm.failures import analysis_problem
from alluvium.spark.naming.names import quote
from alluvium.spark.values.conversion import Misfit, Rules, members, value_type
from alluvium.spark.values.storing import StorePolicy, castable, policy_of, select_stored, who_forbids

#: Integers that are kept as 32 bits in Parquet, so that the narrower is also the wider.
_INT32 = (t.BYTE, t.SHORT, t.INTEGER)


class Assignment(enum.Enum):
    """Which types of the data may go into which types of the table.

    EXACT: the same type, or a narrower one that the files hold alike (byte, short, int), or null: `df.write.save`.
    CAST: what Spark's store assignment converts (`StorePolicy`), by default with an error at run time where a value
        does not fit: `INSERT`, `saveAsTable`, `insertInto`, `writeTo`.
    STREAM: as CAST, but that rows say in which partition they are, as with EXACT: the sink of a stream.
    """

    EXACT = "exact"
    CAST = "cast"
    STREAM = "stream"


def align(
    df: DataFrame, schema: Struct, assignment: Assignment = Assignment.EXACT, *, fill_missing: bool = True
) -> DataFrame:
    """The data as columns of a table: by name without regard to case, in the table's order, of the table's types.

    Missing nullable columns and struct fields become null; a missing NOT NULL column becomes null as well, for the
    plan's check to name it. Struct fields go by name at any depth.

    Args:
        df: The data.
        schema: Columns of the table.
        assignment: Which conversions are allowed.
        fill_missing: Whether columns may be missing.

    Raises:
        InvalidRequest: `"schema-mismatch"`: an unknown, missing or doubled column, or a type that may not go into the
            table's. The message shows both schemas where they differ.
    """
    spark = df.sparkSession
    # Over Connect rows go into columns of the same types alone (`Assignment.EXACT`): no cast can fail.
    policy = StorePolicy.ANSI if assignment is Assignment.EXACT else policy_of(spark)
    may_cast = _held_alike if assignment is Assignment.EXACT else castable(spark, policy)
    rules = Rules(may_cast, fill_missing, who_forbids(policy))
    data = _data_schema(df)
    try:
        selected = [
            f"{expression} as {quote(target.name)}" for target, expression in members("", data, schema, "", rules)
        ]
    except Misfit as misfit:
        raise _refused(str(misfit), misfit.column, data, schema) from None
    if selected == [f"{quote(name)} as {quote(name)}" for name in data.names]:
        return df
    try:
        return select_stored(df, selected, policy)
    except AnalysisException as error:
        column = _impossible(df, dict(zip(schema.names, selected, strict=True)), policy)
        raise _refused(analysis_problem(error), column, data, schema) from None


def _impossible(df: DataFrame, selected: dict[str, str], policy: StorePolicy) -> str:
    """The first column whose values Spark cannot convert."""
    for name, text in selected.items():
        try:
            select_stored(df, [text], policy)
        except AnalysisException:
            return name
    return ""


def _data_schema(df: DataFrame) -> Struct:
    return Struct(tuple(Field(f.name, value_type(f.dataType, f.name), f.nullable) for f in df.schema.fields))


def _held_alike(source: DataType, target: DataType) -> bool:
    if source == t.VOID:
        return True
    return source in _INT32 and target in _INT32 and _INT32.index(source) <= _INT32.index(target)


def _refused(problem: str, column: str, data: Struct, schema: Struct) -> InvalidRequest:
    return InvalidRequest(
        f"the data does not fit the table: {problem}\n{schema_diff(schema, data)}",
        code="schema-mismatch",
        column=column or None,
        hint="cast or drop columns with select()",
    )

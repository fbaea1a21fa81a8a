"""Rows of any schema as rows of a write plan: the data's columns, and those that the plan computes or numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql import types as s

from alluvium.errors import InvalidRequest
from alluvium.plan.completion import lacking
from alluvium.plan.write import Derived, Numbered, WritePlan
from alluvium.schema.types import Struct
from alluvium.schema.walk import as_nullable
from alluvium.spark.jvm.failures import analysis_problem
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan.numbering import record_number
from alluvium.spark.sessions.session import analysed, is_connect
from alluvium.spark.values.columns import Assignment, align
from alluvium.spark.values.table_sql import table_columns

# What the job raises, with the column's name in hexadecimal, where a number does not fit into 64 bits.
_EXHAUSTED = "alluvium-numbers-exhausted"
_EXHAUSTED_TEXT = re.compile(rf"{_EXHAUSTED} ([0-9a-f]*) end")
_ROW = "alluvium row of partition"
_MAX, _MIN = (1 << 63) - 1, -(1 << 63)


@dataclass(frozen=True, slots=True)
class CompleteRows:
    """Rows that have all columns of a plan.

    Attributes:
        df: The rows.
        plan: The plan, with the checks that apply because of the columns that the data brought.
        numbered: Names of the columns whose numbers the job makes up.
    """

    df: DataFrame
    plan: WritePlan
    numbered: tuple[str, ...]


def complete(df: DataFrame, schema: Struct, plan: WritePlan, assignment: Assignment = Assignment.EXACT) -> CompleteRows:
    """Fits the data to a table, and fills in the columns that it lacks.

    Args:
        df: The data.
        schema: Columns of the table.
        plan: How its rows are written.
        assignment: Which conversions are allowed.

    Raises:
        InvalidRequest: `"schema-mismatch"`, as of `align`; `"numbers-given"`: the data brings a column whose numbers
            only the table may make; `"invalid-expression"`: Spark cannot compute a column by the table's expression.
    """
    needed = lacking(plan, schema, df.columns, may_lack_partitions=assignment is Assignment.CAST)
    rows = align(df, schema, assignment)
    # Constants first, then numbers: computed columns see both.
    rows = _with_values(rows, schema, needed.constants)
    rows = _with_values(rows, schema, needed.filled, only_nulls=True)
    rows = with_numbers(rows, needed.numbered)
    rows = _with_values(rows, schema, needed.computed)
    completed = replace(
        plan,
        checks=needed.checks,
        derived=(),
        computed=tuple(d.column for d in needed.derived if d.table_sql is not None),
        numbered=(),
    )
    return CompleteRows(rows, completed, tuple(n.column for n in needed.numbered))


def _with_values(rows: DataFrame, schema: Struct, derived: Sequence[Derived], *, only_nulls: bool = False) -> DataFrame:
    if not derived:
        return rows
    try:
        values = derived_values(rows, schema, derived)
        if only_nulls:
            values = {n: sf.coalesce(sf.col(quote(n)), value) for n, value in values.items()}
        return analysed(rows.select(*(values[n].alias(n) if n in values else sf.col(quote(n)) for n in rows.columns)))
    except AnalysisException as error:
        raise _not_computable(error, derived) from error


def derived_values(rows: DataFrame, schema: Struct, derived: Sequence[Derived]) -> dict[str, Column]:
    """The values of columns that a table makes itself, of the columns' types, by the columns' names.

    Args:
        rows: Over which they are computed.
        schema: Of the table.
        derived: What is computed.

    Raises:
        InvalidRequest: `"invalid-expression"`: an expression does more than compute a value.
        AnalysisException: Spark cannot compute one.
    """
    expressions = [d for d in derived if d.table_sql is not None]
    computed = table_columns(rows, [d.table_sql for d in expressions if d.table_sql is not None])
    values = {d.column: sf.lit(d.sql) for d in derived if d.table_sql is None}
    values.update({d.column: value for d, value in zip(expressions, computed, strict=True)})
    return {column: value.cast(_type(column, schema)) for column, value in values.items()}


def _type(column: str, schema: Struct) -> s.DataType:
    found = schema.find(column)
    assert found is not None, "a plan derives columns of its table"
    return to_spark(as_nullable(found.type))


def _not_computable(error: AnalysisException, derived: Sequence[Derived]) -> InvalidRequest:
    shown = ", ".join(f"{d.column} = {d.sql}" for d in derived)
    return InvalidRequest(
        f"Spark cannot compute the table's columns {shown[:300]}: {analysis_problem(error)}",
        code="invalid-expression",
        column=derived[0].column if len(derived) == 1 else None,
        hint="give the column's values in the data, or correct the expression in the table's schema",
    )


def with_numbers(rows: DataFrame, numbered: Sequence[Numbered], among: Mapping[str, Column] | None = None) -> DataFrame:
    """The rows with their numbers: row r of partition p of P takes number r * P + p, as the reference counts.

    No row is seen twice and none is counted ahead, so that it costs nothing but arithmetic; where partitions are of
    equal size there are no gaps.

    Args:
        rows: They have the columns already.
        numbered: What to number.
        among: Which rows are numbered, by column, where some keep what they have; rows that keep all are not counted.
    """
    if not numbered:
        return rows
    spark = rows.sparkSession
    if is_connect(spark):
        # Nobody there tells a task how many there are: so many, as Spark keeps a number that was asked for.
        tasks = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
        rows, count = rows.repartition(tasks), sf.lit(tasks)
    else:
        count = _num_partitions(spark)
    place = record_number()
    if among is not None:
        # A branch that is not taken does not count.
        place = sf.when(reduce(or_, (among[n.column] for n in numbered)), place)
    # The row's place is a column of its own first: it counts how often it is evaluated, so that must be once a row.
    placed = rows.withColumn(_ROW, place)
    numbers = {n.column: _number(n, count) for n in numbered}
    if among is not None:
        numbers = {name: sf.when(among[name], made).otherwise(sf.col(quote(name))) for name, made in numbers.items()}
    return placed.select(
        *(numbers[name].alias(name) if name in numbers else sf.col(quote(name)) for name in rows.columns)
    )


def _number(column: Numbered, partitions: Column) -> Column:
    index = sf.col(quote(_ROW)) * partitions + sf.spark_partition_id()
    # The greatest index whose number, and the product on the way to it, fits into 64 bits. The index itself does: a
    # partition has less than 2^33 rows, and no job has 2^30 partitions.
    room = (_MAX - column.first) // column.step if column.step > 0 else (column.first - _MIN) // -column.step
    last = min(room, _MAX // abs(column.step))
    exhausted = sf.raise_error(sf.lit(f"{_EXHAUSTED} {column.column.encode().hex()} end"))
    value = sf.lit(column.first) + index * sf.lit(column.step)
    return sf.when(index <= sf.lit(last), value).otherwise(exhausted.cast("bigint"))


def _num_partitions(spark: SparkSession) -> Column:
    """How many partitions the running stage has. With adaptive execution nobody knows before its tasks do."""
    java = java_of(spark)
    nothing, task = java.seq([]), java.task_context_class
    # Neither folded nor evaluated twice for what must be one value: `isDeterministic` is false.
    context = java.static_invoke(task, java.object_type(task), "get", nothing, nothing, False, True, False, java.none)
    count = java.invoke(context, "numPartitions", java.integer_type, nothing, nothing, False, True, False)
    # Rows that the driver holds are numbered by the optimizer, in one partition and outside of any task.
    return sf.coalesce(Column(java.expression_utils.column(count)), sf.lit(1))


def find_exhausted(text: str) -> str | None:
    """The column whose numbers came to their end, if that is what a job's error says."""
    match = _EXHAUSTED_TEXT.search(text)
    return bytes.fromhex(match[1]).decode(errors="replace") if match else None

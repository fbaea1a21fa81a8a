"""Rows of any schema as rows of a table's schema: names, order, missing columns, casts.

The rules are those that the reference engine was seen to follow, see docs/write-schema-rules.md.
"""

from __future__ import annotations

import difflib
import enum
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import types as s

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Field, Map, Struct
from alluvium.spark.clone import PrivateSession
from alluvium.spark.failures import analysis_problem
from alluvium.spark.scan.names import plain, quote, quote_text, sql_type
from alluvium.spark.scan.sql_text import sql_column
from alluvium.spark.session import analysed, is_connect
from alluvium.spark.types import from_spark

#: Integers that are kept as 32 bits in Parquet, so that the narrower is also the wider.
_INT32 = (t.BYTE, t.SHORT, t.INTEGER)


class Assignment(enum.Enum):
    """Which types of the data may go into which types of the table.

    EXACT: the same type, or a narrower one that the files hold alike (byte, short, int), or null: `df.write.save`.
    CAST: whatever Spark's ANSI CAST converts, with an error at run time where a value does not fit:
        `INSERT`, `saveAsTable`, `insertInto`, `writeTo`.
    """

    EXACT = "exact"
    CAST = "cast"


class _Mismatch(Exception):
    def __init__(self, problem: str, column: str) -> None:
        super().__init__(problem)
        self.column = column


@dataclass(frozen=True, slots=True)
class _Rules:
    assignment: Assignment
    #: Without it, missing columns of any depth are refused.
    fill_missing: bool


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
    rules = _Rules(assignment, fill_missing)
    data = _data_schema(df)
    try:
        selected = [
            f"{expression} as {quote(target.name)}"
            for target, expression in _members(data, schema, quote_prefix="", column="", rules=rules)
        ]
    except _Mismatch as mismatch:
        raise _refused(str(mismatch), mismatch.column, data, schema) from None
    if selected == [f"{quote(name)} as {quote(name)}" for name in data.names]:
        return df
    try:
        return _select(df, selected)
    except AnalysisException as error:
        raise _refused(analysis_problem(error), "", data, schema) from None


def _select(df: DataFrame, selected: list[str]) -> DataFrame:
    spark = df.sparkSession
    is_plain = not any("cast(" in text for text in selected)
    # Over Connect rows go into columns of the same types alone (`Assignment.EXACT`): no cast can fail.
    if is_plain or is_connect(spark) or spark.conf.get("spark.sql.ansi.enabled") == "true":
        return analysed(df.select(*map(sql_column, selected)))
    # The mode of a cast is fixed when it is analysed: a session of our own analyses it as ANSI, the user's runs it.
    private = PrivateSession(spark, {"spark.sql.ansi.enabled": "true"})
    return private.give_back(private.take(df).select(*map(sql_column, selected)))


def _data_schema(df: DataFrame) -> Struct:
    fields = []
    for f in df.schema.fields:
        try:
            fields.append(Field(f.name, from_spark(f.dataType, f.name), f.nullable))
        except UnsupportedFeature as error:
            if not isinstance(f.dataType, (s.DayTimeIntervalType, s.YearMonthIntervalType, s.CalendarIntervalType)):
                raise InvalidRequest(error.message, code="unsupported-type", column=f.name, hint=error.hint) from None
            fields.append(Field(f.name, t.Primitive(f.dataType.simpleString()), f.nullable))
    return Struct(tuple(fields))


def _members(
    data: Struct, schema: Struct, *, quote_prefix: str, column: str, rules: _Rules
) -> Iterator[tuple[Field, str]]:
    """The table's fields, each with its value as Spark SQL over the data's."""
    folded = Counter(name.casefold() for name in data.names)
    known = {f.name.casefold() for f in schema.fields}
    for f in data.fields:
        here = f"{column}.{f.name}" if column else f.name
        if folded[f.name.casefold()] > 1:
            raise _Mismatch(f"the data has more than one column {f.name!r} (case does not count)", here)
        if f.name.casefold() not in known:
            raise _Mismatch(f"the table has no column {here!r}", here)
    by_name = {f.name.casefold(): f for f in data.fields}
    for target in schema.fields:
        here = f"{column}.{target.name}" if column else target.name
        source = by_name.get(target.name.casefold())
        if source is not None:
            yield target, _value(f"{quote_prefix}{quote(source.name)}", source.type, target.type, here, rules)
        elif rules.fill_missing:
            yield target, f"cast(null as {sql_type(target.type)})"
        else:
            raise _Mismatch(f"the data has no column {here!r}", here)


def _value(text: str, source: DataType, target: DataType, column: str, rules: _Rules) -> str:
    if plain(source) == plain(target):
        return text
    if isinstance(source, Struct) and isinstance(target, Struct):
        members = _members(source, target, quote_prefix=f"{text}.", column=column, rules=rules)
        pairs = ", ".join(f"{quote_text(f.name)}, {value}" for f, value in members)
        return f"if({text} is null, null, named_struct({pairs}))"
    depth = text.count("->")
    if isinstance(source, Array) and isinstance(target, Array):
        item = f"e{column.count('.')}_{depth}"
        inner = _value(item, source.element, target.element, f"{column}.element", rules)
        return f"transform({text}, {item} -> {inner})"
    if isinstance(source, Map) and isinstance(target, Map):
        key, value = f"k{column.count('.')}_{depth}", f"v{column.count('.')}_{depth}"
        keys = _value(key, source.key, target.key, f"{column}.key", rules)
        values = _value(value, source.value, target.value, f"{column}.value", rules)
        result = text if values == value else f"transform_values({text}, ({key}, {value}) -> {values})"
        return result if keys == key else f"transform_keys({result}, ({key}, {value}) -> {keys})"
    if rules.assignment is Assignment.EXACT and not _held_alike(source, target):
        raise _Mismatch(f"column {column!r} is {target} in the table and {source} in the data", column)
    return f"cast({text} as {sql_type(target)})"


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


def schema_diff(table: Struct, data: Struct) -> str:
    """Where two schemas differ, as lines with `-` (table) and `+` (data); order and case of names do not count."""
    left, right = list(_lines(table)), list(_lines(data))
    changed = [
        line
        for line in difflib.unified_diff(left, right, n=0, lineterm="")
        if line[:1] in "+-" and line[:3] not in ("---", "+++")
    ]
    return "\n".join(["--- table", "+++ data", *changed])


def _lines(schema: Struct) -> Iterator[str]:
    for path, f in sorted(schema.leaves(), key=lambda leaf: [name.casefold() for name in leaf[0]]):
        yield f"{'.'.join(path).casefold()}: {f.type}"

"""From a value of one type to one of a column's type, as Spark SQL: the same for all verbs that store values.

What Spark's casts make of a value is not said here, see `spark.values.storing`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyspark.sql import types as s

from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest
from alluvium.schema.types import Array, DataType, Field, Map, Primitive, Struct
from alluvium.spark.naming.names import plain, quote, quote_text, sql_type
from alluvium.spark.naming.types import from_spark

#: Types that no table has, whose values can be stored as text.
_INTERVALS = (s.DayTimeIntervalType, s.YearMonthIntervalType, s.CalendarIntervalType)


class Misfit(Exception):
    """A value that no column of the type can take."""

    def __init__(self, problem: str, column: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.column = column
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Rules:
    """What may go into what.

    Attributes:
        may_cast: Whether values of one type may be cast to another: neither is a struct, array or map of such.
        fills_missing: Whether columns and fields that are not there are null; otherwise they are refused, at any depth.
        said_by: Who allows no other casts, for errors; empty: the types themselves.
    """

    may_cast: Callable[[DataType, DataType], bool]
    fills_missing: bool = True
    said_by: str = ""


def value_type(data_type: s.DataType, column: str) -> DataType:
    """The type of values that are to be stored.

    Raises:
        InvalidRequest: `"unsupported-type"`: nothing can be made of such values.
    """
    if isinstance(data_type, _INTERVALS):
        return Primitive(data_type.simpleString())
    try:
        return from_spark(data_type, column)
    except UnsupportedFeature as error:
        raise InvalidRequest(error.message, code="unsupported-type", column=column, hint=error.hint) from None


def conversion(text: str, source: DataType, target: DataType, column: str, rules: Rules) -> str:
    """The value as one of the target's type.

    Args:
        text: The value, as Spark SQL: it stands in the result once for each member of a struct.
        source: Its type.
        target: The type wanted.
        column: For errors, dotted.
        rules: What is allowed.

    Raises:
        Misfit: The value can be none of the type.
    """
    if plain(source) == plain(target):
        return text
    if isinstance(source, Struct) and isinstance(target, Struct):
        pairs = members(text, source, target, column, rules)
        converted = ", ".join(f"{quote_text(f.name)}, {value}" for f, value in pairs)
        return f"if({text} is null, null, named_struct({converted}))"
    depth = text.count("->")
    if isinstance(source, Array) and isinstance(target, Array):
        item = f"e{column.count('.')}_{depth}"
        inner = conversion(item, source.element, target.element, f"{column}.element", rules)
        return f"transform({text}, {item} -> {inner})"
    if isinstance(source, Map) and isinstance(target, Map):
        key, value = f"k{column.count('.')}_{depth}", f"v{column.count('.')}_{depth}"
        keys = conversion(key, source.key, target.key, f"{column}.key", rules)
        values = conversion(value, source.value, target.value, f"{column}.value", rules)
        result = text if values == value else f"transform_values({text}, ({key}, {value}) -> {values})"
        return result if keys == key else f"transform_keys({result}, ({key}, {value}) -> {keys})"
    if not rules.may_cast(source, target):
        why = f", and {rules.said_by} allows no cast that might fail" if rules.said_by else ""
        raise Misfit(f"column {column!r} is {target} in the table and {source} in the data{why}", column)
    return f"cast({text} as {sql_type(target)})"


def members(text: str, source: Struct, target: Struct, column: str, rules: Rules) -> Iterator[tuple[Field, str]]:
    """The target's fields by name, without regard to case, each with its value over the source's.

    Args:
        text: The struct whose fields they are, as Spark SQL; empty: they are the columns of the data.
        source: What there is.
        target: What is wanted.
        column: For errors, dotted; empty for columns of the data.
        rules: What is allowed.

    Raises:
        Misfit: There is a field that the target has not, or a doubled one; or one that is wanted is not there.
    """
    folded = Counter(name.lower() for name in source.names)
    known = {f.name.lower() for f in target.fields}
    for f in source.fields:
        here = f"{column}.{f.name}" if column else f.name
        if folded[f.name.lower()] > 1:
            raise Misfit(f"the data has more than one column {f.name!r} (case does not count)", here)
        if f.name.lower() not in known:
            raise Misfit(f"the table has no column {here!r}", here, suggest(f.name, target.names))
    by_name = {f.name.lower(): f for f in source.fields}
    prefix = f"{text}." if text else ""
    for wanted in target.fields:
        here = f"{column}.{wanted.name}" if column else wanted.name
        found = by_name.get(wanted.name.lower())
        if found is not None:
            yield wanted, conversion(f"{prefix}{quote(found.name)}", found.type, wanted.type, here, rules)
        elif rules.fills_missing:
            yield wanted, f"cast(null as {sql_type(wanted.type)})"
        else:
            raise Misfit(
                f"the data has no column {here!r}",
                here,
                "give all fields, or let the schema evolve: then those that are not given keep their values",
            )

"""Times that a writer of ORC files would put there in a form that readers take for another, as conditions on the rows.

Arrow's writer splits a time before 1970 otherwise than Java's: Java's reader takes its whole milliseconds, and fails
over finer ones. Arrow's reader counts nanoseconds since 1970 in 64 bits: the whole column is lost with a time beyond.

Spark's writer counts days in the calendar that had 1582-10-04 before 1582-10-15; Paimon's reader takes any number of
days for one of today's calendar. Since that day both are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from alluvium.expr.sql.not_null import quote
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataType
from alluvium.paimon.terms.options import FILE_FORMAT
from alluvium.plan.write import Check
from alluvium.schema import types as t

#: What nanoseconds of 64 bits tell, from the first whole millisecond to the last microsecond.
_FIRST, _LAST = "1677-09-21 00:12:43.146", "2262-04-11 23:47:16.854775"
#: Of a timestamp whose values are cut to milliseconds when they are written.
_MILLIS = 3
_CALENDARS_AGREE = "1582-10-15"

#: The condition on a value of a type; None where there is none.
_Condition: TypeAlias = Callable[[DataType, str], "str | None"]


def times_of_orc(schema: TableSchema) -> Iterator[Check]:
    """What must hold of the timestamps of each column, at any depth."""
    if FILE_FORMAT.get(schema.options) != "orc":
        return
    for f in schema.fields:
        if (condition := _inside(f.type, quote((f.name,)), _time)) is not None:
            hint = 'nothing was written; write Parquet: give the option "file.format" = "parquet"'
            yield Check(f"{f.name} in ORC", condition, (f.name,), "not-in-orc", hint=hint)


def days_of_spark(schema: TableSchema) -> Iterator[Check]:
    """What must hold of the dates of each column, at any depth, for Spark's own writer to write them."""
    for f in schema.fields:
        if (condition := _inside(f.type, quote((f.name,)), _day)) is not None:
            yield Check(f"{f.name} in ORC of Spark", condition, (f.name,), "not-in-orc")


def _inside(kind: DataType, value: str, leaf: _Condition, depth: int = 0) -> str | None:
    """The condition on a value; None where no leaf has one. True where the value is null."""
    element = f"e{depth}"
    parts: list[str | None] = []
    if kind.root == "ROW":
        parts = [_inside(f.type, f"{value}.{quote((f.name,))}", leaf, depth) for f in kind.fields]
    elif kind.root == "MULTISET" and kind.element is not None:
        parts = [_each(kind.element, f"map_keys({value})", element, leaf, depth)]
    elif kind.element is not None:
        parts = [_each(kind.element, value, element, leaf, depth)]
    elif kind.key is not None and kind.value is not None:
        sides = ((kind.key, f"map_keys({value})"), (kind.value, f"map_values({value})"))
        parts = [_each(of, values, element, leaf, depth) for of, values in sides]
    else:
        parts = [leaf(kind, value)]
    joined = " and ".join(part for part in parts if part is not None)
    return f"({value} is null or ({joined}))" if joined else None


def _each(kind: DataType, values: str, element: str, leaf: _Condition, depth: int) -> str | None:
    inner = _inside(kind, element, leaf, depth + 1)
    return None if inner is None else f"forall({values}, {element} -> {inner})"


def _day(kind: DataType, value: str) -> str | None:
    return f"{value} >= date'{_CALENDARS_AGREE}'" if kind.root == "DATE" else None


def _time(kind: DataType, value: str) -> str | None:
    if not kind.root.startswith("TIMESTAMP"):
        return None
    zoned = to_logical(kind) in (t.TIMESTAMP, t.TIMESTAMP_NANOS)
    name, zone = ("timestamp", "Z") if zoned else ("timestamp_ntz", "")
    condition = f"{value} between {name}'{_FIRST}{zone}' and {name}'{_LAST}{zone}'"
    if kind.precision > _MILLIS:
        # Zones are whole seconds apart, so that the fraction is the same in each.
        fine = f"extract(second from {value}) * 1000 % 1 = 0"
        condition += f" and ({value} >= {name}'1970-01-01 00:00:00{zone}' or {fine})"
    return condition

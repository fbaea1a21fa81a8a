"""Casts and functions that keep (or turn round) the order of values: what they make of an interval."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.expr import tree
from alluvium.expr.bind import SETTLED, type_of
from alluvium.expr.columnar import Datum, local_time
from alluvium.expr.evaluate import zone_of
from alluvium.expr.literals import UTC
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Decimal

_INSTANTS = (t.TIMESTAMP, t.TIMESTAMP_NANOS)
#: More than any clock is from UTC's.
_FARTHEST = dt.timedelta(days=2)
#: Patterns whose texts sort as the times do: from the year down, nothing left out, each part of a fixed width.
_SORTABLE = re.compile(r"yyyy(?:[-/. ]?MM(?:[-/. ]?dd(?:[-/. ]?HH(?:[:\-. ]?mm(?:[:\-. ]?ss)?)?)?)?)?")


@dataclass(frozen=True, slots=True)
class Monotone:
    """What a call does to the order of one of its arguments, the others being constants.

    Attributes:
        argument: Which argument.
        rises: x <= y implies f(x) <= f(y); otherwise f(x) >= f(y).
        local: It looks at the local time of an instant, so that the order holds but for hours that a clock repeats.
        within: The period that a value lies in, where the order holds only within periods.
    """

    argument: int
    rises: bool = True
    local: bool = False
    within: Callable[[Datum, dt.tzinfo], Datum] | None = None


def is_sortable_pattern(pattern: object) -> bool:
    """Whether texts that `date_format` makes by a pattern sort as the times do."""
    return isinstance(pattern, str) and _SORTABLE.fullmatch(pattern) is not None


def monotone(node: tree.Call) -> Monotone | None:
    """How a call orders its results; None where nothing is known."""
    constants = [arg.value if isinstance(arg, tree.Literal) else None for arg in node.args]
    if node.name in ("year", "trunc", "date_add", "date_sub", "floor", "ceil", "round"):
        return Monotone(0) if None not in constants[1:] else None
    if node.name == "date_trunc":
        return Monotone(1, local=True) if constants[0] is not None else None
    if node.name == "date_format":
        return Monotone(0, local=True) if is_sortable_pattern(constants[1]) else None
    if node.name == "substring":
        # Text goes by its characters from the left, and so do its beginnings.
        return Monotone(0) if constants[1] in (0, 1) and None not in constants[2:] else None
    if node.name == "negative":
        return Monotone(0, rises=False) if _is_exact(node) else None
    if node.name in ("+", "-", "*") and _is_exact(node):
        return _arithmetic(node.name, constants)
    return None


#: The period within which each part of a date or time rises.
_PERIODS = {"quarter": "year", "month": "year", "day": "month", "hour": "day", "minute": "hour", "second": "minute"}


def rises_within(node: tree.Call) -> Monotone | None:
    """How a call orders its results within periods: `month` within a year; None where nothing is known."""
    if node.name not in _PERIODS:
        return None
    unit, source = _PERIODS[node.name], type_of(node.args[0])

    def period(values: Datum, zone: dt.tzinfo) -> Datum:
        return pc.floor_temporal(local_time(values, zone) if source == t.TIMESTAMP else values, unit=unit)

    return Monotone(0, local=source == t.TIMESTAMP, within=period)


def is_fallible(node: tree.Call) -> bool:
    """Whether results are in order only where both bounds are known.

    One may be too great for its type; a text of a date is in its place only while years have four digits, and what is
    beyond has no bound here.
    """
    return node.name in ("+", "-", "*", "negative", "date_add", "date_sub", "date_format")


def is_fallible_cast(target: DataType) -> bool:
    """The same of a cast that keeps the order."""
    return isinstance(target, Decimal) or target == t.STRING


def _is_exact(node: tree.Call) -> bool:
    result = type_of(node)
    return result in t.INTEGRAL or isinstance(result, Decimal)


def _arithmetic(op: str, constants: list[object]) -> Monotone | None:
    place = next((i for i, value in enumerate(constants) if value is not None), None)
    if place is None:
        return None
    value = constants[place]
    if op == "*":
        return Monotone(1 - place, rises=value >= 0)  # type: ignore[operator]  # a number, or it would not be bound
    return Monotone(1 - place, rises=op == "+" or place == 1)


def keeps_order(source: DataType, target: DataType, zone: dt.tzinfo) -> bool:
    """x <= y implies cast(x) <= cast(y), and no cast of a value fails or becomes null."""
    if source in t.INTEGRAL:
        if target in t.INTEGRAL:
            return t.INTEGRAL.index(source) <= t.INTEGRAL.index(target)
        return target in t.FLOATING or isinstance(target, Decimal)
    if isinstance(source, Decimal):
        return target in t.FLOATING or (isinstance(target, Decimal) and target.scale >= source.scale)
    if source == t.FLOAT:
        return target == t.DOUBLE
    if source == t.DATE:
        # As text, too, between bounds that are known: years of four digits, as all are that Python can print.
        return target in (t.TIMESTAMP, t.TIMESTAMP_NTZ, t.STRING)
    if source == t.TIMESTAMP:
        return target == t.DATE or (target == t.TIMESTAMP_NTZ and zone is UTC)
    return source == t.TIMESTAMP_NTZ and (target == t.DATE or (target == t.TIMESTAMP and zone is UTC))


def before(instants: Datum) -> Datum:
    """A little earlier: where a clock was set back over midnight, a later instant may have an earlier date.

    Since 1970 clocks have been set back by at most 3 hours, except once (Kwajalein, September 1969, by 23); before,
    by up to a day.
    """
    return pc.subtract_checked(instants, _set_back(instants))


def after(instants: Datum) -> Datum:
    """A little later, see `before`."""
    return pc.add_checked(instants, _set_back(instants))


def _set_back(instants: Datum) -> Datum:
    hours, day = (
        pa.scalar(dt.timedelta(hours=4), pa.duration("us")),
        pa.scalar(dt.timedelta(hours=26), pa.duration("us")),
    )
    return pc.if_else(pc.less(instants, pa.scalar(dt.datetime(1970, 1, 3, tzinfo=UTC), instants.type)), day, hours)


def local_parts(node: tree.Expression, around: dt.tzinfo) -> Iterator[tree.Expression]:
    """The instants in an expression whose local times are looked up in a table, of which others have other editions.

    Args:
        node: The expression.
        around: The zone of what has none of its own.
    """
    for part in tree.walk(node):
        if isinstance(part, (tree.Cast, tree.Call)) and not isinstance(zone_of(part, around), dt.timezone):
            yield from (one for one in (part, *tree.children(part)) if type_of(one) in _INSTANTS)


def is_disputed(instants: Datum) -> Datum:
    """Whether tables of time zones may differ on the local times of instants, or on the instants of local times."""
    return pc.less(instants, pa.scalar(SETTLED + _FARTHEST, instants.type))


def disputed_by(instants: Datum) -> Datum:
    """By how much they may differ."""
    none, day = (pa.scalar(dt.timedelta(hours=hours), pa.duration("us")) for hours in (0, 26))
    return pc.if_else(is_disputed(instants), day, none)

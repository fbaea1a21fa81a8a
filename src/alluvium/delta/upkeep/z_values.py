"""Where rows stand along a Z-curve: bounds between ranges of a column's values, and ranks with their bits interleaved.

The curve goes by ranks, not by values, so that skewed columns are divided as evenly as others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T", int, float, bytes)

#: Ranges that a column is divided into at most: what the reference takes.
MAX_RANGES = 1024
#: Bits of a place on the curve: a 64-bit number that is never negative.
_BITS = 62


def rank_bits(columns: int) -> int:
    """How many bits of each column's rank go into a place on the curve; 0 where there are too many columns."""
    return min(MAX_RANGES.bit_length() - 1, _BITS // columns)


@dataclass(frozen=True, slots=True)
class Ranges(Generic[T]):
    """A column's values, divided into ranges.

    Attributes:
        bounds: Different values in order.
        starts: The range of values that equal a bound, or lie between the one before it and it; then the last range.
            A value that fills several ranges alone leaves the others empty, so that each bit of a range's number
            divides the rows, not the values, in halves.
    """

    bounds: list[T]
    starts: list[int]

    def rank(self, value: T | None) -> int:
        """The range of a value; null is less than all others, NaN greater."""
        return 0 if value is None else self.starts[bisect_left(self.bounds, value) if value == value else -1]


def divided(sample: Iterable[T | None], ranges: int) -> Ranges[T]:
    """Ranges of about equally many rows.

    Args:
        sample: Some values, in any order.
        ranges: How many there are at most.
    """
    values = list(sample)
    ordered = sorted(v for v in values if v is not None and v == v)
    count, nulls = len(values), sum(v is None for v in values)
    starts: dict[T, int] = {}
    places = [n * count // ranges - nulls for n in range(1, ranges)] if count else []
    for number, place in enumerate(places):
        if 0 <= place < len(ordered):
            starts.setdefault(ordered[place], number)
    return Ranges(list(starts), [*starts.values(), len(places)])


def interleaved(ranks: Sequence[int], bits: int) -> int:
    """The place on the curve: the highest bit of the first column, that of the second, ..., then the next ones."""
    place = 0
    for bit in reversed(range(bits)):
        for rank in ranks:
            place = place << 1 | rank >> bit & 1
    return place


def cuts(places: Iterable[int], parts: int) -> list[int]:
    """At most `parts - 1` different places, in order, that divide a sample of places into parts of about equal numbers.

    A part begins at its cut.
    """
    ordered = sorted(places)
    found = dict.fromkeys(ordered[n * len(ordered) // parts] for n in range(1, parts)) if ordered else {}
    # The first part begins where the least place is.
    return [place for place in found if place > ordered[0]]

"""Places along a Hilbert curve: neighbours on it differ by one step in one column, which a Z-curve's do not.

The curve is walked from the highest bits down, by a table of steps: where the walk stands in its pattern and the next
bit of every column give the next bits of the place. The pattern is that of C. Hamilton, "Compact Hilbert Indices"
(2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

#: Columns that there is a table for: one more makes it eight times as large.
MOST_COLUMNS = 5
#: Numbers that a table of several bits at once has at most.
_MOST_STEPS = 1 << 14


@dataclass(frozen=True, slots=True)
class Steps:
    """The table of a curve through so many columns.

    Attributes:
        columns: How many there are.
        table: Where the walk stands, shifted by one bit a column, with the next bit of each column below it (the first
            column's highest) is the place in the table. There is the next stand, shifted alike, with the next bits
            of the curve below it. The walk begins at 0.
    """

    columns: int
    table: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WideSteps:
    """The same for several bits of every column at once.

    Attributes:
        columns: How many there are.
        bits: Of each column, taken in a step.
        table: Where the walk stands, shifted by all bits of a step, with those of the first column, the second, ...
            below it is the place in the table. There is the next stand, shifted alike, with the next bits of the curve
            below it. The walk begins at 0.
    """

    columns: int
    bits: int
    table: tuple[int, ...]


@lru_cache(maxsize=MOST_COLUMNS)
def hilbert_steps(columns: int) -> Steps:
    """The table of steps of a curve through 1 to `MOST_COLUMNS` columns."""
    stands: dict[tuple[int, int], int] = {(0, 0): 0}
    waiting, table = [(0, 0)], []
    for entry, direction in waiting:
        for bits in range(1 << columns):
            step = _gray_rank(_rotated_right(bits ^ entry, direction + 1, columns))
            after = (
                entry ^ _rotated_left(_entry(step), direction + 1, columns),
                (direction + _direction(step, columns) + 1) % columns,
            )
            if after not in stands:
                stands[after] = len(stands)
                waiting.append(after)
            table.append(stands[after] << columns | step)
    return Steps(columns, tuple(table))


@lru_cache(maxsize=MOST_COLUMNS)
def wide_steps(columns: int, bits: int) -> WideSteps:
    """The table for ranks of so many bits that takes the fewest steps and is no larger than `_MOST_STEPS`."""
    narrow = hilbert_steps(columns)
    stands = len(narrow.table) >> columns
    fits = [n for n in range(1, bits + 1) if bits % n == 0 and stands << columns * n <= _MOST_STEPS]
    taken = max(fits, default=1)
    table = [
        _walked(narrow, stand, [code >> n * taken for n in reversed(range(columns))], taken)
        for stand in range(stands)
        for code in range(1 << columns * taken)
    ]
    return WideSteps(columns, taken, tuple(table))


def _walked(narrow: Steps, stand: int, ranks: Sequence[int], bits: int) -> int:
    """Where some steps lead, and below it the bits of the curve that they give."""
    place, columns = 0, narrow.columns
    for bit in reversed(range(bits)):
        taken = 0
        for rank in ranks:
            taken = taken << 1 | rank >> bit & 1
        step = narrow.table[stand << columns | taken]
        stand, place = step >> columns, place << columns | step & (1 << columns) - 1
    return stand << columns * bits | place


def hilbert_places(ranks: Sequence[Sequence[int]], bits: int) -> list[int]:
    """The place of each of some rows.

    Args:
        ranks: For each column a number of so many bits a row.
        bits: How many.
    """
    steps = hilbert_steps(len(ranks))
    table, below = pa.array(steps.table, pa.int64()), (1 << steps.columns) - 1
    arrays = [pa.array(rank, pa.int64()) for rank in ranks]
    stand = places = pa.repeat(pa.scalar(0, pa.int64()), len(arrays[0]))
    for bit in reversed(range(bits)):
        at = stand
        for n, rank in enumerate(arrays):
            taken = pc.bit_wise_and(pc.shift_right(rank, bit), 1)
            at = pc.bit_wise_or(at, pc.shift_left(taken, steps.columns - 1 - n))
        step = table.take(at)
        places = pc.bit_wise_or(pc.shift_left(places, steps.columns), pc.bit_wise_and(step, below))
        stand = pc.bit_wise_and(step, ~below)
    found: list[int] = places.to_pylist()
    return found


def _rotated_right(bits: int, by: int, width: int) -> int:
    by %= width
    return (bits >> by | bits << width - by) & (1 << width) - 1


def _rotated_left(bits: int, by: int, width: int) -> int:
    return _rotated_right(bits, -by, width)


def _gray(rank: int) -> int:
    return rank ^ rank >> 1


def _gray_rank(code: int) -> int:
    rank = 0
    while code:
        rank ^= code
        code >>= 1
    return rank


def _entry(step: int) -> int:
    """At which corner of its part of the cube the curve comes in."""
    return 0 if step == 0 else _gray(2 * ((step - 1) // 2))


def _direction(step: int, columns: int) -> int:
    """Along which column it goes from there to where it leaves."""
    if step == 0:
        return 0
    odd = step if step % 2 else step - 1
    # How many ones it ends with.
    return ((~odd & odd + 1).bit_length() - 1) % columns

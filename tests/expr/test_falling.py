"""Functions that turn the order round, and those that keep it: which files a condition on their results leaves.

Three files with the numbers 1 to 3, 4 to 6 and 7 to 9. Wrong ends of an interval would lose a file, or keep them all.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Number

import pyarrow as pa
import pytest

from alluvium.expr.skipping.prune import prune
from alluvium.expr.sql.parse import parse_predicate
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Decimal, Field, Struct

SCHEMA = Struct(
    (Field("i", t.INTEGER), Field("l", t.LONG), Field("e", Decimal(9, 2)), Field("day", t.DATE), Field("s", t.STRING))
)
ENDS = [(1, 3), (4, 6), (7, 9)]


class Files:
    """Bounds of three files; no nulls."""

    num_files = 3

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        return None

    def _bound(self, path: tuple[str, ...], place: int) -> pa.Array:
        kind = SCHEMA.find_path(path)
        assert kind is not None
        made = {
            "e": lambda n: Number(n),
            "day": lambda n: dt.date(2024, n, 10),
            "s": lambda n: f"{n}x",
        }.get(path[0], int)
        return pa.array([made(ends[place]) for ends in ENDS], to_arrow(kind.type))

    def lower(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._bound(path, 0)

    def upper(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._bound(path, 1)

    def null_count(self, path: tuple[str, ...]) -> pa.Array:
        return pa.array([0] * 3, pa.int64())

    def num_rows(self) -> pa.Array:
        return pa.array([9] * 3, pa.int64())


FALLING = ["-i", "-l", "-e", "i * -1", "-1 * l", "e * -1", "0 - i", "0 - l", "0 - e"]
RISING = ["i * 1", "1 * l", "e + 0", "0 + i", "i - 0", "l - 0", "e - 0", "-(-i)", "0 - (0 - l)"]


def kept(text: str) -> list[int]:
    return [int(keep) for keep in prune(parse_predicate(text, SCHEMA), Files()).to_pylist()]


@pytest.mark.parametrize("function", FALLING)
def test_what_falls(function: str) -> None:
    assert kept(f"{function} = -5") == [0, 1, 0]
    assert kept(f"{function} < -6") == [0, 0, 1]
    assert kept(f"{function} <= -6") == [0, 1, 1]
    assert kept(f"{function} > -4") == [1, 0, 0]
    assert kept(f"{function} >= -4") == [1, 1, 0]
    assert kept(f"{function} BETWEEN -5 AND -2") == [1, 1, 0]
    assert kept(f"{function} IN (-1, -9)") == [1, 0, 1]
    assert kept(f"{function} = 5") == [0, 0, 0]


@pytest.mark.parametrize("function", RISING)
def test_what_rises(function: str) -> None:
    assert kept(f"{function} = 5") == [0, 1, 0]
    assert kept(f"{function} < 4") == [1, 0, 0]
    assert kept(f"{function} <= 4") == [1, 1, 0]
    assert kept(f"{function} > 6") == [0, 0, 1]
    assert kept(f"{function} >= 6") == [0, 1, 1]
    assert kept(f"{function} = -5") == [0, 0, 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i * 0 = 0", [1, 1, 1]),
        ("i * 0 = 1", [0, 0, 0]),
        ("i * -2 = -10", [0, 1, 0]),
        ("10 - i = 2", [0, 0, 1]),
        ("i - 10 = -2", [0, 0, 1]),
        ("10 - i * 2 = 0", [0, 1, 0]),
        # Two columns: nothing is known.
        ("i - l = 0", [1, 1, 1]),
        ("year(day) = 2024", [1, 1, 1]),
        ("year(day) = 2023", [0, 0, 0]),
        ("date_add(day, 30) >= date'2024-08-09'", [0, 0, 1]),
        ("date_add(day, -30) < date'2024-03-01'", [1, 0, 0]),
        ("date_sub(day, 30) >= date'2024-06-10'", [0, 0, 1]),
        ("trunc(day, 'month') = date'2024-05-01'", [0, 1, 0]),
        ("substring(s, 1, 1) = '5'", [0, 1, 0]),
        ("substring(s, 0, 1) = '5'", [0, 1, 0]),
        # What does not begin at the left has another order.
        ("substring(s, 2, 1) = 'x'", [1, 1, 1]),
    ],
)
def test_others(text: str, expected: list[int]) -> None:
    assert kept(text) == expected

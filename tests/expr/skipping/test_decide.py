"""Where every row of a file makes a predicate true, and where some may: all files of a few values, beside their rows."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

from alluvium.expr.evaluate import evaluate
from alluvium.expr.skipping.prune import decide
from alluvium.expr.sql.parse import parse_predicate
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct

SCHEMA = Struct((Field("i", t.INTEGER), Field("d", t.DOUBLE), Field("p", t.INTEGER)))
#: Files of two rows: of each the values of `i`; those of `p` are one.
ROWS = list(itertools.product([None, 1, 2, 3], repeat=2))
FILES = [(pair, p) for pair in ROWS for p in (None, 1, 2)]


class Exact:
    """Statistics of whole numbers, none of which is missing."""

    num_files = len(FILES)

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        return pa.array([p for _, p in FILES], pa.int32()) if path == ("p",) else None

    def _of(self, path: tuple[str, ...], pick: Any) -> pa.Array:
        known = [[v for v in pair if v is not None] for pair, _ in FILES]
        kind = pa.float64() if path == ("d",) else pa.int32()
        return pa.array([pick(some) if some else None for some in known], kind)

    def lower(self, path: tuple[str, ...]) -> pa.Array:
        return self._of(path, min)

    def upper(self, path: tuple[str, ...]) -> pa.Array:
        return self._of(path, max)

    def null_count(self, path: tuple[str, ...]) -> pa.Array:
        return pa.array([sum(v is None for v in pair) for pair, _ in FILES], pa.int64())

    def num_rows(self) -> pa.Array:
        return pa.array([2] * len(FILES), pa.int64())


ATOMS = ["i = 2", "i < 2", "i >= 2", "i != 2", "i <=> 2", "i IS NULL", "i IS NOT NULL", "i IN (1, 2)", "i NOT IN (3)",
         "i BETWEEN 2 AND 3", "p = 1", "p IS NULL", "i = p", "i < p", "true", "i = NULL"]  # fmt: skip


def outcomes(text: str) -> list[tuple[bool | None, bool | None]]:
    rows = pa.table({
        "i": pa.array([v for pair, _ in FILES for v in pair], pa.int32()),
        "d": pa.array([v for pair, _ in FILES for v in pair], pa.float64()),
        "p": pa.array([p for _, p in FILES for _ in range(2)], pa.int32()),
    })  # fmt: skip
    found = evaluate(parse_predicate(text, SCHEMA), rows).to_pylist()
    return list(zip(found[::2], found[1::2], strict=True))


@pytest.mark.parametrize("text", [*ATOMS, *(f"NOT ({one})" for one in ATOMS)])
def test_one_condition_is_decided_exactly(text: str) -> None:
    """Where the bounds are the values, as of files that hold no value between them."""
    found = decide(parse_predicate(text, SCHEMA), Exact())
    for (pair, p), hits, keep, certain in zip(
        FILES, outcomes(text), found.keep.to_pylist(), found.certain.to_pylist(), strict=True
    ):
        assert keep or True not in hits, (text, pair, p)
        assert not certain or hits == (True, True), (text, pair, p)
        gap = sorted(v for v in pair if v is not None) == [1, 3]
        if not gap:
            if text != "NOT (i IN (1, 2))":
                assert keep == (True in hits), (text, pair, p)
            # Of two conditions, or values, on each row nobody knows which rows meet which.
            if not any(word in text for word in ("BETWEEN", "p", "1, 2")):
                assert certain == (hits == (True, True)), (text, pair, p)


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(ATOMS, 2)))
def test_two_conditions(one: str, other: str) -> None:
    for text in (f"({one}) AND ({other})", f"({one}) OR NOT ({other})"):
        found = decide(parse_predicate(text, SCHEMA), Exact())
        for hits, keep, certain in zip(outcomes(text), found.keep.to_pylist(), found.certain.to_pylist(), strict=True):
            assert keep or True not in hits
            assert not certain or hits == (True, True)


def test_whether_floating_numbers_are_null_is_certain() -> None:
    """NaN is a value: counts of nulls tell what bounds do not."""
    counts = Exact().null_count(("d",)).to_pylist()
    found = decide(parse_predicate("d IS NOT NULL", SCHEMA), Exact())
    assert found.certain.to_pylist() == [count == 0 for count in counts]
    assert found.keep.to_pylist() == [count < 2 for count in counts]
    found = decide(parse_predicate("d IS NULL", SCHEMA), Exact())
    assert found.certain.to_pylist() == [count == 2 for count in counts]
    assert found.keep.to_pylist() == [count > 0 for count in counts]
    bounded = decide(parse_predicate("d > 0", SCHEMA), Exact())
    # Of numbers bounds keep files, and prove nothing of all rows.
    assert bounded.certain.to_pylist() == [False] * len(FILES)
    assert bounded.keep.to_pylist() == [count < 2 for count in counts]


class Instants:
    """A file of rows between two instants."""

    num_files = 1

    def __init__(self, first: str, last: str) -> None:
        self._ends = [pa.array([text]).cast(pa.timestamp("us", "UTC")) for text in (first, last)]

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        return None

    def lower(self, path: tuple[str, ...]) -> pa.Array:
        return self._ends[0]

    def upper(self, path: tuple[str, ...]) -> pa.Array:
        return self._ends[1]

    def null_count(self, path: tuple[str, ...]) -> pa.Array:
        return pa.array([0])

    def num_rows(self) -> pa.Array:
        return pa.array([1])


@pytest.mark.parametrize(
    ("zone", "instant", "beginnings"),
    [
        # Clocks go back at one in the night, so that the day begins twice: engines may mean either.
        ("America/Havana", "2024-11-03 04:30:00Z", ["2024-11-03 04:00:00Z", "2024-11-03 05:00:00Z"]),
        ("America/Havana", "2024-11-03 05:30:00Z", ["2024-11-03 04:00:00Z", "2024-11-03 05:00:00Z"]),
        ("America/Havana", "2024-11-04 04:00:00Z", ["2024-11-03 04:00:00Z", "2024-11-03 05:00:00Z"]),
        ("UTC", "2024-11-03 04:30:00Z", ["2024-11-03 00:00:00Z"]),
    ],
)
def test_a_day_that_begins_twice(zone: str, instant: str, beginnings: list[str]) -> None:
    schema = Struct((Field("ts", t.TIMESTAMP),))
    for begins in beginnings:
        where = parse_predicate(f"date_trunc('DAY', ts) = timestamp'{begins}'", schema, zone)
        assert decide(where, Instants(instant, instant), zone).keep.to_pylist() == [True]
    for other in ("2024-11-01 04:00:00Z", "2024-11-06 04:00:00Z"):
        where = parse_predicate(f"date_trunc('DAY', ts) = timestamp'{other}'", schema, zone)
        assert decide(where, Instants(instant, instant), zone).keep.to_pylist() == [False]


@pytest.mark.parametrize(
    ("pattern", "text", "may_be"),
    [
        ("date_format(ts, 'yyyy-MM-dd') = '2000-10-28'", "2000-10-29 03:00:00Z", True), ("date_format(ts, 'yyyy-MM-dd') = '2000-10-29'", "2000-10-29 02:30:45Z", True),
        ("date_format(ts, 'yyyy-MM-dd') = '2000-10-27'", "", False), ("date_format(ts, 'yyyy-MM-dd') = '2000-10-31'", "", False),
        ("date_trunc('DAY', ts) = timestamp'2000-10-28 02:30:00Z'", "2000-10-29 03:00:00Z", True), ("day(ts) = 28", "2000-10-29 03:00:00Z", True),
    ],
)  # fmt: skip
def test_a_clock_that_goes_back_over_midnight(pattern: str, text: str, may_be: bool) -> None:
    """A minute after midnight it was an hour earlier in St. John's: the day before came once more."""
    zone, schema = "America/St_Johns", Struct((Field("ts", t.TIMESTAMP),))
    where = parse_predicate(pattern, schema, zone)
    assert decide(where, Instants("2000-10-29 02:30:30Z", "2000-10-29 12:00:00Z"), zone).keep.to_pylist() == [may_be]
    if may_be:
        rows = pa.RecordBatch.from_pydict({"ts": pa.array([text]).cast(pa.timestamp("us", "UTC"))})
        assert evaluate(where, rows, zone).to_pylist() == [True]

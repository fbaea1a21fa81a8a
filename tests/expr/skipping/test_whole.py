"""What a predicate is for whole files: exact, or not answered."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from alluvium.expr.skipping.whole import decide_whole
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.tree import column_paths, in_zone, named_paths, names_only
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Field, Struct

SCHEMA = Struct((Field("i", t.INTEGER), Field("p", t.STRING), Field("q", t.INTEGER)))
VALUES: dict[str, list[object]] = {"p": ["a1", "b1", None], "q": [1, 2, 3]}


class Values:
    """Partition values, and bounds of `i` that must not be asked for."""

    num_files = 3

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        found, field = VALUES.get(path[0]), SCHEMA.find_path(path)
        return None if found is None or field is None else pa.array(found, to_arrow(field.type))

    def lower(self, path: tuple[str, ...]) -> pa.Array:
        raise AssertionError("whoever removes files does not ask for bounds")

    upper = null_count = num_rows = lower


@pytest.mark.parametrize(
    ("text", "every", "no"),
    [
        ("p = 'a1'", [1, 0, 0], [0, 1, 1]),
        ("p = 'a1' OR p IS NULL", [1, 0, 1], [0, 1, 0]),
        ("NOT (p = 'a1')", [0, 1, 0], [1, 0, 1]),
        ("p RLIKE '^a'", [0, 0, 0], [0, 0, 0]),
        ("p ILIKE 'A%'", [0, 0, 0], [0, 0, 0]),
        ("ascii(p) = 97 AND q = 1", [0, 0, 0], [0, 1, 1]),
        ("p RLIKE '^a' OR q = 2", [0, 1, 0], [0, 0, 0]),
        ("NOT (p RLIKE '^a' OR q = 2)", [0, 0, 0], [0, 1, 0]),
        # Spark would fail for one of the values: rows must be asked.
        ("CAST(p AS INT) = 1", [0, 0, 0], [0, 0, 0]),
        ("i = 1", [0, 0, 0], [0, 0, 0]),
        ("i IS NULL AND q = 1", [0, 0, 0], [0, 1, 1]),
        ("10 / (q - 2) > 0", [0, 0, 0], [0, 0, 0]),
        ("true", [1, 1, 1], [0, 0, 0]),
        ("NULL", [0, 0, 0], [1, 1, 1]),
    ],
)
def test_nothing_is_taken_for_granted(text: str, every: list[int], no: list[int]) -> None:
    found = decide_whole(parse_predicate(text, SCHEMA), Values())
    assert (found.every.to_pylist(), found.no.to_pylist()) == ([bool(x) for x in every], [bool(x) for x in no])
    assert found.undecided.to_pylist() == [not (a or b) for a, b in zip(every, no, strict=True)]
    assert found.is_decided == (found.undecided.to_pylist() == [False] * 3)


TIMES = Struct((Field("ts", t.TIMESTAMP), Field("d", t.DATE)))
#: Of each the first is of a time when tables of zones say different things.
OLD_AND_NEW: dict[str, list[object]] = {
    "ts": [dt.datetime(1930, 1, 15, 23, 45, tzinfo=dt.timezone.utc), dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc), None],
    "d": [dt.date(1930, 1, 15), dt.date(2020, 1, 1), None],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "is_local"),
    [
        ("CAST(ts AS DATE) = '1930-01-15'", True),
        ("CAST(ts AS DATE) <> '1930-01-15'", True),
        ("NOT (to_date(ts) > '1930-01-15')", True),
        ("year(ts) < 1931", True),
        ("date_trunc('DAY', ts) > '2000-01-01'", True),
        ("date_format(ts, 'yyyy-MM-dd') IN ('1930-01-15', '1930-01-16')", True),
        ("CAST(d AS TIMESTAMP) < '2000-01-01'", True),
        ("CAST(ts AS DATE) = d", True),
        ("ts < '2000-01-01'", False),
        ("ts < TIMESTAMP '2000-01-01 00:00:00Z' AND year(d) < 1931", False),
        ("CAST(d AS STRING) = '1930-01-15'", False),
    ],
)
@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "Europe/Berlin", "UTC", "+01:00"])
def test_old_local_times_are_the_engines_to_tell(text: str, is_local: bool, zone: str) -> None:
    """Java's Amsterdam had Brussels' clock in 1930, the system's may have had its own: rows were lost."""
    values = Values()
    kinds = {f.name: to_arrow(f.type) for f in TIMES.fields}
    values.exact = lambda path: pa.array(OLD_AND_NEW[path[0]], kinds[path[0]])  # type: ignore[method-assign]
    condition = parse_predicate(text, TIMES, zone)
    for parsed, around in ((condition, zone), (in_zone(condition, zone), "UTC")):
        assert decide_whole(parsed, values, around).undecided.to_pylist() == [is_local and "/" in zone, False, False]


@pytest.mark.parametrize("text", ["\u0661", "1\u00a0", "\u20031"])
def test_digits_and_blanks_of_other_scripts_are_no_numbers(text: str) -> None:
    """Spark's casts go by bytes."""
    values = Values()
    values.exact = lambda path: pa.array([text, "1", None])  # type: ignore[method-assign]
    found = decide_whole(parse_predicate("CAST(p AS INT) = 1", SCHEMA), values)
    assert found.undecided.to_pylist() == [True] * 3


def test_text_that_is_not_understood_tells_its_columns() -> None:
    parsed = parse_predicate("p RLIKE '^a' AND q = 1", SCHEMA)
    assert column_paths(parsed) == {("q",)} and named_paths(parsed) == {("p",), ("q",)}
    assert names_only(parsed, {("p",), ("q",)}) and not names_only(parsed, {("q",)})
    # With a lambda names are not looked up: anything may be among them.
    hidden = parse_predicate("exists(array(p), x -> x = i)", SCHEMA)
    assert not names_only(hidden, {("p",), ("q",), ("i",)})
    named = parse_predicate("p COLLATE utf8_lcase = 'A1'", SCHEMA)
    assert not names_only(named, {("p",)})

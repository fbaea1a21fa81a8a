"""What is skipped, node by node, and that nothing is skipped that may match."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from listed_files import SCHEMA, Listed

from alluvium.errors import InvalidRequest
from alluvium.expr.evaluate import evaluate
from alluvium.expr.skipping.prune import prune
from alluvium.expr.sql.parse import parse_engine_filter, parse_predicate
from alluvium.expr.tree import Unknown, in_zone, walk
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Decimal, Field, Struct

D = decimal.Decimal
UTC = dt.timezone.utc
INTS = Listed([10] * 6, {"i": [(1, 5, 0), (5, 9, 3), (7, 7, 0), (None, None, 10), (None, None, None), (7, 7, 1)]})


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("i = 5", [1, 1, 0, 0, 1, 0]),
        ("5 = i", [1, 1, 0, 0, 1, 0]),
        ("i < 2", [1, 0, 0, 0, 1, 0]),
        ("2 > i", [1, 0, 0, 0, 1, 0]),
        ("i <= 1", [1, 0, 0, 0, 1, 0]),
        ("i > 7", [0, 1, 0, 0, 1, 0]),
        ("i >= 7", [0, 1, 1, 0, 1, 1]),
        ("i > 6.5", [0, 1, 1, 0, 1, 1]),
        ("i = 5.5", [0] * 6),
        ("i <=> 5.5", [0] * 6),
        ("i = 1.00000000000000000001", [0] * 6),
        ("NOT (i = 5.5)", [1, 1, 1, 0, 1, 1]),
        ("i = double('Infinity')", [0] * 6),
        ("i != 7", [1, 1, 0, 0, 1, 0]),
        ("NOT (i = 7)", [1, 1, 0, 0, 1, 0]),
        ("NOT (i != 7)", [0, 1, 1, 0, 1, 1]),
        ("i <=> 7", [0, 1, 1, 0, 1, 1]),
        ("NOT (i <=> 7)", [1, 1, 0, 1, 1, 1]),
        ("i <=> NULL", [0, 1, 0, 1, 1, 1]),
        ("i = NULL", [0] * 6),
        ("i IS NULL", [0, 1, 0, 1, 1, 1]),
        ("i IS NOT NULL", [1, 1, 1, 0, 1, 1]),
        ("i IN (0, 6)", [0, 1, 0, 0, 1, 0]),
        ("i IN (0, 10)", [0, 0, 0, 0, 1, 0]),
        ("i NOT IN (7, 8)", [1, 1, 0, 0, 1, 0]),
        ("i NOT IN (1, NULL)", [0] * 6),
        ("i BETWEEN 2 AND 4", [1, 0, 0, 0, 1, 0]),
        ("i NOT BETWEEN 5 AND 9", [1, 0, 0, 0, 1, 0]),
        ("i > 5 AND i < 7", [0, 1, 0, 0, 1, 0]),
        ("i < 2 OR i > 8", [1, 1, 0, 0, 1, 0]),
        ("NOT (i < 2 OR i > 6)", [1, 1, 0, 0, 1, 0]),
        ("NOT (i >= 2 AND i <= 9)", [1, 0, 0, 0, 1, 0]),
        ("i = 5 AND hash(i) = 3", [1, 1, 0, 0, 1, 0]),
        ("i = 5 OR hash(i) = 3", [1] * 6),
        ("NOT (hash(i) = 3)", [1] * 6),
        ("CAST(i AS BIGINT) > 7L", [0, 1, 0, 0, 1, 0]),
        ("true", [1] * 6),
        ("false", [0] * 6),
        ("1 = 2 OR i = 7", [0, 1, 1, 0, 1, 1]),
        ("i IN (" + ", ".join(str(x) for x in range(100, 400, 2)) + ")", [0, 0, 0, 0, 1, 0]),
        # More of them than ranges are kept: those are of neighbours, in whatever order they are written.
        ("i IN (" + ", ".join(str(x * 77 % 200) for x in range(200)) + ")", [1, 1, 1, 0, 1, 1]),
        (
            "i IN (" + ", ".join(str(x) for x in [*range(1_000, 1_099), 6, *range(2_000, 2_099)]) + ")",
            [0, 1, 1, 0, 1, 1],
        ),
    ],
)
def test_integers(text: str, kept: list[int]) -> None:
    assert prune(parse_predicate(text, SCHEMA), INTS).to_pylist() == [bool(k) for k in kept]


@pytest.mark.parametrize(
    "text",
    [
        "CAST(day AS STRING) = '+10000-01-11'",
        "CAST(day AS STRING) < '2000'",
        "CAST(day AS STRING) LIKE '+1%'",
        "substring(CAST(day AS STRING), 1, 1) = '+'",
        "NOT (date_format(day, 'yyyy') >= '2000')",
        "date_format(ts, 'yyyy-MM') < '2000'",
    ],
)
def test_texts_of_years_of_five_digits_stand_before_others(text: str) -> None:
    """'+10000-01-11' < '2022-01-08': a date whose greatest value has no bound here may have any text."""
    day, moment = dt.date(2022, 1, 8), dt.datetime(2022, 1, 8, tzinfo=UTC)
    files = Listed(
        [2, 2],
        {
            "day": [(day, None, 0), (day, dt.date(9999, 12, 31), 0)],
            "ts": [(moment, None, 0), (moment, moment + dt.timedelta(days=9), 0)],
        },
    )
    assert prune(parse_predicate(text, SCHEMA), files).to_pylist() == [True, False]


NAN = math.nan
FLOATS = Listed([9] * 4, {"d": [(-1.0, 1.0, 0), (0.0, NAN, 0), (NAN, NAN, 0), (-0.0, 0.0, 0)]})


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("d = double('NaN')", [1, 1, 1, 1]),
        ("isnan(d)", [1, 1, 1, 1]),
        ("NOT isnan(d)", [1, 1, 1, 1]),
        ("isnan(d * 2D)", [1, 1, 1, 1]),
        ("NOT isnan(d + 1D)", [1, 1, 1, 1]),
        ("d > 100", [1, 1, 1, 1]),
        ("NOT (d <= 5)", [1, 1, 1, 1]),
        ("d >= double('NaN')", [1, 1, 1, 1]),
        ("d < double('NaN')", [1, 1, 0, 1]),
        ("NOT (d > 1)", [1, 1, 0, 1]),
        ("d = -0.0D", [1, 1, 0, 1]),
        ("d != 0", [1, 1, 1, 1]),
        ("d < -0.0D", [1, 0, 0, 0]),
        ("d BETWEEN 5 AND 7", [0, 1, 0, 0]),
        ("d > 5 AND NOT isnan(d)", [0, 1, 0, 0]),
        ("d = 7", [0, 1, 0, 0]),
        ("d + 0.5D BETWEEN 5 AND 7", [1, 1, 1, 1]),
        ("d IS NULL", [0, 0, 0, 0]),
    ],
)
def test_bounds_of_numbers_do_not_tell_of_nan(text: str, kept: list[int]) -> None:
    """Some writers leave NaN out of their bounds, others make a bound of it: it may be in any file. Where it is both
    bounds there is no number.
    """
    assert prune(parse_predicate(text, SCHEMA), FLOATS).to_pylist() == [bool(k) for k in kept]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("month(day) = 4", [1, 0, 1]),
        ("quarter(day) = 1", [0, 1, 1]),
        ("day(day) = 20", [0, 1, 1]),
        ("hour(ts) = 7", [1, 0, 1]),
        ("minute(ts) = 30", [1, 1, 1]),
        ("CAST(day AS STRING) LIKE '2024-02%'", [0, 1, 1]),
        ("CAST(day AS STRING) = '2025-01-01'", [0, 0, 1]),
    ],
)
def test_parts_of_a_date_rise_within_a_period(text: str, kept: list[int]) -> None:
    day, at = dt.date, dt.datetime
    files = Listed(
        [9] * 3,
        {
            "day": [
                (day(2024, 4, 2), day(2024, 4, 9), 0),
                (day(2024, 1, 20), day(2024, 2, 20), 0),
                (day(2023, 12, 1), day(2025, 3, 1), 0),
            ],
            "ts": [
                (at(2024, 4, 2, 6, 20, tzinfo=UTC), at(2024, 4, 2, 8, tzinfo=UTC), 0),
                (at(2024, 4, 2, 9, 40, tzinfo=UTC), at(2024, 4, 2, 11, tzinfo=UTC), 0),
                (at(2024, 4, 2, 9, tzinfo=UTC), at(2024, 4, 3, 6, tzinfo=UTC), 0),
            ],
        },
    )
    assert prune(parse_predicate(text, SCHEMA), files).to_pylist() == [bool(k) for k in kept]


def test_a_predicate_keeps_the_zone_that_it_was_written_in() -> None:
    """A table may be read under UTC and asked under Asia/Tokyo, where another day has begun."""
    late = dt.datetime(2024, 1, 1, 20, tzinfo=UTC)
    files = Listed([1], {"ts": [(late, late, 0)]})
    asked = parse_engine_filter("(CAST(ts AS DATE) = DATE '2024-01-02')", SCHEMA, "Asia/Tokyo")
    assert prune(asked, files, "UTC").to_pylist() == [False]
    assert prune(in_zone(asked, "Asia/Tokyo"), files, "UTC").to_pylist() == [True]
    hour = parse_engine_filter("(hour(ts) = 5)", SCHEMA, "Asia/Tokyo")
    assert prune(in_zone(hour, "Asia/Tokyo"), files, "UTC").to_pylist() == [True]
    rows = pa.table({"ts": pa.array([late], to_arrow(t.TIMESTAMP))})
    assert evaluate(in_zone(hour, "Asia/Tokyo"), rows, "UTC").to_pylist() == [True]


STRINGS = Listed(
    [4] * 5, {"s": [("a", "az", 0), ("ab", "ab", 0), ("b", "c", 0), ("", "é\U0010ffff", 1), (None, None, 4)]}
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("s LIKE 'ab%'", [1, 1, 0, 1, 0]),
        ("startswith(s, 'ab')", [1, 1, 0, 1, 0]),
        ("s LIKE 'az_%'", [1, 0, 0, 1, 0]),
        ("s LIKE 'b'", [0, 0, 1, 1, 0]),
        ("s LIKE '%z'", [1, 1, 1, 1, 0]),
        ("s NOT LIKE 'ab%'", [1, 0, 1, 1, 0]),
        ("s NOT LIKE 'a%'", [0, 0, 1, 1, 0]),
        ("s NOT LIKE 'ab%x'", [1, 1, 1, 1, 1]),
        ("s > 'b'", [0, 0, 1, 1, 0]),
        ("s > '\ue000'", [0, 0, 0, 0, 0]),
        ("s = 'éx'", [0, 0, 0, 1, 0]),
        # bounds of text may have been cut off: equal ones do not prove that all values are equal
        ("s != 'ab'", [1, 1, 1, 1, 0]),
    ],
)
def test_text(text: str, kept: list[int]) -> None:
    assert prune(parse_predicate(text, SCHEMA), STRINGS).to_pylist() == [bool(k) for k in kept]


PARTITIONED = Listed(
    [5, 5, 5, 5],
    {"i": [(1, 2, 0), (1, 2, 0), (5, 6, 0), (5, 6, 0)]},
    {"p": [7, 57, None, -43], "q": ["a", "ab", "x", None]},
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("p % 50 = 7", [1, 1, 0, 0]),
        ("p IS NULL", [0, 0, 1, 0]),
        ("NOT (p = 7)", [0, 1, 0, 1]),
        ("q LIKE '%b'", [0, 1, 0, 0]),
        ("length(q) = 1 AND i > 4", [0, 0, 1, 0]),
        ("p = 7 OR i = 6", [1, 0, 1, 1]),
        ("i = p", [0, 0, 0, 0]),
        ("i < p", [1, 1, 0, 0]),
        ("CAST(q AS INT) = 1", [1, 1, 1, 1]),  # fails for some: Spark shall say so
        ("hash(p) = 1", [1, 1, 1, 1]),
        ("p NOT IN (7, 8)", [0, 1, 0, 1]),
        ("coalesce(p, 0) = 0", [0, 0, 1, 0]),
    ],
)
def test_partition_columns(text: str, kept: list[int]) -> None:
    assert prune(parse_predicate(text, SCHEMA), PARTITIONED).to_pylist() == [bool(k) for k in kept]


def _ts(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=UTC)


TIMES = Listed(
    [5, 5],
    {
        "ts": [
            (_ts("2024-01-01 00:00"), _ts("2024-01-01 23:59"), 0),
            (_ts("2024-01-03 01:00"), _ts("2024-01-03 12:00"), 0),
        ],
        "day": [(dt.date(2024, 1, 1), dt.date(2024, 1, 31), 0), (dt.date(2025, 1, 1), dt.date(2025, 1, 1), 0)],
        "b": [(True, True, 0), (False, False, 2)],
        "n.a": [(1, 2, 0), (3, 4, 0)],
        "e": [(D("1.00"), D("2.00"), 0), (D("3.00"), D("3.00"), 0)],
        "p": [(0, 60, 0), (-700, 0, 0)],
    },
)


@pytest.mark.parametrize(
    ("text", "zone", "kept"),
    [
        ("CAST(ts AS DATE) = '2024-01-01'", "UTC", [1, 0]),
        ("CAST(ts AS DATE) = '2024-01-02'", "UTC", [0, 0]),
        ("CAST(ts AS DATE) = '2023-12-31'", "America/New_York", [1, 0]),
        ("CAST(ts AS DATE) = '2024-01-05'", "America/New_York", [0, 0]),
        ("ts > '2024-01-02'", "UTC", [0, 1]),
        ("ts < '2023-12-31 19:00:00.000001'", "America/New_York", [1, 0]),
        ("ts < '2023-12-31 19:00:00'", "America/New_York", [0, 0]),
        ("year(day) = 2024", "UTC", [1, 0]),
        ("year(ts) < 2024", "UTC", [0, 0]),
        ("date_trunc('YEAR', ts) = '2023-01-01'", "UTC", [0, 0]),
        # Where another column has a say nothing is known of the order.
        ("date_add(day, p) = '2024-03-01'", "UTC", [1, 1]),
        ("date_sub(day, p) = '2023-03-01'", "UTC", [1, 1]),
        ("day >= TIMESTAMP'2024-01-31 00:00:01'", "UTC", [0, 1]),
        ("day = ts", "UTC", [1, 0]),
        ("b", "UTC", [1, 0]),
        ("NOT b", "UTC", [0, 1]),
        ("b = false", "UTC", [0, 1]),
        ("b IS NOT TRUE", "UTC", [0, 1]),
        ("n.a > 2", "UTC", [0, 1]),
        ("n IS NULL", "UTC", [1, 1]),
        ("e > 2.5", "UTC", [0, 1]),
        ("e > 2.005", "UTC", [0, 1]),
        ("e != 3", "UTC", [1, 0]),
        ("e = 3.0D", "UTC", [0, 1]),
    ],
)
def test_times_booleans_nested_decimals(text: str, zone: str, kept: list[int]) -> None:
    assert prune(parse_predicate(text, SCHEMA, zone), TIMES, zone).to_pylist() == [bool(k) for k in kept]


def test_a_clock_set_back_over_midnight_moves_the_date_back() -> None:
    # In São Paulo 2018-02-17 ended twice: at 02:00 UTC on the 18th the clock went back from 24:00 to 23:00.
    files = Listed([2], {"ts": [(_ts("2018-02-18 01:59:59"), _ts("2018-02-18 02:30"), 0)]})
    zone = "America/Sao_Paulo"
    assert prune(parse_predicate("CAST(ts AS DATE) = '2018-02-17'", SCHEMA, zone), files, zone).to_pylist() == [True]
    later = Listed([2], {"ts": [(_ts("2018-02-18 02:00"), _ts("2018-02-18 02:30"), 0)]})
    assert prune(parse_predicate("CAST(ts AS DATE) < '2018-02-18'", SCHEMA, zone), later, zone).to_pylist() == [True]


def test_no_statistics_and_no_files() -> None:
    predicate = parse_predicate("i > 5 AND s LIKE 'a%' AND n.a IS NULL", SCHEMA)
    assert prune(predicate, Listed([None, 3])).to_pylist() == [True, True]
    assert prune(predicate, Listed([])).to_pylist() == []
    assert prune(parse_engine_filter("gibberish (", SCHEMA), INTS).to_pylist() == [True] * 6


COLUMNS: dict[DataType, list[object]] = {
    t.INTEGER: [-(2**31), -1, 0, 1, 2, 2**31 - 1],
    t.LONG: [-(2**63), 0, 1, 2**53, 2**53 + 1, 2**63 - 1],
    t.DOUBLE: [NAN, -0.0, 0.0, 1.0, 1.5, -math.inf, math.inf],
    t.FLOAT: [NAN, -0.0, 1.5, 0.10000000149011612, math.inf],
    t.STRING: ["", "a", "ab", "abc", "b", "a%", "\ue000", "😀", "a\nb"],
    t.BINARY: [b"", b"a", b"\xff"],
    t.BOOLEAN: [True, False],
    t.DATE: [dt.date(1, 1, 1), dt.date(2018, 2, 17), dt.date(2018, 2, 18), dt.date(9999, 12, 31)],
    t.TIMESTAMP: [
        _ts("2018-02-18 01:59:59"),
        _ts("2018-02-18 02:30"),
        _ts("2024-03-10 07:30"),
        _ts("1900-01-01 12:00"),
    ],
    Decimal(9, 2): [D("-1.50"), D("0.00"), D("1.00"), D("1.50")],
}
LITERALS: dict[DataType, list[str]] = {
    t.INTEGER: ["0", "1", "1.5", "1.5D", "5L", "'2'", "3000000000", "NULL"],
    t.LONG: ["0", "9007199254740993", "9007199254740992.0D", "'1'", "1.5", "NULL"],
    t.DOUBLE: ["0", "-0.0D", "1.5", "double('NaN')", "double('Infinity')", "'1.5'", "NULL"],
    t.FLOAT: ["0", "0.1", "1.5", "float('NaN')", "float('0.1')", "NULL"],
    t.STRING: ["''", "'a'", "'ab'", "'😀'", "NULL"],
    t.BINARY: ["X'61'", "X''", "NULL"],
    t.BOOLEAN: ["true", "false", "NULL"],
    t.DATE: ["'2018-02-17'", "TIMESTAMP'2018-02-17 23:30:00'", "'0001-01-01'", "NULL"],
    t.TIMESTAMP: ["'2018-02-17 23:30:00'", "DATE'2018-02-18'", "'2024-03-10 02:30:00'", "NULL"],
    Decimal(9, 2): ["1.5", "1", "1.234", "-1.5D", "NULL"],
}
SHAPES = ["{c} {op} {v}", "{v} {op} {c}", "NOT ({c} {op} {v})"]
MORE = ["{c} IN ({v}, {w})", "{c} NOT IN ({v}, {w})", "{c} BETWEEN {v} AND {w}", "{c} NOT BETWEEN {v} AND {w}"]
BY_TYPE: dict[DataType, list[str]] = {
    t.STRING: [
        f"{n}c LIKE '{p}'" for n in ("", "NOT ") for p in ("a%", "a", "%", "", "a_%", "%b", "a\\\\%", "ab%%", "a\\\\%%")
    ],
    t.DOUBLE: ["isnan(c)", "NOT isnan(c)"],
    t.BOOLEAN: ["c", "NOT c"],
    t.TIMESTAMP: [f"CAST(c AS DATE) {op} '2018-02-17'" for op in ("=", "!=", "<", "<=", ">", ">=", "<=>")],
    t.DATE: [f"year(c) {op} 2018" for op in ("=", "<", ">")],
}


def _order(value: object) -> object:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


@pytest.mark.long
@pytest.mark.parametrize("kind", list(COLUMNS), ids=str)
@pytest.mark.parametrize("zone", ["UTC", "America/Sao_Paulo"])
def test_every_pair_of_values(kind: DataType, zone: str) -> None:
    """All files of two rows, all comparisons: a file with a match is kept, and one of two equal rows without is not."""
    schema = Struct((Field("c", kind),))
    pairs = list(itertools.product([None, *COLUMNS[kind]], repeat=2))
    known = [sorted((v for v in p if v is not None), key=_order) for p in pairs]

    class Pairs(Listed):
        def _array(self, path: tuple[str, ...], place: int) -> pa.Array:
            return pa.array([(k[0], k[-1])[place] if k else None for k in known], to_arrow(kind))

        def null_count(self, path: tuple[str, ...]) -> pa.Array:
            return pa.array([2 - len(k) for k in known], pa.int64())

    files = Pairs([2] * len(pairs))
    rows = pa.table({"c": pa.array([v for p in pairs for v in p], to_arrow(kind))})
    ops = ["=", "!=", "<", "<=", ">", ">=", "<=>"]
    literals = LITERALS[kind]
    texts = [s.format(c="c", op=o, v=v) for s in SHAPES for o in ops for v in literals]
    texts += [s.format(c="c", v=v, w=w) for s in MORE for v in literals for w in literals]
    texts += ["c IS NULL", "c IS NOT NULL", "c = c", "c < c", *BY_TYPE.get(kind, [])]
    # Of files with floating numbers nobody knows whether NaN is among them.
    tight = kind not in (t.STRING, t.BINARY, t.TIMESTAMP, t.FLOAT, t.DOUBLE)
    for text in texts:
        try:
            predicate = parse_predicate(text, schema, zone)
        except InvalidRequest:
            assert "," in text  # an IN list whose values have no type in common
            continue
        if any(isinstance(node, Unknown) for node in walk(predicate)):
            assert zone != "UTC" and "0001-01-01" in text  # a time of which tables of zones say different things
            continue
        matches = pc.fill_null(evaluate(predicate, rows, zone), False).to_pylist()
        keep = prune(predicate, files, zone).to_pylist()
        for n, pair in enumerate(pairs):
            found = matches[2 * n] or matches[2 * n + 1]
            assert keep[n] or not found, (text, pair)
            if tight and pair[0] == pair[1] and "c < c" not in text and "c = c" not in text:
                assert keep[n] == found, (text, pair)


def test_speed() -> None:
    n = 300_000
    low = pa.array(range(n), pa.int32())

    class Many(Listed):
        num_files = n  # type: ignore[assignment]

        def lower(self, path: tuple[str, ...]) -> pa.Array:
            return low

        def upper(self, path: tuple[str, ...]) -> pa.Array:
            return low

        def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
            return None

    predicate = parse_predicate("i >= 1000 AND i < 2000", SCHEMA)
    times = []
    for _ in range(5):
        start = time.process_time()
        assert pc.sum(prune(predicate, Many([]))).as_py() == 1000
        times.append(time.process_time() - start)
    assert min(times) < 0.05


@pytest.mark.parametrize("text", ["i <> 7", "NOT (i = 7)", "NOT (i <=> 7)", "i NOT IN (7)", "p <> 7"])
def test_a_file_of_which_one_bound_is_unknown_may_hold_another_value(text: str) -> None:
    half = Listed([2] * 3, {"i": [(7, None, 0), (None, 7, 0), (7, 7, 0)]}, {"p": [1, 2, 7]})
    assert prune(parse_predicate(text, SCHEMA), half).to_pylist() == [True, True, False]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        # without ANSI mode, and by try_add, what overflows is null, or comes out at the other end
        ("(i + 1) IS NULL", [1, 1, 1, 0]),
        ("(- i) IS NULL", [1, 1, 1, 0]),
        ("CAST(i AS DECIMAL(5, 1)) IS NULL", [1, 1, 1, 0]),
        ("date_add(day, 1) IS NULL", [1, 1, 1, 0]),
        ("i - 1 > 100", [1, 1, 1, 0]),
        ("i + 1 < 0", [1, 1, 1, 0]),
        ("i > 100", [1, 0, 1, 0]),
        ("CAST(i AS BIGINT) IS NULL", [0, 0, 0, 0]),
    ],
)
def test_what_may_overflow_beyond_a_bound_that_is_not_known(text: str, kept: list[int]) -> None:
    day = dt.date(2024, 1, 1)
    files = Listed(
        [3] * 4,
        {
            "i": [(None, None, 0), (None, 4, 0), (1, None, 0), (1, 4, 0)],
            "day": [(None, None, 0), (None, day, 0), (day, None, 0), (day, day, 0)],
        },
    )
    assert prune(parse_predicate(text, SCHEMA), files).to_pylist() == [bool(k) for k in kept]


def test_a_cast_to_a_time_before_1970_is_an_instant_that_tables_of_zones_dispute() -> None:
    # Of Stockholm in 1943 Java's table has summer time, and the one that Python reads has not, or the other way round.
    old, new = dt.date(1943, 7, 1), dt.date(2024, 7, 1)
    ends = [dt.datetime(d.year, 7, 1, tzinfo=UTC) - dt.timedelta(hours=1) for d in (old, new)]
    columns = {"day": [(old, old, 0), (new, new, 0)], "ts": [(end, end, 0) for end in ends]}
    kept = prune(
        parse_predicate("ts = CAST(day AS TIMESTAMP)", SCHEMA, "Europe/Stockholm"),
        Listed([1, 1], columns),
        "Europe/Stockholm",
    )
    assert kept.to_pylist() == [True, False]

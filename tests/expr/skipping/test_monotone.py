"""Which functions and casts keep the order: a table of every pair, and each claim tried with values at the edges."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
from typing import Any

import pyarrow as pa
import pytest

from alluvium.codecs.temporal_text import parse_zone
from alluvium.errors import InvalidRequest
from alluvium.expr import tree
from alluvium.expr.columnar import cast_datum, compare
from alluvium.expr.evaluate import evaluate
from alluvium.expr.literals import UTC
from alluvium.expr.skipping.monotone import after, before, is_sortable_pattern, keeps_order, monotone, rises_within
from alluvium.expr.sql.parse import parse_predicate
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Decimal, Field, Struct

D = decimal.Decimal
MOMENTS = [
    dt.datetime(1900, 1, 1), dt.datetime(1969, 9, 30, 12), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2018, 2, 17, 23, 30),
    dt.datetime(2018, 2, 18, 1, 59, 59), dt.datetime(2018, 2, 18, 2, 30), dt.datetime(2024, 3, 31), dt.datetime(2024, 4, 1),
    dt.datetime(2024, 12, 31, 23, 59, 59), dt.datetime(2025, 1, 1),
]  # fmt: skip
#: In order.
VALUES: dict[DataType, list[Any]] = {
    t.BYTE: [-128, -1, 0, 1, 127],
    t.SHORT: [-(2**15), -1, 0, 200, 2**15 - 1],
    t.INTEGER: [-(2**31), -1, 0, 70_000, 2**31 - 1],
    t.LONG: [-(2**63), -(2**53) - 1, 0, 2**53, 2**53 + 1, 2**63 - 1],
    t.FLOAT: [float("-inf"), -1.5, 0.0, 0.1, 1e30],
    t.DOUBLE: [float("-inf"), -1.5, 0.0, 0.1, 1e300],
    Decimal(9, 2): [D("-9999999.99"), D("-0.01"), D("0.00"), D("1.50"), D("9999999.99")],
    Decimal(20, 4): [D("-1234567890123456.7891"), D("0.0000"), D("0.0001")],
    t.BOOLEAN: [False, True],
    t.STRING: ["", "-1", "0", "10", "9", "a"],
    t.BINARY: [b"", b"a"],
    t.DATE: [dt.date(1, 1, 1), dt.date(999, 12, 31), dt.date(1000, 1, 1), dt.date(2024, 3, 31), dt.date(9999, 12, 31)],
    t.TIMESTAMP: [m.replace(tzinfo=dt.timezone.utc) for m in MOMENTS],
    t.TIMESTAMP_NTZ: list(MOMENTS),
}
INTEGRAL = [t.BYTE, t.SHORT, t.INTEGER, t.LONG]
TOKYO = parse_zone("Asia/Tokyo")
SAO_PAULO = parse_zone("America/Sao_Paulo")


def ordered(source: DataType, target: DataType, is_utc: bool) -> bool:
    """The table, said another way."""
    wide = {
        t.BYTE: [*INTEGRAL[1:]], t.SHORT: INTEGRAL[2:], t.INTEGER: INTEGRAL[3:], t.LONG: [], t.FLOAT: [t.DOUBLE], t.DOUBLE: [],
        t.DATE: [t.TIMESTAMP, t.TIMESTAMP_NTZ, t.STRING], t.TIMESTAMP: [t.DATE], t.TIMESTAMP_NTZ: [t.DATE],
    }  # fmt: skip
    if source in INTEGRAL and (source == target or target in (t.FLOAT, t.DOUBLE) or isinstance(target, Decimal)):
        return True
    if isinstance(source, Decimal):
        return target in (t.FLOAT, t.DOUBLE) or (isinstance(target, Decimal) and target.scale >= source.scale)
    if is_utc and {source, target} == {t.TIMESTAMP, t.TIMESTAMP_NTZ}:
        return True
    return target in wide.get(source, [])


@pytest.mark.parametrize("source", VALUES, ids=str)
@pytest.mark.parametrize("target", VALUES, ids=str)
@pytest.mark.parametrize("zone", [UTC, TOKYO], ids=["utc", "tokyo"])
def test_casts(source: DataType, target: DataType, zone: dt.tzinfo) -> None:
    assert keeps_order(source, target, zone) == ordered(source, target, zone is UTC)
    if not keeps_order(source, target, zone) or isinstance(target, Decimal):
        return
    cast = cast_datum(pa.array(VALUES[source], to_arrow(source)), source, target, zone)
    assert isinstance(cast, pa.Array) and cast.null_count == 0
    assert all(compare("<=", cast.slice(0, len(cast) - 1), cast.slice(1), target).to_pylist())


SCHEMA = Struct(tuple(Field(name, kind) for name, kind in {
    "i": t.INTEGER, "j": t.INTEGER, "d": t.DOUBLE, "e": Decimal(9, 2), "s": t.STRING, "day": t.DATE, "ts": t.TIMESTAMP,
    "tn": t.TIMESTAMP_NTZ, "p": t.INTEGER,
}.items()))  # fmt: skip
BY_NAME = {"i": [-1000, -1, 0, 7, 1000], "d": [-1.5, -0.4, 0.0, 0.5, 2.5], "e": VALUES[Decimal(9, 2)], "s": ["", "a", "ab", "abc", "b", "é"],
           "day": VALUES[t.DATE][2:4], "ts": VALUES[t.TIMESTAMP], "tn": MOMENTS}  # fmt: skip

#: How a call orders its results: by which argument, rising or falling; None: nothing is known.
CALLS: list[tuple[str, tuple[int, bool] | None]] = [
    ("year(day)", (0, True)), ("year(ts)", (0, True)), ("trunc(day, 'MM')", (0, True)), ("date_add(day, 3)", (0, True)),
    ("date_sub(day, 3)", (0, True)), ("date_add(day, p)", None), ("date_sub(day, p)", None), ("date_add(day, NULL)", None),
    ("floor(d)", (0, True)), ("ceil(d)", (0, True)), ("round(d)", (0, True)), ("round(d, 1)", (0, True)),
    ("date_trunc('MONTH', ts)", (1, True)), ("date_trunc(s, ts)", None),
    ("date_format(ts, 'yyyy-MM-dd')", (0, True)), ("date_format(ts, 'yyyy')", (0, True)), ("date_format(ts, 'dd-MM')", None),
    ("date_format(ts, 'MM')", None), ("date_format(ts, s)", None),
    ("substring(s, 1, 2)", (0, True)), ("substring(s, 0, 2)", (0, True)), ("substring(s, 1)", (0, True)), ("substring(s, 2, 1)", None),
    ("substring(s, -1, 1)", None), ("substring(s, 1, p)", None), ("left(s, 1)", (0, True)),
    ("-i", (0, False)), ("-e", (0, False)), ("-d", None),
    ("i + 5", (0, True)), ("5 + i", (1, True)), ("i - 5", (0, True)), ("5 - i", (1, False)), ("i * 5", (0, True)), ("5 * i", (1, True)),
    ("i * -5", (0, False)), ("-5 * i", (1, False)), ("i * 0", (0, True)), ("e * 2", (0, True)), ("e - 1", (0, True)),
    ("i + j", None), ("i * j", None), ("d + 1D", None), ("d * 2D", None), ("i / 2", None), ("i % 2", None), ("abs(i)", None),
    ("length(s)", None), ("upper(s)", None), ("i + NULL", None), ("datediff(day, DATE'2020-01-01')", None), ("hour(ts)", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), CALLS, ids=[one[0] for one in CALLS])
def test_functions(text: str, wanted: tuple[int, bool] | None) -> None:
    predicate = parse_predicate(f"({text}) IS NULL", SCHEMA)
    assert isinstance(predicate, tree.IsNull)
    node = predicate.child
    found = monotone(node) if isinstance(node, tree.Call) else None
    assert (None if found is None else (found.argument, found.rises)) == wanted
    if found is None or wanted is None:
        return
    name = next(n.path[0] for n in tree.walk(node) if isinstance(n, tree.Column))
    assert found.local == (node.name in ("date_trunc", "date_format"))  # type: ignore[union-attr]
    values = BY_NAME[name]
    for low, high in itertools.combinations(values, 2):
        schema = Struct((*(Field(n, f.type) for n, f in (("a", SCHEMA.find(name)), ("b", SCHEMA.find(name))) if f),))
        one, other = (_named(text, name, side) for side in "ab")
        sides = (one, other) if found.rises else (other, one)
        rows = pa.table(
            {
                "a": pa.array([low], to_arrow(schema.fields[0].type)),
                "b": pa.array([high], to_arrow(schema.fields[1].type)),
            }
        )
        assert evaluate(parse_predicate(f"{sides[0]} <= {sides[1]}", schema), rows).to_pylist() == [True], (low, high)


def _named(text: str, name: str, side: str) -> str:
    """The call over another column; names of functions and quoted texts stay."""
    pieces = text.split("'")
    for n in range(0, len(pieces), 2):
        for end in ("", ")", ",", " "):
            for begin in ("(", " ", "-"):
                pieces[n] = pieces[n].replace(f"{begin}{name}{end}", f"{begin}{side}{end}") if end else pieces[n]
        pieces[n] = f"{side}{pieces[n][len(name) :]}" if pieces[n].startswith(f"{name} ") else pieces[n]
        pieces[n] = f"{pieces[n][: -len(name)]}{side}" if pieces[n].endswith((f" {name}", f"-{name}")) else pieces[n]
    return "'".join(pieces)


@pytest.mark.parametrize(
    ("pattern", "sorts"),
    [("yyyy", True), ("yyyy-MM", True), ("yyyy-MM-dd HH:mm:ss", True), ("yyyyMMdd", True), ("MM", False), ("yyyy-dd", False),
     ("yyyy-MM-dd mm", False), ("", False), (None, False), (5, False), ("yyyy-MM-HH", False), ("dd-MM-yyyy", False)],
)  # fmt: skip
def test_patterns_that_sort_as_times_do(pattern: object, sorts: bool) -> None:
    assert is_sortable_pattern(pattern) == sorts


@pytest.mark.parametrize(
    ("name", "period"),
    [
        ("quarter", "year"),
        ("month", "year"),
        ("day", "month"),
        ("hour", "day"),
        ("minute", "hour"),
        ("second", "minute"),
        ("year", None),
    ],
)
@pytest.mark.parametrize("column", ["ts", "tn"])
def test_parts_of_times_rise_within_periods(name: str, period: str | None, column: str) -> None:
    predicate = parse_predicate(f"{name}({column}) IS NULL", SCHEMA)
    assert isinstance(predicate, tree.IsNull) and isinstance(predicate.child, tree.Call)
    found = rises_within(predicate.child)
    if period is None:
        assert found is None
        return
    assert found is not None and found.within is not None
    # The day of an instant is asked of its date, which the cast has made.
    of_instants = column == "ts" and name in ("hour", "minute", "second")
    assert (found.argument, found.rises, found.local) == (0, True, of_instants)
    if column == "ts" and not of_instants:
        return
    shift = dt.timedelta(hours=9) if column == "ts" else dt.timedelta()
    begins = found.within(
        pa.array(BY_NAME[column], to_arrow(t.TIMESTAMP if column == "ts" else t.TIMESTAMP_NTZ)), TOKYO
    )
    smaller = {"year": {"month": 1}, "month": {}, "day": {}, "hour": {}, "minute": {}}[period]
    zeros = {"year": ("day", "hour", "minute", "second"), "month": ("day", "hour", "minute", "second"), "day": ("hour", "minute", "second"),
             "hour": ("minute", "second"), "minute": ("second",)}[period]  # fmt: skip
    for moment, begin in zip(MOMENTS, begins.to_pylist(), strict=True):  # type: ignore[union-attr]
        if column == "ts" and moment.year < 1955:
            continue  # Tokyo's clock of then
        local = moment + shift
        assert begin == local.replace(**smaller, **{z: int(z == "day") for z in zeros}, microsecond=0)  # type: ignore[arg-type]


def test_a_clock_is_set_back_by_less_than_is_allowed_for() -> None:
    """No two instants, of which the later has the earlier date, lie as far apart as bounds are moved."""
    instants = pa.array(VALUES[t.TIMESTAMP], to_arrow(t.TIMESTAMP))
    early = dt.datetime(1970, 1, 3, tzinfo=dt.timezone.utc)
    for moved, sign in ((before(instants), -1), (after(instants), 1)):
        for value, other in zip(VALUES[t.TIMESTAMP], moved.to_pylist(), strict=True):  # type: ignore[union-attr]
            assert (other - value) * sign == dt.timedelta(hours=26 if value < early else 4)
    edges = pa.array([early, early - dt.timedelta(microseconds=1)], to_arrow(t.TIMESTAMP))
    assert before(edges).to_pylist() == [early - dt.timedelta(hours=4), early - dt.timedelta(hours=26, microseconds=1)]  # type: ignore[union-attr]
    with pytest.raises(pa.ArrowInvalid):
        after(pa.array([2**63 - 1], pa.int64()).cast(to_arrow(t.TIMESTAMP)))


def test_dates_of_a_zone_keep_the_order_of_bounds_that_are_moved() -> None:
    for zone in (SAO_PAULO, TOKYO):
        instants = pa.array(VALUES[t.TIMESTAMP], to_arrow(t.TIMESTAMP))
        low = cast_datum(before(instants), t.TIMESTAMP, t.DATE, zone).to_pylist()  # type: ignore[union-attr]
        high = cast_datum(after(instants), t.TIMESTAMP, t.DATE, zone).to_pylist()  # type: ignore[union-attr]
        days = cast_datum(instants, t.TIMESTAMP, t.DATE, zone).to_pylist()  # type: ignore[union-attr]
        for n, m in itertools.product(range(len(days)), repeat=2):
            assert n > m or low[n] <= days[m] <= high[m]


def test_what_fails_at_a_bound_is_an_error_of_ours() -> None:
    with pytest.raises(InvalidRequest):
        cast_datum(pa.array(["x"]), t.STRING, t.INTEGER, UTC)

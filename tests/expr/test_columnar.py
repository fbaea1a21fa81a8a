"""Casts and comparisons of columns, beside the same of single values, which `test_literal_casts` has by hand."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import math
import random
import zoneinfo
from typing import Any

import pyarrow as pa
import pytest

from alluvium.codecs.temporal_text import parse_zone
from alluvium.errors import AlluviumError, InvalidRequest
from alluvium.expr.columnar import (
    broadcast,
    by_value,
    cast_datum,
    compare,
    instant,
    literal_scalar,
    local_time,
    zone_name,
)
from alluvium.expr.literals import NotUnderstood, cast_value, to_float32
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Decimal

D, UTC = decimal.Decimal, dt.timezone.utc
ZONES = ["UTC", "Europe/Paris", "America/St_Johns", "+05:30", "-03:15", "Asia/Kathmandu"]
TIMES = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 3, 31, 0, 30), dt.datetime(2024, 7, 1, 12),
         dt.datetime(2024, 10, 27, 5, 0, 0, 1), dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)]  # fmt: skip
VALUES: dict[DataType, list[Any]] = {
    t.BYTE: [-128, -1, 0, 1, 127], t.SHORT: [-(2**15), -129, 0, 128, 2**15 - 1],
    t.INTEGER: [-(2**31), -(2**15) - 1, 0, 7, 2**24 + 1, 2**31 - 1],
    t.LONG: [-(2**63), -(2**31) - 1, 0, 7, 2**53 + 1, 2**63 - 1],
    t.FLOAT: [0.0, 1.5, -2.25, to_float32(3.4e38), math.inf, -math.inf, to_float32(0.1)],
    t.DOUBLE: [0.0, -0.0, 1.5, -2.9, 0.1, 2.0**40, 1e300, math.inf, -math.inf],
    Decimal(5, 2): [D("0.00"), D("-1.50"), D("999.99"), D("0.05")],
    Decimal(8, 4): [D("0.0000"), D("-1.5049"), D("999.9999"), D("0.9950")],
    Decimal(38, 0): [D(0), D(-7), D("9" * 38)], Decimal(20, 19): [D("1e-19"), D("-9.9"), D(0)],
    t.BOOLEAN: [True, False], t.BINARY: [b"", b"7"],
    t.STRING: ["", "7", " 12 ", "-1.5", "x", "true", "2024-03-31", "2024-03-31 02:30:00", "1e3", "999999999999999999999"],
    t.DATE: [dt.date(1, 1, 2), dt.date(1969, 12, 31), dt.date(2024, 3, 31), dt.date(9999, 12, 30)],
    t.TIMESTAMP: [one.replace(tzinfo=UTC) for one in TIMES], t.TIMESTAMP_NTZ: [*TIMES, dt.datetime(2024, 3, 31, 2, 30)],
}  # fmt: skip


def outcome(act: Any) -> Any:
    """The value, or what kind of refusal: of columns and single values errors have codes of their own."""
    try:
        return act()
    except NotUnderstood:
        return "only Spark"
    except AlluviumError as error:
        return "only Spark" if error.code == "unsupported-expression" else "refused"
    except (ValueError, OverflowError):
        return "refused"


def same(left: Any, right: Any) -> bool:
    return repr(left) == repr(right) or (left == right and not isinstance(left, float))


@pytest.mark.parametrize("target", VALUES, ids=str)
@pytest.mark.parametrize("source", VALUES, ids=str)
def test_casts_of_columns_are_those_of_values(source: DataType, target: DataType) -> None:
    arrow, zone = to_arrow(source), parse_zone("Europe/Paris")
    assert zone is not None
    fine = []
    for value in VALUES[source]:
        expected = outcome(lambda v=value: cast_value(v, source, target, zone))
        column = outcome(lambda v=value: cast_datum(pa.array([v], arrow), source, target, zone).to_pylist()[0])
        scalar = outcome(lambda v=value: cast_datum(pa.scalar(v, arrow), source, target, zone).as_py())
        assert same(column, expected) and same(scalar, expected), (value, column, scalar, expected)
        fine += [] if expected in ("refused", "only Spark") else [(value, expected)]
    # Some values, one that is null, and twice the same, in one column.
    whole = pa.array([*(v for v, _ in fine), None, *(v for v, _ in fine)], arrow)
    found = outcome(lambda: cast_datum(whole, source, target, zone))
    if isinstance(found, str):
        assert not fine
        return
    assert found.type == to_arrow(target)
    assert all(map(same, found.to_pylist(), [*(e for _, e in fine), None, *(e for _, e in fine)]))
    assert cast_datum(pa.scalar(None, arrow), source, target, zone).as_py() is None


@pytest.mark.parametrize("target", VALUES, ids=str)
def test_nothing_is_null_of_every_type(target: DataType) -> None:
    found = cast_datum(pa.scalar(None), t.VOID, target, UTC)
    assert (found.type, found.as_py()) == (to_arrow(target), None)


@pytest.mark.parametrize(
    ("source", "coarse"), [(t.TIMESTAMP_NANOS, t.TIMESTAMP), (t.TIMESTAMP_NTZ_NANOS, t.TIMESTAMP_NTZ)]
)
def test_nanoseconds_are_cut_downwards(source: DataType, coarse: DataType) -> None:
    numbers = pa.array([-1, -1000, -1001, 0, 999, 1001, None], pa.int64()).cast(to_arrow(source))
    found = cast_datum(numbers, source, coarse, UTC)
    assert found.cast(pa.int64()).to_pylist() == [-1, -1, -2, 0, 0, 1, None] and found.type == to_arrow(coarse)
    assert cast_datum(numbers, source, t.DATE, UTC).cast(pa.int32()).to_pylist() == [-1, -1, -1, 0, 0, 0, None]


# -- zones ------------------------------------------------------------------------------------------------------------


def test_zones_by_arrows_names() -> None:
    assert zone_name(UTC) == "UTC" and zone_name(zoneinfo.ZoneInfo("Asia/Tokyo")) == "Asia/Tokyo"
    for minutes, name in ((330, "+05:30"), (-195, "-03:15"), (-720, "-12:00"), (61, "+01:01")):
        assert zone_name(dt.timezone(dt.timedelta(minutes=minutes))) == name
    assert zone_name(dt.timezone(dt.timedelta(hours=1, seconds=1))) is None


ODD = dt.timezone(dt.timedelta(hours=5, minutes=7, seconds=11))


@pytest.mark.parametrize("zone", [*map(parse_zone, ZONES), ODD], ids=str)
def test_local_times_and_back(zone: dt.tzinfo) -> None:
    lot = random.Random(str(zone))
    # Around the hours that clocks repeat or leave out in 2024, and anywhere.
    edges = [
        dt.datetime(2024, 3, 10, 5, 31),
        dt.datetime(2024, 3, 31, 1),
        dt.datetime(2024, 10, 27, 1),
        dt.datetime(2024, 11, 3, 4, 31),
    ]
    moments = [edge + dt.timedelta(minutes=lot.randint(-200, 200)) for edge in edges for _ in range(8)]
    moments += [dt.datetime(1990, 1, 1) + dt.timedelta(seconds=lot.randint(0, 10**9)) for _ in range(10)]
    instants = [moment.replace(tzinfo=UTC) for moment in moments]
    local = local_time(pa.array([*instants, None], pa.timestamp("us", "UTC")), zone)
    assert local.type == pa.timestamp("us")
    assert local.to_pylist() == [*(i.astimezone(zone).replace(tzinfo=None) for i in instants), None]
    for naive in (moments, *([m] for m in moments)):
        back = instant(pa.array([*naive, None], pa.timestamp("us")), zone)
        assert back.type == pa.timestamp("us", "UTC")
        # Of a time that occurs twice the earlier; one that does not occur is later by what the clock left out.
        assert back.to_pylist() == [*(m.replace(tzinfo=zone).astimezone(UTC) for m in naive), None]


@pytest.mark.parametrize("name", ["Pacific/Apia", "Asia/Manila", "America/Juneau", "Africa/Monrovia", "Europe/Berlin"])
def test_times_that_clocks_left_out_at_any_time(name: str) -> None:
    """Days of them (Samoa had no 30th of December in 2011), and clocks of cities before there were zones."""
    zone, day = zoneinfo.ZoneInfo(name), dt.timedelta(days=1)
    days = [dt.datetime(1840, 1, 1) + day * n for n in range(366 * 190)]
    changes = [one for one in days if zone.utcoffset(one) != zone.utcoffset(one + day)]
    local = [one + dt.timedelta(minutes=7 * n) for one in changes for n in range(-210, 420)]
    found = instant(pa.array([dt.datetime(1, 1, 3), *local, None], pa.timestamp("us")), zone)
    assert found.to_pylist() == [
        *(m.replace(tzinfo=zone).astimezone(UTC) for m in (dt.datetime(1, 1, 3), *local)),
        None,
    ]


def test_the_first_day_beside_one_that_was_left_out() -> None:
    """The former is no time of Python's in UTC."""
    local = pa.array([dt.datetime(1, 1, 1), dt.datetime(2011, 12, 30, 5)], pa.timestamp("us"))
    found = instant(local, zoneinfo.ZoneInfo("Pacific/Apia")).cast(pa.int64()).to_pylist()
    # The city's clock was 12:33:04 ahead until 1892.
    first = local[0].cast(pa.int64()).as_py() - (12 * 3600 + 33 * 60 + 4) * 1_000_000
    assert found == [first, 1_325_257_200_000_000]


# -- comparisons ------------------------------------------------------------------------------------------------------


def order(value: Any) -> Any:
    """Spark's: NaN is the greatest number, and both zeros are one."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


OPS: dict[str, Any] = {
    "=": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y, "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
}  # fmt: skip
COMPARED: dict[DataType, list[Any]] = {
    **{
        kind: [*VALUES[kind][:4], None] for kind in (t.INTEGER, Decimal(5, 2), t.BOOLEAN, t.DATE, t.TIMESTAMP, t.BINARY)
    },
    **{kind: [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, None] for kind in t.FLOATING},
    t.STRING: ["", "a", "b", "é", "\uffff", "\U00010000", None],
}


@pytest.mark.parametrize("op", [*OPS, "<=>"])
@pytest.mark.parametrize("kind", COMPARED, ids=str)
def test_comparisons_beside_single_values(kind: DataType, op: str) -> None:
    def expected(x: Any, y: Any) -> bool | None:
        if op == "<=>":
            return (x is None) == (y is None) and (x is None or order(x) == order(y))
        if x is None or y is None:
            return None
        if isinstance(x, str):
            x, y = x.encode(), y.encode()
        return bool(OPS[op](order(x), order(y)))

    arrow, pairs = to_arrow(kind), list(itertools.product(COMPARED[kind], repeat=2))
    left, right = (pa.array([pair[side] for pair in pairs], arrow) for side in (0, 1))
    assert compare(op, left, right, kind).to_pylist() == [expected(x, y) for x, y in pairs]
    every = pa.array(COMPARED[kind], arrow)
    for value in COMPARED[kind]:
        scalar = pa.scalar(value, arrow)
        assert compare(op, every, scalar, kind).to_pylist() == [expected(x, value) for x in COMPARED[kind]]
        assert compare(op, scalar, every, kind).to_pylist() == [expected(value, x) for x in COMPARED[kind]]
        for other in COMPARED[kind]:
            assert compare(op, scalar, pa.scalar(other, arrow), kind).as_py() == expected(value, other)


# -- values by a function of Python -----------------------------------------------------------------------------------


def test_a_function_is_asked_once_a_value() -> None:
    asked: list[object] = []

    def double(value: object) -> object:
        asked.append(value)
        return value * 2  # type: ignore[operator]

    assert by_value(pa.array([3, None, 3, 1]), double, t.LONG).to_pylist() == [6, None, 6, 2]
    assert asked == [3, 1]
    assert by_value(pa.scalar(4), double, t.LONG).as_py() == 8
    assert by_value(pa.scalar(None, pa.int64()), double, t.LONG).as_py() is None


@pytest.mark.parametrize(
    ("error", "code"),
    [(NotUnderstood("text"), "unsupported-expression"), (ValueError("far"), "out-of-range"), (OverflowError("far"), "out-of-range")],
)  # fmt: skip
@pytest.mark.parametrize("datum", [pa.scalar(1), pa.array([1])], ids=["scalar", "array"])
def test_what_a_function_cannot(datum: Any, error: Exception, code: str) -> None:
    def fail(value: object) -> object:
        raise error

    with pytest.raises(InvalidRequest) as caught:
        by_value(datum, fail, t.LONG)
    assert caught.value.code == code


def test_constants_stand_for_all_rows() -> None:
    assert broadcast(literal_scalar(7, t.BYTE), 3) == pa.array([7, 7, 7], pa.int8())
    assert broadcast(literal_scalar(None, t.DATE), 2) == pa.nulls(2, pa.date32())
    own = pa.array([1, 2])
    assert broadcast(own, 2) is own

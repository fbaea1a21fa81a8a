"""Bounds out of JSON: each value beside a plain rule of its type, in whatever company it stands."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.delta.statistics.stats_values import bound_column, bound_type, count_column, widened_decimals
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import DataType, Decimal

D = decimal.Decimal
BITS = {t.BYTE: 8, t.SHORT: 16, t.INTEGER: 32, t.LONG: 64}
EDGES = [sign * (1 << bits - 1) + step for bits in (8, 16, 32, 64) for sign in (-1, 1) for step in (-1, 0, 1)]
NUMBERS: list[Any] = [0, 1, -1, 1.0, 1.5, -0.0, D("2.0"), D("2.5"), D("1e400"), D("Infinity"), 1e300, 10**40, *EDGES]
TEXTS = [
    "",
    "a",
    "NaN",
    "Infinity",
    "-Infinity",
    "1",
    "true",
    "2024-01-01",
    "2024-02-30",
    "2024-01-01T00:00:00.123Z",
    "0000-01-01",
]
VALUES = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.booleans(), st.none(), st.sampled_from([[], {}, [1], {"a": 1}])
)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, D)) and not isinstance(value, bool)


def alone(value: Any, kind: DataType) -> Any:
    """What one value is, as a bound of a column; None: it is none."""
    if isinstance(value, D) and value.adjusted() >= 400:
        return None  # beyond all columns
    if kind in BITS:
        if not is_number(value) or (not isinstance(value, int) and not math.isfinite(value)):
            return None
        fits = -(1 << BITS[kind] - 1) <= value < 1 << BITS[kind] - 1
        return int(value) if fits and int(value) == value else None
    if kind in (t.FLOAT, t.DOUBLE):
        if isinstance(value, str):
            return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value)
        return float(value) if is_number(value) and (not isinstance(value, int) or abs(value) < 10**300) else None
    if kind == t.STRING:
        return value if isinstance(value, str) else None
    if kind == t.BOOLEAN:
        return value if isinstance(value, bool) else None
    if isinstance(kind, Decimal):
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, D))
            or (isinstance(value, D) and not value.is_finite())
        ):
            return None
        shifted = D(value).scaleb(kind.scale, decimal.Context(prec=60, Emax=999_999)) if value else D(0)
        fits = (
            shifted == shifted.to_integral_value() and abs(shifted) < 10**kind.precision
            if abs(D(value)) < D(10) ** 41
            else False
        )
        return D(value).quantize(D(1).scaleb(-kind.scale), context=decimal.Context(prec=60)) if fits else None
    if kind == t.DATE and isinstance(value, str):
        return {"2024-01-01": dt.date(2024, 1, 1)}.get(value[:10]) if value[10:11] in ("", "T") else None
    return None


@settings(max_examples=60, derandomize=True)
@given(
    st.lists(VALUES, max_size=8), st.sampled_from([*BITS, t.DOUBLE, t.STRING, t.BOOLEAN, Decimal(9, 2), Decimal(38, 0)])
)
def test_each_value_is_judged_by_itself(values: list[Any], kind: DataType) -> None:
    found = bound_column(values, kind)
    assert found.type == bound_type(kind)
    shown = [None if v is None else "NaN" if isinstance(v, float) and math.isnan(v) else v for v in found.to_pylist()]
    wanted = [alone(value, kind) for value in values]
    assert shown == ["NaN" if isinstance(v, float) and math.isnan(v) else v for v in wanted]


@pytest.mark.parametrize("kind", [*BITS, t.DOUBLE, t.STRING, t.BOOLEAN, Decimal(9, 2)], ids=str)
def test_all_of_one_form(kind: DataType) -> None:
    """What is right in all files takes a shorter way."""
    for some in (
        NUMBERS,
        TEXTS,
        [True, False, None],
        [v for v in NUMBERS if isinstance(v, int)],
        [0, 1, None],
        [1.0, 2.0],
    ):
        found = bound_column(list(some), kind).to_pylist()
        wanted = [alone(value, kind) for value in some]
        assert [repr(v) for v in found] == [repr(v) for v in wanted]


@pytest.mark.parametrize(
    ("text", "date", "micros"),
    [
        ("2024-01-01", dt.date(2024, 1, 1), 1_704_067_200_000_000),
        ("2024-01-01T00:00:00.123Z", dt.date(2024, 1, 1), 1_704_067_200_123_000),
        ("2024-01-01 01:00:00+01:00", dt.date(2024, 1, 1), 1_704_067_200_000_000),
        ("1969-12-31T23:59:59.999999Z", dt.date(1969, 12, 31), -1),
        ("2024-13-01", None, None),
        ("x", None, None),
        ("", None, None),
        (5, None, None),
        (True, None, None),
        (None, None, None),
    ],
)
def test_times(text: Any, date: dt.date | None, micros: int | None) -> None:
    for company in ([], ["2024-01-01"], ["x"], [7], [None]):
        for kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
            found = bound_column([*company, text], kind, "UTC")
            assert found.type == bound_type(kind) and found.cast(pa.int64()).to_pylist()[-1] == micros
    assert bound_column(["x", text], t.DATE).to_pylist()[-1] == (
        date if text == "2024-01-01" else bound_column([text, "x"], t.DATE).to_pylist()[0]
    )


def test_times_without_a_zone_are_the_session_s() -> None:
    for company in ([], ["x"]):
        found = (
            bound_column([*company, "2024-01-01 09:00:00"], t.TIMESTAMP, "Asia/Tokyo")
            if company
            else bound_column(["x", "2024-01-01 09:00:00"], t.TIMESTAMP, "Asia/Tokyo")
        )
        assert found.cast(pa.int64()).to_pylist()[-1] == 1_704_067_200_000_000
    plain = bound_column(["x", "2024-01-01 09:00:00"], t.TIMESTAMP_NTZ, "Asia/Tokyo")
    assert plain.cast(pa.int64()).to_pylist()[-1] == 1_704_099_600_000_000


@settings(max_examples=60, derandomize=True)
@given(st.integers(-(10**38) + 1, 10**38 - 1), st.sampled_from([0, 2, 10]), st.sampled_from([-1, 1]))
def test_decimals_that_were_printed_as_doubles(unscaled: int, scale: int, sign: int) -> None:
    """The bound is moved as far as a double may be off, and not beyond what the type holds."""
    kind = Decimal(38, scale)
    value = D(unscaled).scaleb(-scale, decimal.Context(prec=60))
    printed = D(repr(float(value))).quantize(D(1).scaleb(-scale), context=decimal.Context(prec=400))
    bounds = pa.array(
        [None if abs(printed.scaleb(scale, decimal.Context(prec=60))) >= 10**38 else printed, None], to_arrow(kind)
    )
    moved = widened_decimals(bounds, kind, sign).to_pylist()
    assert moved[1] is None
    if moved[0] is not None:
        assert moved[0] >= value if sign > 0 else moved[0] <= value
        assert abs(moved[0] - printed) <= abs(printed) / 2**49


def test_decimals_of_more_digits_than_doubles_print_are_what_they_say() -> None:
    kind = Decimal(38, 0)
    exact = pa.array([D("12345678901234567890123456789"), D(10**20), D(-(10**20)), D(5), D(0)], to_arrow(kind))
    up, down = (widened_decimals(exact, kind, sign).to_pylist() for sign in (1, -1))
    assert up[0] == down[0] == D("12345678901234567890123456789")
    step = 10**20 >> 50
    assert (up[1], down[1], up[2], down[2]) == (10**20 + step, 10**20 - step, -(10**20) + step, -(10**20) - step)
    assert up[3:] == down[3:] == [5, 0]
    largest = pa.array([D("9" * 15 + "0" * 23)], to_arrow(kind))
    assert widened_decimals(largest, kind, 1).to_pylist()[0] > D("9" * 15 + "0" * 23)


@pytest.mark.parametrize("kind", [t.FLOAT, t.DOUBLE, t.LONG, Decimal(9, 2), t.STRING, t.DATE], ids=str)
def test_true_and_false_are_bounds_of_flags_alone(kind: DataType) -> None:
    for values in ([True, False], [True, None], [True, 1], [False, 1.5]):
        assert bound_column(list(values), kind).to_pylist()[0] is None
    assert bound_column([True, False], t.BOOLEAN).to_pylist() == [True, False]


@pytest.mark.parametrize("company", [[], ["x"], [None], [7]], ids=str)
@pytest.mark.parametrize(
    ("text", "days"),
    [("0001-01-01", -719_162), ("9999-12-31", 2_932_896), ("+10000-01-01", None), ("-0001-01-01", None)],
)  # fmt: skip
def test_dates_that_can_be_printed(text: str, days: int | None, company: list[Any]) -> None:
    """Bounds beyond the years 1 to 9999 are taken as unknown, in whatever company."""
    assert bound_column([*company, text], t.DATE).cast(pa.int32()).to_pylist()[-1] == days


@pytest.mark.parametrize("company", [[], ["x"], [None]], ids=str)
@pytest.mark.parametrize("kind", [t.TIMESTAMP, t.TIMESTAMP_NTZ], ids=str)
@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0001-01-01 00:00:00", -719_162 * 86_400_000_000), ("9999-12-31 23:59:59.999999", 2_932_897 * 86_400_000_000 - 1),
        ("+10000-01-01 00:00:00", None),
    ],
)  # fmt: skip
def test_times_that_can_be_printed(text: str, micros: int | None, kind: DataType, company: list[Any]) -> None:
    assert bound_column([*company, text], kind).cast(pa.int64()).to_pylist()[-1] == micros


def test_before_the_first_year_nothing_is_known_of_texts_that_are_looked_at_one_by_one() -> None:
    for text, days in (("0000-12-31", None), ("0001-01-01", -719_162)):
        assert bound_column(["x", text], t.DATE).cast(pa.int32()).to_pylist() == [None, days]
        micros = None if days is None else days * 86_400_000_000
        assert bound_column(["x", f"{text} 00:00:00"], t.TIMESTAMP).cast(pa.int64()).to_pylist() == [None, micros]


def test_counts_are_whole_numbers() -> None:
    values: list[Any] = [
        0,
        3,
        -1,
        2**63 - 1,
        2**63,
        -(2**63),
        -(2**63) - 1,
        1.0,
        1.5,
        D("2"),
        D("2.5"),
        D("1e999999999"),
        True,
        "4",
        None,
        [1],
        1e300,
    ]
    expected = [0, 3, -1, 2**63 - 1, None, -(2**63), None, 1, None, 2, None, None, None, None, None, None, None]
    found = count_column(values)
    assert found.type == pa.int64() and found.to_pylist() == expected
    assert [count_column([value]).to_pylist()[0] for value in values] == expected
    assert count_column([]).type == pa.int64() and count_column([None, 5]).to_pylist() == [None, 5]


@pytest.mark.parametrize(
    ("exponent", "is_known"), [(300, True), (399, True), (400, False), (-399, True), (-400, False)]
)
def test_exponents_beyond_all_bounds(exponent: int, is_known: bool) -> None:
    """A number that no column can hold is unknown, and its conversion is not tried."""
    found = bound_column([D(f"1e{exponent}"), 1.5, "NaN"], t.DOUBLE).to_pylist()
    assert (found[0] is not None) == is_known and found[1] == 1.5

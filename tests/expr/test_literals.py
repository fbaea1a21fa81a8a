"""Constants: casts from text, and back to SQL."""

from __future__ import annotations

import datetime as dt
import decimal
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.codecs.temporal_text import parse_zone
from alluvium.errors import InvalidRequest
from alluvium.expr.literals import (
    cast_value,
    format_literal,
    parse_date,
    parse_timestamp,
    parse_timestamp_ntz,
)
from alluvium.expr.sql.parse import parse_engine_filter, parse_predicate
from alluvium.expr.tree import Compare, Literal
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Decimal, Field, Struct

UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-01", dt.date(2024, 1, 1)),
        ("2024-1-1", dt.date(2024, 1, 1)),
        (" 2024-01-01 ", dt.date(2024, 1, 1)),
        ("2024-01", dt.date(2024, 1, 1)),
        ("2024", dt.date(2024, 1, 1)),
        ("2024-02-29T12:00:00Z", dt.date(2024, 2, 29)),
        ("2024-02-29 x", dt.date(2024, 2, 29)),
        ("0001-01-01", dt.date(1, 1, 1)),
    ],
)
def test_dates(text: str, expected: dt.date) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    "text", ["", "24-01-01", "2023-02-29", "12345-01-01", "-0044-01-01", "0000-01-01", "2024-01-01x", "x"]
)
def test_not_dates(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_date(text)


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2024-01-01", "UTC", "2024-01-01T00:00"),
        ("2024-01-01 12:30", "UTC", "2024-01-01T12:30"),
        ("2024-01-01T12:30:15.1234567Z", "America/New_York", "2024-01-01T12:30:15.123456"),
        ("2024-01-01 00:00:00+05:30", "UTC", "2023-12-31T18:30"),
        ("2024-01-01 00:00:00 Europe/Paris", "UTC", "2023-12-31T23:00"),
        ("2024-01-01 00:00:00", "-08:00", "2024-01-01T08:00"),
        ("2024-03-10 02:30:00", "America/New_York", "2024-03-10T07:30"),  # in a gap: moves on by its length
        ("2024-11-03 01:30:00", "America/New_York", "2024-11-03T05:30"),  # occurs twice: the earlier
    ],
)
def test_timestamps(text: str, zone: str, expected: str) -> None:
    assert parse_timestamp(text, parse_zone(zone)) == dt.datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "x", "2024-01-01 25:00", "10000-01-01 00:00:00", "2024-01-01 00:00:00 Nowhere/City"]
)
def test_not_timestamps(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_timestamp(text, UTC)


def test_the_ends_of_the_calendar() -> None:
    for text, zone in (("9999-12-31 23:59:59", "-08:00"), ("0001-01-01 00:00:00", "+08:00")):
        with pytest.raises(InvalidRequest):
            parse_timestamp(text, parse_zone(zone))
    assert parse_timestamp_ntz("9999-12-31 23:59:59.999999+01:00") == dt.datetime.max


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (" 12 ", t.STRING, t.INTEGER, 12),
        ("1.5", t.STRING, t.INTEGER, None),
        ("128", t.STRING, t.BYTE, None),
        ("nan", t.STRING, t.FLOAT, math.nan),
        ("-Infinity", t.STRING, t.DOUBLE, -math.inf),
        ("1e3", t.STRING, t.DOUBLE, 1000.0),
        ("0x10", t.STRING, t.DOUBLE, None),
        ("1.005", t.STRING, Decimal(5, 2), decimal.Decimal("1.01")),
        ("12345", t.STRING, Decimal(5, 2), None),
        (2.675, t.DOUBLE, Decimal(5, 2), decimal.Decimal("2.68")),
        (1e300, t.DOUBLE, Decimal(38, 0), None),
        (1.9, t.DOUBLE, t.INTEGER, 1),
        (math.nan, t.DOUBLE, t.LONG, None),
        ("yes", t.STRING, t.BOOLEAN, True),
        ("maybe", t.STRING, t.BOOLEAN, None),
        (True, t.BOOLEAN, t.STRING, "true"),
        ("é", t.STRING, t.BINARY, "é".encode()),
    ],
)
def test_casts(value: object, source: DataType, target: DataType, expected: object) -> None:
    if expected is None:
        with pytest.raises(InvalidRequest):
            cast_value(value, source, target)
    else:
        assert repr(cast_value(value, source, target)) == repr(expected)


VALUES: dict[DataType, st.SearchStrategy[object]] = {
    t.LONG: st.integers(-(2**63), 2**63 - 1),
    t.BYTE: st.integers(-128, 127),
    t.DOUBLE: st.floats(),
    t.FLOAT: st.floats(width=32),
    t.STRING: st.text(st.characters(exclude_categories=["Cs"])),
    t.BINARY: st.binary(),
    t.DATE: st.dates(),
    t.TIMESTAMP: st.datetimes().map(lambda v: v.replace(tzinfo=UTC, fold=0)),
    t.TIMESTAMP_NTZ: st.datetimes().map(lambda v: v.replace(fold=0)),
    Decimal(38, 10): st.decimals(min_value=-(10**20), max_value=10**20, places=10),
}


@given(st.sampled_from(list(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind])))
def test_a_literal_comes_back_from_its_text(case: tuple[DataType, object]) -> None:
    kind, value = case
    literal = Literal(value, kind)
    schema = Struct((Field("c", kind),))
    for parse in (parse_predicate, parse_engine_filter):
        parsed = parse(f"c = {format_literal(literal)}", schema)
        assert isinstance(parsed, Compare)
        assert isinstance(parsed.right, Literal)
        assert parsed.right.type == kind
        assert repr(parsed.right.value) == repr(value)

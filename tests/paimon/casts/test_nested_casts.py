"""Casts of values of several parts beside plain Python, whichever part of an array they stand in; and ends of times."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from paimon_values import parse_column_type

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.casts.cast import PaimonCast, cast, cast_between
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.types import DataField, DataType
from alluvium.schema.arrow import to_arrow

INT, BIGINT, TINYINT, TEXT = (parse_column_type(name) for name in ("INT", "BIGINT", "TINYINT", "STRING"))
FLOAT = parse_column_type("FLOAT")
OLD_ROW = DataType("ROW", fields=(DataField(1, "a", INT), DataField(2, "b", TEXT), DataField(3, "gone", INT)))
NEW_ROW = DataType("ROW", fields=(DataField(9, "new", TEXT), DataField(2, "b", TEXT), DataField(1, "renamed", TEXT)))


def array(element: DataType) -> DataType:
    return DataType("ARRAY", element=element)


def mapped(key: DataType, value: DataType) -> DataType:
    return DataType("MAP", key=key, value=value)


def vector(element: DataType, length: int) -> DataType:
    return DataType("VECTOR", element=element, length=length)


def multiset(element: DataType) -> DataType:
    return DataType("MULTISET", element=element)


def wrapped(number: int | None) -> int | None:
    return None if number is None else (number + 128) % 256 - 128


def text(number: int | None) -> str | None:
    return None if number is None else str(number)


def number(lot: random.Random) -> int | None:
    return lot.choice([None, lot.randint(-1000, 1000)])


def row(lot: random.Random) -> Any:
    return lot.choice([None, {"a": number(lot), "b": lot.choice([None, "x"]), "gone": 1}])


def new_row(old: Any) -> Any:
    return None if old is None else {"new": None, "b": old["b"], "renamed": text(old["a"])}


def rows_of(lot: random.Random, make: Any) -> Any:
    return lot.choice([None, [make(lot) for _ in range(lot.randint(0, 3))]])


def pairs_of(lot: random.Random) -> Any:
    return lot.choice([None, [(lot.randint(0, 9), number(lot)) for _ in range(lot.randint(0, 3))]])


CASES: list[tuple[DataType, DataType, Any, Any]] = [
    (array(INT), array(TINYINT), lambda lot: rows_of(lot, number), lambda v: None if v is None else [wrapped(n) for n in v]),
    (array(INT), array(TEXT), lambda lot: rows_of(lot, number), lambda v: None if v is None else [text(n) for n in v]),
    (array(OLD_ROW), array(NEW_ROW), lambda lot: rows_of(lot, row), lambda v: None if v is None else [new_row(r) for r in v]),
    (array(array(INT)), array(array(BIGINT)), lambda lot: rows_of(lot, lambda lot: rows_of(lot, number)), lambda v: v),
    (mapped(INT, INT), mapped(TEXT, TINYINT), pairs_of, lambda v: None if v is None else [(str(k), wrapped(n)) for k, n in v]),
    (mapped(INT, INT), mapped(INT, TEXT), pairs_of, lambda v: None if v is None else [(k, text(n)) for k, n in v]),
    (multiset(INT), multiset(TEXT), lambda lot: lot.choice([None, [(lot.randint(0, 9), 2)], []]), lambda v: None if v is None else [(str(k), n) for k, n in v]),
    (OLD_ROW, NEW_ROW, row, new_row),
    (array(FLOAT), vector(FLOAT, 2), lambda lot: lot.choice([None, [1.5, -2.0]]), lambda v: v),
    (vector(FLOAT, 2), array(parse_column_type("DOUBLE")), lambda lot: lot.choice([None, [1.5, -2.0]]), lambda v: v),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "make", "wanted"), CASES, ids=[f"{s}-{t}"[:60] for s, t, _, _ in CASES])
def test_parts_are_cast_where_they_stand(source: DataType, target: DataType, make: Any, wanted: Any) -> None:
    conversion = cast_between(source, target)
    assert conversion == PaimonCast(source, target)
    lot = random.Random(str(source))
    for _ in range(6):
        values = [make(lot) for _ in range(9)]
        whole = pa.array(values, to_arrow(to_logical(source)))
        for first, count in ((0, 9), (3, 4), (8, 1), (2, 0)):
            found = conversion.convert(whole.slice(first, count), "UTC")
            assert found.type == to_arrow(to_logical(target))
            assert found.to_pylist() == [wanted(value) for value in values[first : first + count]]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (array(INT), mapped(INT, INT)), (mapped(INT, INT), array(INT)), (OLD_ROW, array(INT)), (array(INT), INT), (INT, array(INT)),
        (multiset(INT), mapped(INT, INT)), (multiset(INT), array(INT)), (vector(FLOAT, 2), mapped(INT, INT)),
        # A part that has no cast has none within, either.
        (array(FLOAT), array(parse_column_type("BOOLEAN"))), (mapped(parse_column_type("DATE"), INT), mapped(INT, INT)),
        (mapped(INT, parse_column_type("DATE")), mapped(INT, INT)), (multiset(FLOAT), multiset(parse_column_type("BOOLEAN"))),
        (DataType("ROW", fields=(DataField(1, "a", FLOAT),)), DataType("ROW", fields=(DataField(1, "a", parse_column_type("BOOLEAN")),))),
        (array(parse_column_type("VARIANT")), TEXT), (mapped(INT, parse_column_type("VARIANT")), TEXT), (array(multiset(INT)), TEXT),
        (DataType("ROW", fields=(DataField(1, "a", parse_column_type("VARIANT")),)), TEXT),
    ],
    ids=str,
)  # fmt: skip
def test_parts_that_have_no_cast(source: DataType, target: DataType) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        cast_between(source, target)
    assert (caught.value.code, caught.value.features) == ("unsupported-cast", ("cast",))


@pytest.mark.parametrize(
    ("source", "target", "differs"),
    [
        (array(INT), array(INT), False), (array(INT), array(BIGINT), True), (mapped(INT, INT), mapped(INT, BIGINT), True),
        (mapped(INT, INT), mapped(BIGINT, INT), True), (vector(FLOAT, 2), vector(FLOAT, 3), True), (OLD_ROW, OLD_ROW, False),
        (array(parse_column_type("VARCHAR(3)")), array(TEXT), False), (array(TEXT), array(parse_column_type("VARCHAR(3)")), True),
        (OLD_ROW, DataType("ROW", fields=OLD_ROW.fields[:2]), True), (OLD_ROW, DataType("ROW", fields=OLD_ROW.fields[::-1]), True),
        (OLD_ROW, DataType("ROW", fields=(DataField(1, "z", INT), *OLD_ROW.fields[1:])), True),
        (OLD_ROW, DataType("ROW", fields=(DataField(7, "a", INT), *OLD_ROW.fields[1:])), True),
        (OLD_ROW, DataType("ROW", fields=(DataField(1, "a", INT.with_nullable(False)), *OLD_ROW.fields[1:])), False),
        (parse_column_type("VARBINARY(3)"), parse_column_type("BYTES"), False), (parse_column_type("BYTES"), parse_column_type("VARBINARY(3)"), True),
        (parse_column_type("CHAR(3)"), parse_column_type("CHAR(4)"), True), (parse_column_type("BINARY(3)"), parse_column_type("BINARY(3)"), False),
        (parse_column_type("CHAR(3)"), parse_column_type("VARCHAR(3)"), True), (parse_column_type("TIMESTAMP(3)"), parse_column_type("TIMESTAMP(6)"), True),
        (parse_column_type("DECIMAL(9, 2)"), parse_column_type("DECIMAL(9, 3)"), True), (parse_column_type("TIME(3)"), parse_column_type("TIME(0)"), True),
    ],
)  # fmt: skip
def test_what_needs_a_cast(source: DataType, target: DataType, differs: bool) -> None:
    assert (cast_between(source, target) is not None) is differs
    values = pa.nulls(2, to_arrow(to_logical(source)))
    if not differs:
        assert cast(values, source, target, "UTC") is values


DAY = 86_400
LTZ = "TIMESTAMP(6) WITH LOCAL TIME ZONE"


@pytest.mark.parametrize(
    ("value", "source", "target", "zone", "wanted"),
    [
        # A number counts units of the type's precision.
        ("5", "STRING", "TIMESTAMP(0)", "UTC", 5_000_000), ("-5", "STRING", "TIMESTAMP(4)", "UTC", -500), ("7", "STRING", "TIMESTAMP(9)", "UTC", 7),
        ("9" * 18, "STRING", "TIMESTAMP(6)", "UTC", int("9" * 18)), ("1" * 19, "STRING", "TIMESTAMP(6)", "UTC", None),
        ("12345-01-01", "STRING", "TIMESTAMP(6)", "UTC", 327_403_382_400_000_000),
        ("1970-01-01 00:00:00.000000001", "STRING", "TIMESTAMP(9)", "UTC", 1), ("1970-01-01 00:00:00.1", "STRING", "TIMESTAMP(9)", "UTC", 100_000_000),
        ("1970-01-01 00:00:00.123456789", "STRING", "TIMESTAMP(7)", "UTC", 123_456_700),
        ("1970-01-01 00:00:00.123456789", "STRING", "TIMESTAMP(8)", "UTC", 123_456_780),
        ("1970-01-01", "STRING", LTZ, "Asia/Tokyo", -9 * 3_600_000_000), ("1970-01-01", "STRING", "TIMESTAMP(6)", "Asia/Tokyo", 0),
        # The end of a shorter month is its last day, but there is none of a 32nd.
        ("1970-02-29", "STRING", "TIMESTAMP(6)", "UTC", 58 * DAY * 10**6), ("1972-02-30", "STRING", "TIMESTAMP(6)", "UTC", 789 * DAY * 10**6),
        ("1970-04-31", "STRING", "TIMESTAMP(6)", "UTC", 119 * DAY * 10**6), ("1970-01-00", "STRING", "TIMESTAMP(6)", "UTC", None),
        ("1970-04-32", "STRING", "TIMESTAMP(6)", "UTC", None), ("1970-00-01", "STRING", "TIMESTAMP(6)", "UTC", None),
        ("1970-01-01 23:59:59", "STRING", "TIMESTAMP(6)", "UTC", (DAY - 1) * 10**6), ("1970-01-01 24:00:00", "STRING", "TIMESTAMP(6)", "UTC", None),
        ("1970-01-01 00:60:00", "STRING", "TIMESTAMP(6)", "UTC", None), ("1970-01-01 00:00:60", "STRING", "TIMESTAMP(6)", "UTC", None),
        # Whole numbers of days and milliseconds, as far as 32 bits go.
        ("2147483647", "STRING", "DATE", "UTC", (1 << 31) - 1), ("-2147483647", "STRING", "DATE", "UTC", 1 - (1 << 31)),
        ("2147483648", "STRING", "DATE", "UTC", None), ("-2147483648", "STRING", "DATE", "UTC", None), ("24-01-01", "STRING", "DATE", "UTC", -710_762),
        ("86399999", "STRING", "TIME(3)", "UTC", 86_399_999), ("-2147483648", "STRING", "TIME(3)", "UTC", None),
        ("23:59:59.999999999", "STRING", "TIME(3)", "UTC", DAY * 1000 - 1), ("1:2:3.4", "STRING", "TIME(3)", "UTC", 3_723_400),
        # Its milliseconds stay, whatever the target's digits; a day goes by the wall clock.
        (3_723_456, "TIME(3)", "TIMESTAMP(0)", "UTC", 3_723_456_000), (3_723_456, "TIME(3)", "TIMESTAMP(6)", "Asia/Tokyo", 3_723_456_000),
        (3_723_456, "TIME(3)", LTZ, "Asia/Tokyo", 3_723_456_000 - 9 * 3_600_000_000), (1, "DATE", LTZ, "Asia/Tokyo", (DAY - 9 * 3600) * 10**6),
        (106_751_991, "DATE", "TIMESTAMP(6)", "UTC", 106_751_991 * DAY * 10**6), (106_751_992, "DATE", "TIMESTAMP(6)", "UTC", None),
        (-106_751_991, "DATE", "TIMESTAMP(6)", "UTC", -106_751_991 * DAY * 10**6), (-106_751_992, "DATE", "TIMESTAMP(6)", "UTC", None),
        # Java multiplies seconds to milliseconds without a check, so what is too large wraps.
        (9_223_372_036_854, "BIGINT", "TIMESTAMP(6)", "UTC", 9_223_372_036_854_000_000), (9_223_372_036_855, "BIGINT", "TIMESTAMP(6)", "UTC", None),
        (1 << 61, "BIGINT", "TIMESTAMP(6)", "UTC", 0), (5, "INT", "TIMESTAMP(0)", "Asia/Tokyo", 5_000_000), (-5, "BIGINT", LTZ, "Asia/Tokyo", -5_000_000),
        # Towards zero from the millisecond.
        (-1_999_999, "TIMESTAMP(6)", "BIGINT", "UTC", -2), (-1_998_999, "TIMESTAMP(6)", "BIGINT", "UTC", -1), (1_999_999, "TIMESTAMP(6)", "INT", "UTC", 1),
        ((1 << 31) * 10**6, "TIMESTAMP(6)", "INT", "UTC", -(1 << 31)), (7, LTZ, "BIGINT", "Asia/Tokyo", 0),
        (123_456_789, "TIMESTAMP(9)", "TIMESTAMP(6)", "UTC", 123_456), (-1, "TIMESTAMP(9)", "TIMESTAMP(3)", "UTC", -1_000),
        (123_456_789, "TIMESTAMP(9)", "DATE", "UTC", 0), (-1, "TIMESTAMP(9)", "TIME(3)", "UTC", DAY * 1000 - 1),
        (5, "TIMESTAMP(6)", "TIMESTAMP(9)", "UTC", 5_000),
        # Instants stay what they are, in the hour that clocks show twice, too.
        *((hour + 123_456, LTZ, "TIMESTAMP(3) WITH LOCAL TIME ZONE", "America/New_York", hour + 123_000)
          for hour in (1_730_611_800_000_000, 1_730_615_400_000_000)),
    ],
)  # fmt: skip
def test_the_ends_of_times(value: Any, source: str, target: str, zone: str, wanted: int | None) -> None:
    kinds = parse_column_type(source), parse_column_type(target)
    arrow = to_arrow(to_logical(kinds[0]))
    plain = pa.string() if isinstance(value, str) else pa.int64() if arrow.bit_width == 64 else pa.int32()
    given = pa.array([value], plain).cast(arrow)
    if wanted is None:
        with pytest.raises(InvalidRequest) as caught:
            cast(given, *kinds, zone)
        assert caught.value.code == "invalid-cast" and kinds[1].root in caught.value.message
        return
    found = cast(given, *kinds, zone)
    assert found.type == to_arrow(to_logical(kinds[1]))
    assert found.cast(pa.int64() if found.type.bit_width == 64 else pa.int32()).to_pylist() == [wanted]

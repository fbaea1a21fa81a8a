"""Casts of constants, pair by pair: a cast and its way back are two, and each has edges of its own."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal as Number

import pytest

from alluvium.codecs.temporal_text import parse_zone
from alluvium.errors import InvalidRequest
from alluvium.expr.literals import NotUnderstood, cast_value, format_literal, format_name, format_string
from alluvium.expr.tree import Literal
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Decimal

UTC = dt.timezone.utc
PARIS = parse_zone("Europe/Paris")
EVENING = dt.datetime(2024, 6, 30, 23, 30, tzinfo=UTC)
PLAIN = dt.datetime(2024, 6, 30, 23, 30)

CASTS: list[tuple[object, DataType, DataType, object]] = [
    # integers: their ends, from every type
    *((low, t.LONG, kind, low) for kind, low in ((t.BYTE, -128), (t.SHORT, -32768), (t.INTEGER, -(2**31)), (t.LONG, -(2**63)))),
    *((str(-low - 1), t.STRING, kind, -low - 1) for kind, low in ((t.BYTE, -128), (t.SHORT, -32768), (t.INTEGER, -(2**31)), (t.LONG, -(2**63)))),
    (" 7 ", t.STRING, t.INTEGER, 7), ("+7", t.STRING, t.INTEGER, 7), (-1.9, t.DOUBLE, t.INTEGER, -1),
    (Number("-1.9"), Decimal(2, 1), t.INTEGER, -1), (True, t.BOOLEAN, t.INTEGER, 1),
    # floating point
    ("1e3", t.STRING, t.DOUBLE, 1000.0), (" Infinity ", t.STRING, t.DOUBLE, math.inf), (Number("0.1"), Decimal(1, 1), t.DOUBLE, 0.1),
    (0.1, t.DOUBLE, t.FLOAT, 0.10000000149011612), (1e300, t.DOUBLE, t.FLOAT, math.inf), (-1e300, t.DOUBLE, t.FLOAT, -math.inf),
    (2**53 + 1, t.LONG, t.DOUBLE, float(2**53)), (False, t.BOOLEAN, t.FLOAT, 0.0),
    # decimals
    ("1.25", t.STRING, Decimal(3, 1), Number("1.3")), ("-1.25", t.STRING, Decimal(3, 1), Number("-1.3")),
    (1.25, t.DOUBLE, Decimal(3, 1), Number("1.3")), (99, t.INTEGER, Decimal(2, 0), Number(99)),
    (Number("9.94"), Decimal(3, 2), Decimal(2, 1), Number("9.9")), (True, t.BOOLEAN, Decimal(2, 1), Number("1.0")),
    (0, t.INTEGER, Decimal(1, 1), Number("0.0")), ("9" * 38, t.STRING, Decimal(38, 0), Number("9" * 38)),
    # booleans and text
    (" TRUE ", t.STRING, t.BOOLEAN, True), ("n", t.STRING, t.BOOLEAN, False), (0, t.INTEGER, t.BOOLEAN, False),
    (0.5, t.DOUBLE, t.BOOLEAN, True), (Number("0.0"), Decimal(2, 1), t.BOOLEAN, False),
    (True, t.BOOLEAN, t.STRING, "true"), (-5, t.INTEGER, t.STRING, "-5"), (dt.date(5, 1, 2), t.DATE, t.STRING, "0005-01-02"),
    ("é", t.STRING, t.BINARY, b"\xc3\xa9"),
    # times: the zone counts where one side has it
    (EVENING, t.TIMESTAMP, t.DATE, dt.date(2024, 7, 1)), (PLAIN, t.TIMESTAMP_NTZ, t.DATE, dt.date(2024, 6, 30)),
    (EVENING, t.TIMESTAMP, t.TIMESTAMP_NTZ, dt.datetime(2024, 7, 1, 1, 30)),
    (PLAIN, t.TIMESTAMP_NTZ, t.TIMESTAMP, dt.datetime(2024, 6, 30, 21, 30, tzinfo=UTC)),
    (dt.date(2024, 7, 1), t.DATE, t.TIMESTAMP, dt.datetime(2024, 6, 30, 22, tzinfo=UTC)),
    (dt.date(2024, 7, 1), t.DATE, t.TIMESTAMP_NTZ, dt.datetime(2024, 7, 1)),
    ("2024-07-01", t.STRING, t.TIMESTAMP, dt.datetime(2024, 6, 30, 22, tzinfo=UTC)),
    ("2024-07-01 00:00:00Z", t.STRING, t.TIMESTAMP, dt.datetime(2024, 7, 1, tzinfo=UTC)),
    ("2024-07-01 01:30", t.STRING, t.TIMESTAMP_NTZ, dt.datetime(2024, 7, 1, 1, 30)),
    ("10:20", t.STRING, t.TIME, dt.time(10, 20)), (" 1:02:03.5 ", t.STRING, t.TIME, dt.time(1, 2, 3, 500_000)),
    ("10:20:30.1234", t.STRING, t.TIME, dt.time(10, 20, 30, 123_400)),
    *((word, t.STRING, t.BOOLEAN, True) for word in ("t", "true", "y", "yes", "1")),
    *((word, t.STRING, t.BOOLEAN, False) for word in ("f", "false", "n", "no", "0")),
    # nothing to do
    (None, t.STRING, t.DATE, None), ("x", t.STRING, t.STRING, "x"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "source", "target", "expected"), CASTS)
def test_pairs(value: object, source: DataType, target: DataType, expected: object) -> None:
    found = cast_value(value, source, target, PARIS)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (-129, t.LONG, t.BYTE), (128, t.LONG, t.BYTE), (2**31, t.LONG, t.INTEGER), (2.0**63, t.DOUBLE, t.LONG),
        (math.nan, t.DOUBLE, t.INTEGER), (math.inf, t.DOUBLE, t.LONG), ("1.5", t.STRING, t.INTEGER), ("", t.STRING, t.INTEGER),
        ("9" * 101, t.STRING, t.LONG), ("128", t.STRING, t.BYTE), ("x", t.STRING, t.DOUBLE), ("1_0", t.STRING, t.DOUBLE),
        ("x", t.STRING, Decimal(5, 2)), (math.nan, t.DOUBLE, Decimal(5, 2)), (1e39, t.DOUBLE, Decimal(38, 0)),
        (100, t.INTEGER, Decimal(2, 0)), ("9.95", t.STRING, Decimal(2, 1)), (1, t.INTEGER, Decimal(1, 1)),
        ("maybe", t.STRING, t.BOOLEAN), ("25:00", t.STRING, t.TIME), ("10", t.STRING, t.TIME), (5, t.INTEGER, t.TIME),
        ("2024-13-01", t.STRING, t.DATE), ("x", t.STRING, t.TIMESTAMP), ("x", t.STRING, t.TIMESTAMP_NTZ),
        (dt.datetime.max.replace(tzinfo=UTC), t.TIMESTAMP, t.TIMESTAMP_NTZ), (dt.datetime.min, t.TIMESTAMP_NTZ, t.TIMESTAMP),
    ],
)  # fmt: skip
def test_what_spark_refuses_too(value: object, source: DataType, target: DataType) -> None:
    with pytest.raises(InvalidRequest):
        cast_value(value, source, target, PARIS)


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (dt.date(2024, 1, 1), t.DATE, t.INTEGER), (b"x", t.BINARY, t.DOUBLE), (dt.date(2024, 1, 1), t.DATE, Decimal(5, 2)),
        (dt.date(2024, 1, 1), t.DATE, t.BOOLEAN), (1.5, t.DOUBLE, t.STRING), (EVENING, t.TIMESTAMP, t.STRING),
        (5, t.INTEGER, t.BINARY), (5, t.INTEGER, t.DATE), (5, t.INTEGER, t.TIMESTAMP), (5, t.INTEGER, t.TIMESTAMP_NTZ),
        (5, t.INTEGER, t.VARIANT),
    ],
)  # fmt: skip
def test_what_only_spark_computes(value: object, source: DataType, target: DataType) -> None:
    """Nothing is said of the result: a condition on it keeps every file."""
    with pytest.raises(NotUnderstood):
        cast_value(value, source, target, PARIS)


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (Literal(None, t.VOID), "NULL"), (Literal(None, t.DATE), "CAST(NULL AS DATE)"), (Literal(True, t.BOOLEAN), "true"),
        (Literal(5, t.BYTE), "5Y"), (Literal(5, t.SHORT), "5S"), (Literal(5, t.INTEGER), "5"), (Literal(-5, t.LONG), "-5L"),
        (Literal(1.5, t.DOUBLE), "1.5D"), (Literal(1.5, t.FLOAT), "CAST('1.5' AS FLOAT)"),
        (Literal(-math.inf, t.DOUBLE), "CAST('-Infinity' AS DOUBLE)"), (Literal(math.nan, t.DOUBLE), "CAST('NaN' AS DOUBLE)"),
        (Literal(Number("1E+2"), Decimal(5, 0)), "CAST('100' AS DECIMAL(5,0))"), (Literal(b"\x0a\xff", t.BINARY), "X'0AFF'"),
        (Literal(EVENING, t.TIMESTAMP), "TIMESTAMP '2024-06-30 23:30:00Z'"),
        (Literal(PLAIN, t.TIMESTAMP_NTZ), "TIMESTAMP_NTZ '2024-06-30 23:30:00'"),
        (Literal(dt.date(2024, 6, 30), t.DATE), "DATE '2024-06-30'"), (Literal("it's \\ x", t.STRING), "'it\\'s \\\\ x'"),
    ],
)  # fmt: skip
def test_texts(literal: Literal, text: str) -> None:
    assert format_literal(literal) == text


def test_names() -> None:
    assert format_name(("a", "b_1")) == "a.b_1"
    assert format_name(("a b", "1c", "d`e", "f.g")) == "`a b`.`1c`.`d``e`.`f.g`"
    assert format_string("") == "''"


@pytest.mark.parametrize("digits", [19, 20, 100, 101, 5000, 100_000])
@pytest.mark.parametrize("kind", [t.BYTE, t.INTEGER, t.LONG], ids=str)
def test_texts_of_too_many_digits(digits: int, kind: t.DataType) -> None:
    """Python itself reads no number of more than 4300; zeros in front count as well."""
    for text in ("9" * digits, "-" + "9" * digits, "x" * digits):
        with pytest.raises(InvalidRequest) as caught:
            cast_value(text, t.STRING, kind)
        assert caught.value.code
    if digits <= 20:
        assert cast_value("0" * digits + "7", t.STRING, kind) == 7

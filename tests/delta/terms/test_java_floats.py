"""Numbers, days and times as texts of partitions: exactly as Java prints them, at every end of every form."""

from __future__ import annotations

import random
import re
import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from alluvium.delta.terms.partition_values import (
    format_java_float,
    format_partition_values,
    log_partition_text,
    parse_partition_values,
    partition_column,
)
from alluvium.errors import UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Map, Struct
from alluvium.schema.types import Decimal as DecimalType

#: As `Double.toString` prints them, by the digits that tell a number from its neighbours.
DOUBLES = {
    0.0: "0.0", 1.0: "1.0", 10.0: "10.0", 100.0: "100.0", 0.001: "0.001", 0.0011: "0.0011", 0.01: "0.01", 0.1: "0.1", 0.5: "0.5", 1.5: "1.5", 12.25: "12.25",
    0.00099: "9.9E-4", 9.999e-4: "9.999E-4", 9999999.0: "9999999.0", 9999999.5: "9999999.5", 1e7: "1.0E7", 12345678.0: "1.2345678E7", 1e21: "1.0E21",
    123456.789: "123456.789", 1000000.0: "1000000.0", 1e-5: "1.0E-5", 1.25e-10: "1.25E-10", 1e100: "1.0E100", 1.7976931348623157e308: "1.7976931348623157E308",
    2.2250738585072014e-308: "2.2250738585072014E-308", 4.9e-324: "4.9E-324", 101.0: "101.0", 100.01: "100.01", 3e-4: "3.0E-4",
}  # fmt: skip


@pytest.mark.parametrize("value", DOUBLES)
def test_doubles(value: float) -> None:
    assert format_java_float(value, value) == DOUBLES[value]
    assert format_java_float(-value, -value) == f"-{DOUBLES[value]}"
    (text,) = format_partition_values(pa.array([value], pa.float64()), t.DOUBLE).to_pylist()
    assert text == DOUBLES[value]


def test_what_is_no_number() -> None:
    told = [format_java_float(value, value) for value in (float("nan"), float("inf"), -float("inf"), -0.0)]
    assert told == ["NaN", "Infinity", "-Infinity", "-0.0"]


def by_rule(value: float) -> str:
    """The digits of the shortest text, put where Java puts them."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text, point = "".join(map(str, digits)), len(digits) + exponent
    if Decimal("1e-3") <= abs(Decimal(repr(value))) < 10**7:
        before = text[:point].ljust(point, "0") if point > 0 else "0"
        after = text[point:] if point > 0 else "0" * -point + text
    else:
        before, after = text[0], text[1:]
    shown = f"{before}.{after or '0'}"
    power = "" if Decimal("1e-3") <= abs(Decimal(repr(value))) < 10**7 else f"E{point - 1}"
    return f"{'-' if sign else ''}{shown}{power}"


@pytest.mark.parametrize("seed", range(5))
def test_random_doubles_beside_the_rule(seed: int) -> None:
    lot = random.Random(seed)
    for _ in range(200):
        value = lot.choice([-1, 1]) * lot.randint(11, 10 ** lot.randint(2, 15)) * 10.0 ** lot.randint(-20, 10)
        if len(Decimal(repr(value)).normalize().as_tuple().digits) > 1:
            assert format_java_float(value, value) == by_rule(value)


def test_floats_have_the_digits_of_floats() -> None:
    lot = random.Random(1)
    bits = [lot.getrandbits(32) for _ in range(400)]
    values = [v for v in (struct.unpack("f", struct.pack("I", b))[0] for b in bits) if v == v]
    texts = format_partition_values(pa.array(values, pa.float32()), t.FLOAT).to_pylist()
    assert parse_partition_values(pa.array(texts), t.FLOAT).to_pylist() == values
    assert all(re.fullmatch(r"-?(\d+\.\d+|\d\.\d+E-?\d+|Infinity)", text) for text in texts)
    assert max(len(re.sub(r"E.*|\D", "", text).strip("0")) for text in texts) <= 9


@pytest.mark.parametrize(
    ("data_type", "micros", "texts"),
    [
        (t.TIMESTAMP, [0, 1, 1_500_000, -1], ["1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:00.000001Z", "1970-01-01T00:00:01.500000Z", "1969-12-31T23:59:59.999999Z"]),
        (t.TIMESTAMP_NTZ, [0, 1, 1_500_000, 10_000], ["1970-01-01 00:00:00", "1970-01-01 00:00:00.000001", "1970-01-01 00:00:01.5", "1970-01-01 00:00:00.01"]),
        (t.DATE, [0, -1, 19_782], ["1970-01-01", "1969-12-31", "2024-02-29"]), (t.BOOLEAN, [True, False, None], ["true", "false", None]),
        (t.SHORT, [-32768, 32767], ["-32768", "32767"]), (t.STRING, ["", "x", None], [None, "x", None]), (t.BINARY, [b"", b"x"], [None, "x"]), (t.VOID, [None], [None]),
        (DecimalType(5, 2), [Decimal("1.50"), Decimal("0.00"), Decimal("-0.05")], ["1.50", "0.00", "-0.05"]),
    ],
    ids=str,
)  # fmt: skip
def test_values_and_their_texts(data_type: DataType, micros: list[object], texts: list[str | None]) -> None:
    stored = {t.TIMESTAMP: pa.timestamp("us", tz="UTC"), t.TIMESTAMP_NTZ: pa.timestamp("us"), t.DATE: pa.date32()}
    plain = {t.TIMESTAMP: pa.int64(), t.TIMESTAMP_NTZ: pa.int64(), t.DATE: pa.int32()}
    values = pa.array(micros, plain[data_type]).cast(stored[data_type]) if data_type in stored else pa.array(micros)
    twice = pa.chunked_array([values, values])
    found = format_partition_values(twice, data_type)
    assert (found.type, found.to_pylist()) == (pa.string(), texts * 2)
    assert format_partition_values(values.slice(1), data_type).to_pylist() == texts[1:]


@pytest.mark.parametrize("data_type", [Array(t.LONG), Map(t.STRING, t.LONG), Struct(()), t.VARIANT], ids=str)
def test_types_that_partition_nothing(data_type: DataType) -> None:
    for ask in (
        lambda: parse_partition_values(pa.array(["1"]), data_type),
        lambda: parse_partition_values(pa.array([], pa.string()), data_type),
    ):
        with pytest.raises(UnsupportedFeature) as caught:
            ask()
        assert caught.value.code == "partition-type" and str(data_type) in caught.value.message


@pytest.mark.parametrize(
    ("data_type", "text", "value"),
    [
        (DecimalType(4, 2), "1.005", Decimal("1.01")), (DecimalType(4, 2), "-1.005", Decimal("-1.01")), (DecimalType(4, 2), "1.0049", Decimal("1.00")), (DecimalType(4, 2), "1e1", Decimal("10.00")),
        (DecimalType(4, 0), "9999.4", Decimal("9999")), (DecimalType(38, 0), "9" * 38, Decimal("9" * 38)), (t.LONG, "+7", 7), (t.LONG, " -7 ", -7), (t.INTEGER, "0" * 39 + "7", 7),
    ],
    ids=str,
)  # fmt: skip
def test_texts_that_are_rounded_or_written_otherwise(data_type: DataType, text: str, value: object) -> None:
    assert parse_partition_values(pa.array([text, None, "", text]), data_type).to_pylist() == [value, None, None, value]


def test_texts_of_folders_and_of_the_log() -> None:
    texts = pa.chunked_array([["2024-01-01 00:00:00", ""], [None, "2024-01-01 00:00:00.5"]])
    assert log_partition_text(texts, t.TIMESTAMP).to_pylist() == [
        "2024-01-01T00:00:00.000000Z",
        None,
        None,
        "2024-01-01T00:00:00.500000Z",
    ]
    for data_type in (t.TIMESTAMP_NTZ, t.STRING, t.LONG):
        assert log_partition_text(texts, data_type).to_pylist() == [
            "2024-01-01 00:00:00",
            None,
            None,
            "2024-01-01 00:00:00.5",
        ]
    # Of a key that stands twice the last one counts.
    maps = pa.array([[("p", "1"), ("p", "2")], [("q", "1")], []], pa.map_(pa.string(), pa.string()))
    assert partition_column(pa.table({"partitionValues": maps}), "p").to_pylist() == ["2", None, None]

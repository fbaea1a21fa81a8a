"""Partition texts: every form that writers have used, and the form that delta-spark 4.4 writes."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.delta.terms.partition_values import (
    format_partition_values,
    log_partition_text,
    parse_partition_values,
    partition_column,
)
from alluvium.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Array, DataType

UTC = timezone.utc


def parse(data_type: DataType, *texts: str | None, zone: str = "UTC") -> list[object]:
    values: list[object] = parse_partition_values(pa.array(texts, pa.string()), data_type, zone).to_pylist()
    return values


# Observed: the texts in the log of tables that delta-spark 4.4.0 wrote.
WRITTEN = [
    (t.BYTE, ["-128", "127", None]),
    (t.LONG, ["9223372036854775807", "-9223372036854775808"]),
    (t.FLOAT, ["-Infinity", "0.0", "1.0E-7", "1.5", "100.0", "1.2345679E7", "Infinity", "NaN", "3.4028235E38"]),
    (
        t.DOUBLE,
        ["-0.0", "4.9E-324", "1.0E-7", "0.001", "0.002", "1.5", "100.0", "1.0E7", "1.23456789E7", "1.0E22", "NaN"],
    ),
    (t.Decimal(20, 3), ["-0.001", "0.000", "1.500", "12345678901234567.123"]),
    (t.Decimal(38, 18), ["-0.000000000000000001", "0.000000000100000000"]),
    (t.BOOLEAN, ["true", "false", None]),
    (t.DATE, ["-0005-01-01", "0001-01-01", "1582-10-04", "2024-01-01", "9999-12-31", "+12345-01-01"]),
    (
        t.TIMESTAMP,
        [
            "0001-01-01T00:00:00.000001Z",
            "1582-10-04T01:02:03.000000Z",
            "1969-12-31T23:59:59.999999Z",
            "9999-12-31T23:59:59.999999Z",
            "+12345-01-01T00:00:00.000000Z",
        ],
    ),
    (
        t.TIMESTAMP_NTZ,
        ["0001-01-01 00:00:00.000001", "2024-01-01 00:00:00", "2024-01-01 00:00:00.1", "+12345-01-01 00:00:00"],
    ),
    (t.STRING, [None, " ", "NULL", "a b", "x/y=z%", "é"]),
    (t.BINARY, ["zz", "AB", None]),
]


@pytest.mark.parametrize(("data_type", "texts"), WRITTEN, ids=[str(data_type) for data_type, _ in WRITTEN])
def test_texts_of_delta_spark_come_back_the_same(data_type: DataType, texts: list[str | None]) -> None:
    values = parse_partition_values(pa.array(texts, pa.string()), data_type)
    assert values.type == to_arrow(data_type)
    assert format_partition_values(values, data_type).to_pylist() == texts


@pytest.mark.parametrize("data_type", [data_type for data_type, _ in WRITTEN] + [t.VOID], ids=str)
def test_empty_text_is_null_for_every_type(data_type: DataType) -> None:
    assert parse(data_type, "", None) == [None, None]


def test_timestamps_in_all_written_forms() -> None:
    expected = datetime(2024, 1, 2, 3, 4, 5, 600_000, UTC)
    forms = [
        "2024-01-02 03:04:05.6",
        "2024-01-02 03:04:05.600000",
        "2024-01-02 03:04:05.600000999",
        "2024-01-02T03:04:05.6Z",
        "2024-01-02T05:04:05.600000+02:00",
        "2024-01-01T21:34:05.600-0530",
    ]
    assert parse(t.TIMESTAMP, *forms) == [expected] * len(forms)
    assert parse(t.TIMESTAMP, "2024-01-02") == [datetime(2024, 1, 2, tzinfo=UTC)]


def test_text_without_a_zone_is_in_the_given_zone() -> None:
    # 02:30 does not exist that night, 01:30 is there twice: java.time takes the offset before the change.
    texts = ["2024-03-10 02:30:00", "2024-11-03 01:30:00", "2024-07-01 00:00:00", "2024-07-01T00:00:00Z"]
    hours = [datetime(2024, 3, 10, 10, 30), datetime(2024, 11, 3, 8, 30), datetime(2024, 7, 1, 7), datetime(2024, 7, 1)]
    assert parse(t.TIMESTAMP, *texts, zone="America/Los_Angeles") == [h.replace(tzinfo=UTC) for h in hours]
    assert parse(t.TIMESTAMP, "2024-07-01 00:00:00", zone="+05:30") == [datetime(2024, 6, 30, 18, 30, tzinfo=UTC)]


def test_text_of_a_narrower_type_parses_after_widening() -> None:
    assert parse(t.LONG, "-128") == [-128]
    assert parse(t.DOUBLE, "7") == [7.0]
    assert parse(t.Decimal(12, 3), "-999.9", "123456789.125") == [Decimal("-999.900"), Decimal("123456789.125")]
    assert parse(t.TIMESTAMP_NTZ, "1999-12-31") == [datetime(1999, 12, 31)]


def test_floats_in_other_spellings() -> None:
    values = parse(t.DOUBLE, "1e-3", "+1.5", "-infinity", "nan")
    assert values[:3] == [0.001, 1.5, -math.inf]
    assert isinstance(values[3], float)
    assert math.isnan(values[3])


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        (t.BYTE, "128"),
        (t.INTEGER, "1.5"),
        (t.LONG, "1_000"),
        (t.LONG, "١"),
        (t.DOUBLE, "x"),
        (t.Decimal(4, 2), "100.00"),
        (t.Decimal(4, 2), "NaN"),
        (t.BOOLEAN, "maybe"),
        (t.DATE, "2023-02-29"),
        (t.TIMESTAMP, "2023-01-01 25:00:00"),
        (t.TIMESTAMP_NTZ, "yesterday"),
    ],
    ids=str,
)
def test_unparseable_text_names_column_and_value(data_type: DataType, text: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_partition_values(pa.array(["", text]), data_type, column="p")
    assert caught.value.code == "invalid-partition-value"
    assert caught.value.column == "p"
    assert text in str(caught.value)


def test_nested_types_are_refused_and_unknown_zones_too() -> None:
    with pytest.raises(UnsupportedFeature):
        parse(Array(t.LONG), "1")
    with pytest.raises(InvalidRequest):
        parse(t.TIMESTAMP, "2024-01-01", zone="Mars/Olympus")


def test_binary_that_is_not_utf8_cannot_be_logged() -> None:
    with pytest.raises(InvalidRequest):
        format_partition_values(pa.array([b"\xff"]), t.BINARY)


def test_directory_text_becomes_log_text() -> None:
    texts = pa.array(["2024-01-01 00:00:00", "1969-12-31 23:59:59.9", None])
    assert log_partition_text(texts, t.TIMESTAMP).to_pylist() == [
        "2024-01-01T00:00:00.000000Z",
        "1969-12-31T23:59:59.900000Z",
        None,
    ]
    assert log_partition_text(texts, t.TIMESTAMP_NTZ).to_pylist() == texts.to_pylist()
    assert log_partition_text(pa.array(["", "a"]), t.STRING).to_pylist() == [None, "a"]


def test_partition_column_takes_one_key_of_each_map() -> None:
    maps = pa.array([[("p", "1"), ("q", None)], [("q", "x")], [("p", "")]], pa.map_(pa.string(), pa.string()))
    files = pa.table({"partitionValues": pa.chunked_array([maps, maps.slice(1, 1)])})
    assert partition_column(files, "p").to_pylist() == ["1", None, "", None]
    assert partition_column(files, "q").to_pylist() == [None, "x", None, "x"]


@given(st.lists(st.floats()))
def test_doubles_survive(values: list[float]) -> None:
    array = pa.array(values, pa.float64())
    texts = format_partition_values(array, t.DOUBLE)
    assert repr(parse_partition_values(texts, t.DOUBLE).to_pylist()) == repr([abs(v) if v != v else v for v in values])


@given(st.lists(st.floats(width=32, allow_nan=False)))
def test_floats_survive(values: list[float]) -> None:
    texts = format_partition_values(pa.array(values, pa.float32()), t.FLOAT)
    assert parse_partition_values(texts, t.FLOAT).to_pylist() == values


@given(st.lists(st.datetimes()), st.lists(st.dates()), st.lists(st.decimals(-(10**20), 10**20, places=9)))
def test_times_and_decimals_survive(times: list[datetime], days: list[date], numbers: list[Decimal]) -> None:
    cases: list[tuple[DataType, pa.Array]] = [
        (t.TIMESTAMP, pa.array([v.replace(tzinfo=UTC) for v in times], to_arrow(t.TIMESTAMP))),
        (t.TIMESTAMP_NTZ, pa.array(times, to_arrow(t.TIMESTAMP_NTZ))),
        (t.DATE, pa.array(days, pa.date32())),
        (t.Decimal(38, 9), pa.array(numbers, pa.decimal128(38, 9))),
    ]
    for data_type, values in cases:
        assert parse_partition_values(format_partition_values(values, data_type), data_type).equals(values)


WORDS = {**dict.fromkeys(("true", "t", "yes", "y", "1", " TRUE ", "Y"), True), **dict.fromkeys(("false", "f", "no", "n", "0", "No"), False),
         **dict.fromkeys(("on", "off", "2", "tr", "01"), None)}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), WORDS.items())
def test_words_of_truth(text: str, value: bool | None) -> None:
    if value is None:
        with pytest.raises(CorruptTable):
            parse(t.BOOLEAN, text)
        return
    assert parse(t.BOOLEAN, text) == [value]


@pytest.mark.parametrize(
    ("data_type", "fine", "wrong"),
    [
        (t.BYTE, ["-128", "127", " 5 ", "+5", "007"], ["128", "-129", "1.0", "1e1", "٣", "--1"]), (t.SHORT, ["32767", "-32768"], ["32768", "-32769"]),
        (t.INTEGER, ["2147483647", "-2147483648"], ["2147483648", "-2147483649"]), (t.LONG, ["9223372036854775807", "-9223372036854775808"], ["9223372036854775808", "9" * 41]),
        (t.DOUBLE, ["1", "1e3", "-.5", "Infinity", "nan"], ["1_0", "١", "x"]), (t.FLOAT, ["1", "3.4e38"], ["1_0", "x"]),
        (t.Decimal(5, 2), ["999.99", "-0.005", "1e2", " 1 "], ["1000", "999.995", "1_0", "NaN", "Infinity", "x"]), (t.DATE, ["2024-02-29", "2024-1-1"], ["2023-02-29", "x"]),
        (t.TIMESTAMP, ["2024-02-29 01:02:03", "2024-02-29T01:02:03Z"], ["x", "2024-13-01 00:00:00"]), (t.TIMESTAMP_NTZ, ["2024-02-29 01:02:03"], ["x"]),
    ],
    ids=str,
)  # fmt: skip
def test_texts_at_the_ends_of_their_types(data_type: DataType, fine: list[str], wrong: list[str]) -> None:
    assert all(value is not None for value in parse(data_type, *fine))
    for text in wrong:
        with pytest.raises(CorruptTable) as caught:
            parse(data_type, "", text)
        assert caught.value.code == "invalid-partition-value" and repr(text) in caught.value.message

"""Values of partition keys as Java spells them in directories and in tables: to the digit."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.paimon.files.partitions import data_paths, iso_text, partition_text, partitions_of, to_nanoseconds
from alluvium.paimon.schema import DataField, TableSchema, number_fields, parse_type
from alluvium.paimon.terms.spec import SCANNED_ENTRIES

SECOND = 1_700_000_000 * 10**9
DAY = 86_400_000


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "1970-01-01T00:00"), (10**9, "1970-01-01T00:00:01"), (10**8, "1970-01-01T00:00:00.100"),
        (10**6, "1970-01-01T00:00:00.001"), (10**5, "1970-01-01T00:00:00.000100"), (1000, "1970-01-01T00:00:00.000001"),
        (100, "1970-01-01T00:00:00.000000100"), (1, "1970-01-01T00:00:00.000000001"), (-1, "1969-12-31T23:59:59.999999999"),
        (SECOND, "2023-11-14T22:13:20"), (SECOND + 123_000_000, "2023-11-14T22:13:20.123"), (60 * 10**9, "1970-01-01T00:01"),
    ],
)  # fmt: skip
def test_local_times(nanos: int, text: str) -> None:
    assert iso_text(nanos) == text


@pytest.mark.parametrize(("unit", "factor"), [("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)])
def test_units(unit: str, factor: int) -> None:
    assert to_nanoseconds(pa.array([3, None, -3], pa.timestamp(unit))) == [3 * factor, None, -3 * factor]


@pytest.mark.parametrize(
    ("kind", "value", "legacy", "text"),
    [
        ("BOOLEAN", True, False, "true"), ("TINYINT", -5, False, "-5"), ("STRING", "é", True, "é"),
        ("DATE", dt.date(1970, 1, 11), False, "1970-01-11"), ("DATE", dt.date(1970, 1, 11), True, "10"),
        ("DECIMAL(10, 2)", Decimal("-0.50"), False, "-0.50"), ("DECIMAL(38, 0)", Decimal("1E+20"), False, "1" + "0" * 20),
        ("TIMESTAMP(0)", dt.datetime(2024, 5, 9, 12), False, "2024-05-09 12:00:00"),
        ("TIMESTAMP(3)", dt.datetime(2024, 5, 9, 12, 0, 0, 250_000), False, "2024-05-09 12:00:00.250"),
        ("TIMESTAMP(6)", dt.datetime(2024, 5, 9, 12), False, "2024-05-09 12:00:00.000000"),
        ("TIMESTAMP(6)", dt.datetime(2024, 5, 9, 12), True, "2024-05-09T12:00"),
        ("TIME(3)", dt.time(1, 2, 3), False, "01:02:03.0"), ("TIME(3)", dt.time(23, 59, 59, 120_000), False, "23:59:59.12"),
        ("TIME(3)", dt.time(0, 0, 0, 1000), False, "00:00:00.001"), ("FLOAT", 1.5, False, "1.5"), ("DOUBLE", 1e10, False, "1.0E10"),
    ],
)  # fmt: skip
def test_texts(kind: str, value: object, legacy: bool, text: str) -> None:
    column = DataField(0, "p", parse_type(kind))
    schema = TableSchema.create(number_fields([column]))
    arrow = pa.schema([pa.field("p", _arrow(schema))]).field("p").type
    assert partition_text(pa.array([value, None], arrow), column, legacy).to_pylist() == [text, None]


def _arrow(schema: TableSchema) -> pa.DataType:
    from_logical = {"DATE": pa.date32(), "TIME_WITHOUT_TIME_ZONE": pa.time32("ms")}
    kind = schema.fields[0].type
    plain = {
        "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "VARCHAR": pa.string(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(),
        "TIMESTAMP_WITHOUT_TIME_ZONE": pa.timestamp("us"),
    }  # fmt: skip
    if kind.root == "DECIMAL":
        return pa.decimal128(kind.precision, kind.scale)
    return {**from_logical, **plain}[kind.root]


def test_a_key_of_bytes_has_no_text() -> None:
    column = DataField(0, "p", parse_type("BYTES"))
    with pytest.raises(UnsupportedFeature) as caught:
        partition_text(pa.array([b"x"]), column, False)
    assert (caught.value.code, caught.value.column) == ("unsupported-type", "p")


def paths(*rows: dict[str, object], **options: str) -> list[str]:
    schema = TableSchema.create(number_fields([DataField(0, "k", parse_type("INT"))]), options=options)
    bare = {**dict.fromkeys(SCANNED_ENTRIES.names), "partition": bytes(12), "bucket": 0}
    entries = pa.Table.from_pylist([{**bare, **row} for row in rows], schema=SCANNED_ENTRIES)
    found: list[str] = data_paths(entries, partitions_of(entries, schema), schema).to_pylist()
    return found


def test_where_files_are() -> None:
    assert paths({"file_name": "a"}, {"file_name": "b", "bucket": 3}, {"file_name": "c", "bucket": -2}) == [
        "bucket-0/a", "bucket-3/b", "bucket-postpone/c",
    ]  # fmt: skip
    assert paths({"file_name": "a", "external_path": "s3://b/a"}, {"file_name": "b"}) == ["s3://b/a", "bucket-0/b"]
    assert paths({"file_name": "a"}, **{"data-file.path-directory": "/data/x/"}) == ["data/x/bucket-0/a"]


@pytest.mark.parametrize("name", ["../a", "x/a", "", ".", "..", "a\0"])
def test_names_that_lead_elsewhere(name: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        paths({"file_name": "fine"}, {"file_name": name})
    assert caught.value.code == "path-escapes-root"


@pytest.mark.parametrize("front", ["..", "a/../b", "a//b", "./a"])
def test_directories_that_lead_elsewhere(front: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        paths({"file_name": "a"}, **{"data-file.path-directory": front})
    assert caught.value.code == "path-escapes-root"
    assert paths({"file_name": "..."}, {"file_name": "..a"}) == ["bucket-0/...", "bucket-0/..a"]

"""The texts of partition values beside a plain one of each type, and the directories that they are put into."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.paimon.files.partitions import (
    bucket_directories,
    data_paths,
    escape_path_name,
    iso_text,
    partition_text,
    partitions_of,
    typed_nulls,
)
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.schema.arrow import to_arrow

D = decimal.Decimal


def texts(kind: str, values: list[Any], legacy: bool) -> list[str | None]:
    field = DataField(0, "p", parse_type(kind))
    return partition_text(pa.array(values, to_arrow(to_logical(field.type))), field, legacy).to_pylist()


@pytest.mark.parametrize(
    ("kind", "values", "plain", "old"),
    [
        ("BOOLEAN", [True, False], ["true", "false"], None),
        ("TINYINT", [-128], ["-128"], None),
        ("BIGINT", [-(2**63), 0], ["-9223372036854775808", "0"], None),
        ("CHAR(3)", ["a b"], ["a b"], None),
        ("STRING", ["", "é"], ["", "é"], None),
        ("DECIMAL(5, 2)", [D("-0.50"), D("100.00")], ["-0.50", "100.00"], None),
        ("FLOAT", [1.5, 1e10], ["1.5", "1.0E10"], None),
        ("DOUBLE", [0.1, -0.0], ["0.1", "-0.0"], None),
        ("DATE", [dt.date(1, 1, 1), dt.date(2024, 2, 29)], ["0001-01-01", "2024-02-29"], ["-719162", "19782"]),
        ("TIME(3)", [dt.time(0), dt.time(1, 2, 3, 40_000), dt.time(23, 59, 59, 999_000)],
         ["00:00:00.0", "01:02:03.04", "23:59:59.999"], ["0", "3723040", "86399999"]),
        ("TIMESTAMP(0)", [dt.datetime(2024, 1, 2)], ["2024-01-02 00:00:00"], ["2024-01-02T00:00"]),
        ("TIMESTAMP(3)", [dt.datetime(1969, 12, 31, 23, 59, 59, 999_000)], ["1969-12-31 23:59:59.999"], ["1969-12-31T23:59:59.999"]),
        ("TIMESTAMP(6)", [dt.datetime(2024, 1, 2, 3, 4, 5, 6)], ["2024-01-02 03:04:05.000006"], ["2024-01-02T03:04:05.000006"]),
        ("TIMESTAMP(6)", [dt.datetime(2024, 1, 2, 3, 4)], ["2024-01-02 03:04:00.000000"], ["2024-01-02T03:04"]),
        ("TIMESTAMP(6)", [dt.datetime(2024, 1, 2, 3, 4, 5)], ["2024-01-02 03:04:05.000000"], ["2024-01-02T03:04:05"]),
        ("TIMESTAMP(6)", [dt.datetime(2024, 1, 2, 3, 4, 5, 120_000)], ["2024-01-02 03:04:05.120000"], ["2024-01-02T03:04:05.120"]),
    ],
)  # fmt: skip
def test_texts_of_every_type(kind: str, values: list[Any], plain: list[str], old: list[str] | None) -> None:
    assert texts(kind, [*values, None], False) == [*plain, None]
    assert texts(kind, [None, *values], True) == [None, *(plain if old is None else old)]


@pytest.mark.parametrize("kind", ["BINARY(3)", "VARBINARY(3)", {"type": "ARRAY", "element": "INT"}])
def test_types_without_a_text(kind: Any) -> None:
    field = DataField(0, "p", parse_type(kind))
    with pytest.raises(UnsupportedFeature) as caught:
        partition_text(pa.nulls(1, to_arrow(to_logical(field.type))), field, False)
    assert (caught.value.code, caught.value.column) == ("unsupported-type", "p")


@settings(max_examples=60, derandomize=True)
@given(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)), st.sampled_from([0, 1, 10, 100, 1000]))
def test_times_as_java_prints_them(time: dt.datetime, step: int) -> None:
    """`LocalDateTime.toString`: no seconds where they are zero, the fraction by threes."""
    time = time.replace(microsecond=time.microsecond // (step or 10**6) * step if step else 0)
    if step == 1000:
        time = time.replace(second=0)
    nanos = (time - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) * 1000
    text = f"{time.year:04d}{time.isoformat()[4:]}"
    whole, _, fraction = text.partition(".")
    wanted = whole if not fraction else f"{whole}.{fraction[:3] if fraction.endswith('000') else fraction}"
    if not fraction and not time.second:
        wanted = whole[:-3]
    assert iso_text(nanos) == wanted
    assert iso_text(nanos + 7).endswith(f"{time.microsecond:06d}007")


@settings(max_examples=60, derandomize=True)
@given(st.text(st.sampled_from("ab é\"#%'*/:=?\\{}[]^\x00\x1f\x7f ~!$&()+,;<>@|`-._"), max_size=12))
def test_what_is_escaped_in_a_path(text: str) -> None:
    special = "\"#%'*/:=?\\{}[]^"
    wanted = "".join(f"%{ord(c):02X}" if c in special or ord(c) < 32 or ord(c) == 127 else c for c in text)
    assert escape_path_name(text) == wanted


def schema_of(*keys: str, **options: str) -> TableSchema:
    fields = [
        DataField(0, "k", parse_type("INT")),
        DataField(1, "a", parse_type("STRING")),
        DataField(2, "b", parse_type("INT")),
    ]
    return TableSchema.create(fields, keys, options=options)


def entries(schema: TableSchema, rows: list[dict[str, Any]]) -> pa.Table:
    fields = [f for name in schema.partition_keys if (f := schema.find(name)) is not None]
    types = [(to_logical(f.type), f.type.precision) for f in fields]
    columns = [
        pa.array([row[f.name] for row in rows], to_arrow(kind)) for f, (kind, _) in zip(fields, types, strict=True)
    ]
    partition = encode_rows(columns, types) if fields else pa.array([bytes(12)] * len(rows))
    return pa.table(
        {"partition": pa.chunked_array([partition]), "bucket": pa.array([row.get("bucket", 0) for row in rows], pa.int32()),
         "file_name": pa.array([row.get("name", "f") for row in rows]),
         "external_path": pa.array([row.get("external") for row in rows], pa.string())}
    )  # fmt: skip


ROWS = [
    {"a": "x", "b": 1, "bucket": 3, "name": "f1"}, {"a": "x=/y", "b": None, "bucket": -2, "name": "f2"},
    {"a": None, "b": 2, "name": "f3", "external": "s3://far/f3"}, {"a": "  ", "b": 2, "name": "f4"}, {"a": "x", "b": 1, "name": "f5"},
]  # fmt: skip


@pytest.mark.parametrize("front", ["", "data"])
@pytest.mark.parametrize("default", [None, "NONE"])
def test_where_files_lie(front: str, default: str | None) -> None:
    options = {
        **({"data-file.path-directory": front} if front else {}),
        **({"partition.default-name": default} if default else {}),
    }
    schema, missing = schema_of("b", "a", **options), default or "__DEFAULT_PARTITION__"
    table = entries(schema, ROWS)
    found = partitions_of(table, schema)
    assert found.column("a").to_pylist() == [row["a"] for row in ROWS]
    assert found.column("b").to_pylist() == [row["b"] for row in ROWS]
    assert found.values.num_rows == 4
    begin = f"{front}/" if front else ""
    folders = [f"{begin}b=1/a=x/bucket-3", f"{begin}b={missing}/a=x%3D%2Fy/bucket-postpone", f"{begin}b=2/a={missing}/bucket-0",
               f"{begin}b=2/a={missing}/bucket-0", f"{begin}b=1/a=x/bucket-0"]  # fmt: skip
    assert bucket_directories(table, found, schema).to_pylist() == folders
    wanted = [row.get("external") or f"{folder}/{row['name']}" for row, folder in zip(ROWS, folders, strict=True)]
    assert data_paths(table, found, schema).to_pylist() == wanted


def test_tables_without_partitions() -> None:
    schema = schema_of()
    table = entries(schema, ROWS)
    found = partitions_of(table, schema)
    assert bucket_directories(table, found, schema).to_pylist()[:2] == ["bucket-3", "bucket-postpone"]
    nothing = table.slice(0, 0)
    assert data_paths(nothing, partitions_of(nothing, schema), schema).to_pylist() == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\x00b", "../f"])
def test_names_that_lead_elsewhere(name: str) -> None:
    schema = schema_of()
    table = entries(schema, [{"name": "ok"}, {"name": name}])
    with pytest.raises(CorruptTable) as caught:
        data_paths(table, partitions_of(table, schema), schema)
    assert caught.value.code == "path-escapes-root"
    good = entries(schema, [{"name": "..a"}, {"name": "..."}])
    assert len(data_paths(good, partitions_of(good, schema), schema)) == 2


def test_nulls_of_a_column() -> None:
    found = typed_nulls(DataField(0, "p", parse_type("DATE")), 3)
    assert (found.type, found.null_count) == (pa.date32(), 3)

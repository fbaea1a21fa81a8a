"""File statuses and groups, without and with the JVM."""

from __future__ import annotations

import datetime
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from alluvium.errors import CorruptTable
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.scan.files import address, directories_elsewhere, format_file_statuses, make_file_statuses
from alluvium.spark.scan.native_lane.bulk import partition_directories
from alluvium.spark.scan.rows import group_files, make_rows


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def decode(record: bytes) -> dict[int, object]:
    """A protobuf message as field number -> value, by the wire format's definition."""
    found: dict[int, object] = {}
    at = 0
    while at < len(record):
        tag, at = varint(record, at)
        value, at = varint(record, at)
        if tag & 7 == 2:
            found[tag >> 3], at = record[at : at + value], at + value
        else:
            found[tag >> 3] = value
    return found


@given(st.lists(st.tuples(st.text(min_size=1), st.integers(0, 2**50), st.integers(0, 2**45)), max_size=5))
@settings(deadline=None)
def test_records_decode_to_what_was_given(rows: list[tuple[str, int, int]]) -> None:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    data = format_file_statuses(
        pa.array([p.encode() for p in columns[0]], pa.large_binary()),
        pa.array(columns[1], pa.int64()),
        pa.array(columns[2], pa.int64()),
    )
    (count,) = struct.unpack_from(">i", data)
    at, found = 4, []
    for _ in range(count):
        (length,) = struct.unpack_from(">i", data, at)
        found.append(decode(data[at + 4 : at + 4 + length]))
        at += 4 + length
    assert at == len(data)
    assert [(f[2], f[3], f[7], f[1]) for f in found] == [(p.encode(), size, ms, 2) for p, size, ms in rows]


@pytest.mark.parametrize(
    ("root", "path", "expected"),
    [
        ("file:/t/a b", "p=1/x%.parquet", "file:///t/a b/p=1/x%.parquet"),
        ("s3a://b/t", "x", "s3a://b/t/x"),
        ("s3a://b/t", "/other/x", "s3a://b/other/x"),
        ("s3a://b/t", "s3a://c/x", "s3a://c/x"),
        ("file:/t", "/u/x", "file:///u/x"),
        ("file:/t", "12:30.parquet", "file:///t/12:30.parquet"),
    ],
)
def test_addresses(root: str, path: str, expected: str) -> None:
    assert address(root, pa.chunked_array([[path]])).to_pylist() == [expected]


_CONSTANTS = st.tuples(st.sampled_from(["a", "b", None, ""]), st.sampled_from([1, None]), st.booleans())


@pytest.mark.long
@given(st.lists(_CONSTANTS, max_size=20))
def test_groups_are_runs_of_equal_constants(values: list[tuple[str | None, int | None, bool]]) -> None:
    schema = Struct((Field("s", t.STRING), Field("n", t.INTEGER), Field("b", t.BOOLEAN)))
    constants = pa.array(
        [dict(zip("snb", v, strict=True)) for v in values],
        pa.struct([("s", pa.string()), ("n", pa.int32()), ("b", pa.bool_())]),
    )
    paths = pa.array([str(i) for i in range(len(values))], pa.string())
    groups = group_files(pa.table({"path": paths, "constants": constants}), schema)
    found = {
        tuple(row.values()): groups.files["path"].to_pylist()[start:end]
        for row, start, end in zip(groups.constants.to_pylist(), groups.starts, groups.ends, strict=True)
    }
    assert len(found) == len(groups)
    assert found == {v: [str(i) for i, other in enumerate(values) if other == v] for v in set(values)}


@pytest.mark.spark
@pytest.mark.parametrize("days", [5, 7])
def test_directories_of_many_groups(spark: SparkSession, days: int) -> None:
    java = java_of(spark)
    schema = Struct((Field("d", t.DATE), Field("n", t.LONG)))
    rows = [
        {
            "path": f"{n}",
            "size": 8 + n,
            "modification_time_ms": 1_700_000_000_000 + n,
            "constants": {"d": datetime.date(2024, 1, 1 + n % days), "n": n % 3},
        }
        for n in range(40)
    ]
    groups = group_files(pa.Table.from_pylist(rows), schema)
    assert len(groups) == 3 * days
    statuses = make_file_statuses(java, "file:/t", groups.files)
    made = partition_directories(java, make_rows(spark, java, groups, schema), statuses, groups.starts, groups.ends)
    epoch = datetime.date(1970, 1, 1)
    for index in range(3 * days):
        directory = made.apply(index)
        values = directory.values()
        day, n = epoch + datetime.timedelta(values.getInt(0)), values.getLong(1)
        files = [directory.files().apply(i).fileStatus() for i in range(directory.files().size())]
        expected = [r for r in rows if r["constants"] == {"d": day, "n": n}]
        assert [(f.getPath().getName(), f.getLen(), f.getModificationTime()) for f in files] == [
            (r["path"], r["size"], r["modification_time_ms"]) for r in expected
        ]
        assert all(f.isFile() for f in files)


def test_directories_outside_of_the_table() -> None:
    names = [
        "a.parquet",
        "p=1/b.parquet",
        "/other/x.parquet",
        "/other/y.parquet",
        "s3://b/t/z.parquet",
        "file:/d/e.f/g",
    ]
    found = directories_elsewhere("file:/table", pa.chunked_array([names]))
    assert found == ["file:///other", "s3://b/t", "file:///d/e.f"]
    assert directories_elsewhere("s3://b/table", pa.chunked_array([["/k/x", "a:b"]])) == ["s3://b/k"]


@pytest.mark.parametrize("path", ["file:/etc/passwd", "FILE:///etc/passwd", "memory://x/y"])
def test_a_remote_table_cannot_name_files_of_this_machine(path: str) -> None:
    """Every plan passes here: that of a snapshot, of a change feed, of a Paimon table with external paths."""
    paths = pa.chunked_array([["a", "s3a://other/b"], ["c", path]])
    with pytest.raises(CorruptTable) as caught:
        address("s3a://bucket/t", paths)
    assert (caught.value.code, caught.value.path) == ("path-escapes-root", path)
    assert len(address("s3a://bucket/t", paths.slice(0, 3))) == 3
    assert len(address("file:/t", paths)) == 4


@pytest.mark.parametrize("size", [1 << 55, (1 << 46) + 1, -1, 0, 7])
def test_a_size_that_no_file_has(size: int) -> None:
    """Spark would plan a task for every 128 MiB of it, or see none of the rows."""
    files = pa.table({"path": ["a", "b"], "size": [8, size], "modification_time_ms": [0, 0]})
    with pytest.raises(CorruptTable) as caught:
        make_file_statuses(None, "file:/t", files)
    assert (caught.value.code, caught.value.path) == ("impossible-size", "b")

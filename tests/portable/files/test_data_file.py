"""Data files of every format as they are opened, found by name or number, and counted; and what is said where that fails."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from alluvium.errors import CorruptTable, NotFound, UnsupportedFeature
from alluvium.portable.files.data_file import FORMATS, DataFile, Files, RowFile, open_data_file
from alluvium.storage.open import open_store
from alluvium.storage.stores.memory import MemoryStore

NUMBERED = pa.schema(
    [
        pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "4"}),
        pa.field("b", pa.int64(), metadata={"PARQUET:field_id": "3"}),
        pa.field("C", pa.int64()),
    ]
)


def parquet(table: pa.Table, **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def opened(data: bytes, file_format: str = "parquet", unit: str = "us") -> RowFile:
    store = MemoryStore("files", "t")
    store.put("d/f", data)
    return open_data_file(Files(store, open_store), "d/f", "UTC", file_format, unit)


@pytest.mark.parametrize(
    ("wanted", "ids", "found"),
    [
        (["a", "c"], None, {"a": "a", "c": "C"}),
        (["A", "C", "gone"], {}, {"A": "a", "C": "C"}),
        # By number, whatever is called so; the others by name.
        (["a", "b"], {"a": 3, "b": 4}, {"a": "b", "b": "a"}),
        (["x", "c"], {"x": 4}, {"x": "a", "c": "C"}),
        (["a", "c"], {"a": 9}, {"c": "C"}),
        (["b"], {"a": 3}, {"b": "b"}),
    ],
)
def test_columns_by_name_and_by_number(wanted: list[str], ids: dict[str, int] | None, found: dict[str, str]) -> None:
    file = opened(parquet(NUMBERED.empty_table()))
    assert file.names(wanted, ids) == found


def test_numbers_of_a_file_that_has_none() -> None:
    """Refused where a column is wanted by its number, and no matter where none is."""
    file = opened(parquet(pa.table({"a": [1], "b": [2]})))
    with pytest.raises(CorruptTable) as caught:
        file.names(["b", "a"], {"a": 1})
    assert (caught.value.code, caught.value.path) == ("missing-field-ids", "d/f")
    assert file.names(["b"], {"a": 1}) == {"b": "b"}


def avro(rows: int) -> bytes:
    out = io.BytesIO()
    row = {"type": "record", "name": "row", "fields": [{"name": "n", "type": "long"}]}
    fastavro.writer(out, fastavro.parse_schema(row), [{"n": n} for n in range(rows)])
    return out.getvalue()


def in_orc(rows: int) -> bytes:
    out = io.BytesIO()
    orc.write_table(pa.table({"n": pa.array(range(rows), pa.int64())}), out)
    return out.getvalue()


def in_row_groups(rows: int) -> bytes:
    return parquet(pa.table({"n": pa.array(range(rows), pa.int64())}), row_group_size=4)


MAKERS = {"avro": avro, "orc": in_orc, "parquet": in_row_groups}


@pytest.mark.parametrize("rows", [0, 1, 4, 5, 9, 10])
@pytest.mark.parametrize("file_format", MAKERS)
def test_rows_in_batches_with_and_without_their_columns(file_format: str, rows: int) -> None:
    maker: Callable[[int], bytes] = MAKERS[file_format]
    file = opened(maker(rows), file_format)
    for columns in ({}, {"as": "n"}, {"as": "n", "again": "n"}):
        found = list(file.batches(columns, 3))
        assert all(list(arrays) == list(columns) and 0 < count <= 3 for count, arrays in found)
        assert sum(count for count, _ in found) == rows
        for name in columns:
            assert [n for _, arrays in found for n in arrays[name].to_pylist()] == list(range(rows))
    whole, rest = divmod(rows, 3)
    assert [count for count, _ in file.batches({}, 3)] == [3] * whole + [rest] * (rest > 0)
    file.close()


def test_row_groups_one_by_one() -> None:
    file = opened(in_row_groups(10))
    assert isinstance(file, DataFile) and file.num_rows == 10 and file.coarse is None and file.calendar is None
    assert [[count for count, _ in file.row_group_batches(group, {}, 3)] for group in range(3)] == [[3, 1], [3, 1], [2]]
    found = [arrays["x"].to_pylist() for _, arrays in file.row_group_batches(1, {"x": "n"}, 3)]
    assert found == [[4, 5, 6], [7]]


def test_what_is_closed_is_read_no_more() -> None:
    for file_format, maker in MAKERS.items():
        if file_format == "avro":
            continue  # it is read when it is opened
        file = opened(maker(5), file_format)
        file.close()
        with pytest.raises((CorruptTable, ValueError)):
            list(file.batches({"n": "n"}, 3))


def test_formats() -> None:
    assert set(FORMATS) == {"parquet", "orc", "avro", "blob"}


@pytest.mark.parametrize("file_format", sorted(FORMATS))
def test_files_that_are_none_of_their_format(file_format: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        opened(b"\xff" * 40, file_format)
    assert caught.value.path == "d/f" and caught.value.code.startswith("damaged-")


@pytest.mark.parametrize("file_format", sorted(FORMATS))
def test_files_that_are_not_there(file_format: str) -> None:
    store = MemoryStore("files", "t")
    with pytest.raises(NotFound) as caught:
        open_data_file(Files(store, open_store), "gone", "UTC", file_format)
    assert (caught.value.code, caught.value.url, caught.value.path) == ("missing-file", "memory://files/t", "gone")


def test_addresses_of_files(tmp_path: Path) -> None:
    """What begins with a slash, or with a scheme and one, is an address by itself."""
    asked: list[str] = []

    def open_other(url: str) -> MemoryStore:
        asked.append(url)
        return MemoryStore("other", "")

    files = Files(MemoryStore("files", "t"), open_other)
    assert files.uri("a/b c.parquet") == "memory://files/t/a/b c.parquet"
    assert files.uri("p=x:y/f") == "memory://files/t/p=x:y/f"
    for address in ("/a/f", "s3://b/f", "file:/a/f", "a.B+c-9:/f"):
        assert files.uri(address) == address
    with pytest.raises(NotFound) as caught:
        files.open("memory://other/t/f")
    assert (caught.value.code, caught.value.url, caught.value.path) == (
        "missing-file",
        "memory://files/t",
        "memory://other/t/f",
    )
    assert asked and asked[0].startswith("memory://other")


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_of_96_bits_in_the_unit_that_is_asked(unit: str) -> None:
    """A second reader is there where nanoseconds may have been wrapped, and where no column is asked nobody looks."""
    times = pa.array([1_500, None, *range(60_000)], pa.int64()).cast(pa.timestamp("us"))
    options = {"use_dictionary": False, "compression": "none", "data_page_size": 4096}
    old = parquet(pa.table({"t": times}), use_deprecated_int96_timestamps=True, **options)
    file = opened(old, unit=unit)
    assert isinstance(file, DataFile) and (file.coarse is not None) == (unit == "ns")
    ((_, arrays),) = file.batches({"t": "t"}, 100_000)
    assert arrays["t"].type == pa.timestamp(unit)
    assert arrays["t"].cast(pa.timestamp("us")).equals(times)
    by_pages = file.rows(0, {"t": "t"}, np.array([0, 1, 50_002]))
    assert by_pages is not None and by_pages["t"].type == pa.timestamp(unit)
    assert by_pages["t"].cast(pa.int64()).to_pylist() == [
        n and n * (1000 if unit == "ns" else 1) for n in (1_500, None, 50_000)
    ]
    file.close()
    new = opened(parquet(pa.table({"t": times})), unit="ns")
    assert isinstance(new, DataFile) and new.coarse is None


FAR = pa.array(["9999-12-31 00:00:00", None]).cast(pa.timestamp("us"))


def test_a_time_that_nanoseconds_lack_is_told_of_its_column_alone() -> None:
    """Of columns whose names begin alike, too: `t` is no part of `t.x`."""
    near = pa.array([1, None], pa.int64()).cast(pa.timestamp("us"))
    inner = pa.StructArray.from_arrays([FAR], ["x"])
    rows = pa.table({"t": near, "t2": FAR, "t.x": near, "s": inner, "n": [1, 2]})
    file = opened(parquet(rows, use_deprecated_int96_timestamps=True), unit="ns")
    for name, is_far in (("t", False), ("t2", True), ("t.x", False), ("s", True), ("n", False)):
        if not is_far:
            assert sum(count for count, _ in file.batches({"c": name}, 1)) == 2
            continue
        with pytest.raises(UnsupportedFeature) as caught:
            next(file.batches({"c": name, "n": "n"}, 1))
        error = caught.value
        assert (error.code, error.path, error.column, error.features) == (
            "unsupported-file-type",
            "d/f",
            name,
            ("timestamp",),
        )


@pytest.mark.parametrize(
    ("keys", "days_move", "times_move"),
    [
        ({}, False, False),
        ({"version": "3.0.1"}, False, True),
        ({"version": "3.2.0", "legacyDateTime": ""}, True, False),
        ({"version": "3.2.0", "legacyINT96": ""}, False, True),
        ({"version": "2.4.8"}, True, True),
    ],
    ids=str,
)
def test_days_of_the_old_calendar_by_the_form_of_the_column(
    keys: dict[str, str], days_move: bool, times_move: bool
) -> None:
    """Of a file with times of 96 bits and other columns, some of them within others."""
    day = pa.array([-300_000, None], pa.int32()).cast(pa.date32())
    time = pa.array([-300_000 * 86_400_000_000, None], pa.int64()).cast(pa.timestamp("us"))
    rows = pa.table({"d": day, "t": time, "t.d": day, "s": pa.StructArray.from_arrays([time], ["x"])})
    rows = rows.replace_schema_metadata({f"org.apache.spark.{name}": text for name, text in keys.items()})
    file = opened(parquet(rows, use_deprecated_int96_timestamps=True))
    assert isinstance(file, DataFile) and (file.calendar is None) == (not keys)
    names = dict(zip(("a", "b", "c", "e"), rows.column_names, strict=True))
    ((_, arrays),) = file.batches(names, 10)
    moved = {
        name: not arrays[name].slice(0, 1).equals(rows[own].combine_chunks().slice(0, 1)) for name, own in names.items()
    }
    assert moved == {"a": days_move, "b": times_move, "c": days_move, "e": times_move}


def test_pages_are_columns_by_the_names_that_are_asked() -> None:
    rows = pa.table({"a": np.arange(200_000), "b": np.arange(200_000) * 3})
    data = parquet(rows, write_page_index=True, use_dictionary=False, compression="none", data_page_size=4096)
    file = opened(data)
    assert isinstance(file, DataFile)
    found = file.rows(0, {"x": "b", "y": "a", "z": "b"}, np.array([5, 150_000]))
    assert found is not None
    assert {name: values.to_pylist() for name, values in found.items()} == {
        "x": [15, 450_000], "y": [5, 150_000], "z": [15, 450_000],
    }  # fmt: skip
    assert file.rows(0, {"x": "b"}, np.arange(200_000)) is None


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_two_columns_of_one_name(file_format: str) -> None:
    """Arrow gave the last column of all for both."""
    rows = pa.Table.from_arrays(
        [pa.array([1]), pa.array(["a"]), pa.array(["b"]), pa.array(["c"])], ["id", "s", "s", "t"]
    )
    sink = io.BytesIO()
    (pq if file_format == "parquet" else orc).write_table(rows, sink)
    file = opened(sink.getvalue(), file_format)
    assert file.names(["id", "T"]) == {"id": "id", "T": "t"}
    for wanted in (["s"], ["id", "S"]):
        with pytest.raises(CorruptTable, match="two columns are called 's'") as caught:
            file.names(wanted)
        assert (caught.value.code, caught.value.path) == ("damaged-file", "d/f")

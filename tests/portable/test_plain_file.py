"""Which files of a table an engine may read itself, and that it then finds the rows that our reader finds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_table import make_table
from paimon_tables import write_readings

import alluvium
from alluvium.api.lazy.rows import LazyRows
from alluvium.errors import CorruptTable
from alluvium.expr.tree import Column, Compare, Literal
from alluvium.portable.plain_file import PlainFile
from alluvium.schema import types as t
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import Field, Struct

UTC = dt.timezone.utc
DAY = dt.date(2020, 2, 29)
INSTANT = dt.datetime(2020, 2, 29, 23, 59, 59, 999999, tzinfo=UTC)

SIMPLE = pa.table(
    {
        "o": pa.array([True, None]),
        "i8": pa.array([-128, None], pa.int8()),
        "i16": pa.array([1, None], pa.int16()),
        "i32": pa.array([1, None], pa.int32()),
        "i64": pa.array([2**62, None], pa.int64()),
        "f": pa.array([float("nan"), None], pa.float32()),
        "d": pa.array([-0.0, None], pa.float64()),
        "s": pa.array(["\U0001f600", None]),
        "b": pa.array([b"\x00\xff", None], pa.binary()),
        "day": pa.array([DAY, None]),
        "t": pa.array([INSTANT, None], pa.timestamp("us", "UTC")),
        "n": pa.array([INSTANT.replace(tzinfo=None), None], pa.timestamp("us")),
        "m": pa.array([Decimal("-1.25"), None], pa.decimal128(10, 2)),
        "long": pa.array([Decimal("1" * 38), None], pa.decimal128(38, 0)),
    }
)


def rows_of(url: str) -> LazyRows:
    rows: LazyRows = alluvium.open(url)._lazy_rows()
    return rows


def plain(url: str, *names: str) -> list[bool]:
    """Of what is read, one after another: whether it is a file that needs nothing of us."""
    rows = rows_of(url)
    return [isinstance(item, PlainFile) for item in rows.mixed(names or rows.columns.names, None, 65_536)]


def put(url: str, column: pa.Array, **options: object) -> None:
    """Puts another file with a column `c` in the place of the table's only one."""
    (file,) = Path(url).rglob("*.parquet")
    pq.write_table(pa.table({"c": column}), file, **options)


def one_column(url: Path, column: pa.Array, **properties: str) -> str:
    alluvium.write(pa.table({"c": column}), str(url), **properties)
    return str(url)


@pytest.mark.parametrize("name", SIMPLE.column_names)
def test_columns_of_each_simple_type(tmp_path: Path, name: str) -> None:
    url = str(tmp_path / "t")
    alluvium.write(SIMPLE.select([name]), url)
    (file,) = rows_of(url).mixed([name], None, 65_536)
    assert isinstance(file, PlainFile) and (dict(file.own), file.constants) == ({name: name}, {})
    assert Path(file.path).is_relative_to(url) and file.schema.names == [name]
    found = [row for batch in file.batches() for row in batch.to_pylist()]
    assert repr(found) == repr(SIMPLE.select([name]).to_pylist())


@pytest.mark.parametrize("name", [name for name in SIMPLE.column_names if name not in ("b", "f", "d")])
def test_values_of_partitions_are_constants(tmp_path: Path, name: str) -> None:
    url = str(tmp_path / "t")
    rows = SIMPLE.append_column("k", pa.array([1, 2]))
    alluvium.write(rows, url, partition_by=[name])
    files = list(rows_of(url).mixed([name, "k"], None, 65_536))
    found = [file.constants[name].as_py() for file in files if isinstance(file, PlainFile)]
    assert sorted(map(repr, found)) == sorted(map(repr, SIMPLE[name].to_pylist()))
    # Without a column of the file nobody knows how many rows there are.
    assert plain(url, name) == [False, False]
    query = alluvium.open(url).to_polars()
    assert repr(query.sort("k").collect().to_dicts()) == repr(
        alluvium.open(url).to_polars().head(9).sort("k").collect().to_dicts()
    )
    assert query.filter(pl.col(name).is_null()).select("k").collect().rows() == [(2,)]


@pytest.mark.parametrize(
    ("column", "properties"),
    [
        (pa.array([[1]]), {}),
        (pa.array([{"x": 1}]), {}),
        (pa.array([1]), {"delta.columnMapping.mode": "name"}),
        (pa.array([1]), {"delta.columnMapping.mode": "id"}),
    ],
)
def test_nested_columns_are_not_and_mapped_ones_are(
    tmp_path: Path, column: pa.Array, properties: Mapping[str, str]
) -> None:
    assert plain(one_column(tmp_path / "t", column, **properties)) == [pa.types.is_integer(column.type)]


def test_other_spellings_in_the_file(tmp_path: Path) -> None:
    url = one_column(tmp_path / "t", pa.array([1, 2]))
    (place,) = Path(url).rglob("*.parquet")
    pq.write_table(pa.table({"C": [2, 1], "other": ["x", "y"]}), place)
    assert plain(url) == [True]
    assert alluvium.open(url).to_polars().filter(pl.col("c") > 1).collect().to_dicts() == [{"c": 2}]
    pq.write_table(pa.Table.from_arrays([pa.array([3]), pa.array([4])], names=["c", "c"]), place)
    with pytest.raises(CorruptTable, match="two columns are called 'c'"):
        plain(url)


@pytest.mark.parametrize(
    ("wanted", "stored", "options"),
    [
        (pa.array([1], pa.int64()), pa.array([1], pa.int32()), {}),
        (pa.array([1.0]), pa.array([1.0], pa.float32()), {}),
        (
            pa.array([INSTANT], pa.timestamp("us", "UTC")),
            pa.array([INSTANT]),
            {"use_deprecated_int96_timestamps": True},
        ),
        (
            pa.array([INSTANT], pa.timestamp("us", "UTC")),
            pa.array([INSTANT.replace(tzinfo=None)], pa.timestamp("us")),
            {},
        ),
        (pa.array(["a"]), pa.array([b"a"]), {}),
        (pa.array(["a"]), pa.array(["a"]).dictionary_encode(), {}),
        (pa.array([Decimal("1.25")]), pa.array([Decimal("1.2")]), {}),
    ],
)
def test_files_of_other_types_are_read_by_us(
    tmp_path: Path, wanted: pa.Array, stored: pa.Array, options: dict[str, object]
) -> None:
    url = one_column(tmp_path / "t", wanted)
    put(url, wanted)
    assert plain(url) == [True]
    put(url, stored, **options)
    assert plain(url) == [False]


@pytest.mark.parametrize(
    ("kind", "is_common"),
    [
        (pa.bool_(), True),
        (pa.uint16(), True),
        (pa.float32(), True),
        (pa.date32(), True),
        (pa.decimal128(5, 2), True),
        (pa.large_string(), True),
        (pa.string_view(), True),
        (pa.large_binary(), True),
        (pa.binary_view(), True),
        (pa.timestamp("ns"), True),
        (pa.timestamp("us", "UTC"), True),
        (pa.timestamp("us", "Europe/Vienna"), False),
        (pa.float16(), False),
        (pa.time64("us"), False),
        (pa.duration("us"), False),
        (pa.binary(3), False),
        (pa.dictionary(pa.int32(), pa.string()), False),
        (pa.list_(pa.int64()), True),
        (pa.large_list(pa.string()), True),
        (pa.list_(pa.time32("ms")), False),
        (pa.large_list(pa.float16()), False),
        (pa.list_(pa.int64(), 2), False),
        (pa.struct([("x", pa.int64()), ("y", pa.list_(pa.date32()))]), True),
        (pa.struct([("x", pa.int64()), ("y", pa.time32("ms"))]), False),
        (pa.struct([("x", pa.time32("ms")), ("y", pa.int64())]), False),
        (pa.map_(pa.string(), pa.int64()), True),
        (pa.map_(pa.string(), pa.duration("us")), False),
        (pa.map_(pa.time32("ms"), pa.string()), False),
    ],
    ids=str,
)
def test_a_type_that_not_everybody_knows_beside_the_column_that_is_asked(
    tmp_path: Path, kind: pa.DataType, is_common: bool
) -> None:
    """Who opens a file meets all of its columns."""
    url = one_column(tmp_path / "t", pa.array([1]))
    (file,) = Path(url).rglob("*.parquet")
    pq.write_table(pa.table({"c": [1], "beside": pa.nulls(1, kind)}), file)
    assert pq.read_schema(file).field("beside").type == kind
    assert plain(url, "c") == [is_common]


@pytest.mark.parametrize(
    ("precision", "options", "is_common"),
    [
        (5, {}, True),
        (5, {"use_dictionary": False}, True),
        (5, {"use_dictionary": False, "column_encoding": {"c": "DELTA_BYTE_ARRAY"}}, False),
        (5, {"use_dictionary": False, "column_encoding": {"c": "BYTE_STREAM_SPLIT"}}, False),
        # Of other columns nobody looks at the digits, nor of numbers.
        (5, {"use_dictionary": False, "column_encoding": {"beside": "DELTA_BYTE_ARRAY"}}, True),
        (5, {"use_dictionary": False, "column_encoding": {"c": "DELTA_BINARY_PACKED"}, "store_decimal_as_integer": True}, True),
        (18, {"use_dictionary": False, "column_encoding": {"c": "DELTA_BINARY_PACKED"}, "store_decimal_as_integer": True}, True),
        (38, {}, True),
    ],
)  # fmt: skip
def test_decimals_as_not_every_reader_takes_them(
    tmp_path: Path, precision: int, options: dict[str, object], is_common: bool
) -> None:
    kind = pa.decimal128(precision, 2)
    rows = pa.table({"beside": pa.array([1, 2], kind), "c": pa.array([3, None], kind)})
    url = str(tmp_path / "t")
    alluvium.write(rows, url)
    (file,) = Path(url).rglob("*.parquet")
    pq.write_table(rows, file, row_group_size=1, **options)
    assert set(plain(url, "c")) == {is_common}


@pytest.mark.parametrize(("at", "is_common"), [(0, False), (1, False), (None, True)])
def test_the_encodings_of_every_row_group_are_looked_at(tmp_path: Path, at: int | None, is_common: bool) -> None:
    """As of a file whose dictionary grew too large on its way."""
    url = one_column(tmp_path / "t", pa.array([Decimal("1.25"), None]))
    (file,) = Path(url).rglob("*.parquet")
    with pq.ParquetWriter(file, pa.schema([("c", pa.decimal128(3, 2))]), use_dictionary=False, column_encoding={"c": "DELTA_BYTE_ARRAY"}) as writer:  # fmt: skip
        for group in range(2):
            # No page, no encoding of values.
            writer.write_table(pa.table({"c": pa.array([Decimal("1.25")] * (group == at), pa.decimal128(3, 2))}))
    metadata = pq.read_metadata(file)
    found = ["DELTA_BYTE_ARRAY" in metadata.row_group(n).column(0).encodings for n in range(2)]
    assert found == [group == at for group in range(2)]
    assert plain(url) == [is_common]


def test_files_in_the_old_calendar_are_read_by_us(tmp_path: Path) -> None:
    url = one_column(tmp_path / "t", pa.array([DAY]))
    (place,) = Path(url).rglob("*.parquet")
    old = pa.table({"c": [DAY]}).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    pq.write_table(old, place)
    assert plain(url) == [False]


def test_texts_of_char_are_padded_by_us(tmp_path: Path) -> None:
    texts = Field("k", t.STRING, True, {CHAR_VARCHAR: "char(3)"})
    url = make_table(tmp_path / "t", Struct((texts, Field("n", t.LONG))))
    alluvium.write(pa.table({"k": ["a"], "n": [1]}), url, mode="append")
    assert (plain(url), plain(url, "n")) == ([False], [True])


def test_files_with_deleted_rows_and_without_the_column_are_read_by_us(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    alluvium.write(pa.table({"id": [1, 2]}), url, **{"delta.enableDeletionVectors": "true"})
    alluvium.write(pa.table({"id": [3, 4]}), url, mode="append")
    alluvium.DeltaTable.forPath(url).delete("id = 3")
    alluvium.write(pa.table({"id": [5], "late": ["x"]}), url, mode="append", mergeSchema="true")
    assert sorted(plain(url, "id")) == [False, True, True]
    assert sorted(plain(url, "late")) == [False, False, True]
    found = alluvium.open(url).to_polars().sort("id").collect()
    assert found.rows() == [(1, None), (2, None), (4, None), (5, "x")]


def test_other_places_than_this_disk_are_read_by_us() -> None:
    url = "memory://plain/t"
    alluvium.write(pa.table({"id": [1]}), url)
    assert plain(url) == [False]


def test_rows_that_merge_are_read_by_us(tmp_path: Path) -> None:
    write_readings(tmp_path / "t")
    assert not any(plain(str(tmp_path / "t")))


def test_batches_are_of_rows_that_meet_the_condition(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    alluvium.write(pa.table({"id": [1, 2, 3]}), url)
    where = Compare(">", Column(("id",), t.LONG), Literal(1, t.LONG))
    (file,) = rows_of(url).mixed(["id"], where, 65_536)
    assert isinstance(file, PlainFile)
    for _ in range(2):
        assert [row["id"] for batch in file.batches() for row in batch.to_pylist()] == [2, 3]

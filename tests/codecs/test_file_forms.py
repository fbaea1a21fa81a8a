"""Files that Python workers write: what other readers find in them, and their statistics. Without a JVM."""

from __future__ import annotations

import datetime as dt
import io
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from alluvium.codecs.file_forms import FileForm, plain_nulls
from alluvium.codecs.footers.column_bounds import ColumnBounds
from alluvium.codecs.footers.parquet_footer import FooterColumn
from alluvium.errors import UnsupportedFeature
from alluvium.portable.files.avro_file import open_avro
from alluvium.portable.files.data_file import Files, open_data_file
from alluvium.schema import types as t
from alluvium.schema.arrow import from_arrow
from alluvium.storage.open import open_store

UTC = dt.timezone.utc
ROW = pa.struct([("x", pa.int32()), ("y", pa.string())])
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bo": (pa.bool_(), [True, None, False]),
    "by": (pa.int8(), [-128, None, 127]),
    "l": (pa.int64(), [-(2**63), None, 2**63 - 1]),
    "f": (pa.float32(), [1.5, None, -2.25]),
    "d": (pa.float64(), [1e300, None, -5e-324]),
    "d9": (pa.decimal128(9, 2), [Decimal("-9999999.99"), None, Decimal("0.01")]),
    "d38": (pa.decimal128(38, 10), [Decimal("-1E-10"), None, Decimal("9" * 28 + "." + "9" * 10)]),
    "s": (pa.string(), ["", None, "äöü€😀"]),
    "b": (pa.binary(), [b"", None, b"\x00\xff"]),
    "da": (pa.date32(), [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "ts": (pa.timestamp("us"), [dt.datetime(1960, 1, 1, 0, 0, 0, 7), None, dt.datetime(2024, 1, 1, 1, 1, 1, 999999)]),
    "z": (pa.timestamp("ms", "UTC"), [dt.datetime(1960, 1, 1, tzinfo=UTC), None, dt.datetime(2024, 1, 1, tzinfo=UTC)]),
    "a": (pa.list_(pa.int32()), [[1, None], None, []]),
    "m": (pa.map_(pa.string(), ROW), [[("a", {"x": 1, "y": None})], None, []]),
    "n": (pa.map_(pa.int32(), pa.decimal128(5, 1)), [[(1, Decimal("2.5"))], None, [(3, None)]]),
    "r": (ROW, [{"x": None, "y": "q"}, None, {"x": 3, "y": None}]),
}


def table() -> pa.Table:
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in VALUES.items()})


@pytest.mark.parametrize("compression", ["zstd", "snappy", "none"])
@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_rows_come_back(tmp_path: Path, form: str, compression: str) -> None:
    rows = table()
    writer = FileForm(form, rows.schema, compression, 1).open()
    writer.add(rows)
    before = writer.size
    writer.add(rows.slice(2))
    assert writer.size >= before
    (tmp_path / "f").write_bytes(writer.finish())
    store = open_store(str(tmp_path))
    file = open_data_file(Files(store, open_store), "f", "UTC", form)
    batches = list(file.batches({name: name for name in rows.column_names}, 1000))
    assert sum(count for count, _ in batches) == 4
    for name, (kind, values) in VALUES.items():
        found = pa.chunked_array([columns[name] for _, columns in batches])
        if form != "parquet" and pa.types.is_timestamp(kind):
            found = found.cast(pa.timestamp(kind.unit)).cast(kind)
        assert [_plain(value) for value in found.to_pylist()] == [_plain(v) for v in [*values, values[2]]], name


def _plain(value: Any) -> Any:
    return (
        [tuple(pair) for pair in value] if isinstance(value, list) and value and isinstance(value[0], tuple) else value
    )


def test_avro_is_what_others_read() -> None:
    """By fastavro's own reader, logical types and all."""
    rows = table().drop_columns(["by"])
    writer = FileForm("avro", rows.schema, "deflate", 1).open()
    writer.add(rows)
    found = list(fastavro.reader(io.BytesIO(writer.finish())))
    assert [row["d38"] for row in found] == VALUES["d38"][1]
    assert [row["da"] for row in found] == VALUES["da"][1]
    assert [row["m"] for row in found] == [{"a": {"x": 1, "y": None}}, None, {}]
    assert [row["n"] for row in found] == [[{"key": 1, "value": Decimal("2.5")}], None, [{"key": 3, "value": None}]]


@pytest.mark.parametrize(
    "schema", [pa.schema([("a b", pa.int32())]), pa.schema([("t", pa.timestamp("ns"))]), pa.schema([("ä", pa.int8())])]
)
def test_what_avro_has_no_form_for(schema: pa.Schema) -> None:
    with pytest.raises(UnsupportedFeature):
        FileForm("avro", schema, "zstd", 1).open()


def nested(depth: int, is_listed: bool) -> tuple[pa.DataType, Any]:
    """A type so many rows deep, each in a list where that is said, and a value of it."""
    kind, value = pa.int32(), 7
    for _ in range(depth):
        kind, value = pa.struct([("x", kind)]), {"x": value}
        if is_listed:
            kind, value = pa.list_(pa.field("element", kind)), [value]
    return kind, value


@pytest.mark.parametrize(("depth", "is_listed"), [(60, False), (30, True)])
def test_deep_avro(depth: int, is_listed: bool) -> None:
    """What is written is read; what could not be is not written."""
    kind, value = nested(depth, is_listed)
    rows = pa.table({"a": pa.array([value, None], kind)})
    writer = FileForm("avro", rows.schema, "zstd", 1).open()
    writer.add(rows)
    file = open_avro("f", pa.BufferReader(writer.finish()))
    ((_, columns),) = file.batches({"a": "a"}, 10)
    assert columns["a"].to_pylist() == [value, None]
    with pytest.raises(UnsupportedFeature) as caught:
        FileForm("avro", pa.schema([("a", nested(depth + 10, is_listed)[0])]), "zstd", 1).open()
    assert caught.value.code == "avro-schema"


ONE = pa.struct([("x", pa.int32())])
ALIKE = {
    "rows": {"a": pa.struct([("b_c", ONE)]), "a_b": pa.struct([("c", ONE)]), "a_b_c": ONE, "a_b_c_2": ONE},
    "maps": {"m_value": ONE, "m": pa.map_(pa.int32(), ONE), "m_key": pa.map_(pa.int32(), ONE)},
}


@pytest.mark.parametrize("columns", ALIKE.values(), ids=ALIKE)
def test_avro_records_whose_names_are_alike(columns: dict[str, pa.DataType]) -> None:
    """The names of columns on the way to a record are joined by what names may hold, too."""
    values: dict[str, Any] = {
        "a": {"b_c": {"x": 1}}, "a_b": {"c": {"x": 2}}, "a_b_c": {"x": 3}, "a_b_c_2": {"x": 4},
        "m_value": {"x": 5}, "m": [(1, {"x": 6})], "m_key": [(2, {"x": 7})],
    }  # fmt: skip
    row = {name: values[name] for name in columns}
    rows = pa.Table.from_pylist([row], schema=pa.schema(list(columns.items())))
    writer = FileForm("avro", rows.schema, "deflate", 1).open()
    writer.add(rows)
    data = writer.finish()
    ((_, found),) = open_avro("f", pa.BufferReader(data)).batches({name: name for name in columns}, 10)
    assert {name: array.to_pylist()[0] for name, array in found.items()} == row
    others = next(iter(fastavro.reader(io.BytesIO(data))))
    assert others.keys() == row.keys()


def test_wide_decimals_have_no_dictionary() -> None:
    """Paimon's Java looks for their fewest bytes in it, in vain, and skips the rows."""
    rows = table()
    writer = FileForm("parquet", rows.schema, "zstd", 1).open()
    writer.add(rows)
    group = pq.read_metadata(io.BytesIO(writer.finish())).row_group(0)
    has = {group.column(i).path_in_schema: group.column(i).has_dictionary_page for i in range(group.num_columns)}
    assert not has["d38"]
    assert has["s"] and has["l"] and has["d9"] and has["a.list.element"]


def bounds(kind: pa.DataType, *batches: list[Any]) -> tuple[Any, Any, int | None]:
    logical = t.TIME if pa.types.is_time(kind) else from_arrow(kind)
    made = ColumnBounds((FooterColumn(("c",), logical),))
    for values in batches:
        made.add(pa.table({"c": pa.array(values, kind), "other": pa.nulls(len(values))}))
    footer = pickle.loads(pickle.dumps(made.footer()))
    assert footer.num_rows == sum(map(len, batches))
    stats = footer.columns[("c",)]
    return stats.min, stats.max, stats.null_count


@pytest.mark.parametrize(
    ("kind", "batches", "expected"),
    [
        (pa.int64(), ([3, None], [-5], [None]), (-5, 3, 2)),
        (pa.int32(), ([None],), (None, None, 1)),
        (pa.float64(), ([0.0], [1.5]), (-0.0, 1.5, 0)),
        (pa.float64(), ([1.0], [float("nan")], [2.0]), (None, None, 0)),
        (pa.string(), (["b", "ä"], ["a"]), ("a", "ä", 0)),
        (pa.binary(), ([b"a"],), (None, None, 0)),
        (pa.decimal128(38, 10), ([Decimal("1E-10")], [Decimal("-2")]), (Decimal("-2"), Decimal("1E-10"), 0)),
        (pa.date32(), ([dt.date(1969, 12, 31)],), (-1, -1, 0)),
        (pa.timestamp("ms"), ([dt.datetime(1969, 12, 31, 23, 59, 59)],), (-1_000_000, -1_000_000, 0)),
        (pa.timestamp("us", "UTC"), ([dt.datetime(1970, 1, 1, 0, 0, 0, 7, UTC)],), (7, 7, 0)),
        (pa.timestamp("ns"), ([7],), (None, None, 0)),
        (pa.list_(pa.int32()), ([[1], None],), (None, None, 1)),
    ],
)
def test_statistics(kind: pa.DataType, batches: tuple[list[Any], ...], expected: tuple[Any, ...]) -> None:
    assert bounds(kind, *batches) == expected


def test_nothing_stands_below_nulls() -> None:
    """Spark leaves values in members of structs that are null; Arrow's ORC writer would write them into other rows."""
    hidden = pa.StructArray.from_arrays(
        [pa.array([1, 2, None, 4]), pa.array(["a", "b", "c", None])],
        names=["x", "y"],
        mask=pa.array([False, True, False, False]),
    )
    nulls = pa.array([False, True, False])
    kept = {
        "r": hidden.slice(0, 3),
        "a": pa.ListArray.from_arrays(pa.array([0, 2, 3, 4], pa.int32()), hidden, mask=nulls),
        "m": pa.MapArray.from_arrays(
            pa.array([0, 2, 3, 4], pa.int32()), pa.array(["k", "l", "m", "n"]), hidden, mask=nulls
        ),
        "n": pa.StructArray.from_arrays([hidden.slice(1)], names=["r"], mask=nulls),
    }
    rows = pa.table(kept)
    for part in (rows, rows.slice(1)):
        made = [plain_nulls(column.chunk(0)) for column in part.columns]
        assert pa.table(made, schema=rows.schema).to_pylist() == part.to_pylist()
    writer = FileForm("orc", rows.schema, "zstd", 1).open()
    writer.add(rows)
    found = orc.ORCFile(pa.BufferReader(writer.finish())).read()
    assert found.to_pylist() == rows.to_pylist()


def test_files_have_no_bounds_of_floating_columns() -> None:
    """Arrow's pass NaN over, and readers who take it for the greatest number would skip the rows."""
    rows = pa.table({"x": [1.0, float("nan")], "n": [1, 2], "r": [{"y": 0.5}, {"y": float("nan")}]})
    writer = FileForm("parquet", rows.schema, "snappy", 1).open()
    writer.add(rows)
    group = pq.read_metadata(pa.BufferReader(writer.finish())).row_group(0)
    assert [group.column(n).is_stats_set for n in range(3)] == [False, True, False]
    assert not FileForm("parquet", rows.schema, "snappy", 1).tells_statistics
    assert FileForm("parquet", rows.select(["n", "r"]).schema, "snappy", 1).tells_statistics

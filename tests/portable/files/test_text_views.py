"""Files whose Arrow schema asks for views of texts and bytes, as delta-rs leaves them: found by the model (python, deltalake; seed 3)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium.api.delta.maintenance import convert_table
from alluvium.portable.files.text_views import without_views

TEXT = pa.string_view()
KINDS = {
    "text": (TEXT, ["a", "bc", None]),
    "bytes": (pa.binary_view(), [b"a", b"bc", None]),
    "map": (pa.map_(TEXT, pa.int32()), [[("a", 1)], [("a", 2)], None]),
    "struct": (pa.struct([("t", TEXT)]), [{"t": "a"}, {"t": "bc"}, None]),
    "list": (pa.list_(TEXT), [["a"], ["bc", None], None]),
    "inside": (pa.list_(pa.struct([("m", pa.map_(pa.string(), TEXT))])), [[{"m": [("k", "v")]}], [], None]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_some_rows_of_a_file(tmp_path: Path, kind: str) -> None:
    data_type, values = KINDS[kind]
    pq.write_table(pa.table({"id": [1, 2, 3], "x": pa.array(values, data_type)}), tmp_path / "a.parquet")
    assert pq.read_schema(tmp_path / "a.parquet").field("x").type == data_type
    convert_table(str(tmp_path))
    view = alluvium.open(str(tmp_path))
    for where, kept in ((None, values), ("id >= 2", values[1:]), ("id < 3", values[:2]), ("id = 3", values[2:])):
        assert view.to_arrow(["x"], where)["x"].to_pylist() == kept


def named(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": "7"})


@pytest.mark.parametrize(
    ("kind", "plain", "values"),
    [
        (pa.string_view(), pa.string(), ["a", None]),
        (pa.binary_view(), pa.binary(), [b"a", None]),
        (pa.large_list(named("e", pa.binary_view())), pa.large_list(named("e", pa.binary())), [[b"a"], None]),
        (pa.list_(named("e", TEXT)), pa.list_(named("e", pa.string())), [["a", None], None]),
        (pa.struct([named("x", pa.int8()), named("y", TEXT)]), pa.struct([named("x", pa.int8()), named("y", pa.string())]),
         [{"x": 1, "y": "a"}, None]),
        (pa.map_(TEXT, pa.binary_view()), pa.map_(pa.string(), pa.binary()), [[("k", b"v")], None]),
        (pa.map_(TEXT, pa.int8(), True), pa.map_(pa.string(), pa.int8(), True), [[("k", 1)], None]),
        (pa.list_(pa.list_(pa.map_(pa.int8(), TEXT))), pa.list_(pa.list_(pa.map_(pa.int8(), pa.string()))), [[[[(1, "v")]]], None]),
    ],
    ids=str,
)  # fmt: skip
def test_views_are_plain_at_any_depth(kind: pa.DataType, plain: pa.DataType, values: list[object]) -> None:
    """And all else of a type is kept: names, numbers and whether keys are in order."""
    batch = pa.record_batch([pa.array(values, kind), pa.array([1, 2])], schema=pa.schema([named("c", kind), named("n", pa.int64())]))  # fmt: skip
    found = without_views(batch)
    assert found.schema.equals(pa.schema([named("c", plain), named("n", pa.int64())]), check_metadata=True)
    assert found.to_pydict() == {"c": values, "n": [1, 2]}


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.binary(), pa.large_string(), pa.list_(pa.string()), pa.map_(pa.string(), pa.binary()), pa.dictionary(pa.int8(), pa.string())], ids=str
)  # fmt: skip
def test_rows_without_views_are_given_back(kind: pa.DataType) -> None:
    batch = pa.record_batch([pa.nulls(2, kind)], names=["c"])
    assert without_views(batch) is batch

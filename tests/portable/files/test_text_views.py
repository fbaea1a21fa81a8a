"""Files whose Arrow schema asks for views of texts and bytes, as delta-rs leaves them: found by the model (python, deltalake; seed 3)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium.api.delta.maintenance import convert_table

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

"""Which files hide something: told from vectors in the log, and from the schemas of the files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_table import make_table

from alluvium.delta.upkeep.purgeable import _has_more, purgeable
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CorruptTable
from alluvium.schema.types import LONG, STRING, Array, DataType, Field, Map, Struct
from alluvium.storage.open import open_store


def mapped(name: str, kind, number: int) -> Field:
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{name}"}
    return Field(name, kind, metadata=metadata)


SCHEMA = Struct(
    (mapped("id", LONG, 1), mapped("s", Struct((mapped("a", LONG, 3),)), 2), mapped("l", Array(Struct((mapped("b", LONG, 5),))), 4))
)  # fmt: skip
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.columnMapping.maxColumnId": "9",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
}
WHOLE = {
    "col-id": pa.int64(),
    "col-s": pa.struct({"col-a": pa.int64()}),
    "col-l": pa.list_(pa.struct({"col-b": pa.int64()})),
}
FILES = {
    "whole": WHOLE,
    "fewer": {"col-id": pa.int64()},
    "with-row-ids": {**WHOLE, "_row-id-col-1": pa.int64()},
    "dropped": {**WHOLE, "col-old": pa.string()},
    "dropped-in-struct": {**WHOLE, "col-s": pa.struct({"col-a": pa.int64(), "col-old": pa.string()})},
    "dropped-in-array": {**WHOLE, "col-l": pa.list_(pa.struct({"col-old": pa.int64()}))},
}


def table_of(root: Path, schema: Struct, properties: dict[str, str], names) -> object:
    url = make_table(root / "t", schema, properties, writer=5)
    first = root / "t" / "_delta_log" / f"{0:020}.json"
    first.write_text(first.read_text().replace('"minReaderVersion":1', '"minReaderVersion":2'))
    adds = [
        {"add": {"path": n, "partitionValues": {}, "size": 9, "modificationTime": 0, "dataChange": True}} for n in names
    ]
    (root / "t" / "_delta_log" / f"{1:020}.json").write_text("\n".join(map(json.dumps, adds)))
    return load_snapshot(open_store(url))


def test_dropped_columns_are_found_at_any_depth(tmp_path):
    snapshot = table_of(tmp_path, SCHEMA, PROPERTIES, FILES)
    for name, types in FILES.items():
        pq.write_table(pa.schema(types).empty_table(), tmp_path / "t" / name)
    found = purgeable(snapshot, snapshot.files)["path"].to_pylist()
    assert sorted(found) == ["dropped", "dropped-in-array", "dropped-in-struct"]


def test_without_mapping_no_file_is_opened(tmp_path):
    snapshot = table_of(tmp_path, Struct((Field("id", STRING),)), {}, ["there is none"])
    assert purgeable(snapshot, snapshot.files).num_rows == 0


def test_a_damaged_file_is_named(tmp_path):
    snapshot = table_of(tmp_path, SCHEMA, PROPERTIES, ["damaged"])
    (tmp_path / "t" / "damaged").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(CorruptTable) as raised:
        purgeable(snapshot, snapshot.files)
    assert raised.value.path == "damaged"


MORE, SAME = pa.struct({"x": pa.int64(), "old": pa.int64()}), pa.struct({"x": pa.int64()})
KNOWN = Struct((Field("x", LONG),))


@pytest.mark.parametrize(
    ("stored", "known", "more"),
    [
        (MORE, KNOWN, True),
        (SAME, KNOWN, False),
        (SAME, Struct((Field("x", LONG), Field("y", LONG))), False),
        (pa.struct({"X": pa.int64()}), KNOWN, True),
        (pa.map_(pa.string(), MORE), Map(STRING, KNOWN), True),
        (pa.map_(MORE, pa.string()), Map(KNOWN, STRING), True),
        (pa.map_(SAME, SAME), Map(KNOWN, KNOWN), False),
        (pa.list_(pa.map_(SAME, MORE)), Array(Map(KNOWN, KNOWN)), True),
        # A file whose column has another shape hides nothing that can be told.
        (pa.list_(MORE), Map(STRING, KNOWN), False),
        (pa.map_(pa.string(), MORE), Array(KNOWN), False),
        (pa.int64(), Map(STRING, KNOWN), False),
        (pa.int64(), KNOWN, False),
        (MORE, STRING, False),
    ],
)
def test_members_that_the_table_has_not(stored: pa.DataType, known: DataType, more: bool) -> None:
    assert _has_more(stored, known) == more

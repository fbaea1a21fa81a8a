"""Files of narrower types: told by what was changed, and by nothing else in them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_table import make_table

from alluvium.delta.upkeep.older_types import files_of_older_types
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.schema.types import INTEGER, LONG, STRING, TIMESTAMP, Array, DataType, Field, Map, Struct
from alluvium.storage.open import open_store


def widened(name: str, kind: DataType, path: str | None = None, nullable: bool = True) -> Field:
    change = {"fromType": "integer", "toType": "long"} | ({} if path is None else {"fieldPath": path})
    return Field(name, kind, nullable, {"delta.typeChanges": [change]})


SCHEMA = Struct(
    (
        widened("n", LONG, nullable=False),
        Field("s", Struct((widened("a", LONG, nullable=False), Field("b", STRING, False), Field("t", TIMESTAMP)))),
        widened("l", Array(LONG, False), "element"),
        widened("m", Map(STRING, Array(LONG, False), False), "value.element"),
        Field("g", Array(Struct((widened("x", LONG), Field("y", INTEGER))))),
    )
)
NEW = {
    "n": pa.int64(),
    "s": pa.struct({"a": pa.int64(), "b": pa.string(), "t": pa.timestamp("us", "UTC")}),
    "l": pa.list_(pa.int64()),
    "m": pa.map_(pa.string(), pa.list_(pa.int64())),
    "g": pa.list_(pa.struct({"x": pa.int64(), "y": pa.int32()})),
}
#: What a file has, and whether that is older.
FILES = {
    "all are nullable": (NEW, False),
    "some are not there": ({"n": pa.int64(), "s": pa.struct({"b": pa.string()})}, False),
    "other kinds of timestamps": ({**NEW, "s": pa.struct({"a": pa.int64(), "t": pa.timestamp("ns")})}, False),
    "a column": ({**NEW, "n": pa.int32()}, True),
    "a member": ({**NEW, "s": pa.struct({"a": pa.int32()})}, True),
    "elements": ({**NEW, "l": pa.list_(pa.int32())}, True),
    "elements in values": ({**NEW, "m": pa.map_(pa.string(), pa.list_(pa.int32()))}, True),
    "members of elements": ({**NEW, "g": pa.list_(pa.struct({"x": pa.int32(), "y": pa.int32()}))}, True),
}


def table_with(root: Path, schema: Struct, stored: pa.Schema, mode: str = "none") -> Snapshot:
    """A table of one file without rows."""
    properties = {"delta.enableTypeWidening": "true", "delta.columnMapping.mode": mode}
    url = make_table(root, schema, properties, writer=7)
    first = root / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            names = ["typeWidening", *(["columnMapping"] if mode != "none" else [])]
            line["protocol"] = {
                "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names
            }  # fmt: skip
    first.write_text("\n".join(map(json.dumps, lines)))
    add = {"path": "f", "partitionValues": {}, "size": 9, "modificationTime": 0, "dataChange": True}
    (root / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"add": add}))
    pq.write_table(stored.empty_table(), root / "f")
    return load_snapshot(open_store(url))


@pytest.mark.parametrize("name", FILES)
def test_what_was_widened_is_compared_and_no_more(tmp_path: Path, name: str) -> None:
    types, is_older = FILES[name]
    assert files_of_older_types(table_with(tmp_path / "t", SCHEMA, pa.schema(types))).num_rows == int(is_older)


def test_names_in_another_case(tmp_path: Path) -> None:
    """Which readers find them by."""
    stored = pa.schema([("N", pa.int32()), ("S", pa.struct({"A": pa.int64()}))])
    assert files_of_older_types(table_with(tmp_path / "t", SCHEMA, stored)).num_rows == 1


def test_columns_by_their_ids(tmp_path: Path) -> None:
    """A file may call them as it likes."""

    def mapped(f: Field, number: int) -> Field:
        ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f.name}
        return replace(f, metadata={**f.metadata, **ids})

    def stored(name: str, kind: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    inner = Struct((mapped(widened("x", LONG), 3), mapped(Field("y", INTEGER), 4)))
    schema = Struct((mapped(widened("n", LONG), 1), mapped(Field("s", inner), 2)))
    for number, (n, x, y, is_older) in enumerate(
        [
            (pa.int64(), pa.int64(), pa.int32(), False),
            (pa.int32(), pa.int64(), pa.int32(), True),
            (pa.int64(), pa.int32(), pa.int32(), True),
        ]
    ):
        # `x` is called as another one is.
        members = pa.struct([stored("x", y, 4), stored("of the file", x, 3)])
        snapshot = table_with(
            tmp_path / str(number), schema, pa.schema([stored("of it", n, 1), stored("n", members, 2)]), "id"
        )
        assert files_of_older_types(snapshot).num_rows == int(is_older)

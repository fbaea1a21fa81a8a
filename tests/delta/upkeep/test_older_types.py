"""Files of narrower types: told by what was changed, and by nothing else in them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_table import make_table

from alluvium.delta.upkeep.older_types import files_of_older_types
from alluvium.delta.view.snapshot import load_snapshot
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


@pytest.mark.parametrize("name", FILES)
def test_what_was_widened_is_compared_and_no_more(tmp_path: Path, name: str) -> None:
    url = make_table(tmp_path / "t", SCHEMA, {"delta.enableTypeWidening": "true"}, writer=7)
    first = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            features = {"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]}
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    first.write_text("\n".join(map(json.dumps, lines)))
    add = {"path": "f", "partitionValues": {}, "size": 9, "modificationTime": 0, "dataChange": True}
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"add": add}))
    types, is_older = FILES[name]
    pq.write_table(pa.schema(types).empty_table(), tmp_path / "t" / "f")
    assert files_of_older_types(load_snapshot(open_store(url))).num_rows == int(is_older)

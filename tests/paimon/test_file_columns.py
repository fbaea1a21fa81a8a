"""The columns of data files as each format has them: types, ids, whether null is a value, at every depth."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import open_target

from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, parse_type
from alluvium.storage.open import open_store

ROW = {
    "type": "ROW",
    "fields": [{"id": 0, "name": "x", "type": "INT NOT NULL"}, {"id": 0, "name": "c", "type": "TIME(3)"}],
}
FIELDS = {
    "p": "STRING", "k": "INT NOT NULL", "r": ROW, "l": {"type": "ARRAY", "element": "TIME(3) NOT NULL"},
    "m": {"type": "MAP", "key": "STRING NOT NULL", "value": ROW}, "s": {"type": "MULTISET", "element": "TIME(3)"},
    "c": "TIME(3)",
}  # fmt: skip


def file_columns(path: Path, file_format: str) -> pa.Schema:
    fields = [DataField(0, name, parse_type(kind)) for name, kind in FIELDS.items()]
    PaimonTable.create(str(path), fields, ["p"], options={"file.format": file_format})
    files = open_target(open_store(str(path))).plan_write(None, ()).files
    assert files is not None
    return files


@pytest.mark.parametrize(("file_format", "key"), [("orc", b"paimon.id"), ("avro", None)])
def test_columns(tmp_path: Path, file_format: str, key: bytes | None) -> None:
    schema = file_columns(tmp_path / "t", file_format)
    assert schema.names == ["k", "r", "l", "m", "s", "c", "p"]
    time = pa.int32() if file_format == "orc" else schema.field("c").type
    assert file_format == "orc" or time == pa.time32("ms")
    row = pa.struct([pa.field("x", pa.int32(), False), pa.field("c", time)])
    assert schema.field("r").type.equals(row)
    assert schema.field("l").type.equals(pa.list_(pa.field("element", time, False)))
    assert schema.field("m").type.equals(pa.map_(pa.string(), pa.field("value", row)))
    assert schema.field("s").type.equals(pa.map_(time, pa.field("value", pa.int32(), False)))
    assert [f.name for f in schema if not f.nullable] == ["k"]
    assert not schema.field("l").type.value_field.nullable
    assert not schema.field("s").type.item_field.nullable
    ids = {f.name: (f.metadata or {}).get(key) for f in (*schema, *schema.field("r").type)}
    expected = {"p": b"0", "k": b"1", "r": b"2", "x": b"3", "l": b"5", "m": b"6", "s": b"9"}
    if key is None:
        assert set(ids.values()) == {None}
    else:
        assert {name: ids[name] for name in expected} == expected

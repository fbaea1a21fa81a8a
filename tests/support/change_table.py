"""A Delta table with a change data feed from literals: Parquet by pyarrow, the log by hand."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from alluvium.codecs.z85 import format_z85
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import LONG, STRING, Field, Struct

SCHEMA = Struct((Field("id", LONG), Field("v", STRING)))
ON = {"delta.enableChangeDataFeed": "true"}
EXTRA = ["_change_type", "_commit_version", "_commit_timestamp"]
#: The time of version 0's commit, and how much later each next one is, milliseconds since 1970 UTC.
START_MS, STEP_MS = 1_700_000_000_000, 60_000

Action = dict[str, Any]


def vector(rows: Iterable[int]) -> Action:
    """A deletion vector in the log itself."""
    deleted = BitMap64(rows)
    data = (1_681_511_377).to_bytes(4, "little") + deleted.serialize()
    text = format_z85(data + bytes(-len(data) % 4))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(deleted)}


def metadata(
    schema: Struct = SCHEMA, partition_by: Iterable[str] = (), properties: Mapping[str, str] | None = None
) -> Action:
    return {"metaData": {
        "id": "0", "format": {"provider": "parquet", "options": {}}, "schemaString": format_schema(schema),
        "partitionColumns": list(partition_by), "configuration": dict(ON if properties is None else properties),
    }}  # fmt: skip


def protocol(reader: int = 1, writer: int = 4, **features: list[str]) -> Action:
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer, **features}}


VECTORS = protocol(
    3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors", "changeDataFeed"]
)  # fmt: skip


class ChangeTable:
    """Writes versions one by one; `files` made twice under one name are written once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.version = 0

    @property
    def url(self) -> str:
        return str(self.root)

    def rows(self, path: str, **columns: object) -> int:
        """A Parquet file; gives its size."""
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(sink.getvalue())
        return len(sink.getvalue())

    def add(self, path: str, ids: Iterable[int] = (), **more: object) -> Action:
        """An `add`, and its file: `v` is the id as text with `v` before it."""
        ids = list(ids)
        if ids:
            self.rows(path, id=pa.array(ids, pa.int64()), v=[f"v{n}" for n in ids])
        size = (self.root / path).stat().st_size if (self.root / path).exists() else 1
        return {"add": {
            "path": path, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True, **more,
        }}  # fmt: skip

    def remove(self, path: str, **more: object) -> Action:
        size = (self.root / path).stat().st_size if (self.root / path).exists() else 1
        return {"remove": {
            "path": path, "deletionTimestamp": 0, "dataChange": True, "extendedFileMetadata": True,
            "partitionValues": {}, "size": size, **more,
        }}  # fmt: skip

    def cdc(self, name: str, changes: list[tuple[int, str, str]], **more: object) -> Action:
        """A `cdc`, and its file: id, v and kind of change of each row."""
        ids, texts, kinds = ([change[n] for change in changes] for n in range(3))
        path = f"_change_data/{name}"
        size = self.rows(path, id=pa.array(ids, pa.int64()), v=texts, _change_type=kinds)
        return {"cdc": {"path": path, "partitionValues": {}, "size": size, "dataChange": False, **more}}

    def commit(self, *actions: Action, at_ms: int | None = None) -> int:
        """The next version, at its time."""
        version = self.version
        path = self.root / "_delta_log" / f"{version:020d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
        moment = (START_MS + version * STEP_MS if at_ms is None else at_ms) / 1000
        os.utime(path, (moment, moment))
        self.version += 1
        return version


def changed(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of a feed, sorted, without the time."""
    return sorted(tuple(row.values()) for row in table.drop_columns(["_commit_timestamp"]).to_pylist())


def write_accounts(path: str) -> None:
    """Version 0: made; 1: three accounts; 2: the second is changed; 3: the third is deleted."""
    table = ChangeTable(Path(path))
    table.commit(protocol(), metadata(Struct((Field("id", LONG), Field("v", STRING)))))
    table.commit(table.add("a.parquet", [1, 2, 3]))
    changes = [(2, "v2", "update_preimage"), (2, "new", "update_postimage")]
    table.rows("b.parquet", id=[1, 2, 3], v=["v1", "new", "v3"])
    table.commit(table.remove("a.parquet"), table.add("b.parquet"), table.cdc("c.parquet", changes))
    table.rows("d.parquet", id=[1, 2], v=["v1", "new"])
    table.commit(
        table.remove("b.parquet"), table.add("d.parquet"), table.cdc("e.parquet", [(3, "v3", "delete")])
    )  # fmt: skip

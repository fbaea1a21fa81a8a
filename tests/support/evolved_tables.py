"""Paimon tables with data evolution, made by hand: files that hold columns of the same rows, and rows that are gone."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from paimon_tables import EMPTY_ROW
from pyroaring import BitMap

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.manifest_write import (
    describe_manifest,
    format_index_manifest,
    format_manifest,
    format_manifest_list,
)
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import ENTRIES, INDEX_ENTRIES, MANIFESTS, SnapshotDocument, format_snapshot

_BLOB_MAGIC = (1_481_511_375).to_bytes(4, "little")
_VECTOR_MAGIC = 1_581_511_376


class Evolved:
    """A table, or a branch of one; each commit adds a file.

    Args:
        path: The table's root.
        branch: Whose snapshots; the branch is made with the schema of the table.
    """

    def __init__(
        self, path: Path, fields: Any, parted: tuple[str, ...] = (), branch: str | None = None, **options: str
    ):
        self.path = path
        front = path if branch is None else path / f"branch/branch-{branch}"
        if branch is None:
            settings = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
            PaimonTable.create(str(path), fields, partition_keys=parted, options=settings)
            # Paimon 2 lets tables have options together that earlier ones, and we, do not create.
            document = json.loads((path / "schema/schema-0").read_bytes())
            document["options"] |= options
            (path / "schema/schema-0").write_text(json.dumps(document), encoding="utf-8")
        else:
            (front / "schema").mkdir(parents=True)
            (front / "schema/schema-0").write_bytes((path / "schema/schema-0").read_bytes())
        self._front, self._name = front, branch or "main"
        self.schema = TableSchema.parse((front / "schema/schema-0").read_bytes())
        self._entries: list[dict[str, Any]] = []
        self._index: list[dict[str, Any]] = []
        self._id = 0

    def add(self, columns: Mapping[str, list[Any]], first_row_id: int, **parts: str) -> str:
        """A file of some columns of rows, in a snapshot; its name."""
        held = {name: pa.array(values, _arrow(self.schema, name)) for name, values in columns.items()}
        name = f"data-{self._name}-{self._id}.parquet"
        file = self._place(parts) / name
        pq.write_table(pa.table({**held, **{k: [v] * len(next(iter(held.values()))) for k, v in parts.items()}}), file)
        return self._commit(file, list(columns), len(next(iter(columns.values()))), first_row_id, parts)

    def add_blobs(self, column: str, values: list[bytes | None], first_row_id: int) -> str:
        """A file of the large values of one column, in a snapshot; its name."""
        file = self._place({}) / f"data-{self._name}-{self._id}.blob"
        file.write_bytes(blob_file(values))
        return self._commit(file, [column], len(values), first_row_id, {})

    def delete(self, file_name: str, rows: Iterable[int], offset: int = 1) -> None:
        """A snapshot with a deletion vector of a file."""
        body = struct.pack(">i", _VECTOR_MAGIC) + BitMap(rows).serialize()
        data = b"\x01" + struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
        name = f"index-{self._name}-{self._id}"
        (self.path / "index").mkdir(exist_ok=True)
        (self.path / "index" / name).write_bytes(data)
        entry = next(e for e in self._entries if e["file_name"] == file_name)
        self._index.append({
            "kind": 0, "partition": entry["partition"], "bucket": 0, "index_type": "DELETION_VECTORS",
            "file_name": name, "file_size": len(data), "row_count": 1,
            "ranges": [{"f0": file_name, "f1": offset, "f2": len(body), "_CARDINALITY": None}],
        })  # fmt: skip
        self._publish()

    def _place(self, parts: Mapping[str, str]) -> Path:
        place = self.path.joinpath(*(f"{k}={v}" for k, v in parts.items())) / "bucket-0"
        place.mkdir(parents=True, exist_ok=True)
        return place

    def _commit(self, file: Path, columns: list[str], count: int, first_row_id: int, parts: Mapping[str, str]) -> str:
        types = [(to_logical(f.type), 0) for name in parts if (f := self.schema.find(name)) is not None]
        partition = encode_rows([pa.array([v]) for v in parts.values()], types)[0].as_py() if parts else EMPTY_ROW
        rows = dict.fromkeys(
            ("min_key", "max_key", "stats_min", "stats_max", "key_stats_min", "key_stats_max"), EMPTY_ROW
        )
        self._entries.append({
            **rows, "kind": 0, "partition": partition, "bucket": 0, "total_buckets": -1, "file_name": file.name,
            "file_size": file.stat().st_size, "row_count": count, "schema_id": 0, "level": 0, "extra_files": [],
            "min_sequence_number": self._id + 1, "max_sequence_number": self._id + 1, "delete_row_count": 0,
            "first_row_id": first_row_id, "write_cols": columns, "value_stats_cols": [], "creation_time": 0,
        })  # fmt: skip
        self._publish()
        return file.name

    def _publish(self) -> None:
        self._id += 1
        stem = f"{self._name}-{self._id}"
        entries = pa.Table.from_pylist(self._entries, ENTRIES)
        data = format_manifest(entries, "null")
        line = describe_manifest(f"manifest-{stem}", len(data), entries, self.schema)
        self._put(f"manifest-{stem}", data)
        self._put(f"manifest-list-{stem}-0", format_manifest_list(line, "null"))
        self._put(f"manifest-list-{stem}-1", format_manifest_list(MANIFESTS.empty_table(), "null"))
        index = None
        if self._index:
            index = f"index-manifest-{stem}"
            self._put(index, format_index_manifest(pa.Table.from_pylist(self._index, INDEX_ENTRIES), "null"))
        document = SnapshotDocument(
            version=3, id=self._id, schema_id=0, base_manifest_list=f"manifest-list-{stem}-0",
            delta_manifest_list=f"manifest-list-{stem}-1", index_manifest=index, commit_user="test",
            commit_identifier=self._id, commit_kind="APPEND", time_millis=1_700_000_000_000 + self._id,
        )  # fmt: skip
        (self._front / "snapshot").mkdir(exist_ok=True)
        (self._front / f"snapshot/snapshot-{self._id}").write_bytes(format_snapshot(document))

    def _put(self, name: str, data: bytes) -> None:
        (self.path / "manifest").mkdir(exist_ok=True)
        (self.path / "manifest" / name).write_bytes(data)


def _arrow(schema: TableSchema, name: str) -> pa.DataType:
    types = {"INTEGER": pa.int32(), "VARCHAR": pa.string()}
    return next(types[f.type.root] for f in schema.fields if f.name == name)


def blob_file(values: list[bytes | None]) -> bytes:
    """A file of large values as Paimon writes it."""
    frames = []
    for value in values:
        if value is not None:
            front = _BLOB_MAGIC + value + (len(value) + 16).to_bytes(8, "little")
            frames.append(front + zlib.crc32(front).to_bytes(4, "little"))
    lengths = iter(map(len, frames))
    return b"".join(frames) + blob_index([-1 if value is None else next(lengths) for value in values])


def blob_index(lengths: list[int]) -> bytes:
    """What such a file ends with."""
    index = bytearray()
    for before, length in zip([0, *lengths], lengths, strict=False):
        rest = (length - before) << 1 ^ (length - before) >> 63
        while rest > 0x7F:
            index.append(rest & 0x7F | 0x80)
            rest >>= 7
        index.append(rest)
    return bytes(index) + len(index).to_bytes(4, "little") + b"\x01"

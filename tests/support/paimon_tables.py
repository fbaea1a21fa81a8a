"""Small Paimon tables written by hand: level-0 files, Avro manifests, snapshots, tags. Enough to read, no writer."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema

EMPTY_ROW = bytes(12)
_BYTES, _LONG, _INT, _TEXT = "bytes", "long", "int", "string"
KINDS = {"+I": 0, "-U": 1, "+U": 2, "-D": 3}


def _record(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": k, "type": v} for k, v in fields.items()]}


def _maybe(kind: Any) -> list[Any]:
    return ["null", kind]


def _stats(name: str) -> dict[str, Any]:
    nulls = _maybe({"type": "array", "items": ["null", "long"]})
    return _record(name, {"_MIN_VALUES": _BYTES, "_MAX_VALUES": _BYTES, "_NULL_COUNTS": nulls})


_TEXTS = {"type": "array", "items": "string"}
LIST = _record(
    "manifest_list",
    {"_VERSION": _INT, "_FILE_NAME": _TEXT, "_FILE_SIZE": _LONG, "_NUM_ADDED_FILES": _LONG,
     "_NUM_DELETED_FILES": _LONG, "_PARTITION_STATS": _stats("partition_stats"), "_SCHEMA_ID": _LONG},
)  # fmt: skip
FILE = _record(
    "file",
    {"_FILE_NAME": _TEXT, "_FILE_SIZE": _LONG, "_ROW_COUNT": _LONG, "_MIN_KEY": _BYTES, "_MAX_KEY": _BYTES,
     "_KEY_STATS": _stats("key_stats"), "_VALUE_STATS": _stats("value_stats"), "_MIN_SEQUENCE_NUMBER": _LONG,
     "_MAX_SEQUENCE_NUMBER": _LONG, "_SCHEMA_ID": _LONG, "_LEVEL": _INT, "_EXTRA_FILES": _TEXTS,
     "_CREATION_TIME": _maybe({"type": "long", "logicalType": "timestamp-millis"}), "_DELETE_ROW_COUNT": _maybe(_LONG),
     "_VALUE_STATS_COLS": _maybe(_TEXTS)},
)  # fmt: skip
ENTRY = _record(
    "entry",
    {"_VERSION": _INT, "_KIND": _INT, "_PARTITION": _BYTES, "_BUCKET": _INT, "_TOTAL_BUCKETS": _INT, "_FILE": FILE},
)


class HandWritten:
    """A table of one bucket, or of one a partition: the rows of a commit are of one."""

    def __init__(
        self, path: Path | str, schema: pa.Schema, keys: Sequence[str] = (), parted: Sequence[str] = (), **options: str
    ) -> None:
        self.path = Path(path)
        settings = {"bucket": "1" if keys else "-1", **options}
        PaimonTable.create(str(path), schema, partition_keys=parted, primary_keys=keys, options=settings)
        self.schema = TableSchema.parse((self.path / "schema" / "schema-0").read_bytes())
        self._arrow = schema
        self._entries: list[dict[str, Any]] = []
        self._sequence = 0
        self._id = 0

    def commit(
        self,
        rows: Sequence[Mapping[str, Any]],
        kinds: Sequence[str] | None = None,
        time_ms: int = 0,
        watermark: int | None = None,
        level: int = 0,
        bucket: int = 0,
        overwrites: bool = False,
        counts_deletes: bool = True,
    ) -> int:
        """A snapshot that adds one file of rows (sorted by key), and removes all others if it overwrites; its id.

        One that does not count the rows that take others back is as pypaimon's, by `rowkind.field`.
        """
        self._id += 1
        new = self._data_file(list(rows), list(kinds or ["+I"] * len(rows)), bucket)
        new["_FILE"]["_LEVEL"] = level
        if not counts_deletes:
            new["_FILE"]["_DELETE_ROW_COUNT"] = 0
        removed = [{**entry, "_KIND": 1} for entry in self._entries] if overwrites else []
        base, delta = f"manifest-list-{self._id}-0", f"manifest-list-{self._id}-1"
        self._list(base, self._entries, f"manifest-{self._id}-0")
        self._list(delta, [*removed, new], f"manifest-{self._id}-1")
        self._entries = [*([] if overwrites else self._entries), new]
        document = {
            "version": 3, "id": self._id, "schemaId": 0, "baseManifestList": base, "deltaManifestList": delta,
            "commitUser": "test", "commitIdentifier": self._id, "commitKind": "OVERWRITE" if overwrites else "APPEND",
            "timeMillis": time_ms or 1_700_000_000_000 + self._id * 60_000,
            "totalRecordCount": sum(e["_FILE"]["_ROW_COUNT"] for e in self._entries), "deltaRecordCount": len(rows),
            **({} if watermark is None else {"watermark": watermark}),
        }  # fmt: skip
        self._put(f"snapshot/snapshot-{self._id}", json.dumps(document).encode())
        return self._id

    def tag(self, name: str, snapshot_id: int) -> None:
        self._put(f"tag/tag-{name}", (self.path / f"snapshot/snapshot-{snapshot_id}").read_bytes())

    def expire(self, snapshot_id: int) -> None:
        (self.path / f"snapshot/snapshot-{snapshot_id}").unlink()

    def _data_file(self, rows: list[Mapping[str, Any]], kinds: list[str], bucket: int) -> dict[str, Any]:
        keys = self.schema.trimmed_primary_keys
        columns = {f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in self._arrow}
        sequences = list(range(self._sequence, self._sequence + len(rows)))
        hidden: dict[str, pa.Array] = {}
        if keys:
            hidden = {f"_KEY_{name}": columns[name] for name in keys}
            hidden["_SEQUENCE_NUMBER"] = pa.array(sequences, pa.int64())
            hidden["_VALUE_KIND"] = pa.array([KINDS[kind] for kind in kinds], pa.int8())
        self._sequence += len(rows)
        form = self.schema.options.get("file.format", "parquet")
        name = f"data-{self._id}-0.{form}"
        partition = {key: columns[key][:1] for key in self.schema.partition_keys}
        last = f"bucket-{'postpone' if bucket < 0 else bucket}"
        place = "/".join([*(f"{key}={value[0].as_py()}" for key, value in partition.items()), last])
        file = self.path / place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        written = pa.table({**hidden, **columns})
        orc.write_table(written, str(file)) if form == "orc" else pq.write_table(written, file)
        low, high = self._bounds({name: columns[name] for name in keys}, nulls_first=True)
        flat = {name: values for name, values in columns.items() if not pa.types.is_nested(values.type)}
        stats = dict(zip(("_MIN_VALUES", "_MAX_VALUES"), self._bounds(flat), strict=True))
        nothing = {"_MIN_VALUES": EMPTY_ROW, "_MAX_VALUES": EMPTY_ROW, "_NULL_COUNTS": None}
        return {
            "_VERSION": 2, "_KIND": 0, "_PARTITION": self._bounds(partition)[0], "_BUCKET": bucket,
            "_TOTAL_BUCKETS": 1 if keys else -1,
            "_FILE": {
                "_FILE_NAME": name, "_FILE_SIZE": file.stat().st_size, "_ROW_COUNT": len(rows), "_MIN_KEY": low,
                "_MAX_KEY": high, "_KEY_STATS": nothing,
                "_VALUE_STATS": {**stats, "_NULL_COUNTS": [c.null_count for c in flat.values()]},
                "_MIN_SEQUENCE_NUMBER": sequences[0], "_MAX_SEQUENCE_NUMBER": sequences[-1], "_SCHEMA_ID": 0,
                "_LEVEL": 0, "_EXTRA_FILES": [], "_CREATION_TIME": 1_700_000_000_000,
                "_DELETE_ROW_COUNT": sum(kind in ("-U", "-D") for kind in kinds), "_VALUE_STATS_COLS": None if len(flat) == len(columns) else list(flat),
            },
        }  # fmt: skip

    def _bounds(self, columns: Mapping[str, pa.Array], *, nulls_first: bool = False) -> tuple[bytes, bytes]:
        """The least and the greatest value of each column; null is the least or, in statistics, none."""
        if not columns:
            return EMPTY_ROW, EMPTY_ROW
        fields = [self.schema.find(name) for name in columns]
        types = [(to_logical(f.type), f.type.precision) for f in fields if f is not None]
        ends = []
        for pick in (min, max):
            known = [[v for v in values.to_pylist() if v is not None] for values in columns.values()]
            one = [
                pa.array([None if not v or (nulls_first and pick is min and c.null_count) else pick(v)], c.type)
                for v, c in zip(known, columns.values(), strict=True)
            ]
            ends.append(encode_rows(one, types)[0].as_py())
        return ends[0], ends[1]

    def _list(self, name: str, entries: list[dict[str, Any]], manifest: str) -> None:
        records = []
        if entries:
            size = self._avro(f"manifest/{manifest}", ENTRY, entries)
            partition = {"_MIN_VALUES": EMPTY_ROW, "_MAX_VALUES": EMPTY_ROW, "_NULL_COUNTS": []}
            records = [{"_VERSION": 2, "_FILE_NAME": manifest, "_FILE_SIZE": size, "_NUM_ADDED_FILES": len(entries),
                        "_NUM_DELETED_FILES": 0, "_PARTITION_STATS": partition, "_SCHEMA_ID": 0}]  # fmt: skip
        self._avro(f"manifest/{name}", LIST, records)

    def _avro(self, name: str, schema: Any, records: list[Any]) -> int:
        out = io.BytesIO()
        fastavro.writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), records)
        return self._put(name, out.getvalue())

    def _put(self, name: str, data: bytes) -> int:
        file = self.path / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_bytes(data)
        return len(data)


def write_readings(path: Path | str) -> None:
    """Readings of sensors by key, three commits; the second is tagged `noon`."""
    schema = pa.schema([pa.field("sensor", pa.string(), False), ("place", pa.string()), ("value", pa.float64())])
    table = HandWritten(path, schema, ["sensor"])
    table.commit([{"sensor": "a", "place": "roof", "value": 1.5}, {"sensor": "b", "place": "cellar", "value": 7.0}])
    table.commit([{"sensor": "a", "place": "roof", "value": 2.5}, {"sensor": "c", "place": "roof", "value": 4.0}])
    table.tag("noon", 2)
    table.commit([{"sensor": "b", "place": "cellar", "value": 7.0}], ["-D"])

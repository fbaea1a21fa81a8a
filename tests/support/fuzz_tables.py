"""Small tables that together have every structure of a log: what the fuzzer mutates.

A table is its files in memory: path to bytes. The data files are never mutated without the log, so that what a reader
makes of a mutated log can be held against the rows that were ever written.
"""

from __future__ import annotations

import io
import json
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from alluvium.codecs.z85 import format_z85
from alluvium.delta.log.checkpoint import CheckpointOptions, format_checkpoint
from alluvium.delta.log.names import checkpoint_paths, compacted_path, uuid_checkpoint_path
from alluvium.delta.log.segment import list_segment
from alluvium.delta.log.state import load_state
from alluvium.storage.stores.memory import MemoryStore

_VECTORS = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
_CHECKPOINT = "80a083e8-7026-4e79-81be-64bd76c43a11"
_YEAR_MS = 365 * 24 * 3600 * 1000


@dataclass
class FuzzTable:
    """A table; `ids` are those of the rows of its newest version, `ever` of all rows that were ever written."""

    name: str
    files: dict[str, bytes] = field(default_factory=dict)
    ids: frozenset[int] = frozenset()
    ever: frozenset[int] = frozenset()

    def log(self, version: int) -> str:
        return f"_delta_log/{version:020}.json"

    def commit(self, version: int, *actions: Mapping[str, object]) -> None:
        info = {
            "commitInfo": {
                "timestamp": 1_700_000_000_000 + version,
                "inCommitTimestamp": 1_700_000_000_000 + version,
                "operation": "WRITE",
                "operationParameters": {"mode": "Append"},
                "readVersion": version - 1,
            }
        }
        self.files[self.log(version)] = "".join(json.dumps(a) + "\n" for a in (info, *actions)).encode()

    def data(self, path: str, columns: Mapping[str, Sequence[object]] | pa.Table) -> int:
        sink = io.BytesIO()
        pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(dict(columns)), sink)
        self.files[path] = sink.getvalue()
        return len(sink.getvalue())

    def store(self) -> MemoryStore:
        made = MemoryStore(uuid.uuid4().hex, "table")
        for path, data in self.files.items():
            made.put(path, data)
        return made


def vector(rows: Sequence[int]) -> bytes:
    return (1_681_511_377).to_bytes(4, "little") + BitMap64(rows).serialize()


def framed(*vectors: bytes) -> tuple[bytes, list[int]]:
    """A file of vectors, and the offset of each."""
    data, offsets = b"\x01", []
    for content in vectors:
        offsets.append(len(data))
        data += len(content).to_bytes(4, "big") + content + zlib.crc32(content).to_bytes(4, "big")
    return data, offsets


def column(name: str, kind: object, **metadata: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def metadata(columns: Sequence[object], partition_by: Sequence[str] = (), **configuration: str) -> dict[str, object]:
    return {"metaData": {
        "id": "11111111-1111-1111-1111-111111111111", "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": list(columns)}),
        "partitionColumns": list(partition_by), "configuration": configuration, "createdTime": 1,
    }}  # fmt: skip


def protocol(*features: str) -> dict[str, object]:
    if not features:
        return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    writers = [*features, "inCommitTimestamp", "domainMetadata", "rowTracking"]
    return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": list(features),
                         "writerFeatures": writers}}  # fmt: skip


def add(path: str, size: int, partition: Mapping[str, str | None] | None = None, **more: object) -> dict[str, object]:
    return {"add": {"path": path, "partitionValues": dict(partition or {}), "size": size, "modificationTime": 1_700_000_000_000,
                    "dataChange": True, **more}}  # fmt: skip


def remove(path: str, **more: object) -> dict[str, object]:
    return {"remove": {"path": path, "deletionTimestamp": 4_000_000_000_000, "dataChange": True, **more}}


def stats(ids: Sequence[int], low: Mapping[str, object] | None = None, high: Mapping[str, object] | None = None) -> str:
    return json.dumps({
        "numRecords": len(ids), "minValues": {"id": min(ids), **(low or {})}, "maxValues": {"id": max(ids), **(high or {})},
        "nullCount": {"id": 0, **dict.fromkeys(low or {}, 0)}, "tightBounds": True,
    })  # fmt: skip


_PARTITIONED = [
    column("id", "long"), column("s", "string"), column("amount", "decimal(10,2)"), column("at", "timestamp"),
    column("p", "string"), column("day", "date"), column("n", "integer"), column("price", "decimal(8,3)"),
    column("flag", "boolean"),
]  # fmt: skip
_PARTITION_BY = ["p", "day", "n", "price", "flag"]


def _partitioned(name: str) -> FuzzTable:
    """Six versions, partition columns of several types, statistics of several types; one file removed again."""
    table = FuzzTable(name)
    for version in range(6):
        ids = [10 * version + i for i in range(3)]
        path = f"p={version}/part-{version}%20.parquet"
        size = table.data(path.replace("%20", " "), {
            "id": pa.array(ids, pa.int64()), "s": pa.array([f"r{i}" for i in ids]),
            "amount": pa.array([None] * 3, pa.decimal128(10, 2)),
            "at": pa.array([1_600_000_000_000_000 + i for i in ids], pa.timestamp("us", tz="UTC")),
        })  # fmt: skip
        partition = {"p": f"v{version}" if version else None, "day": f"2024-01-0{version + 1}", "n": str(version),
                     "price": f"{version}.125", "flag": "true" if version % 2 else "false"}  # fmt: skip
        bounds = {"s": f"r{ids[0]}", "at": "2020-09-13T12:26:40.000Z", "amount": 1.25}
        actions = [add(path, size, partition, stats=stats(ids, bounds, {**bounds, "s": f"r{ids[2]}"}))]
        if version == 0:
            actions = [protocol(), metadata(_PARTITIONED, _PARTITION_BY), *actions]
        if version == 4:
            actions.append(remove("p=1/part-1%20.parquet"))
        if version == 5:
            actions.append({"txn": {"appId": "app", "version": 7, "lastUpdated": 1}})
        table.commit(version, *actions)
    table.ever = frozenset(10 * v + i for v in range(6) for i in range(3))
    table.ids = table.ever - {10, 11, 12}
    return table


def _checkpoint(table: FuzzTable, version: int) -> bytes:
    store = table.store()
    state = load_state(store, list_segment(store, version), lambda protocol: None)
    return format_checkpoint(state, CheckpointOptions(1_700_000_000_000, _YEAR_MS))


def commits_only() -> FuzzTable:
    return _partitioned("commits")


def compacted() -> FuzzTable:
    """Log compactions and version checksums."""
    table = _partitioned("compacted")
    for start, end in ((0, 2), (3, 4)):
        table.files[compacted_path(start, end)] = b"".join(table.files[table.log(v)] for v in range(start, end + 1))
    table.files["_delta_log/00000000000000000005.crc"] = json.dumps(
        {"tableSizeBytes": 1, "numFiles": 5, "numMetadata": 1, "numProtocol": 1, "txnId": "x"}
    ).encode()
    return table


def classic() -> FuzzTable:
    """A classic checkpoint, commits before it cleaned up."""
    table = _partitioned("classic")
    table.files[checkpoint_paths(3)[0]] = _checkpoint(table, 3)
    table.files["_delta_log/_last_checkpoint"] = b'{"version":3,"size":7,"sizeInBytes":1000,"numOfAddFiles":4}'
    for version in range(3):
        del table.files[table.log(version)]
    return table


def multipart() -> FuzzTable:
    """A checkpoint in two parts, all commits still there."""
    table = _partitioned("multipart")
    whole = pq.read_table(io.BytesIO(_checkpoint(table, 3)))
    half = whole.num_rows // 2
    for path, rows in zip(checkpoint_paths(3, 2), (whole.slice(0, half), whole.slice(half)), strict=True):
        table.data(path, rows)
    table.files["_delta_log/_last_checkpoint"] = b'{"version":3,"size":7,"parts":2}'
    return table


def v2_checkpoint(kind: str) -> FuzzTable:
    """A checkpoint of the second kind with two sidecars; its head in JSON or Parquet."""
    table = _partitioned(f"v2-{kind}")
    first = json.loads(table.files[table.log(0)].split(b"\n")[1])
    table.files[table.log(0)] = table.files[table.log(0)].replace(
        json.dumps(first).encode(), json.dumps(protocol("v2Checkpoint")).encode()
    )
    whole = pq.read_table(io.BytesIO(_checkpoint(table, 3)))
    files = whole.select(["add"]).filter(pa.compute.is_valid(whole["add"]))
    sidecars = []
    for number, rows in enumerate((files.slice(0, 2), files.slice(2))):
        size = table.data(f"_delta_log/_sidecars/{number}.parquet", rows)
        sidecars.append({"path": f"{number}.parquet", "sizeInBytes": size, "modificationTime": 1})
    path = uuid_checkpoint_path(3, _CHECKPOINT, kind)
    if kind == "json":
        lines = [
            {"checkpointMetadata": {"version": 3}},
            protocol("v2Checkpoint"),
            metadata(_PARTITIONED, _PARTITION_BY),
        ]
        lines += [{"sidecar": sidecar} for sidecar in sidecars]
        table.files[path] = "".join(json.dumps(line) + "\n" for line in lines).encode()
    else:
        head = whole.filter(pa.compute.is_null(whole["add"])).drop_columns(["add", "remove"])
        sidecar_type = pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())])
        rows = pa.concat_tables(
            [
                head.append_column("sidecar", pa.nulls(head.num_rows, sidecar_type)),
                pa.table({"sidecar": pa.array(sidecars, sidecar_type)}),
            ],
            promote_options="default",
        )
        table.data(path, rows)
    for version in range(3):
        del table.files[table.log(version)]
    table.files["_delta_log/_last_checkpoint"] = b'{"version":3,"size":7}'
    return table


def vectors() -> FuzzTable:
    """Deletion vectors in the log and in a file; change data files."""
    table = FuzzTable("vectors")
    columns = [column("id", "long"), column("s", "string")]
    deleted = [vector([1, 3]), vector([0, 2])]
    name = f"deletion_vector_{_VECTORS}.bin"
    content, offsets = framed(*deleted)
    table.files[f"ab/{name}"] = content
    paths, sizes = [], []
    for number in range(4):
        ids = [10 * number + i for i in range(5)]
        paths.append(f"f{number}.parquet")
        sizes.append(table.data(paths[-1], {"id": pa.array(ids, pa.int64()), "s": pa.array([f"r{i}" for i in ids])}))
    whole = [
        add(path, size, stats=stats([10 * n, 10 * n + 4] * 2 + [10 * n]))
        for n, (path, size) in enumerate(zip(paths, sizes, strict=True))
    ]
    table.commit(0, protocol("deletionVectors"), metadata(columns, **{"delta.enableDeletionVectors": "true",
                 "delta.enableChangeDataFeed": "true"}), *whole)  # fmt: skip
    stored = [{"storageType": "u", "pathOrInlineDv": "ab" + format_z85(_VECTORS.bytes), "offset": offset,
               "sizeInBytes": len(data), "cardinality": 2} for offset, data in zip(offsets, deleted, strict=True)]  # fmt: skip
    inline = vector([4])
    stored.append(
        {"storageType": "i", "pathOrInlineDv": format_z85(inline), "sizeInBytes": len(inline), "cardinality": 1}
    )
    for version, descriptor in enumerate(stored, 1):
        number = version - 1
        actions = [remove(paths[number]), add(paths[number], sizes[number], deletionVector=descriptor,
                   stats=stats([10 * number, 10 * number + 4] * 2 + [10 * number]))]  # fmt: skip
        cdc = f"_change_data/c{version}.parquet"
        size = table.data(
            cdc, {"id": pa.array([10 * number], pa.int64()), "s": pa.array(["r"]), "_change_type": ["delete"]}
        )
        table.commit(
            version, *actions, {"cdc": {"path": cdc, "partitionValues": {}, "size": size, "dataChange": False}}
        )
    table.ever = frozenset(10 * n + i for n in range(4) for i in range(5))
    table.ids = table.ever - {1, 3, 10, 12, 24}
    return table


def mapped(mode: str) -> FuzzTable:
    """Column mapping with a nested column, and a partition column."""
    table = FuzzTable(f"mapped-{mode}")
    nested = {"type": "struct", "fields": [_mapped("x", "long", "col-x", 4), _mapped("y", "string", "col-y", 5)]}
    columns = [
        _mapped("id", "long", "col-id", 1),
        _mapped("a b,c", nested, "col-n", 2),
        _mapped("p", "integer", "col-p", 3),
    ]
    schema = pa.schema([
        _numbered("col-id", pa.int64(), 1),
        _numbered("col-n", pa.struct([_numbered("col-x", pa.int64(), 4), _numbered("col-y", pa.string(), 5)]), 2),
    ])  # fmt: skip
    for version in range(3):
        ids = [10 * version + i for i in range(3)]
        path = f"m{version}.parquet"
        rows = pa.table({"col-id": ids, "col-n": [{"col-x": i, "col-y": str(i)} for i in ids]}).cast(schema)
        low = {"numRecords": 3, "minValues": {"col-id": ids[0], "col-n": {"col-x": ids[0]}},
               "maxValues": {"col-id": ids[2], "col-n": {"col-x": ids[2]}}, "nullCount": {"col-id": 0}}  # fmt: skip
        actions = [add(path, table.data(path, rows), {"col-p": str(version)}, stats=json.dumps(low))]
        if version == 0:
            head = metadata(
                columns, ["p"], **{"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "5"}
            )
            actions = [{"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, head, *actions]
        table.commit(version, *actions)
    table.ids = table.ever = frozenset(10 * v + i for v in range(3) for i in range(3))
    return table


def _mapped(name: str, kind: object, physical: str, number: int) -> dict[str, object]:
    return column(name, kind, **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical})


def _numbered(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def many_features() -> FuzzTable:
    """Widened types, row tracking, domains, times in commits."""
    table = FuzzTable("features")
    changes = [{"fromType": "integer", "toType": "long", "tableVersion": 1}]
    columns = [column("id", "long", **{"delta.typeChanges": changes}), column("t", "timestamp_ntz"), column("l", {"type": "array", "elementType": "integer", "containsNull": True}),
               column("m", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}), column("v", "void")]  # fmt: skip
    configuration = {"delta.enableInCommitTimestamps": "true", "delta.enableRowTracking": "true", "delta.enableTypeWidening": "true",
                     "delta.rowTracking.materializedRowIdColumnName": "_row-id-col", "delta.inCommitTimestampEnablementVersion": "1", "delta.inCommitTimestampEnablementTimestamp": "1700000000001",
                     "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version-col"}  # fmt: skip
    for version in range(3):
        ids = [10 * version + i for i in range(3)]
        path = f"w{version}.parquet"
        size = table.data(path, {
            "id": pa.array(ids, pa.int32() if version == 0 else pa.int64()),
            "t": pa.array([1_600_000_000_000_000] * 3, pa.timestamp("us")),
            "l": pa.array([[1, 2], None, []], pa.list_(pa.int32())),
            "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        })  # fmt: skip
        bounds = {"t": "2020-09-13T12:26:40.000"}
        actions = [
            add(path, size, baseRowId=3 * version, defaultRowCommitVersion=version, stats=stats(ids, bounds, bounds))
        ]
        actions.append(
            {
                "domainMetadata": {
                    "domain": "delta.rowTracking",
                    "configuration": json.dumps({"rowIdHighWaterMark": 3 * version + 2}),
                    "removed": False,
                }
            }
        )
        if version == 0:
            actions = [protocol("typeWidening", "timestampNtz"), metadata(columns, **configuration), *actions]
        table.commit(version, *actions)
    table.ids = table.ever = frozenset(10 * v + i for v in range(3) for i in range(3))
    return table


#: What makes each table, in the order in which a seed chooses.
TABLES: tuple[Callable[[], FuzzTable], ...] = (
    commits_only, compacted, classic, multipart, lambda: v2_checkpoint("json"), lambda: v2_checkpoint("parquet"), vectors,
    lambda: mapped("name"), lambda: mapped("id"), many_features,
)  # fmt: skip

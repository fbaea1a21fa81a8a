"""A log written line by line, for streams: no data files, only what commits say."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from alluvium.delta.log.names import commit_path
from alluvium.delta.streams.batch import BatchChanges, BatchFiles
from alluvium.delta.streams.offset import Offset
from alluvium.delta.streams.options import StreamOptions
from alluvium.delta.streams.stream import Stream
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.plan.ports import ScanSource
from alluvium.storage.stores.memory import MemoryStore

Action = dict[str, object]
COLUMNS = (("id", "long"),)


def metadata(
    columns: Sequence[tuple[str, str]] = COLUMNS,
    table_id: str = "t",
    partition_by: Sequence[str] = (),
    **properties: str,
) -> Action:
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns]
    return {
        "metaData": {
            "id": table_id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(partition_by),
            "configuration": {name.replace("__", "."): value for name, value in properties.items()},
        }
    }


def add(path: str, size: int = 10, modified: int = 0, data_change: bool = True) -> Action:
    told = {"path": path, "partitionValues": {}, "size": size, "modificationTime": modified}
    return {"add": {**told, "dataChange": data_change, "stats": '{"numRecords":1}'}}


def remove(path: str, data_change: bool = True) -> Action:
    told = {"path": path, "deletionTimestamp": 1, "dataChange": data_change, "extendedFileMetadata": True}
    return {"remove": {**told, "partitionValues": {}, "size": 10}}


def masked(action: Action) -> Action:
    """The same of a file with a vector, of one row."""
    vector = {"storageType": "u", "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA", "sizeInBytes": 34, "cardinality": 1}
    return {kind: {**told, "deletionVector": {**vector, "offset": 1}} for kind, told in action.items()}  # type: ignore[dict-item]


def cdc(path: str) -> Action:
    return {"cdc": {"path": path, "partitionValues": {}, "size": 10, "dataChange": False}}


class Log:
    """A table in memory; each call of `commit` is a version."""

    def __init__(self, name: str, *first: Action, **properties: str) -> None:
        self.store = MemoryStore(name, "/t")
        self.version = -1
        protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
        self.commit(protocol, metadata(**properties), *first)

    def commit(self, *actions: Action, operation: str = "WRITE", carried: int | None = None) -> None:
        self.version += 1
        time = {} if carried is None else {"inCommitTimestamp": carried}
        lines = [{"commitInfo": {**time, "operation": operation, "timestamp": self.version}}, *actions]
        self.store.put(commit_path(self.version), "\n".join(map(json.dumps, lines)).encode())

    def lose(self, *versions: int) -> None:
        for version in versions:
            self.store.delete(commit_path(version))

    def stream(self, **options: object) -> Stream:
        return Stream(load_snapshot(self.store), StreamOptions(**options))  # type: ignore[arg-type]


def paths(sources: Sequence[ScanSource]) -> list[str]:
    """The files that a batch reads, in order."""
    found: list[str] = []
    for source in sources:
        assert isinstance(source, (BatchFiles, BatchChanges))
        for part in source.plan_scan(None).parts:
            found += pa.chunked_array(part.files["path"]).to_pylist()
    return found


def batches(stream: Stream, start: Offset | None = None) -> list[list[str]]:
    """The files of one batch after the other, as far as there are any."""
    until, found = stream.end_of_run(start), []
    while start != until:
        end = stream.latest(start, until=until)
        assert end is not None
        assert end != start
        found.append(paths(stream.batch(start, end)))
        start = end
    return found

"""Targets of the fuzzer: what a Delta log holds, each through a table in memory in which one file is the input."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence

import msgspec
import pyarrow as pa
from fuzz_tables import (
    FuzzTable,
    classic,
    commits_only,
    compacted,
    many_features,
    mapped,
    v2_checkpoint,
    vector,
    vectors,
)

from alluvium.codecs.bitmaps.roaring import parse_bitmap, parse_bitmap_list
from alluvium.codecs.z85 import format_z85, parse_z85
from alluvium.delta.features.registry import ensure_readable_protocol
from alluvium.delta.features.rows.deletion_vectors import load_vectors
from alluvium.delta.log.checksum import check_checksum, parse_checksum
from alluvium.delta.log.last_checkpoint import format_last_checkpoint, read_last_checkpoint
from alluvium.delta.log.names import checkpoint_paths, compacted_path
from alluvium.delta.log.read_changes import parse_changes, parse_head
from alluvium.delta.log.segment import list_segment
from alluvium.delta.log.sidecar import parse_json_head
from alluvium.delta.log.state import LogState, load_state
from alluvium.delta.log.timeline import read_commit_infos
from alluvium.delta.log_upkeep.file_columns import parse_stats
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.streams.offset import Offset, format_offset, parse_offset
from alluvium.delta.streams.tracking_log import config_of, entry_of, load_tracking_log
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.partition_values import parse_partition_values
from alluvium.delta.terms.properties import TableProperties, parse_properties
from alluvium.delta.terms.spec import DeletionVector, Format, LastCheckpoint, Metadata, Protocol, parse_actions
from alluvium.delta.view.history import read_history
from alluvium.delta.view.partitions import partition_constants
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import AlluviumError, NotFound
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.spark_json import format_schema, parse_schema
from alluvium.schema.types import Decimal, Field, Struct
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore

Made = tuple[Sequence[bytes], Callable[[bytes], str]]
_MAX_LINES = 64


def no_store(url: str) -> Store:
    """Nothing lies outside of the table."""
    raise NotFound(f"asked for {url}", code="missing-file")


def _of_table(state: LogState) -> None:
    """What every reader of a table makes of its log."""
    config = parse_config(state.protocol, state.metadata)
    to_arrow(config.schema)
    partition_constants(state.files, config, "UTC")
    statistics = AddStatistics(
        state.files, config.schema, config.partition_columns, config.physical_paths, "America/New_York"
    )
    paths = [(name,) for name in config.schema.names]
    statistics.prepare(paths)
    for path in paths:
        statistics.exact(path), statistics.lower(path), statistics.upper(path), statistics.null_count(path)
    statistics.num_rows()
    state.files.validate(full=True)
    state.tombstones.validate(full=True)


def _whole(state: LogState) -> None:
    """The columns of a checkpoint, as far as Arrow tells; what is in them is the business of other targets."""
    parse_config(state.protocol, state.metadata)
    state.files.validate(full=True)
    state.tombstones.validate(full=True)


def _state(store: MemoryStore) -> LogState:
    return load_state(store, list_segment(store), ensure_readable_protocol)


def _replaced(
    table: FuzzTable, path: str, version: int | None = None, see: Callable[[LogState], None] = _of_table
) -> Callable[[bytes], str]:
    """Reads the table with an input in the place of a file."""
    store = table.store()

    def act(data: bytes) -> str:
        store.put(path, data)
        see(load_state(store, list_segment(store, version), ensure_readable_protocol))
        return "ok"

    return act


def _first_commits() -> Made:
    """Protocol, metadata and files, of every kind of table."""
    tables = (commits_only(), vectors(), mapped("name"), mapped("id"), many_features())
    act = _replaced(FuzzTable("first"), "_delta_log/00000000000000000000.json")
    return [table.files[table.log(0)] for table in tables], act


def _later_commits() -> Made:
    table = vectors()
    seeds = [one.files[one.log(version)] for one in (vectors(), commits_only()) for version in (1, 3)]
    for version in range(2, 5):
        table.files.pop(table.log(version), None)
    return seeds, _replaced(table, table.log(1))


def _compactions() -> Made:
    table = compacted()
    path = compacted_path(0, 2)
    return [table.files[path], table.files[compacted_path(3, 4)]], _replaced(table, path, 2)


def _checkpoints() -> Made:
    table = classic()
    path = checkpoint_paths(3)[0]
    return [table.files[path]], _replaced(table, path, 3, _whole)


def _large_checkpoints() -> Made:
    """Those that are left unread until somebody asks."""
    table = classic()
    path, store = checkpoint_paths(3)[0], table.store()

    def act(data: bytes) -> str:
        store.put(path, data)
        snapshot = load_snapshot(store, 3, max_checkpoint_bytes=0)
        snapshot.count_files()
        snapshot.map_files(lambda files: files.validate(full=True))
        snapshot.map_tombstones(lambda files: files.validate(full=True))
        return "ok"

    return [table.files[path]], act


def _json_heads() -> Made:
    table = v2_checkpoint("json")
    path = next(name for name in table.files if ".checkpoint." in name)
    read = _replaced(table, path, 3, _whole)

    def act(data: bytes) -> str:
        parse_json_head(data, path)
        return read(data)

    return [table.files[path]], act


def _parquet_heads() -> Made:
    table = v2_checkpoint("parquet")
    path = next(name for name in table.files if ".checkpoint." in name)
    return [table.files[path]], _replaced(table, path, 3, _whole)


def _sidecars() -> Made:
    table = v2_checkpoint("json")
    path = "_delta_log/_sidecars/0.parquet"
    return [table.files[path], table.files[path.replace("0.", "1.")]], _replaced(table, path, 3, _whole)


def _last_checkpoints() -> Made:
    table = classic()
    store = table.store()
    known = format_last_checkpoint(LastCheckpoint(version=3, size=7, parts=None))

    def act(data: bytes) -> str:
        store.put("_delta_log/_last_checkpoint", data)
        found = read_last_checkpoint(store)
        assert list_segment(store).version == 5, "a hint changed the answer"
        return "ok" if found is None else "read"

    return [known, table.files["_delta_log/_last_checkpoint"], b'{"version":3,"size":7,"checksum":"x"}'], act


def _checksums() -> Made:
    table = compacted()
    state = _state(table.store())
    path = "_delta_log/00000000000000000005.crc"

    def act(data: bytes) -> str:
        return "same" if not check_checksum(state, parse_checksum(data, path, 5)) else "otherwise"

    full = {
        "tableSizeBytes": 1, "numFiles": 5, "numMetadata": 1, "numProtocol": 1, "txnId": "x",
        "metadata": msgspec.to_builtins(state.metadata), "protocol": msgspec.to_builtins(state.protocol),
        "setTransactions": [{"appId": "app", "version": 7}], "domainMetadata": [], "inCommitTimestampOpt": 1,
    }  # fmt: skip
    return [table.files[path], json.dumps(full).encode()], act


def _changes() -> Made:
    """Commits as change reads see them, and as the history does."""
    store = MemoryStore("fuzz-changes", "t")
    tables = (vectors(), commits_only(), many_features())

    def act(data: bytes) -> str:
        store.put("_delta_log/00000000000000000000.json", data)
        try:
            found = parse_changes(data, "0.json", 0)
            for one in (found.added, found.removed, found.recorded):
                one.validate(full=True)
        finally:
            for _, info, _ in read_commit_infos(store):
                if info is not None:
                    assert info.timestamp is None or isinstance(info.timestamp, int)
                    dict(info.operation_metrics), dict(info.operation_parameters)
                    str((info.in_commit_timestamp, info.read_version, info.is_blind_append, info.operation))
            parse_head(data, "0.json", 0)
            parse_actions(data)
        return "ok"

    return [table.files[table.log(version)] for table in tables for version in (0, 2)], act


def _history() -> Made:
    table = many_features()
    store = table.store()

    def act(data: bytes) -> str:
        store.put(table.log(2), data)
        read_history(load_snapshot(store, 1)).validate(full=True)
        snapshot = load_snapshot(store)
        read_history(snapshot).validate(full=True)
        return "ok" if snapshot.timestamp_ms is not None else "no time"

    return [table.files[table.log(2)]], act


def _schemas() -> Made:
    def act(data: bytes) -> str:
        schema = parse_schema(data)
        to_arrow(schema)
        assert parse_schema(format_schema(schema)) == schema, "a schema is another one when it is written and read"
        return "ok"

    tables = (many_features(), mapped("name"), commits_only())
    seeds = [json.loads(table.files[table.log(0)].split(b"\n")[2])["metaData"]["schemaString"] for table in tables]
    nested = Struct((Field("v", t.VARIANT), Field("m", t.Map(t.STRING, t.Array(Decimal(20, 3)))), Field("c", t.TIME)))
    return [*(seed.encode() for seed in seeds), format_schema(nested).encode()], act


#: A column of every type that has statistics or may be one of partitions.
_TYPED = Struct(
    (
        *(Field(kind.name, kind) for kind in (t.LONG, t.INTEGER, t.BYTE, t.DOUBLE, t.FLOAT, t.STRING, t.BOOLEAN,
                                              t.BINARY, t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)),
        Field("d", Decimal(38, 10)), Field("n", Struct((Field("x", t.LONG),))), Field("l", t.Array(t.LONG)),
    )
)  # fmt: skip


def _config() -> TableConfig:
    metadata = Metadata(
        id="x",
        partition_columns=(),
        format=Format(provider="parquet"),
        schema_string=format_schema(_TYPED),
        configuration={"delta.checkpoint.writeStatsAsStruct": "true"},
    )
    return parse_config(Protocol(min_reader_version=1, min_writer_version=2), metadata)


def _statistics() -> Made:
    """The texts of files, one a line."""
    config = _config()
    properties: TableProperties = parse_properties(config.metadata.configuration)
    template = _state(commits_only().store()).files.slice(0, 1)
    place = template.schema.get_field_index("stats")
    paths = [(name,) for name in _TYPED.names if name not in ("n", "l")] + [("n", "x"), ("l",)]

    def act(data: bytes) -> str:
        texts = pa.array(data.decode(errors="replace").split("\n")[:_MAX_LINES], pa.string())
        files = pa.concat_tables([template] * len(texts)).set_column(place, "stats", texts)
        found = AddStatistics(files, config.schema, (), time_zone="Asia/Kolkata")
        found.prepare(paths)
        for path in paths:
            for values in (found.lower(path), found.upper(path), found.null_count(path)):
                if values is not None:
                    values.validate(full=True)
        found.num_rows()
        parse_stats(texts, None, config, properties, "UTC").validate(full=True)
        return "ok"

    low = {"long": 1, "integer": -1, "byte": 3, "double": 1.5, "float": -0.0, "string": "a", "boolean": True, "date": "2024-02-29",
           "timestamp": "2024-01-01T00:00:00.123+01:00", "timestamp_ntz": "2024-01-01T00:00:00.123", "d": 12.3456789012, "n": {"x": 1}}  # fmt: skip
    one = {
        "numRecords": 3,
        "tightBounds": True,
        "minValues": low,
        "maxValues": low,
        "nullCount": {"long": 0, "n": {"x": 1}, "l": 0},
    }
    text = json.dumps(one)
    return [text.encode(), f"{text}\n{text}\n{{}}".encode(), text.replace(" ", "").encode(), b'{"numRecords":3}'], act


def _partition_values() -> Made:
    """Texts, one a line; the first byte says of which type."""
    kinds = [f.type for f in _TYPED.fields[:12]] + [t.SHORT, Decimal(5, 5), t.VOID, Decimal(18, 0)]

    def act(data: bytes) -> str:
        kind = kinds[data[0] % len(kinds)] if data else t.LONG
        texts = pa.array(data[1:].decode(errors="replace").split("\n")[:_MAX_LINES], pa.string())
        parse_partition_values(texts, kind, "Europe/Berlin", "p").validate(full=True)
        return "ok"

    texts = ["1\n-5\n", "1\n", "7", "1.5\nNaN\n-Infinity", "1e10", "a", "true\nFALSE", "\x00a", "2024-02-29\n-0001-01-01", "2024-01-01 10:00:00.123456\n2024-01-01T10:00:00Z",
             "2024-01-01 00:00:00", "12.34\n1e3", "32767", "0.12345", "", "123"]  # fmt: skip
    return [bytes([number]) + text.encode() for number, text in enumerate(texts)], act


def _vectors() -> Made:
    """The bytes of a vector of each format, its size and checksum right: a table reads it."""
    store = MemoryStore("fuzz-vectors", "t")
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    place = "ab" + format_z85(bytes.fromhex("d2c639aa8816431aaaf6d3fe2512ff61"))

    def act(data: bytes) -> str:
        store.put(f"ab/{name}", b"\x01" + len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big"))
        cardinality = 1
        for parse in (
            parse_bitmap,
            lambda body: parse_bitmap_list(body, "<"),
            lambda body: parse_bitmap_list(body, ">"),
        ):
            try:
                cardinality = parse(data[4:]).cardinality or 1
            except AlluviumError as error:
                str(error)
        told = DeletionVector(
            storage_type="u", path_or_inline_dv=place, offset=1, size_in_bytes=len(data), cardinality=cardinality
        )
        load_vectors([told], store, no_store, [1000])
        return "ok"

    many = vector([*range(0, 900, 3)])
    runs = vector([*range(100, 800)])
    native = (1_681_511_376).to_bytes(4, "little") + (1).to_bytes(4, "little")
    body = vector([1, 3])[4:]
    return [
        vector([1, 3]),
        many,
        runs,
        vector([1 << 33]),
        native + (len(body) - 12).to_bytes(4, "little") + body[12:],
    ], act


def _vector_files() -> Made:
    """A whole file of vectors, as it stands."""
    table = vectors()
    path = next(name for name in table.files if name.endswith(".bin"))
    store = table.store()
    added = _state(store).files
    rows = [row for row in added["deletionVector"].to_pylist() if row is not None]
    told = [
        DeletionVector(storage_type=row["storageType"], path_or_inline_dv=row["pathOrInlineDv"], offset=row["offset"],
                       size_in_bytes=row["sizeInBytes"], cardinality=row["cardinality"])
        for row in rows
    ]  # fmt: skip

    def act(data: bytes) -> str:
        store.put(path, data)
        found = load_vectors(told, store, no_store, [5] * len(told))
        assert all(mask is not None for mask in found)
        return "ok"

    return [table.files[path]], act


def _z85() -> Made:
    def act(data: bytes) -> str:
        text = data.decode(errors="replace")
        assert format_z85(parse_z85(text)) == text, "another text of the same bytes"
        return "ok"

    return [format_z85(vector([1])).encode(), format_z85(bytes(16)).encode()], act


def _offsets() -> Made:
    def act(data: bytes) -> str:
        found = parse_offset(data.decode(errors="replace"), "x")
        assert parse_offset(format_offset(found), "x") == found
        return "ok" if found.place and found.first >= 0 else "strange"

    return [format_offset(Offset("x", 7, *more)).encode() for more in ((), (3, True), (-20,))], act


def _tracking_logs() -> Made:
    store, config = MemoryStore("fuzz-tracking", "t"), _config()
    known = b"v1\n" + msgspec.json.encode(entry_of(3, config, "/c/sources/0"))

    def act(data: bytes) -> str:
        store.put("0", data)
        found = load_tracking_log(store, "x").newest
        assert found is not None
        config_of(found, config)
        return "ok"

    return [known, known.replace(b"v1", b"v2")], act


def _properties() -> Made:
    decoder = msgspec.json.Decoder(dict[str, str])
    known = {
        "delta.logRetentionDuration": "interval 30 days", "delta.checkpointInterval": "10",
        "delta.deletedFileRetentionDuration": "interval 1 week 2 hours", "delta.targetFileSize": "128mb",
        "delta.dataSkippingNumIndexedCols": "-1", "delta.dataSkippingStatsColumns": "a,`b.c`.d",
        "delta.appendOnly": "true", "delta.columnMapping.mode": "name", "delta.setTransactionRetentionDuration": "interval 1 month",
    }  # fmt: skip

    def act(data: bytes) -> str:
        try:
            said = decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "no map"
        parse_properties(said)
        return "ok"

    return [json.dumps(known).encode(), *(json.dumps({key: text}).encode() for key, text in known.items())], act


MAKERS: dict[str, Callable[[], Made]] = {
    "delta-first-commit": _first_commits,
    "delta-commit": _later_commits,
    "delta-compaction": _compactions,
    "delta-checkpoint": _checkpoints,
    "delta-large-checkpoint": _large_checkpoints,
    "delta-json-head": _json_heads,
    "delta-parquet-head": _parquet_heads,
    "delta-sidecar": _sidecars,
    "delta-last-checkpoint": _last_checkpoints,
    "delta-checksum": _checksums,
    "delta-changes": _changes,
    "delta-history": _history,
    "delta-schema": _schemas,
    "delta-statistics": _statistics,
    "delta-partition-values": _partition_values,
    "delta-vector": _vectors,
    "delta-vector-file": _vector_files,
    "delta-z85": _z85,
    "delta-offset": _offsets,
    "delta-tracking-log": _tracking_logs,
    "delta-properties": _properties,
}

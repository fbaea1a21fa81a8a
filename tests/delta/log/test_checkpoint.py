from __future__ import annotations

import dataclasses
import datetime as dt
import io
import uuid
from decimal import Decimal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faulty_store import Crash, Fault, FaultyStore

from alluvium.codecs.murmur3 import hash_texts, partition_of
from alluvium.delta.log.checkpoint import CheckpointOptions, format_checkpoint, write_checkpoint
from alluvium.delta.log.last_checkpoint import json_checksum
from alluvium.delta.log.names import (
    LAST_CHECKPOINT_PATH,
    LOG_DIRECTORY,
    SIDECAR_DIRECTORY,
    checkpoint_paths,
    commit_path,
    uuid_checkpoint_path,
)
from alluvium.delta.log.segment import list_segment
from alluvium.delta.terms.spec import (
    CheckpointMetadata,
    DomainMetadata,
    Protocol,
    RowIdHighWaterMark,
    Txn,
    format_actions,
)
from alluvium.errors import CorruptTable, NotFound


def rich_table(log) -> None:
    log.commit(
        0,
        [
            *log.head(**{"delta.x": "1"}),
            log.add("a", stats='{"numRecords":1}', tags={"t": None}),
            log.add("b", "v", 1, base_row_id=4),
            log.add("c"),
            Txn(app_id="old", version=1),
            Txn(app_id="new", version=2, last_updated=1_000),
            DomainMetadata(domain="d", configuration="{}", removed=False),
            RowIdHighWaterMark(high_water_mark=3, preserved_row_ids=True),
        ],
    )
    log.commit(1, [log.remove("c", at=500), log.remove("d", "w", at=900), log.remove("e", at=None)])
    log.commit(
        2, [Protocol(min_reader_version=3, min_writer_version=7, reader_features=("x",), writer_features=("x", "y"))]
    )


def test_a_checkpoint_holds_the_whole_state(log) -> None:
    """ "The checkpoint **must** contain all information regarding the following actions" """
    rich_table(log)
    before = log.load()
    write_checkpoint(log.store, before, CheckpointOptions(1_000, 10_000))
    for version in range(3):
        log.store.delete(commit_path(version))
    after = log.load()
    assert after.segment.checkpoint_version == 2
    for name in ("protocol", "metadata", "txns", "domains", "row_id_high_water_mark"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.tombstones.sort_by("path").to_pylist() == before.tombstones.sort_by("path").to_pylist()
    expected = [{**row, "dataChange": False} for row in before.files.sort_by("path").to_pylist()]
    assert after.files.sort_by("path").to_pylist() == expected


def test_expired_tombstones_and_transactions_are_dropped(log) -> None:
    """ "A `remove` action should remain in the state of the table as a _tombstone_ until it has expired." """
    rich_table(log)
    write_checkpoint(log.store, log.load(), CheckpointOptions(1_500, 1_000, 501))
    after = log.load()
    assert after.tombstones.column("path").to_pylist() == ["d"]
    assert set(after.txns) == {"new"}


def test_the_pointer(log) -> None:
    rich_table(log)
    last = write_checkpoint(log.store, log.load(), CheckpointOptions(0, 0))
    pointer = msgspec.json.decode(log.store.get(LAST_CHECKPOINT_PATH))
    size = log.store.head(checkpoint_paths(2)[0]).size
    rows = pq.read_metadata(io.BytesIO(log.store.get(checkpoint_paths(2)[0]))).num_rows
    # "size: The number of actions that are stored in the checkpoint."
    checksum = pointer.pop("checksum")
    assert pointer == {"version": 2, "size": rows, "sizeInBytes": size, "numOfAddFiles": 2}
    assert checksum == json_checksum(pointer)
    assert last.size == rows
    write_checkpoint(log.store, log.load(1), CheckpointOptions(0, 0))
    assert msgspec.json.decode(log.store.get(LAST_CHECKPOINT_PATH))["version"] == 2
    assert list_segment(log.store, 1).checkpoint_version == 1


def test_the_schema_is_that_of_the_specification(log) -> None:
    """ "the `readerFeatures` and `writerFeatures` fields do exist in the schema even when the table does not
    support table features. In such a case values of these two fields are `null`." """
    log.commits(2)
    table = pq.read_table(io.BytesIO(format_checkpoint(log.load(), CheckpointOptions(0, 0))))
    assert set(table.column_names) == {"txn", "add", "remove", "metaData", "protocol", "domainMetadata"}
    # "the `remove` struct does not contain the `stats` and `tags` fields"
    assert not {"stats", "tags"} & {f.name for f in table.schema.field("remove").type}
    protocol = table.column("protocol").drop_null().to_pylist()
    expected = {"minReaderVersion": 1, "minWriterVersion": 2, "readerFeatures": None, "writerFeatures": None}
    assert protocol == [expected]
    # "Each row in the checkpoint corresponds to a single action."
    actions = [sum(value is not None for value in row.values()) for row in table.to_pylist()]
    assert actions == [1] * table.num_rows


def state_of(loaded) -> tuple[object, ...]:
    """All that a reader gets out of a log, in an order of its own."""
    files = sorted(({**row, "dataChange": None} for row in loaded.files.to_pylist()), key=lambda row: row["path"])
    tombstones = loaded.tombstones.sort_by("path").to_pylist()
    return files, tombstones, loaded.protocol, loaded.metadata, dict(loaded.txns), dict(loaded.domains)


def test_a_checkpoint_of_several_parts(log) -> None:
    """ "Fragment `o` of `p` is named `n.checkpoint.o.p.parquet`"; "multi-part checkpoints MUST be clustered by
    spark-style hash partitioning" of the path."""
    rich_table(log)
    log.commit(3, [log.add(f"file-{n}") for n in range(20)])
    before = log.load()
    last = write_checkpoint(log.store, before, CheckpointOptions(1_000, 10_000, max_actions=8))
    assert last.parts == 4
    paths = checkpoint_paths(3, 4)
    for part, path in enumerate(paths):
        table = pq.read_table(io.BytesIO(log.store.get(path)))
        for kind in ("add", "remove"):
            names = pa.array([row["path"] for row in table.column(kind).to_pylist() if row], pa.string())
            assert set(partition_of(hash_texts(names), 4).to_pylist()) <= {part}
        # What has no path has the hash of null, the seed: 42 mod 4.
        assert bool(table.column("metaData").drop_null()) == (part == 42 % 4)
    for version in range(4):
        log.store.delete(commit_path(version))
    assert state_of(log.load()) == state_of(before)
    log.store.delete(paths[1])
    with pytest.raises(NotFound):
        log.load()


def test_parts_of_a_table_with_deletion_vectors_go_by_path_and_vector(log) -> None:
    """ "If the table supports Deletion Vectors, the partitioning key is the logical file identifier `(path, dvId)`" """
    protocol = Protocol(
        min_reader_version=3, min_writer_version=7,
        reader_features=("deletionVectors",), writer_features=("deletionVectors",),
    )  # fmt: skip
    log.commit(0, [protocol, log.head()[1], *(log.add(f"f{n}", "v" if n % 2 else None, 4) for n in range(10))])
    write_checkpoint(log.store, log.load(), CheckpointOptions(0, 0, max_actions=5))
    for part, path in enumerate(checkpoint_paths(0, 2)):
        rows = [row for row in pq.read_table(io.BytesIO(log.store.get(path))).column("add").to_pylist() if row]
        assert rows
        hashes = hash_texts(pa.array([row["path"] for row in rows]))
        ids = pa.array([row["deletionVector"] and "uv@4" for row in rows], pa.string())
        assert set(partition_of(hash_texts(ids, hashes), 2).to_pylist()) == {part}


@pytest.mark.parametrize("classic_name", [False, True])
@pytest.mark.parametrize(("max_actions", "sidecars"), [(1_000, 1), (10, 4)])
def test_a_checkpoint_of_the_second_kind(log, classic_name: bool, max_actions: int, sidecars: int) -> None:
    """ "Each v2 spec checkpoint includes exactly one Checkpoint Metadata action"; "All the non-file actions [...] must
    be part of the v2 spec checkpoint itself"; sidecars "must have unique names"."""
    rich_table(log)
    log.commit(3, [log.add(f"file-{n}") for n in range(20)])
    before = log.load()
    options = CheckpointOptions(1_000, 10_000, v2=True, classic_name=classic_name, max_actions=max_actions)
    last = write_checkpoint(log.store, before, options)
    assert (last.parts, last.num_of_add_files) == (None, 22)
    found = [info for info in log.store.list_from(LOG_DIRECTORY) if "checkpoint." in info.path]
    assert [info.path == checkpoint_paths(3)[0] for info in found] == [classic_name]
    table = pq.read_table(io.BytesIO(log.store.get(found[0].path)))
    assert table.column("checkpointMetadata").drop_null().to_pylist() == [{"version": 3, "tags": None}]
    assert [table.column(kind).null_count for kind in ("add", "remove")] == [table.num_rows] * 2
    listed = {info.path: info.size for info in log.store.list_from(SIDECAR_DIRECTORY)}
    named = {
        f"{SIDECAR_DIRECTORY}/{s['path']}": s["sizeInBytes"] for s in table.column("sidecar").drop_null().to_pylist()
    }
    assert named == listed and len(named) == sidecars
    assert last.size_in_bytes == found[0].size + sum(listed.values())
    for version in range(4):
        log.store.delete(commit_path(version))
    assert state_of(log.load()) == state_of(before)


def test_a_crash_while_sidecars_are_written_leaves_nothing_that_counts(log) -> None:
    rich_table(log)
    before = log.load()
    faulty = FaultyStore(log.store, Fault(at=2, verb="put", crash=True))
    with pytest.raises(Crash):
        write_checkpoint(faulty, before, CheckpointOptions(0, 10_000, v2=True))
    assert log.store.list_from(SIDECAR_DIRECTORY)
    assert log.load().segment.checkpoint_version is None
    assert state_of(log.load()) == state_of(before)


def checkpoint_of(**columns: list) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
METADATA = {
    "id": "i", "format": {"provider": "parquet"}, "schemaString": "{}", "partitionColumns": [],
}  # fmt: skip


def foreign_checkpoint(adds: pa.Array, **columns: pa.Array) -> bytes:
    """A checkpoint of another writer: other columns, other types."""
    count = len(adds) + 2
    metadata_type = pa.struct(
        [
            pa.field("id", pa.large_string()),
            pa.field("format", pa.struct([pa.field("provider", pa.string())])),
            pa.field("schemaString", pa.string()),
            pa.field("partitionColumns", pa.list_(pa.string())),
            pa.field("configuration", pa.map_(pa.string(), pa.string())),
            pa.field("surprise", pa.int8()),
        ]
    )
    table = pa.table(
        {
            "protocol": pa.array([PROTOCOL] + [None] * (count - 1)),
            "metaData": pa.array([None, {**METADATA, "configuration": []}] + [None] * len(adds), metadata_type),
            "add": pa.concat_arrays([pa.nulls(2, adds.type), adds]),
            **columns,
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def test_checkpoints_of_other_writers(log) -> None:
    log.commits(1)
    add_type = pa.struct(
        [
            pa.field("size", pa.int32()),
            pa.field("path", pa.large_string()),
            pa.field("partitionValues", pa.map_(pa.string(), pa.string())),
            pa.field("modificationTime", pa.int64()),
            pa.field("dataChange", pa.bool_()),
            pa.field("deletionVector", pa.struct([
                pa.field("cardinality", pa.int32()), pa.field("storageType", pa.string()),
                pa.field("pathOrInlineDv", pa.string()), pa.field("maxRowIndex", pa.int64()),
            ])),
            pa.field("unknown", pa.int64()),
        ]
    )  # fmt: skip
    vector = {"cardinality": 2, "storageType": "i", "pathOrInlineDv": "z", "maxRowIndex": 9}
    file = {"size": 1, "partitionValues": [("p", None)], "modificationTime": 2, "dataChange": True, "unknown": 1}
    adds = pa.array([{**file, "path": "a"}, {**file, "path": "b", "deletionVector": vector}], add_type)
    log.store.put(checkpoint_paths(0)[0], foreign_checkpoint(adds))
    log.store.delete(commit_path(0))
    state = log.load()
    state.files.validate(full=True)
    first, second = state.files.to_pylist()
    assert (first["size"], first["partitionValues"], first["stats"]) == (1, [("p", None)], None)
    assert first["deletionVector"] is None
    assert second["deletionVector"] == {
        "storageType": "i", "pathOrInlineDv": "z", "offset": None, "sizeInBytes": None, "cardinality": 2,
    }  # fmt: skip
    assert state.metadata.configuration == {}


def test_statistics_in_columns_only_are_kept(log) -> None:
    """ "stats_parsed: The stats can be stored in their original format." """
    log.commits(1)
    file = {"size": 1, "partitionValues": None, "modificationTime": 2, "dataChange": True, "path": "a"}
    parsed = {"numRecords": 5, "minValues": {"x": 1}}
    log.store.put(checkpoint_paths(0)[0], foreign_checkpoint(pa.array([{**file, "stats_parsed": parsed}])))
    log.commit(1, [log.add("b", stats='{"numRecords":1}')])
    state = log.load()
    assert state.files.select(["path", "stats", "stats_parsed"]).to_pylist() == [
        {"path": "a", "stats": None, "stats_parsed": parsed},
        {"path": "b", "stats": '{"numRecords":1}', "stats_parsed": None},
    ]
    log.checkpoint(1, state)
    assert log.load().files.column("stats_parsed").to_pylist() == [parsed, None]


_BOUNDS = {
    "int and long": (pa.int32(), 7, pa.int64(), 5_000_000_000),
    "float and double": (pa.float32(), 1.5, pa.float64(), 0.1),
    "int and double": (pa.int32(), 7, pa.float64(), 0.1),
    "decimals": (pa.decimal128(4, 1), Decimal("1.5"), pa.decimal128(12, 2), Decimal("1234567890.25")),
    "int and decimal": (pa.int32(), 7, pa.decimal128(12, 2), Decimal("1234567890.25")),
    "no column, and one": (None, None, pa.int64(), 5_000_000_000),
    "date and time": (pa.date32(), dt.date(2024, 1, 1), pa.timestamp("us"), dt.datetime(2024, 1, 1, 1)),
    "long and double": (pa.int64(), 2**53 + 1, pa.float64(), 0.1),
    "decimal and double": (pa.decimal128(20, 1), Decimal("1234567890123456789.5"), pa.float64(), 0.1),
    "int and float": (pa.int32(), 2**24 + 1, pa.float32(), 0.5),
    "short and a narrow decimal": (pa.int16(), 32767, pa.decimal128(5, 2), Decimal("1.25")),
    "long and decimal": (pa.int64(), 9 * 10**18, pa.decimal128(18, 0), Decimal(5)),
    "far and fine times": (pa.timestamp("us"), dt.datetime(3000, 1, 1), pa.timestamp("ns"), dt.datetime(2000, 1, 1)),
}
#: No type has both, or the type that Arrow has for both lacks the first one's value.
_NEITHER = ("date and time", "long and double", "decimal and double")
_SECOND = ("short and a narrow decimal", "long and decimal", "far and fine times")


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("case", _BOUNDS)
def test_parts_from_before_and_after_a_column_was_widened(log, case: str, order: int) -> None:
    """ "stats_parsed": bounds have the column's type, each part's that of its time. None is rounded."""
    log.commit(0, log.head())
    one, before, other, after = _BOUNDS[case]
    parts = zip(checkpoint_paths(0, 2)[::order], ("a", "b"), (one, other), (before, after), strict=True)
    for path, name, data_type, bound in parts:
        stats = {"numRecords": 5, "minValues": {"y": 1} if data_type is None else {"y": 1, "x": bound}}
        bounds = pa.struct([("y", pa.int64()), *([] if data_type is None else [("x", data_type)])])
        parsed = pa.array([stats], pa.struct([("numRecords", pa.int64()), ("minValues", bounds)]))
        members = {"path": [name], "size": [1], "modificationTime": [2], "dataChange": [True], "stats_parsed": parsed}
        rows = pa.StructArray.from_arrays([*map(pa.array, members.values())], names=[*members])
        log.store.put(path, foreign_checkpoint(rows))
    log.store.delete(commit_path(0))
    files = log.load().files
    found = dict(zip(files["path"].to_pylist(), files["stats_parsed"].to_pylist(), strict=True))
    assert {name: (told["numRecords"], told["minValues"]["y"]) for name, told in found.items()} == {
        "a": (5, 1),
        "b": (5, 1),
    }
    told = [found[name]["minValues"].get("x") for name in ("a", "b")]
    assert told == [None if case in (*_NEITHER, *_SECOND) else before, None if case in _NEITHER else after]


def test_a_checkpoint_without_protocol_is_damaged(log) -> None:
    log.commits(1)
    log.store.put(checkpoint_paths(0)[0], checkpoint_of(add=[{"path": "x"}]))
    with pytest.warns(UserWarning, match="no protocol"):
        assert log.paths() == {"f0"}
    log.store.delete(commit_path(0))
    with pytest.raises(CorruptTable) as caught:
        log.load()
    assert caught.value.code == "damaged-checkpoint"


def test_many_row_groups(log) -> None:
    log.commit(0, [*log.head(), *(log.add(f"f{n}", stats=str(n)) for n in range(5_000)), log.remove("x", at=1)])
    state = log.load()
    log.checkpoint(0, state)
    log.store.delete(commit_path(0))
    again = log.load()
    assert again.files.column("stats").to_pylist() == state.files.column("stats").to_pylist()


def _repeating(log, counts: dict[str, int]) -> None:
    """A checkpoint that lists files several times, each time with another size."""
    log.commits(1)
    state = log.load()
    (row,) = state.files.to_pylist()
    rows = [{**row, "path": path, "size": n} for path, count in counts.items() for n in range(count)]
    files = pa.Table.from_pylist(rows, schema=state.files.schema)
    log.checkpoint(0, dataclasses.replace(state, files=files))


@pytest.mark.parametrize("counts", [{"f0": 1, "x": 2}, {"x": 20_000, "f0": 3, "longer": 2}])
def test_a_file_that_is_listed_twice_is_one_file(log, counts: dict[str, int]) -> None:
    """As for the reference; the last row counts."""
    _repeating(log, counts)
    state = log.load()
    assert state.segment.checkpoint_version == 0
    found = dict(zip(*(state.files.column(name).to_pylist() for name in ("path", "size")), strict=True))
    assert found == {path: count - 1 for path, count in counts.items()}
    assert state.files.num_rows == len(counts)


@pytest.mark.parametrize("kind", ["commits", "checkpoint", "second kind", "json"])
def test_fields_of_the_metadata_that_we_do_not_know(log, kind: str) -> None:
    """They are those of the table in whatever the log stands."""
    protocol, metadata = log.head()
    unknown = (("future", b'"x"'), ("number", b"7"), ("on", b"true"))
    log.commit(0, [protocol, msgspec.structs.replace(metadata, unknown=unknown)])
    state = log.load()
    if kind == "json":
        version = CheckpointMetadata(version=0)
        data = format_actions([version, state.protocol, state.metadata])
        log.store.put(uuid_checkpoint_path(0, str(uuid.uuid4())).replace(".parquet", ".json"), data)
    elif kind != "commits":
        write_checkpoint(log.store, state, CheckpointOptions(0, 0, v2=kind == "second kind"))
    again = log.load()
    assert bool(again.segment.checkpoint) == (kind != "commits")
    assert again.metadata == state.metadata
    assert again.metadata.unknown == unknown


def test_fields_of_the_metadata_that_a_checkpoint_cannot_hold(log) -> None:
    protocol, metadata = log.head()
    unknown = (("ID", b'"x"'), ("nested", b'{"a":{}}'), ("huge", b"99999999999999999999"), ("a", b"1"), ("A", b"2"))
    log.commit(0, [protocol, msgspec.structs.replace(metadata, unknown=unknown)])
    state = log.load()
    write_checkpoint(log.store, state, CheckpointOptions(0, 0))
    again = log.load()
    assert again.segment.checkpoint
    assert again.metadata.unknown == (("a", b"1"),)
    assert again.metadata.id == "t"

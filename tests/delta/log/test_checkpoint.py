from __future__ import annotations

import io

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.delta.log.checkpoint import format_checkpoint, write_checkpoint
from alluvium.delta.log.names import LAST_CHECKPOINT_PATH, checkpoint_paths, commit_path
from alluvium.delta.log.segment import list_segment
from alluvium.delta.spec import DomainMetadata, Protocol, RowIdHighWaterMark, Txn
from alluvium.errors import CorruptTable


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
    write_checkpoint(log.store, before, now_ms=1_000, tombstone_retention_ms=10_000)
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
    write_checkpoint(log.store, log.load(), now_ms=1_500, tombstone_retention_ms=1_000, txn_retention_ms=501)
    after = log.load()
    assert after.tombstones.column("path").to_pylist() == ["d"]
    assert set(after.txns) == {"new"}


def test_the_pointer(log) -> None:
    rich_table(log)
    last = write_checkpoint(log.store, log.load(), now_ms=0, tombstone_retention_ms=0)
    pointer = msgspec.json.decode(log.store.get(LAST_CHECKPOINT_PATH))
    size = log.store.head(checkpoint_paths(2)[0]).size
    rows = pq.read_metadata(io.BytesIO(log.store.get(checkpoint_paths(2)[0]))).num_rows
    # "size: The number of actions that are stored in the checkpoint."
    assert pointer == {"version": 2, "size": rows, "sizeInBytes": size, "numOfAddFiles": 2}
    assert last.size == rows
    write_checkpoint(log.store, log.load(1), now_ms=0, tombstone_retention_ms=0)
    assert msgspec.json.decode(log.store.get(LAST_CHECKPOINT_PATH))["version"] == 2
    assert list_segment(log.store, 1).checkpoint_version == 1


def test_the_schema_is_that_of_the_specification(log) -> None:
    """ "the `readerFeatures` and `writerFeatures` fields do exist in the schema even when the table does not
    support table features. In such a case values of these two fields are `null`." """
    log.commits(2)
    table = pq.read_table(io.BytesIO(format_checkpoint(log.load(), 0, 0)))
    assert table.column_names == ["txn", "add", "remove", "metaData", "protocol", "domainMetadata"]
    protocol = table.column("protocol").drop_null().to_pylist()
    expected = {"minReaderVersion": 1, "minWriterVersion": 2, "readerFeatures": None, "writerFeatures": None}
    assert protocol == [expected]
    # "Each row in the checkpoint corresponds to a single action."
    actions = [sum(value is not None for value in row.values()) for row in table.to_pylist()]
    assert actions == [1] * table.num_rows


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

"""Writes checkpoints of every kind, from Arrow, without an engine.

Specification: "Checkpoints", "Checkpoint Specs", "Checkpoint Naming Scheme".
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.murmur3 import hash_texts, partition_of
from alluvium.delta.log import checkpoint_rows as rows_of
from alluvium.delta.log.checkpoint_rows import Rows, count_rows, described, documents, file_rows, format_rows
from alluvium.delta.log.last_checkpoint import publish_last_checkpoint
from alluvium.delta.log.names import SIDECAR_DIRECTORY, checkpoint_paths, uuid_checkpoint_path
from alluvium.delta.log.replay import vector_ids
from alluvium.delta.log.state import LogState
from alluvium.delta.terms.spec import CheckpointMetadata, LastCheckpoint, Sidecar, Txn
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store

#: File actions that go into one file: some 100 MB of checkpoint, and as many in memory while it is written.
MAX_ACTIONS = 1_000_000
# Each file being made holds its own buffers.
_FILES_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class CheckpointOptions:
    """How a checkpoint is written, and what is left out of it.

    Attributes:
        now_ms: Current time, milliseconds since 1970 UTC.
        tombstone_retention_ms: Age from which removed files are forgotten (`delta.deletedFileRetentionDuration`).
        txn_retention_ms: Age from which transactions are forgotten (`delta.setTransactionRetentionDuration`).
        v2: By the second specification, with sidecars; only where the table supports `v2Checkpoint`.
        classic_name: A v2 checkpoint under a name that clients know which do not know v2.
        max_actions: File actions in one file; more make a checkpoint of several.
    """

    now_ms: int
    tombstone_retention_ms: int
    txn_retention_ms: int | None = None
    v2: bool = False
    classic_name: bool = False
    max_actions: int = MAX_ACTIONS


def format_checkpoint(state: LogState, options: CheckpointOptions) -> bytes:
    """The whole state of a version as one Parquet file, by the first specification."""
    _ensure_whole(state)
    tombstones = kept_tombstones(state.tombstones, options)
    return format_rows({**head_rows(state, options), **file_action_rows(state.files, tombstones)})


def write_checkpoint(
    store: Store, state: LogState, options: CheckpointOptions, files: pa.Table | None = None
) -> LastCheckpoint:
    """Writes the checkpoint of a version, then points `_last_checkpoint` to it.

    A pointer to a newer checkpoint is left alone. Nothing refers to a checkpoint that was not written to its end:
    sidecars come before what names them, and one of several parts counts when all are there.

    Args:
        store: The table's objects.
        state: What to write.
        options: How.
        files: The live files, with the columns that the checkpoint shall have; None: as they are in the state.

    Returns:
        What was written, whether or not the pointer was moved.
    """
    _ensure_whole(state)
    live = state.files if files is None else files
    head, tombstones = head_rows(state, options), kept_tombstones(state.tombstones, options)
    if options.v2:
        sizes = _write_v2(store, state, head, live, tombstones, options)
    else:
        sizes = _write_v1(store, state, head, live, tombstones, options.max_actions)
    last = LastCheckpoint(
        version=state.version,
        size=count_rows(head) + live.num_rows + tombstones.num_rows,
        parts=len(sizes) if len(sizes) > 1 and not options.v2 else None,
        size_in_bytes=sum(sizes),
        num_of_add_files=live.num_rows,
    )
    publish_last_checkpoint(store, last)
    return last


def _ensure_whole(state: LogState) -> None:
    """A checkpoint stands for all that was before it: what it lacks would be lost."""
    if state.deferred:
        raise ValueError(f"version {state.version} was read without the files of its checkpoint: it makes no other")


def live_tombstones(tombstones: pa.Table, now_ms: int, retention_ms: int) -> pa.Table:
    """ "A `remove` action should remain in the state of the table as a _tombstone_ until it has expired."

    One without a time counts as removed in 1970, as in the reference implementation.
    """
    removed = pc.fill_null(tombstones.column("deletionTimestamp"), 0)
    return tombstones.filter(pc.greater(removed, now_ms - retention_ms))


def live_txns(state: LogState, now_ms: int, retention_ms: int | None) -> list[Txn]:
    """Transactions that are not forgotten yet; with a retention, one without a time is."""
    if retention_ms is None:
        return list(state.txns.values())
    oldest = now_ms - retention_ms
    return [txn for txn in state.txns.values() if txn.last_updated is not None and txn.last_updated > oldest]


def kept_tombstones(tombstones: pa.Table, options: CheckpointOptions) -> pa.Table:
    """Those of removed files that are not forgotten yet, with the columns that a checkpoint has of them."""
    live = live_tombstones(tombstones, options.now_ms, options.tombstone_retention_ms)
    # "the `remove` struct does not contain the `stats` and `tags` fields"
    return live.drop_columns(["tags"])


def head_rows(state: LogState, options: CheckpointOptions) -> Rows:
    """All actions but those of files."""
    txns = live_txns(state, options.now_ms, options.txn_retention_ms)
    head = {
        "txn": documents(txns, rows_of.TXN),
        "metaData": described(state.metadata),
        "protocol": documents([state.protocol], rows_of.PROTOCOL),
        "domainMetadata": documents(list(state.domains.values()), rows_of.DOMAIN_METADATA),
    }
    if state.row_id_high_water_mark is not None:
        head["rowIdHighWaterMark"] = documents([state.row_id_high_water_mark], rows_of.HIGH_WATER_MARK)
    return head


def file_action_rows(files: pa.Table, tombstones: pa.Table) -> Rows:
    """File actions; those of a checkpoint change no data."""
    place = files.schema.get_field_index("dataChange")
    unchanged = pa.repeat(pa.scalar(False), files.num_rows)
    settled = files.set_column(place, pa.field("dataChange", pa.bool_()), unchanged)
    return {"add": file_rows(settled), "remove": file_rows(tombstones)}


def _write_v1(
    store: Store, state: LogState, head: Rows, files: pa.Table, tombstones: pa.Table, max_actions: int
) -> list[int]:
    """ "flat checkpoints which contains all actions" in one file, or in several clustered by their path."""
    actions = files.num_rows + tombstones.num_rows
    parts = -(-actions // max_actions)
    if parts <= 1:
        return [_put(store, checkpoint_paths(state.version)[0], {**head, **file_action_rows(files, tombstones)})]
    by_vector = supports_vectors(state)
    of_files, of_tombstones = (part_numbers(table, parts, by_vector) for table in (files, tombstones))
    home = part_of_nulls(parts)

    def write(part: int) -> int:
        chosen = files.filter(pc.equal(of_files, part)), tombstones.filter(pc.equal(of_tombstones, part))
        own = head if part == home else {name: [chunks[0].slice(0, 0)] for name, chunks in head.items()}
        return _put(store, checkpoint_paths(state.version, parts)[part], {**own, **file_action_rows(*chosen)})

    return map_parallel(write, range(parts), _FILES_AT_ONCE)


def supports_vectors(state: LogState) -> bool:
    """Whether a file may have deletion vectors."""
    return "deletionVectors" in (state.protocol.writer_features or ())


def part_numbers(table: pa.Table, parts: int, by_vector: bool) -> pa.Array:
    """In which part of so many each file action goes.

    "multi-part checkpoints MUST be clustered by spark-style hash partitioning. If the table supports Deletion
    Vectors, the partitioning key is the logical file identifier `(path, dvId)`; otherwise the key is just `path`"
    """
    hashes = hash_texts(_whole(table.column("path")))
    if by_vector:
        hashes = hash_texts(vector_ids(_whole(table.column("deletionVector"))), hashes)
    return partition_of(hashes, parts)


def part_of_nulls(parts: int) -> int:
    """In which part all but file actions go: they have no path, and the hash of none is the seed."""
    place: int = partition_of(hash_texts(pa.nulls(1, pa.string())), parts)[0].as_py()
    return place


def _write_v2(
    store: Store,
    state: LogState,
    head: Rows,
    files: pa.Table,
    tombstones: pa.Table,
    options: CheckpointOptions,
) -> list[int]:
    """ "This checkpoint spec allows putting add and remove file in the sidecar files." """
    pieces = _pieces(files, tombstones, options.max_actions)
    sidecars = map_parallel(lambda piece: _write_sidecar(store, *piece, options.now_ms), pieces, _FILES_AT_ONCE)
    shape = file_action_rows(files.slice(0, 0), tombstones.slice(0, 0))
    return [put_v2_top(store, state, head, shape, sidecars, options), *(sidecar.size_in_bytes for sidecar in sidecars)]


def put_v2_top(
    store: Store, state: LogState, head: Rows, shape: Rows, sidecars: Sequence[Sidecar], options: CheckpointOptions
) -> int:
    """Writes what names the sidecars, when they are all there; its size in bytes.

    Args:
        store: The table's objects.
        state: Of the version.
        head: All actions but those of files.
        shape: File actions, none of them.
        sidecars: Where they are.
        options: How.
    """
    top = {
        **head,
        # "Having partial add and remove file actions in V2 Checkpoint and partial entries in sidecar files is not
        # allowed": none are here, but the reference implementation wants to see the columns.
        **shape,
        # "Each v2 spec checkpoint includes exactly one Checkpoint Metadata action."
        "checkpointMetadata": documents([CheckpointMetadata(version=state.version)], rows_of.CHECKPOINT_METADATA),
        "sidecar": documents(sidecars, rows_of.SIDECAR),
    }
    unique = uuid_checkpoint_path(state.version, str(uuid.uuid4()))
    path = checkpoint_paths(state.version)[0] if options.classic_name else unique
    return _put(store, path, top)


def _pieces(files: pa.Table, tombstones: pa.Table, max_actions: int) -> Sequence[tuple[pa.Table, pa.Table]]:
    adds = [files.slice(start, max_actions) for start in range(0, files.num_rows, max_actions)]
    removes = [tombstones.slice(start, max_actions) for start in range(0, tombstones.num_rows, max_actions)]
    if len(adds) == len(removes) == 1 and files.num_rows + tombstones.num_rows <= max_actions:
        return [(files, tombstones)]
    return [*((piece, tombstones.slice(0, 0)) for piece in adds), *((files.slice(0, 0), piece) for piece in removes)]


def _write_sidecar(store: Store, files: pa.Table, tombstones: pa.Table, now_ms: int) -> Sidecar:
    """ "they must have unique names" """
    name = f"{uuid.uuid4()}.parquet"
    size = _put(store, f"{SIDECAR_DIRECTORY}/{name}", file_action_rows(files, tombstones))
    return Sidecar(path=name, size_in_bytes=size, modification_time=now_ms)


def _put(store: Store, path: str, rows: Rows) -> int:
    data = format_rows(rows)
    store.put(path, data)
    return len(data)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()

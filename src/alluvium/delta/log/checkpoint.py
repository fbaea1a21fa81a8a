"""Writes classic checkpoints, from Arrow, without an engine.

Specification: "Checkpoint Format", "Checkpoint Schema", "Last Checkpoint File".
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from alluvium.delta.log.columns import Nulls
from alluvium.delta.log.names import LAST_CHECKPOINT_PATH, checkpoint_paths
from alluvium.delta.log.segment import read_last_checkpoint
from alluvium.delta.log.state import LogState
from alluvium.delta.spec import STRING_MAP, LastCheckpoint, Txn, Wire
from alluvium.storage.store import Store

_STRINGS = pa.list_(pa.field("element", pa.string()))

_PROTOCOL = pa.struct(
    [
        pa.field("minReaderVersion", pa.int32()),
        pa.field("minWriterVersion", pa.int32()),
        pa.field("readerFeatures", _STRINGS),
        pa.field("writerFeatures", _STRINGS),
    ]
)
_METADATA = pa.struct(
    [
        pa.field("id", pa.string()),
        pa.field("name", pa.string()),
        pa.field("description", pa.string()),
        pa.field("format", pa.struct([pa.field("provider", pa.string()), pa.field("options", STRING_MAP)])),
        pa.field("schemaString", pa.string()),
        pa.field("partitionColumns", _STRINGS),
        pa.field("configuration", STRING_MAP),
        pa.field("createdTime", pa.int64()),
    ]
)
_TXN = pa.struct([pa.field("appId", pa.string()), pa.field("version", pa.int64()), pa.field("lastUpdated", pa.int64())])
_DOMAIN_METADATA = pa.struct(
    [pa.field("domain", pa.string()), pa.field("configuration", pa.string()), pa.field("removed", pa.bool_())]
)
_HIGH_WATER_MARK = pa.struct([pa.field("highWaterMark", pa.int64()), pa.field("preservedRowIds", pa.bool_())])

# Few values repeat in the columns of a checkpoint, except these; a dictionary for the others is built in vain.
_DICTIONARY = [
    f"{kind}.{name}"
    for kind in ("add", "remove")
    for name in ("partitionValues.key_value.key", "partitionValues.key_value.value")
]
_ROW_GROUP = 100_000
# A reader holds a page of each column.
_PAGE_BYTES = 1 << 18


def format_checkpoint(
    state: LogState, now_ms: int, tombstone_retention_ms: int, txn_retention_ms: int | None = None
) -> bytes:
    """The whole state of a version as one Parquet file.

    Args:
        state: What to write.
        now_ms: Current time, milliseconds since 1970 UTC.
        tombstone_retention_ms: Age from which removed files are forgotten (`delta.deletedFileRetentionDuration`).
        txn_retention_ms: Age from which transactions are forgotten (`delta.setTransactionRetentionDuration`).
    """
    return _format(state, live_tombstones(state.tombstones, now_ms, tombstone_retention_ms),
                   live_txns(state, now_ms, txn_retention_ms))  # fmt: skip


def write_checkpoint(
    store: Store, state: LogState, now_ms: int, tombstone_retention_ms: int, txn_retention_ms: int | None = None
) -> LastCheckpoint:
    """Writes the checkpoint of a version, then points `_last_checkpoint` to it; arguments as in `format_checkpoint`.

    A pointer to a newer checkpoint is left alone.

    Returns:
        What was written, whether or not the pointer was moved.
    """
    tombstones = live_tombstones(state.tombstones, now_ms, tombstone_retention_ms)
    txns = live_txns(state, now_ms, txn_retention_ms)
    data = _format(state, tombstones, txns)
    store.put(checkpoint_paths(state.version)[0], data)
    last = LastCheckpoint(
        version=state.version,
        size=2 + len(txns) + len(state.domains) + (state.row_id_high_water_mark is not None)
        + tombstones.num_rows + state.files.num_rows,
        size_in_bytes=len(data),
        num_of_add_files=state.files.num_rows,
    )  # fmt: skip
    newest = read_last_checkpoint(store)
    if newest is None or newest.version <= state.version:
        store.put(LAST_CHECKPOINT_PATH, msgspec.json.encode(last))
    return last


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


def _format(state: LogState, tombstones: pa.Table, txns: Sequence[Txn]) -> bytes:
    files = state.files.set_column(
        state.files.schema.get_field_index("dataChange"), pa.field("dataChange", pa.bool_()),
        pa.repeat(pa.scalar(False), state.files.num_rows),
    )  # fmt: skip
    marks = [] if state.row_id_high_water_mark is None else [state.row_id_high_water_mark]
    columns: dict[str, list[pa.Array]] = {
        "txn": [_structs(txns, _TXN)],
        "add": _rows(files),
        "remove": _rows(tombstones),
        "metaData": [_structs([state.metadata], _METADATA)],
        "protocol": [_structs([state.protocol], _PROTOCOL)],
        "domainMetadata": [_structs(list(state.domains.values()), _DOMAIN_METADATA)],
    }
    if marks:
        columns["rowIdHighWaterMark"] = [_structs(marks, _HIGH_WATER_MARK)]
    # "Each row in the checkpoint corresponds to a single action." The few come first, as readers want them first.
    order = sorted(columns, key=lambda name: (name == "add", name == "remove", name != "protocol", name))
    table = pa.table({name: _spread(name, order, columns) for name in columns})
    sink = pa.BufferOutputStream()
    pq.write_table(
        table, sink, row_group_size=_ROW_GROUP, compression="snappy", use_dictionary=_DICTIONARY,
        write_statistics=["add.path", "remove.path"],
    )  # fmt: skip
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _spread(name: str, order: list[str], columns: dict[str, list[pa.Array]]) -> pa.ChunkedArray:
    """A column over all rows: its own values in the place of its actions, nulls in that of the others."""
    nulls = Nulls()
    data_type = columns[name][0].type
    chunks: list[pa.Array] = []
    for other in order:
        for chunk in columns[other]:
            chunks.append(chunk if other == name else nulls.take(len(chunk), data_type))
    return pa.chunked_array(chunks, data_type)


def _rows(table: pa.Table) -> list[pa.Array]:
    """A table's rows as structs, chunk by chunk, without a copy."""
    fields = [f.with_nullable(True) for f in table.schema]
    rows = [pa.StructArray.from_arrays(batch.columns, fields=fields) for batch in table.to_batches()]
    return rows or [pa.nulls(0, pa.struct(fields))]


def _structs(documents: Sequence[Wire], data_type: pa.DataType) -> pa.Array:
    rows = [_with_pairs(msgspec.to_builtins(document), data_type) for document in documents]
    return pa.array(rows, data_type)


def _with_pairs(value: object, data_type: pa.DataType) -> object:
    """Documents as Arrow takes them: maps as lists of pairs, null members named."""
    if pa.types.is_struct(data_type) and isinstance(value, dict):
        return {f.name: _with_pairs(value.get(f.name), f.type) for f in data_type}
    if pa.types.is_map(data_type) and isinstance(value, dict):
        return list(value.items())
    return value

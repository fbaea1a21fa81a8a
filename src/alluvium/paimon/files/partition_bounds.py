"""The live files of some partitions, without reading manifests that cannot know of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.paimon.files.manifest import live_entries, scan_manifest
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import SCANNED_ENTRIES
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store


def partition_entries(store: Store, manifests: pa.Table, schema: TableSchema, partitions: pa.Array) -> pa.Table:
    """The live entries (`SCANNED_ENTRIES`) of partitions.

    Args:
        store: The table's objects.
        manifests: All manifests of a snapshot (`MANIFESTS`), in order.
        schema: The table's.
        partitions: Rows of bytes.
    """
    kept = manifests.filter(may_hold(manifests, schema, partitions))
    tables = map_parallel(lambda name: scan_manifest(store, name), kept["file_name"].to_pylist())
    entries = pa.concat_tables([SCANNED_ENTRIES.empty_table(), *tables])
    # What a deletion stands against is of the same partition.
    return live_entries(entries.filter(pc.is_in(entries["partition"], value_set=partitions)))


def may_hold(manifests: pa.Table, schema: TableSchema, partitions: pa.Array) -> pa.Array:
    """Which manifests may have entries of one of the partitions, by the bounds of their partitions' values."""
    keep = pa.repeat(pa.scalar(True), manifests.num_rows)
    fields = [f for name in schema.partition_keys if (f := schema.find(name)) is not None]
    if not fields or not manifests.num_rows or not len(partitions):
        return keep
    types = [(to_logical(f.type), f.type.precision) for f in fields]
    lows, highs, wanted = (
        decode_rows(rows, types)
        for rows in (
            manifests["partition_min"].combine_chunks(),
            manifests["partition_max"].combine_chunks(),
            partitions,
        )
    )
    for low, high, values in zip(lows, highs, wanted, strict=True):
        ends = pc.min_max(values)
        if values.null_count or not ends["min"].is_valid:
            # Nulls are outside of all bounds.
            continue
        if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
            # In Java's order it is the greatest value; bounds that others made, or we once, leave it out.
            continue
        beside = pc.or_(pc.less(high, ends["min"]), pc.greater(low, ends["max"]))
        keep = pc.and_(keep, pc.invert(pc.fill_null(beside, False)))
    return keep

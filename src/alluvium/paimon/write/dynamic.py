"""Dynamic buckets: which bucket the hash of a key is in, and which one a new hash gets.

Specification: "-1: dynamic (hash index files: big-endian int32 hashes per bucket, entry type HASH; key to bucket
only through the index)"; `org.apache.paimon.index.PartitionIndex.assign`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.paimon.commit.draft import IndexChange
from alluvium.paimon.files.hash_index import Hashes, hash_entries, new_entries, read_hashes
from alluvium.paimon.files.manifest_write import EMPTY_ROW
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import DYNAMIC_BUCKET_MOST, DYNAMIC_BUCKET_ROWS
from alluvium.paimon.terms.spec import INDEX_ENTRIES
from alluvium.plan.write import BUCKET_COLUMN, HASH_COLUMN
from alluvium.schema.arrow import to_arrow


@dataclass(frozen=True, slots=True)
class _Index:
    """Of a partition: sorted hashes, the bucket of each, and the number of hashes of each bucket."""

    hashes: Hashes
    buckets: Hashes
    counts: dict[int, int]


def assign_buckets(schema: TableSchema, base: Snapshot | None, wanted: pa.Table) -> pa.Table:
    """The bucket of each hash: that which it is in, or else the first that is not full, or a new one.

    Args:
        schema: Of the table.
        base: Whose index tells which hashes are there; None: rows come in the place of all.
        wanted: Columns of the partition keys, and `HASH_COLUMN`; each pair once.

    Returns:
        The same rows, with `BUCKET_COLUMN`.
    """
    partitions = _encoded(schema, wanted).dictionary_encode()
    known = _indexes(base, partitions.dictionary)
    indices = np.asarray(partitions.indices.to_numpy(zero_copy_only=False))
    hashes = np.asarray(wanted[HASH_COLUMN].to_numpy(), np.int32)
    buckets = np.full(len(hashes), -1, np.int32)
    target, most = DYNAMIC_BUCKET_ROWS.get(schema.options), DYNAMIC_BUCKET_MOST.get(schema.options)
    for number, partition in enumerate(partitions.dictionary.to_pylist()):
        rows = np.flatnonzero(indices == number)
        index = known.get(partition)
        counts: dict[int, int] = {}
        if index is not None:
            counts = dict(index.counts)
            place = np.minimum(np.searchsorted(index.hashes, hashes[rows]), len(index.hashes) - 1)
            found = index.hashes[place] == hashes[rows]
            buckets[rows[found]] = index.buckets[place[found]]
            rows = rows[~found]
        buckets[rows] = _fresh(len(rows), counts, target, most)
    return wanted.append_column(BUCKET_COLUMN, pa.array(buckets, pa.int32()))


def _fresh(count: int, counts: dict[int, int], target: int, most: int) -> Hashes:
    """Buckets of so many new hashes: those that are not full are filled in their order, then new ones are begun."""
    given: list[Hashes] = []
    bucket = 0
    while count:
        if most > 0 and bucket >= most:
            given.append(np.arange(count, dtype=np.int32) % most)
            break
        room = min(max(target - counts.get(bucket, 0), 0), count)
        given.append(np.full(room, bucket, np.int32))
        count, bucket = count - room, bucket + 1
    return np.concatenate(given) if given else np.zeros(0, np.int32)


def index_change(schema: TableSchema, base: Snapshot | None, assigned: pa.Table) -> IndexChange:
    """The index files after rows of these hashes have come.

    Args:
        schema: Of the table.
        base: As of `assign_buckets`.
        assigned: What that has given.
    """
    partitions = _encoded(schema, assigned)
    touched = pc.unique(partitions)
    entries = _entries(base, touched)
    before = dict(
        zip(
            zip(entries["partition"].to_pylist(), entries["bucket"].to_pylist(), strict=True),
            read_hashes(base.store, entries) if base is not None else [],
            strict=True,
        )
    )
    rows = pa.table({"partition": partitions, "bucket": assigned[BUCKET_COLUMN], "hash": assigned[HASH_COLUMN]})
    grouped = rows.group_by(["partition", "bucket"]).aggregate([("hash", "list")])
    after: dict[tuple[bytes, int], Hashes] = {}
    for partition, bucket, hashes in zip(
        *(grouped[name] for name in ("partition", "bucket", "hash_list")), strict=True
    ):
        place = (partition.as_py(), bucket.as_py())
        now = np.asarray(hashes.values.to_numpy(), np.int32)
        there = before.get(place, np.zeros(0, np.int32))
        new = now[~np.isin(now, there)]
        if len(new):
            after[place] = np.concatenate([there, new])
    added, contents = new_entries(after)
    return IndexChange(touched, frozenset(entries["file_name"].to_pylist()), added, contents)


def assigner(schema: TableSchema, base: Snapshot | None) -> partial[pa.Table]:
    """`assign_buckets` of a table, as plans want it."""
    return partial(assign_buckets, schema, base)


def _encoded(schema: TableSchema, rows: pa.Table) -> pa.Array:
    """The partition of each row, as manifests have it."""
    fields = [f for name in schema.partition_keys if (f := schema.find(name)) is not None]
    if not fields:
        return pa.repeat(pa.scalar(EMPTY_ROW, pa.binary()), rows.num_rows)
    types = [(to_logical(f.type), f.type.precision) for f in fields]
    columns = [rows[f.name].cast(to_arrow(kind)).combine_chunks() for f, (kind, _) in zip(fields, types, strict=True)]
    return encode_rows(columns, types)


def _entries(base: Snapshot | None, partitions: pa.Array) -> pa.Table:
    if base is None:
        return INDEX_ENTRIES.empty_table()
    entries = hash_entries(base.store, base.document)
    return entries.filter(pc.is_in(entries["partition"], value_set=partitions))


def _indexes(base: Snapshot | None, partitions: pa.Array) -> dict[bytes, _Index]:
    entries = _entries(base, partitions)
    if base is None or not entries.num_rows:
        return {}
    by_partition: dict[bytes, list[tuple[int, Hashes]]] = {}
    places = zip(entries["partition"].to_pylist(), entries["bucket"].to_pylist(), strict=True)
    for (partition, bucket), hashes in zip(places, read_hashes(base.store, entries), strict=True):
        by_partition.setdefault(partition, []).append((bucket, hashes))
    found = {}
    for partition, files in by_partition.items():
        hashes = np.concatenate([h for _, h in files])
        buckets = np.concatenate([np.full(len(h), bucket, np.int32) for bucket, h in files])
        order = np.argsort(hashes, kind="stable")
        if len(order):
            found[partition] = _Index(hashes[order], buckets[order], {bucket: len(h) for bucket, h in files})
    return found

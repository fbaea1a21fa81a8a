"""Which bucket each hash is in, of random indexes beside plain dicts; and which index files are written anew."""

from __future__ import annotations

import random
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.paimon.files.hash_index import format_hashes
from alluvium.paimon.files.manifest_write import EMPTY_ROW, format_index_manifest
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.spec import INDEX_ENTRIES, SnapshotDocument
from alluvium.paimon.write.dynamic import assign_buckets, assigner, index_change
from alluvium.plan.write import BUCKET_COLUMN, HASH_COLUMN
from alluvium.schema import types as t
from alluvium.storage.stores.memory import MemoryStore

Index = dict[str, dict[int, list[int]]]
DAYS = {day: encode_rows([pa.array([day])], [(t.STRING, 0)])[0].as_py() for day in "abc"}


def schema_of(*parted: str, **options: str) -> TableSchema:
    fields = [DataField(0, "k", parse_type("INT NOT NULL")), DataField(1, "day", parse_type("STRING NOT NULL"))]
    return TableSchema.create(fields, parted, ("k", *parted), options)


def row(partition: bytes, bucket: int, number: int, hashes: list[int], kind: str = "HASH") -> dict[str, Any]:
    return {"kind": 0, "partition": partition, "bucket": bucket, "index_type": kind, "file_name": f"i{number}",
            "file_size": 4 * len(hashes), "row_count": len(hashes)}  # fmt: skip


def state(schema: TableSchema, index: Index, names: dict[str, bytes] = DAYS) -> Snapshot:
    store, rows = MemoryStore(uuid.uuid4().hex, "t"), []
    for day, buckets in index.items():
        for bucket, hashes in buckets.items():
            rows.append(row(names[day], bucket, len(rows), hashes))
            store.put(f"index/i{len(rows) - 1}", format_hashes(np.asarray(hashes, np.int32)))
    # What is no list of keys is nobody's business.
    rows.append(row(names["a"], 0, 99, [], "DELETION_VECTORS"))
    data = format_index_manifest(pa.Table.from_pylist(rows, schema=INDEX_ENTRIES), "null")
    store.put("manifest/index-manifest-1", data)
    document = SnapshotDocument(1, 0, "base", "delta", "user", 1, "APPEND", 0, index_manifest="index-manifest-1")
    return Snapshot(store, document, schema)


def wanted(pairs: list[tuple[str, int]]) -> pa.Table:
    days, hashes = [day for day, _ in pairs], [number for _, number in pairs]
    return pa.table({"day": pa.array(days, pa.string()), HASH_COLUMN: pa.array(hashes, pa.int32())})


def random_index(lot: random.Random, days: str) -> Index:
    index: Index = {}
    for day in days:
        every = lot.sample(range(-50, 50), 40)
        buckets = lot.sample(range(4), lot.randint(0, 3))
        index[day] = {bucket: [every.pop() for _ in range(lot.randint(1, 6))] for bucket in buckets}
    return {day: buckets for day, buckets in index.items() if buckets}


def expected(index: Index, pairs: list[tuple[str, int]], target: int, most: int) -> list[int]:
    """One hash after the other: where it is, or the first bucket that is not full, or a new one."""
    at = {(day, one): bucket for day, buckets in index.items() for bucket, hashes in buckets.items() for one in hashes}
    counts = {day: {bucket: len(hashes) for bucket, hashes in buckets.items()} for day, buckets in index.items()}
    dealt: dict[str, int] = {}
    found = []
    for day, one in pairs:
        if (day, one) in at:
            found.append(at[day, one])
            continue
        own = counts.setdefault(day, {})
        bucket = 0
        while own.get(bucket, 0) >= target and (most <= 0 or bucket < most):
            bucket += 1
        if most > 0 and bucket >= most:
            # All are full: by turns.
            bucket = dealt.get(day, 0) % most
            dealt[day] = dealt.get(day, 0) + 1
        else:
            own[bucket] = own.get(bucket, 0) + 1
        found.append(bucket)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_beside_a_plain_loop(seed: int) -> None:
    lot = random.Random(seed)
    for _ in range(15):
        index, target, most = random_index(lot, "ab"), lot.choice([1, 3, 5]), lot.choice([-1, -1, 2, 4])
        options = {"dynamic-bucket.target-row-num": str(target), "dynamic-bucket.max-buckets": str(most)}
        schema = schema_of("day", **options)
        base = state(schema, index)
        pairs = [(day, one) for day in "abc" for one in lot.sample(range(-50, 50), lot.randint(0, 25))]
        lot.shuffle(pairs)
        assigned = assign_buckets(schema, base, wanted(pairs))
        assert assigned[BUCKET_COLUMN].to_pylist() == expected(index, pairs, target, most)
        assert assigned[BUCKET_COLUMN].type == pa.int32() and assigned.drop_columns(BUCKET_COLUMN) == wanted(pairs)
        assert assigner(schema, base)(wanted(pairs)) == assigned
        # In the place of all that is there, nothing is.
        anew = assign_buckets(schema, None, wanted(pairs))
        assert anew[BUCKET_COLUMN].to_pylist() == expected({}, pairs, target, most)
        compare_change(schema, base, index, pairs, assigned)


def compare_change(
    schema: TableSchema, base: Snapshot, index: Index, pairs: list[tuple[str, int]], assigned: pa.Table
) -> None:
    change = index_change(schema, base, assigned)
    after: dict[tuple[bytes, int], list[int]] = {}
    for (day, one), bucket in zip(pairs, assigned[BUCKET_COLUMN].to_pylist(), strict=True):
        if one not in index.get(day, {}).get(bucket, []):
            after.setdefault((DAYS[day], bucket), []).append(one)
    days = {day for day, _ in pairs}
    assert set(change.partitions.to_pylist()) == {DAYS[day] for day in days}
    # All files of the partitions must be as they were, be they written anew or not.
    names = [f"i{n}" for n, day in enumerate(day for day, buckets in index.items() for _ in buckets) if day in days]
    assert change.seen == frozenset(names)
    rows = change.added.to_pylist()
    assert {(row["partition"], row["bucket"]) for row in rows} == set(after)
    by_partition = {partition: day for day, partition in DAYS.items()}
    for entry in rows:
        before = index.get(by_partition[entry["partition"]], {}).get(entry["bucket"], [])
        data = change.contents[entry["file_name"]]
        held = np.frombuffer(data, ">i4").tolist()
        assert held[: len(before)] == before
        assert sorted(held[len(before) :]) == sorted(after[entry["partition"], entry["bucket"]])
        assert (entry["file_size"], entry["row_count"], entry["index_type"], entry["kind"]) == (
            len(data), len(held), "HASH", 0,
        )  # fmt: skip
    assert len(change.contents) == len(rows)


def test_a_table_without_partitions_has_one_index() -> None:
    schema = schema_of(**{"dynamic-bucket.target-row-num": "2"})
    base = state(schema, {"a": {0: [1, 2], 1: [3]}}, {"a": EMPTY_ROW})
    given = pa.table({HASH_COLUMN: pa.array([2, 7, 3, 8], pa.int32())})
    assigned = assign_buckets(schema, base, given)
    assert assigned[BUCKET_COLUMN].to_pylist() == [0, 1, 1, 2]
    change = index_change(schema, base, assigned)
    assert {row["bucket"]: np.frombuffer(change.contents[row["file_name"]], ">i4").tolist() for row in change.added.to_pylist()} == {
        1: [3, 7], 2: [8],
    }  # fmt: skip
    assert change.seen == frozenset({"i0", "i1"}) and change.partitions.to_pylist() == [EMPTY_ROW]


def test_of_no_rows_nothing_changes() -> None:
    schema = schema_of("day")
    base = state(schema, {"a": {0: [1]}})
    assert assign_buckets(schema, base, wanted([])).num_rows == 0
    known = index_change(schema, base, assign_buckets(schema, base, wanted([("a", 1)])))
    assert (known.added.num_rows, known.contents, known.seen) == (0, {}, frozenset({"i0"}))
    fresh = index_change(schema, None, assign_buckets(schema, None, wanted([("a", 1)])))
    assert (fresh.added["row_count"].to_pylist(), fresh.seen) == ([1], frozenset())

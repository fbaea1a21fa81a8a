"""Rows that merge by key in workers, a chunk of whole keys at a time."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from alluvium.plan.scan import KeyMerge, MergeRule, SortColumn
from alluvium.portable.merging.key_merge import merge_rows
from alluvium.spark.workers import worker_merge

MERGE = KeyMerge(
    "code", ("p", "k"), (SortColumn("n"),), "kind", "aggregation",
    (MergeRule("v", "sum"), MergeRule("c", "collect")), keeps_deletes=True,
)  # fmt: skip
NAMES = ("code", "p", "k")


def made(seed: int, count: int) -> pa.Table:
    """Rows in the order of their keys, some of which have very many."""
    pick = random.Random(seed)
    rows = sorted((pick.choice((8, 16)), pick.choice("ab"), pick.choice((1, 2, 3, 50, 51, 99))) for _ in range(count))
    return pa.table(
        {
            "code": pa.array([row[0] for row in rows], pa.int32()),
            "p": [row[1] for row in rows],
            "k": [row[2] for row in rows],
            "n": [pick.randrange(1 << 40) for _ in rows],
            "kind": pa.array([pick.choice((0, 0, 2, 3)) for _ in rows], pa.int8()),
            "v": [pick.choice((1, 5, None)) for _ in rows],
            "c": pa.array([pick.choice(([1], [2, 2], None)) for _ in rows], pa.list_(pa.int64())),
        }
    )


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_chunks_end_where_keys_do(monkeypatch: pytest.MonkeyPatch, seed: int, size: int) -> None:
    monkeypatch.setattr(worker_merge, "_AT_ONCE", 10)
    table = made(seed, 200)
    pieces = list(worker_merge._whole_keys(iter(table.to_batches(size)), NAMES))
    assert pa.concat_tables(pieces).equals(table)
    last = [tuple(piece[name][-1].as_py() for name in NAMES) for piece in pieces]
    first = [tuple(piece[name][0].as_py() for name in NAMES) for piece in pieces]
    assert all(end != begin for end, begin in zip(last, first[1:], strict=False)) and len(set(last)) == len(last)
    # More than a chunk is held only where a key has so many rows.
    assert len(pieces) > (3 if size < 100 else 1)


def test_a_task_merges_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_merge, "_AT_ONCE", 16)
    table = made(7, 300)

    def merge(rows: pa.Table, how: KeyMerge, names: list[str]) -> pa.Table:
        return merge_rows(rows, how, names, {})

    found = pa.Table.from_batches(worker_merge._Merger(MERGE, merge)(iter(table.to_batches(9))))
    whole = merge(table, MERGE, table.column_names)
    assert found.schema == table.schema and found.num_rows == whole.num_rows == 24
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, whole.to_pylist()))


def test_a_task_without_rows() -> None:
    assert list(worker_merge._Merger(MERGE, lambda rows, how, names: rows)(iter([]))) == []

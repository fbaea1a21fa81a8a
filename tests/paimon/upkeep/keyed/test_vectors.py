"""Deletion vectors of keys: rows that newer ones replace are marked, whatever compactions do meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, compacted, full, open_target
from pyroaring import BitMap64

import alluvium
from alluvium.errors import CommitConflict
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.upkeep.keyed.plan import Asked, plan_compaction
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.string())])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three keys in the last level."""
    url = str(tmp_path / "t")
    PaimonTable.create(url, SCHEMA, [], ["k"], {"bucket": "1", "deletion-vectors.enabled": "true"})
    store = open_store(url)
    upsert(store, 1, 2, 3, s="a longer text, so that the file is larger than those to come" * 9)
    return store


def upsert(store: Store, *keys: int, s: str = "new", gone: tuple[int, ...] = ()) -> None:
    """Writes rows, and does what the writer does then; rows of the last level that go are named."""
    young = {row["k"]: row for row in alluvium.open(store.url).to_arrow().to_pylist() if row["s"] == "new"}
    new = {k: {"k": k, "s": s} for k in keys}
    append(open_target(store), list(new.values()))
    compaction = plan_compaction(load_snapshot(store), Asked(is_full=False))
    levels = compaction.entries["level"].to_pylist()
    # A young run of the level before may join.
    assert 0 in compaction.before["level"].to_pylist() and 5 not in compaction.before["level"].to_pylist()
    marks = {levels.index(5): (BitMap64(gone).serialize(), len(gone))} if gone else {}
    assert (compaction.asked is not None) is (5 in levels)
    rows = list({**young, **new}.values()) if compaction.reads_rows else []
    compacted(open_target(store), compaction, rows, marks)


def rows(store: Store) -> list[tuple[Any, ...]]:
    return sorted((row["k"], row["s"][:3]) for row in alluvium.open(store.url).to_arrow().to_pylist())


def vectors(store: Store) -> list[int]:
    return [row["row_count"] for row in alluvium.open(store.url).system("table_indexes").to_pylist()]


def test_bits_are_added_to_those_that_are_there_and_go_with_their_file(store: Store) -> None:
    upsert(store, 2, gone=(1,))
    upsert(store, 3, 4, gone=(2,))
    assert (rows(store), vectors(store)) == ([(1, "a l"), (2, "new"), (3, "new"), (4, "new")], [1])
    compaction = full(load_snapshot(store))
    assert compaction.asked is None
    compacted(open_target(store), compaction, alluvium.open(store.url).to_arrow().to_pylist())
    assert (len(rows(store)), vectors(store)) == (4, [])
    assert full(load_snapshot(store)).before.num_rows == 0


@pytest.mark.parametrize("other", ["marks", "first"])
def test_rows_that_were_marked_meanwhile_do_not_come_back(store: Store, other: str) -> None:
    upsert(store, 9)
    if other == "marks":
        upsert(store, 3, gone=(2,))
    compaction, before = full(load_snapshot(store)), alluvium.open(store.url).to_arrow().to_pylist()
    late = open_target(store)
    upsert(store, 2, gone=(1,))
    known = rows(store)
    with pytest.raises(CommitConflict) as caught:
        compacted(late, compaction, before)
    assert caught.value.code == "concurrent-delete-delete"
    assert rows(store) == known and (2, "new") in known


def test_a_difference_tells_rows_that_are_marked_no_more(store: Store) -> None:
    """Their file is one of both states; what hid them is gone where an older state is the newest again."""
    upsert(store, 9)
    upsert(store, 1, gone=(0,))
    once = load_snapshot(store).version
    upsert(store, 2, gone=(1,))
    ends = load_snapshot(store).version, PaimonTable.forPath(store.url).rollback_to_as_latest(snapshot_id=once).current
    back = alluvium.open(store.url).changes(*ends, mode="diff")
    assert [(row["_row_kind"], row["k"], row["s"][:3]) for row in back.to_pylist()] == [("+I", 2, "a l")]
    ahead = alluvium.open(store.url).changes(once, ends[0], mode="diff")
    assert [(row["_row_kind"], row["k"], row["s"][:3]) for row in ahead.to_pylist()] == [("+I", 2, "new")]

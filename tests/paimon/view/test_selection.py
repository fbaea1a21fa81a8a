"""Which files verbs over rows look at, where readers are not shown all of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, compacted, full, open_target
from pyroaring import BitMap64

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.upkeep.keyed.plan import Asked, plan_compaction
from alluvium.paimon.view.selection import with_new_rows
from alluvium.paimon.view.source import PaimonSource
from alluvium.portable.reader import read_batches
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

VECTORS = {"deletion-vectors.enabled": "true"}


def make(path: Path, *others: int, **options: str) -> Store:
    """Rows that a compaction has seen, and one of a same key and another that came since."""
    store = open_store(str(path / "t"))
    schema = pa.schema([("k", pa.int32()), ("s", pa.string())])
    PaimonTable.create(store.url, schema, primary_keys=["k"], options={"bucket": "1", **options})
    append(open_target(store), [{"k": k, "s": "old"} for k in (1, *others)])
    compacted(open_target(store), full(load_snapshot(store)), [])
    append(open_target(store), [{"k": 1, "s": "new"}, {"k": 2, "s": "new"}])
    return store


def rows(source: PaimonSource) -> list[tuple[int, str]]:
    batches = read_batches(source.plan_scan(), source.snapshot.store, open_store)
    return sorted((row["k"], row["s"]) for batch in batches for row in batch.to_pylist() if row["k"] < 10)


def test_verbs_see_rows_that_no_compaction_has_seen(tmp_path: Path) -> None:
    store = make(tmp_path, **VECTORS)
    assert alluvium.open(store.url).to_arrow().to_pylist() == [{"k": 1, "s": "old"}]
    snapshot = load_snapshot(store)
    shown = with_new_rows(snapshot)
    assert rows(PaimonSource(shown)) == [(1, "new"), (2, "new")]
    # Engines take scans of one identity for one another.
    assert PaimonSource(shown).identity != PaimonSource(snapshot).identity
    assert rows(PaimonSource(snapshot)) == [(1, "old")]


def test_beside_rows_that_vectors_hide(tmp_path: Path) -> None:
    store = make(tmp_path, *range(10, 500), **VECTORS)
    snapshot = load_snapshot(store)
    minor = plan_compaction(snapshot, Asked(is_full=False))
    (old,) = [n for n, level in enumerate(minor.entries["level"].to_pylist()) if level]
    compacted(open_target(store), minor, [], {old: (BitMap64([0]).serialize(), 1)})
    assert rows(PaimonSource(load_snapshot(store))) == [(1, "new"), (2, "new")]
    append(open_target(store), [{"k": 2, "s": "newest"}])
    assert rows(PaimonSource(with_new_rows(load_snapshot(store)))) == [(1, "new"), (2, "newest")]


@pytest.mark.parametrize("options", [{}, {"merge-engine": "first-row"}], ids=["merged anyway", "first-row"])
def test_others_are_left_as_they_are(tmp_path: Path, options: dict[str, str]) -> None:
    snapshot = load_snapshot(make(tmp_path, **options))
    assert with_new_rows(snapshot) is snapshot

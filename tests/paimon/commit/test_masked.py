"""Which data files lost rows, or got them back, between two index manifests."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from alluvium.paimon.commit.masked import changed_masks
from alluvium.paimon.files.manifest_write import format_index_manifest
from alluvium.paimon.terms.spec import INDEX_ENTRIES
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path))


def put(store: Store, name: str, **vectors: tuple[str, int, int | None]) -> str:
    """An index manifest: by the name of a data file its index file, where in it the vector is, and its rows."""
    files: dict[str, list[dict[str, object]]] = {}
    for data, (index, place, count) in vectors.items():
        files.setdefault(index, []).append({"f0": data, "f1": place, "f2": 9, "_CARDINALITY": count})
    rows = [
        {"kind": 0, "partition": b"p", "bucket": 0, "index_type": "DELETION_VECTORS", "file_name": index,
         "file_size": 9, "row_count": len(ranges), "ranges": ranges}
        for index, ranges in files.items()
    ]  # fmt: skip
    hashes = {**rows[0], "index_type": "HASH", "file_name": f"hash-{name}", "ranges": None}
    data = format_index_manifest(pa.Table.from_pylist([*rows, hashes], schema=INDEX_ENTRIES), "zstandard")
    store.put(f"manifest/{name}", data)
    return name


def changed(store: Store, before: str | None, after: str | None) -> list[str]:
    found = changed_masks(store, before, after)
    assert set(found["partition"].to_pylist()) <= {b"p"}
    return sorted(found["file_name"].to_pylist())


def test_vectors_that_differ(store: Store) -> None:
    one = put(store, "one", a=("i", 1, 3), b=("i", 20, 4), c=("j", 1, 5))
    # Of a bucket the index file is new; that of `a` lists more rows.
    two = put(store, "two", a=("k", 1, 4), b=("k", 20, 4), c=("j", 1, 5), d=("l", 1, 1))
    assert changed(store, one, two) == ["a", "d"]
    assert changed(store, two, one) == ["a", "d"]
    assert changed(store, one, one) == []
    assert changed(store, None, one) == ["a", "b", "c"]
    assert changed(store, one, None) == ["a", "b", "c"]


def test_vectors_that_do_not_say_how_many_rows_they_list(store: Store) -> None:
    one = put(store, "one", a=("i", 1, None), b=("i", 20, None))
    two = put(store, "two", a=("i", 1, None), b=("k", 1, 4))
    assert changed(store, one, two) == ["b"]

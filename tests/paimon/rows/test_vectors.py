"""Rows that go one by one: deletion vectors beside those that are there, and who may not have touched the files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from paimon_rows import append, open_target
from pyroaring import BitMap64

import alluvium
from alluvium.errors import CommitConflict
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.manifest import read_index_manifest
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import TOUCHED_FILES, Committed, EditRows, NewFiles, Operation, ReadScope
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

NARROW, WIDE = {"deletion-vectors.enabled": "true"}, {"deletion-vectors.bitmap64": "true"}


def make(path: Path, **options: str) -> Store:
    store = open_store(str(path / "t"))
    PaimonTable.create(store.url, pa.schema([("k", pa.int32()), ("day", pa.string())]), ["day"], options=options)
    for day in "ab":
        append(open_target(store), [{"k": k, "day": day} for k in range(5)])
    append(open_target(store), [{"k": k, "day": "a"} for k in range(10, 13)])
    return store


def rows(store: Store) -> list[tuple[int, str]]:
    found = alluvium.open(store.url).to_arrow().to_pylist()
    return sorted((row["k"], row["day"]) for row in found)


def paths(target: PaimonTarget) -> dict[int, str]:
    """Of each file its path, by the number of its rows and its partition."""
    assert target.snapshot is not None
    files = alluvium.open(target.store.url).files().to_pylist()
    return {(f["num_rows"], dict(f["partition"])["day"]): f["path"] for f in files}


def edit(target: PaimonTarget, gone: dict[str, list[int] | None]) -> Committed:
    masks = [None if numbers is None else BitMap64(numbers).serialize() for numbers in gone.values()]
    touched = pa.table([pa.array(list(gone)), pa.array(masks, pa.binary())], schema=TOUCHED_FILES)
    return target.commit(EditRows(NewFiles.none(), touched, Operation("DELETE"), ReadScope.table()))


def vectors(store: Store) -> list[tuple[int, int, list[int]]]:
    """Of each index file: its vectors, bytes of the first range, and how many rows they list."""
    document = open_target(store).snapshot.document
    if document.index_manifest is None:
        return []
    entries = read_index_manifest(store, document.index_manifest).to_pylist()
    return sorted((e["row_count"], e["ranges"][0]["f1"], [r["_CARDINALITY"] for r in e["ranges"]]) for e in entries)


@pytest.mark.parametrize("options", [NARROW, {**NARROW, **WIDE}], ids=["32", "64"])
def test_rows_go_one_by_one(tmp_path: Path, options: dict[str, str]) -> None:
    store = make(tmp_path, **options)
    target = open_target(store)
    named = paths(target)
    done = edit(target, {named[5, "a"]: [0, 4], named[5, "b"]: [2]})
    assert rows(store) == [
        (0, "b"),
        (1, "a"),
        (1, "b"),
        (2, "a"),
        (3, "a"),
        (3, "b"),
        (4, "b"),
        (10, "a"),
        (11, "a"),
        (12, "a"),
    ]
    # An index file of each partition's bucket.
    assert (done.version, vectors(store)) == (4, [(1, 1, [1]), (1, 1, [2])])
    edit(open_target(store), {named[5, "a"]: [1], named[3, "a"]: [0]})
    # What was deleted before stays deleted, and a second file of the bucket has its vector in the same index file.
    assert [k for k, day in rows(store) if day == "a"] == [2, 3, 11, 12]
    assert sorted(card for _, _, cards in vectors(store) for card in cards) == [1, 1, 3]
    kinds = alluvium.open(store.url).system("snapshots")["commit_kind"].to_pylist()
    assert kinds == ["APPEND"] * 3 + ["OVERWRITE"] * 2


def test_a_file_that_is_emptied_goes_with_its_vector(tmp_path: Path) -> None:
    store = make(tmp_path, **NARROW)
    named = paths(open_target(store))
    edit(open_target(store), {named[5, "a"]: [0, 1, 2]})
    done = edit(open_target(store), {named[5, "a"]: [3, 4], named[3, "a"]: [2]})
    assert (done.metrics["numRemovedFiles"], [k for k, day in rows(store) if day == "a"]) == ("1", [10, 11])
    assert vectors(store) == [(1, 1, [1])]
    edit(open_target(store), {named[3, "a"]: None})
    assert (vectors(store), len(rows(store))) == ([], 5)


def test_others_may_not_have_touched_the_files(tmp_path: Path) -> None:
    store = make(tmp_path, **NARROW)
    named = paths(open_target(store))
    late, later, other = open_target(store), open_target(store), open_target(store)
    edit(open_target(store), {named[5, "a"]: [0]})
    with pytest.raises(CommitConflict) as lost:
        edit(late, {named[5, "a"]: [1]})
    assert lost.value.code == "concurrent-delete-delete"
    with pytest.raises(CommitConflict):
        edit(later, {named[5, "a"]: None})
    # Nobody deleted rows of this partition's files.
    edit(other, {named[5, "b"]: [1]})
    assert len(rows(store)) == 11

"""Dynamic buckets without Spark: keys stay in their buckets, new ones fill them up, and the index says so to all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from faulty_store import Fault, FaultyStore
from paimon_rows import append, full, open_target

import alluvium
from alluvium.codecs.binary_rows.binary_row_encode import encode_rows, hash_rows
from alluvium.errors import CommitConflict, CorruptTable
from alluvium.paimon import PaimonTable
from alluvium.paimon.files.hash_index import hash_entries, read_hashes
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.plan.changes import NewFiles, Replace
from alluvium.plan.write import WRITTEN_FILES
from alluvium.schema import types as t
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = pa.schema([("k", pa.int32()), ("s", pa.string()), ("p", pa.string())])


def make(path: Path, keys: tuple[str, ...] = ("k", "p"), **options: str) -> Store:
    url = str(path / "t")
    PaimonTable.create(url, SCHEMA, ["p"], keys, options)
    return open_store(url)


def some(*ks: int, s: str = "", p: str = "a") -> list[dict[str, Any]]:
    return [{"k": k, "s": s, "p": p} for k in ks]


def rows(store: Store) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in alluvium.open(store.url).to_arrow().to_pylist())


def index(store: Store) -> dict[tuple[bytes, int], list[int]]:
    """The hashes of each bucket, in order."""
    entries = hash_entries(store, load_snapshot(store).document)
    places = zip(entries["partition"].to_pylist(), entries["bucket"].to_pylist(), strict=True)
    return {place: sorted(h.tolist()) for place, h in zip(places, read_hashes(store, entries), strict=True)}


def hashes(*ks: int) -> list[int]:
    return sorted(hash_rows(encode_rows([pa.array(ks, pa.int32())], [(t.INTEGER, 0)])).to_pylist())


def buckets(store: Store) -> list[tuple[str, int, int]]:
    found = alluvium.open(store.url).system("files").to_pylist()
    return sorted((f["partition"], f["bucket"], f["record_count"]) for f in found)


def test_buckets_are_filled_in_their_order_and_keys_stay_in_theirs(tmp_path: Path) -> None:
    store = make(tmp_path, **{"dynamic-bucket.target-row-num": "3"})
    append(open_target(store), some(*range(5)))
    assert buckets(store) == [("{a}", 0, 3), ("{a}", 1, 2)]
    assert [len(h) for h in index(store).values()] == [3, 2]
    append(open_target(store), some(*range(7), s="new") + some(1, p="b"))
    assert sorted(row[1] for row in rows(store)) == ["", *["new"] * 7]
    # Two keys are new: one fills a bucket up, one begins the next. Other partitions begin at 0.
    assert buckets(store) == [("{a}", 0, 3), ("{a}", 0, 3), ("{a}", 1, 2), ("{a}", 1, 3), ("{a}", 2, 1), ("{b}", 0, 1)]
    assert sorted(h for found in index(store).values() for h in found) == sorted([*hashes(*range(7)), *hashes(1)])
    assert {f["total_buckets"] for f in load_snapshot(store).entries.to_pylist()} == {-1}


def test_the_index_is_written_where_keys_are_new_alone(tmp_path: Path) -> None:
    store = make(tmp_path)
    append(open_target(store), some(1, 2) + some(1, p="b"))
    manifest = load_snapshot(store).document.index_manifest
    append(open_target(store), some(2, s="again"))
    assert load_snapshot(store).document.index_manifest == manifest
    append(open_target(store), some(3))
    assert load_snapshot(store).document.index_manifest != manifest
    assert sorted(index(store).values()) == sorted([hashes(1, 2, 3), hashes(1)])
    files = [entry["file_size"] for entry in hash_entries(store, load_snapshot(store).document).to_pylist()]
    assert sorted(files) == [4, 12]


def test_no_more_buckets_than_the_table_allows(tmp_path: Path) -> None:
    store = make(tmp_path, **{"dynamic-bucket.target-row-num": "1", "dynamic-bucket.max-buckets": "2"})
    append(open_target(store), some(*range(6)))
    # One fills each up, and those for which there is no room are dealt out in turn.
    assert buckets(store) == [("{a}", 0, 3), ("{a}", 1, 3)]
    append(open_target(store), some(*range(6), s="x"))
    assert {row[1] for row in rows(store)} == {"x"}
    append(open_target(store), some(6, 7, 8))
    assert buckets(store)[2:4] == [("{a}", 0, 3), ("{a}", 1, 1)]
    assert [len(found) for found in index(store).values()] == [5, 4]


def test_overwritten_partitions_forget_their_keys(tmp_path: Path) -> None:
    store = make(tmp_path, **{"dynamic-bucket.target-row-num": "2"})
    append(open_target(store), some(1, 2, 3) + some(1, 2, 3, p="b"))
    of_b = [found for (partition, _), found in index(store).items() if b"b" in partition]
    append(open_target(store), some(3, 9), Replace(dynamic=True))
    assert buckets(store) == [("{a}", 0, 2), ("{b}", 0, 2), ("{b}", 1, 1)]
    assert sorted(index(store).values()) == sorted([hashes(3, 9), *of_b])
    append(open_target(store), some(4, p="c"), Replace())
    assert list(index(store).values()) == [hashes(4)]


def test_overwritten_partitions_without_files_forget_their_keys(tmp_path: Path) -> None:
    """A key in the index of two buckets would have a row in each."""
    store = make(tmp_path, **{"dynamic-bucket.target-row-num": "1"})
    append(open_target(store), some(1, 2, 3) + some(1, 2, p="b"))
    compaction, none = full(load_snapshot(store)), WRITTEN_FILES.empty_table()
    # Of rows that were all deleted nothing is left.
    open_target(store).compact(NewFiles(none, ()), compaction.added(none, ()), compaction.entries)
    assert rows(store) == [] and len(index(store)) == 5
    append(open_target(store), some(3, s="overwritten"), Replace(dynamic=True))
    assert sorted(index(store).values()) == sorted([hashes(3), hashes(1), hashes(2)])
    append(open_target(store), some(3, s="newest") + some(2, s="new", p="b"))
    assert rows(store) == [(2, "new", "b"), (3, "newest", "a")]


def test_who_lost_to_another_who_assigned_keys_asks_anew(tmp_path: Path) -> None:
    store = make(tmp_path)
    append(open_target(store), some(1))
    winner = open_target(store)
    race = Fault(1, verb="put_if_absent", meanwhile=lambda: append(winner, some(7)) and None)
    files = len(list(store.list_tree("p=a")))
    with pytest.raises(CommitConflict) as caught:
        append(open_target(FaultyStore(store, race)), some(7, s="mine"))
    assert (caught.value.code, rows(store)) == ("concurrent-index", [(1, "", "a"), (7, "", "a")])
    assert len(list(store.list_tree("p=a"))) == files + 1
    # Other partitions are nobody's business.
    winner = open_target(store)
    race = Fault(1, verb="put_if_absent", meanwhile=lambda: append(winner, some(8)) and None)
    append(open_target(FaultyStore(store, race)), some(8, p="b"))
    assert len(rows(store)) == 4 and sorted(map(len, index(store).values())) == [1, 3]


def test_no_rows_assign_nothing(tmp_path: Path) -> None:
    store = make(tmp_path)
    assert append(open_target(store), []).attempts == 0
    append(open_target(store), some(1))
    assert append(open_target(store), []).attempts == 0
    append(open_target(store), [], Replace())
    assert (rows(store), index(store)) == ([], {})


def test_what_an_index_must_not_be(tmp_path: Path) -> None:
    store = make(tmp_path)
    append(open_target(store), some(1))
    (entry,) = hash_entries(store, load_snapshot(store).document).to_pylist()
    store.put(f"index/{entry['file_name']}", np.array([1, 2], ">i4").tobytes())
    with pytest.raises(CorruptTable) as caught:
        append(open_target(store), some(2))
    assert caught.value.code == "damaged-index"

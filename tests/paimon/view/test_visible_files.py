"""Which files readers, streams and verbs see, and which of them a condition leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from paimon_tables import HandWritten

from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.view.scan import plan_read_optimized, plan_scan
from alluvium.paimon.view.selection import (
    Selection,
    as_streams_see,
    hidden,
    in_sections,
    merges_on_read,
    select_files,
    shows_new,
    unmerged,
    visible_entries,
    with_new_rows,
)
from alluvium.storage.open import open_store

KV = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64())])
PKV = pa.schema([pa.field("p", pa.string(), False), *KV])
VECTORS = {"deletion-vectors.enabled": "true"}


def state(path: Path, *, keyed: bool = True, **options: str) -> Snapshot:
    """Files of the levels 5, 0 and 1, and one that waits for a bucket; of each as many rows as its number."""
    table = HandWritten(path / "t", KV, ["k"] if keyed else [], **options)
    for number, (level, bucket) in enumerate(((5, 0), (0, 0), (1, 0), (0, -2)), start=1):
        table.commit([{"k": k, "v": number} for k in range(number)], level=level, bucket=bucket)
    return load_snapshot(open_store(table.path.as_posix()))


def numbers(entries: pa.Table) -> list[int]:
    found: list[int] = sorted(entries["row_count"].to_pylist())
    return found


@pytest.mark.parametrize(
    ("options", "seen", "merges"),
    [
        ({}, [1, 2, 3], True),
        ({"merge-engine": "partial-update"}, [1, 2, 3], True),
        ({"merge-engine": "first-row"}, [1, 3], False),
        (VECTORS, [1, 3], False),
        ({**VECTORS, "deletion-vectors.merge-on-read": "true"}, [1, 2, 3], True),
        ({"deletion-vectors.merge-on-read": "true"}, [1, 2, 3], True),
        ({"merge-engine": "first-row", "deletion-vectors.merge-on-read": "true"}, [1, 3], False),
    ],
)
def test_files_of_keys(tmp_path: Path, options: dict[str, str], seen: list[int], merges: bool) -> None:
    """ "Deletion vectors on, or merge-engine first-row: batch reads use only level>0 files"."""
    snapshot = state(tmp_path, **options)
    assert numbers(visible_entries(snapshot)) == seen
    assert merges_on_read(snapshot) is shows_new(snapshot.schema) is merges
    assert (select_files(snapshot, None).sections is not None) is merges
    assert (in_sections(snapshot, snapshot.entries).sections is not None) is merges
    # What readers do not see is hidden, and nothing else.
    assert numbers(hidden(snapshot.schema, snapshot.entries)) == sorted({1, 2, 3, 4} - set(seen))
    # Streams are shown what no compaction has seen, and merge it.
    for level, wanted in ((0, [1, 2, 3]), (1, [1, 3]), (2, [1]), (5, [1]), (6, [])):
        streamed = as_streams_see(snapshot, level)
        assert (numbers(visible_entries(streamed)), merges_on_read(streamed)) == (wanted, True)
    assert as_streams_see(snapshot).lowest_level == 0


def test_files_of_an_append_table(tmp_path: Path) -> None:
    """Levels tell nothing there; nothing waits but for a bucket."""
    snapshot = state(tmp_path, keyed=False, **VECTORS)
    assert numbers(visible_entries(snapshot)) == numbers(visible_entries(as_streams_see(snapshot, 1))) == [1, 2, 3]
    assert (
        not merges_on_read(snapshot) and not merges_on_read(as_streams_see(snapshot)) and not shows_new(snapshot.schema)
    )
    assert as_streams_see(snapshot, 3).lowest_level is None
    assert with_new_rows(snapshot) is snapshot


def test_new_rows_are_shown_where_there_are_some(tmp_path: Path) -> None:
    snapshot = state(tmp_path, **VECTORS)
    shown = with_new_rows(snapshot)
    assert numbers(visible_entries(shown)) == [1, 2, 3]
    assert shown.asked == {**snapshot.asked, "deletion-vectors.merge-on-read": "true"}
    # What was told of the one state is not told of the other.
    assert select_files(snapshot, None).sections is None and select_files(shown, None).sections is not None
    table = HandWritten(tmp_path / "u", KV, ["k"], **VECTORS)
    table.commit([{"k": 1, "v": 1}], level=5)
    old = load_snapshot(open_store(str(tmp_path / "u")))
    assert with_new_rows(old) is old
    HandWritten(tmp_path / "e", KV, ["k"], **VECTORS)
    empty = load_snapshot(open_store(str(tmp_path / "e")))
    assert with_new_rows(empty) is empty


@pytest.mark.parametrize(
    ("options", "level", "seen"),
    [({}, 5, [1]), ({"num-levels": "2"}, 1, [3]), ({"num-sorted-run.compaction-trigger": "4"}, 4, [])],
)
def test_the_highest_level_needs_no_merge(tmp_path: Path, options: dict[str, str], level: int, seen: list[int]) -> None:
    snapshot = state(tmp_path, **options)
    plan = plan_read_optimized(snapshot)
    assert sorted(n for part in plan.parts for n in part.files["num_rows"].to_pylist()) == seen, level
    assert {part.merge for part in plan.parts} == {None}


def test_the_highest_level_of_an_append_table_is_all_of_it(tmp_path: Path) -> None:
    plan = plan_read_optimized(state(tmp_path, keyed=False))
    assert sorted(n for part in plan.parts for n in part.files["num_rows"].to_pylist()) == [1, 2, 3]


def chosen(snapshot: Snapshot, where: str | None) -> Selection:
    columns = logical_schema(snapshot.schema)
    return select_files(snapshot, None if where is None else parse_predicate(where, columns, "UTC"))


def firsts(selection: Selection) -> list[int]:
    """The number of the only row of each file that is left."""
    found: list[int] = selection.entries["min_sequence_number"].to_pylist()
    return found


def parted(path: Path, keyed: bool) -> Snapshot:
    """One row a file: of `a` two keys, the first of them twice; of `b` the first alone."""
    table = HandWritten(path / "t", PKV, ["p", "k"] if keyed else [], ["p"])
    for p, k, v in (("a", 1, 10), ("a", 2, 20), ("a", 1, 30), ("b", 1, 40)):
        table.commit([{"p": p, "k": k, "v": v}])
    return load_snapshot(open_store(str(table.path)))


@pytest.mark.parametrize(
    ("where", "keyed", "plain"),
    [
        (None, ([0, 1, 2, 3], 0, 0), ([0, 1, 2, 3], 0, 0)),
        ("p = 'a'", ([0, 1, 2], 1, 0), ([0, 1, 2], 1, 0)),
        ("p = 'c'", ([], 4, 0), ([], 4, 0)),
        ("k = 1", ([0, 2, 3], 0, 1), ([0, 2, 3], 0, 1)),
        ("p = 'a' AND k = 2", ([1], 1, 2), ([1], 1, 2)),
        # What is not the partition's alone is judged file by file.
        ("p = 'b' OR k = 2", ([1, 3], 0, 2), ([1, 3], 0, 2)),
        # Of rows that merge the value of one tells nothing of what they come to; who is alone keeps it.
        ("v = 10", ([0, 2], 0, 2), ([0], 0, 3)),
        ("v = 20", ([0, 1, 2], 0, 1), ([1], 0, 3)),
        ("v > 1000", ([0, 2], 0, 2), ([], 0, 4)),
        ("p = 'a' AND v = 20", ([0, 1, 2], 1, 0), ([1], 1, 2)),
        ("k = 2 AND v = 20", ([1], 0, 3), ([1], 0, 3)),
        ("k = 1 OR v = 20", ([0, 1, 2, 3], 0, 0), ([0, 1, 2, 3], 0, 0)),
    ],
)
def test_files_that_a_condition_leaves(tmp_path: Path, where: str | None, keyed: Any, plain: Any) -> None:
    for number, (is_keyed, wanted) in enumerate(((True, keyed), (False, plain))):
        found = chosen(parted(tmp_path / str(number), is_keyed), where)
        assert (firsts(found), found.by_partition, found.by_statistics) == wanted, is_keyed


def test_what_was_left_out_is_told_with_the_plan(tmp_path: Path) -> None:
    snapshot = parted(tmp_path, keyed=True)
    plan = plan_scan(snapshot, parse_predicate("p = 'a' AND k = 2", logical_schema(snapshot.schema), "UTC"))
    assert plan.skipped == (("partition", 1), ("statistics", 2))


def test_some_of_the_files_are_the_same_with_all_that_is_known_of_them(tmp_path: Path) -> None:
    snapshot = parted(tmp_path, keyed=True)
    whole = in_sections(snapshot, snapshot.entries, 3)
    assert whole.first == 3 and whole.sections is not None
    assert whole.sections.numbers["section"].to_pylist() == [3, -1, 3, -1]
    batched = Selection(whole.entries, whole.partitions, whole.sections, 3, 1, 2, np.array([7, 8, 9, 10]))
    kept = batched.kept(pa.array([False, True, True, False]), snapshot.schema)
    assert kept.sections is not None and kept.batches is not None
    assert (kept.sections.numbers["section"].to_pylist(), kept.batches.tolist()) == ([-1, 3], [8, 9])
    assert kept.partitions.column("p").to_pylist() == ["a", "a"]
    assert (kept.first, kept.by_partition, kept.by_statistics) == (3, 1, 2)
    alone = unmerged(snapshot, snapshot.entries).kept(pa.array([False, False, False, True]), snapshot.schema)
    assert (alone.sections, alone.batches, alone.partitions.column("p").to_pylist()) == (None, None, ["b"])


def test_nothing_is_left_of_a_table_without_files(tmp_path: Path) -> None:
    HandWritten(tmp_path / "t", PKV, ["p", "k"], ["p"])
    snapshot = load_snapshot(open_store(str(tmp_path / "t")))
    for where in (None, "p = 'a'", "k = 1"):
        found = chosen(snapshot, where)
        assert (found.entries.num_rows, found.by_partition, found.by_statistics) == (0, 0, 0)

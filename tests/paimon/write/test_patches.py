"""Files of columns of rows that are there: where they stand, what they are read as, and what must be there still."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target, write_files

import alluvium
from alluvium.errors import CommitConflict, CorruptTable, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.rows.candidates import PaimonVersion, ensure_columns_change
from alluvium.paimon.rows.range_candidates import RangeCandidates, range_candidates
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import (
    TOUCHED_FILES,
    Committed,
    EditRows,
    NewFiles,
    Operation,
    Patches,
    ReadScope,
    Replace,
    RowChangeMode,
)
from alluvium.portable.reader import read_batches
from alluvium.spark.scan.source import OpenedScan, groups_of
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

EVOLVES = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
SCHEMA = pa.schema([("day", pa.string()), ("k", pa.int32()), ("s", pa.string())])


def make(path: Path, **options: str) -> Store:
    """Ids 0 to 2 and 3 to 5 in two partitions, and 6 and 7 in the first."""
    store = open_store(str(path / "t"))
    PaimonTable.create(store.url, SCHEMA, ["day"], options={**EVOLVES, **options})
    for day, numbers in (("a", range(3)), ("b", range(3)), ("a", range(10, 12))):
        append(open_target(store), [{"day": day, "k": k, "s": f"s{k}"} for k in numbers])
    return store


def ranges(store: Store) -> RangeCandidates:
    found = PaimonVersion(load_snapshot(store)).candidates(None)
    assert isinstance(found, RangeCandidates)
    return found


def patch(target: PaimonTarget, about: str, columns: dict[str, list[Any]], fresh: NewFiles | None = None) -> Committed:
    """Columns of the rows of a file."""
    plan = target.plan_write(None, ()).only(tuple(columns))
    rows = pa.table([pa.array(columns[n], SCHEMA.field(n).type) for n in columns], names=list(columns))
    new = write_files(target.store, plan, {(None,): rows})
    patches = Patches(new, pa.array([about]), tuple(columns))
    touched, operation = TOUCHED_FILES.empty_table(), Operation("MERGE")
    return target.commit(EditRows(fresh or NewFiles.none(), touched, operation, ReadScope.table(), patches=patches))


def rows(store: Store) -> dict[int, tuple[int, str, int]]:
    found = alluvium.open(store.url).to_arrow(["k", "s", "_ROW_ID", "_SEQUENCE_NUMBER"]).to_pylist()
    return {row["_ROW_ID"]: (row["k"], row["s"], row["_SEQUENCE_NUMBER"]) for row in found}


def test_ranges_count_as_files(tmp_path: Path) -> None:
    store = make(tmp_path)
    patch(open_target(store), ranges(store).paths[0].as_py(), {"s": ["A", "B", "C"]})
    found = ranges(store)
    assert (found.entries.num_rows, found.numbers.to_pylist(), found.total_files) == (4, [0, 1, 2], 4)
    assert found.files["row_count"].to_pylist() == found.live_counts(found.files).to_pylist() == [3, 3, 2]
    sizes = found.entries["file_size"].to_pylist()
    assert sum(found.files["size"].to_pylist()) == sum(sizes) == found.size_bytes and len(set(found.paths)) == 3
    some = found.only(pa.array([0, 2]))
    assert (some.entries.num_rows, some.files["row_count"].to_pylist()) == (3, [3, 2])
    assert some.places(pa.array([2])).to_pylist() == [1]
    placed = some.renumbered(pa.array([70, 80]))
    plan = placed.plan_scan()
    numbers = {}
    for part in plan.parts:
        for path, constants in zip(part.files["path"].to_pylist(), part.files["constants"].to_pylist(), strict=True):
            numbers[path] = constants["__alluvium_file"]
        assert [c.name for c in part.output[-2:]] == ["__alluvium_file", "__alluvium_row"] and part.is_exact
    assert sorted(numbers.values()) == [70, 70, 80] and found.identity != some.identity
    version = PaimonVersion(load_snapshot(store))
    assert version.mode(found) is RowChangeMode.PATCH_COLUMNS and found.stored_ids is None


def test_rows_tell_their_place_in_the_range(tmp_path: Path) -> None:
    """Those of several files, too, as Python workers read them for Spark."""
    store = make(tmp_path)
    patch(open_target(store), ranges(store).paths[0].as_py(), {"s": ["A", "B", "C"]})
    found = ranges(store).renumbered(pa.array([70, 80, 90]))
    plan = found.plan_scan()
    rows = []
    for group in groups_of(OpenedScan(plan, plan.schema.names, None, "UTC")):
        batches = read_batches(group.scan.plan, store, lambda _: store, plan.schema.names, group.scan.where, "UTC")
        rows += [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert sorted(rows) == [
        ("a", 0, "A", 0, 4, 70, 0), ("a", 1, "B", 1, 4, 70, 1), ("a", 2, "C", 2, 4, 70, 2),
        ("a", 10, "s10", 6, 3, 90, 0), ("a", 11, "s11", 7, 3, 90, 1),
        ("b", 0, "s0", 3, 2, 80, 0), ("b", 1, "s1", 4, 2, 80, 1), ("b", 2, "s2", 5, 2, 80, 2),
    ]  # fmt: skip


def test_columns_stand_beside_the_rows_that_they_are_of(tmp_path: Path) -> None:
    store = make(tmp_path)
    before, entries = rows(store), load_snapshot(store).entries
    patch(open_target(store), ranges(store).paths[1].as_py(), {"s": ["x", "y", None]})
    assert rows(store) == before | {3: (0, "x", 4), 4: (1, "y", 4), 5: (2, None, 4)}
    snapshot = load_snapshot(store)
    assert snapshot.document is not None
    assert (snapshot.document.commit_kind, snapshot.document.next_row_id) == ("APPEND", 8)
    known = entries["file_name"].to_pylist()
    (entry,) = [e for e in snapshot.entries.to_pylist() if e["file_name"] not in known]
    assert (entry["first_row_id"], entry["row_count"], entry["write_cols"]) == (3, 3, ["s"])
    assert entry["partition"] == entries["partition"][1].as_py()


def test_new_rows_come_with_columns_of_others(tmp_path: Path) -> None:
    store = make(tmp_path)
    target = open_target(store)
    new = pa.table({"day": ["b"], "k": pa.array([9], pa.int32()), "s": ["s9"]})
    fresh = write_files(store, target.plan_write(None, ()), {("b", None): new})
    before = rows(store)
    patch(target, ranges(store).paths[2].as_py(), {"k": [20, 21], "s": ["x", "y"]}, fresh)
    assert rows(store) == before | {6: (20, "x", 4), 7: (21, "y", 4), 8: (9, "s9", 4)}


def test_columns_of_fewer_rows_are_not_published(tmp_path: Path) -> None:
    store = make(tmp_path)
    with pytest.raises(CorruptTable) as refused:
        patch(open_target(store), ranges(store).paths[0].as_py(), {"s": ["x", "y"]})
    assert refused.value.code == "rows-differ" and load_snapshot(store).version == 3


@pytest.mark.parametrize("is_patched", [False, True])
def test_a_range_must_be_as_it_was(tmp_path: Path, is_patched: bool) -> None:
    """Whatever took its files out, or put columns beside them."""
    store = make(tmp_path)
    late, path = open_target(store), ranges(store).paths[0].as_py()
    if is_patched:
        patch(open_target(store), path, {"k": [7, 8, 9]})
    else:
        append(open_target(store), [], Replace())
    with pytest.raises(CommitConflict):
        patch(late, path, {"s": ["x", "y", "z"]})
    assert load_snapshot(store).version == 4
    assert not is_patched or rows(store)[0] == (7, "s0", 4)


def test_files_that_a_compaction_took_are_missed(tmp_path: Path) -> None:
    """A compaction of others is no conflict of rows: its files hold the same ones, and other ranges of them."""
    store = make(tmp_path)
    late, path = open_target(store), ranges(store).paths[0].as_py()
    compacting = open_target(store)
    assert compacting.snapshot is not None
    entries = compacting.snapshot.entries
    gone = entries.filter(pa.array([e["first_row_id"] == 0 for e in entries.to_pylist()]))
    compacting.compact(NewFiles.none(), ENTRIES.empty_table(), gone)
    assert load_snapshot(store).document.commit_kind == "COMPACT"
    with pytest.raises(CommitConflict) as lost:
        patch(late, path, {"s": ["x", "y", "z"]})
    assert lost.value.code == "concurrent-delete-delete"


def test_ranges_that_are_no_ranges_are_refused(tmp_path: Path) -> None:
    store = make(tmp_path)
    snapshot = load_snapshot(store)
    entries = snapshot.entries
    for name, values in {
        "first_row_id": [0, None, 6], "row_count": [7, 3, 2], "file_name": ["a.blob", "b.parquet", "c.parquet"],
    }.items():  # fmt: skip
        place = entries.schema.get_field_index(name)
        wrong = entries.set_column(
            place, entries.schema.field(place), pa.array(values, entries.schema.field(place).type)
        )
        with pytest.raises(UnsupportedFeature) as refused:
            range_candidates(snapshot, wrong)
        assert refused.value.code == "unsupported-row-change"
    assert range_candidates(snapshot, entries.slice(0, 0)).files.num_rows == 0


def test_what_a_merge_may_do(tmp_path: Path) -> None:
    snapshot = load_snapshot(make(tmp_path))
    ensure_columns_change(snapshot, is_patch=True)
    vectors = {**snapshot.schema.options, "deletion-vectors.enabled": "true"}
    masked = replace(snapshot, schema=replace(snapshot.schema, options=vectors))
    for wrong, is_patch in ((snapshot, False), (masked, True)):
        with pytest.raises(UnsupportedFeature) as refused:
            ensure_columns_change(wrong, is_patch=is_patch)
        assert refused.value.code == "unsupported-row-change"

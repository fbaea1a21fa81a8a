"""Which files of a table with data evolution become one, and who else writes columns of their rows meanwhile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target, write_files

import alluvium
from alluvium.errors import CommitConflict, CorruptTable, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.rows.candidates import PaimonVersion
from alluvium.paimon.upkeep.append_compact import ensure_append_compactable
from alluvium.paimon.upkeep.evolved_compact import Gathered, gather_ranges, gathered_entries
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import TOUCHED_FILES, Committed, EditRows, NewFiles, Operation, Patches, ReadScope
from alluvium.portable.reader import read_batches
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = pa.schema([("day", pa.string()), ("k", pa.int32()), ("s", pa.string())])
EVOLVES = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "compaction.min.file-num": "2"}


def made(path: Path, *days: str, **options: str) -> Store:
    """A commit of two rows for each day."""
    store = open_store(str(path / "t"))
    PaimonTable.create(store.url, SCHEMA, ["day"], options={**EVOLVES, **options})
    for n, day in enumerate(days):
        append(open_target(store), [{"day": day, "k": 10 * n + k, "s": f"s{k}"} for k in range(2)])
    return store


def patch(store: Store, first_row_id: int, *values: str, target: PaimonTarget | None = None) -> Committed:
    """The column `s` of the rows of a range."""
    target = open_target(store) if target is None else target
    assert target.snapshot is not None
    found = PaimonVersion(target.snapshot).candidates(
        parse_predicate(f"_ROW_ID = {first_row_id}", PaimonVersion(target.snapshot).schema)
    )
    (about,) = found.paths.to_pylist()
    plan = target.plan_write(None, ()).only(("s",))
    new = write_files(store, plan, {(None,): pa.table({"s": list(values)})})
    patches, operation = Patches(new, pa.array([about]), ("s",)), Operation("MERGE")
    changes = EditRows(NewFiles.none(), TOUCHED_FILES.empty_table(), operation, ReadScope.table(), patches=patches)
    return target.commit(changes)


def ranges(found: Gathered | None) -> list[tuple[int, int, int, int]]:
    """First id, rows, and least and greatest snapshot of each file that is to come."""
    if found is None:
        return []
    names = ("first_row_id", "row_count", "min_sequence_number", "max_sequence_number")
    return sorted(tuple(row[n] for n in names) for row in found.files.to_pylist())


def compact(store: Store, gathered: Gathered, target: PaimonTarget | None = None, drops: int = 0) -> Committed:
    target = open_target(store) if target is None else target
    assert target.snapshot is not None
    plan = target.plan_write(None, ()).only(target.schema.names)
    scan = gathered.candidates.plan_scan()
    rows = read_batches(scan, store, open_store).read_all().sort_by("_ROW_ID").to_pylist()
    written = []
    for number in range(gathered.files.num_rows):
        own = [{n: row[n] for n in SCHEMA.names} for row in rows if row[gathered.candidates.columns.file] == number]
        table = pa.Table.from_pylist(own[drops:], schema=SCHEMA)
        written.append(write_files(store, plan, {(None,): table}))
    new = NewFiles(pa.concat_tables([one.table for one in written]), sum((one.footers for one in written), ()))
    added = gathered_entries(target.snapshot, gathered.files, new, range(len(written)))
    return target.compact(new, added, gathered.candidates.entries)


def rows(store: Store) -> dict[int, tuple[Any, ...]]:
    found = alluvium.open(store.url).to_arrow(["_ROW_ID", "day", "k", "s"]).to_pylist()
    return {row["_ROW_ID"]: (row["day"], row["k"], row["s"]) for row in found}


def test_neighbours_come_together(tmp_path: Path) -> None:
    store = made(tmp_path, "a", "a", "b", "a", "a", "b", "b", "b")
    snapshot = load_snapshot(store)
    # Ids 0 to 3, 6 to 9, 10 to 15; 4 and 5 stand alone.
    assert ranges(gather_ranges(snapshot)) == [(0, 4, 1, 2), (6, 4, 4, 5), (10, 6, 6, 8)]
    where = parse_predicate("day = 'b'", PaimonVersion(snapshot).schema)
    assert ranges(gather_ranges(snapshot, where)) == [(10, 6, 6, 8)]
    with pytest.raises(UnsupportedFeature):
        gather_ranges(snapshot, parse_predicate("k = 3", PaimonVersion(snapshot).schema))
    before = rows(store)
    gathered = gather_ranges(snapshot)
    assert gathered is not None and compact(store, gathered).version == 9
    assert rows(store) == before
    document = load_snapshot(store).document
    assert document is not None and (document.commit_kind, document.next_row_id) == ("COMPACT", 16)
    assert alluvium.open(store.url).files().num_rows == 4 and gather_ranges(load_snapshot(store)) is None
    append(open_target(store), [{"day": "a", "k": 99, "s": "new"}])
    assert rows(store) == {**before, 16: ("a", 99, "new")}


def test_columns_come_together_with_their_rows(tmp_path: Path) -> None:
    store = made(tmp_path, "a", "b", "a")
    patch(store, 0, "A", "B")
    patch(store, 0, "AA", "BB")
    patch(store, 4, "C", "D")
    before = rows(store)
    gathered = gather_ranges(load_snapshot(store))
    assert ranges(gathered) == [(0, 2, 1, 5), (4, 2, 3, 6)]
    assert gathered is not None
    compact(store, gathered)
    assert rows(store) == before and alluvium.open(store.url).files().num_rows == 3
    patch(store, 0, "again", "BB")
    assert rows(store) == {**before, 0: ("a", 0, "again")}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"compaction.min.file-num": "5"}, []),
        ({"compaction.min.file-num": "4"}, [(0, 8, 1, 4)]),
        # A range counts at least as much as it costs to open its files.
        ({"target-file-size": "8 mb", "source.split.open-file-cost": "3 mb"}, [(0, 6, 1, 3)]),
        ({"target-file-size": "1 b", "source.split.open-file-cost": "1 b"}, []),
    ],
)
def test_how_much_comes_together(
    tmp_path: Path, options: dict[str, str], expected: list[tuple[int, int, int, int]]
) -> None:
    assert ranges(gather_ranges(load_snapshot(made(tmp_path, "a", "a", "a", "a", **options)))) == expected


def test_columns_that_are_written_meanwhile(tmp_path: Path) -> None:
    store = made(tmp_path, "a", "a", "b")
    before, late = rows(store), open_target(store)
    gathered = gather_ranges(load_snapshot(store))
    assert gathered is not None
    patch(store, 2, "A", "B")
    with pytest.raises(CommitConflict):
        compact(store, gathered, late)
    assert rows(store) == {**before, 2: ("a", 10, "A"), 3: ("a", 11, "B")}
    # What others append, and what they write of other rows, is no matter.
    late = open_target(store)
    gathered = gather_ranges(load_snapshot(store))
    assert gathered is not None
    patch(store, 4, "C", "D")
    append(open_target(store), [{"day": "a", "k": 99, "s": "new"}])
    before = rows(store)
    assert compact(store, gathered, late).version == 7
    assert rows(store) == before
    # Whoever writes columns of rows that were compacted meanwhile has read other files.
    late, gathered = open_target(store), None
    append(open_target(store), [{"day": "a", "k": 100, "s": "new"}])
    gathered = gather_ranges(load_snapshot(store))
    assert gathered is not None
    compact(store, gathered)
    with pytest.raises(CommitConflict):
        patch(store, 6, "Z", target=late)


def test_what_is_refused(tmp_path: Path) -> None:
    store = made(tmp_path, "a", "a")
    gathered = gather_ranges(load_snapshot(store))
    assert gathered is not None
    with pytest.raises(CorruptTable) as raised:
        compact(store, gathered, drops=1)
    assert raised.value.code == "rows-differ" and load_snapshot(store).version == 2
    snapshot = load_snapshot(store)
    options = {**snapshot.schema.options, "deletion-vectors.enabled": "true"}
    with pytest.raises(UnsupportedFeature) as refused:
        ensure_append_compactable(replace(snapshot, schema=replace(snapshot.schema, options=options)))
    assert refused.value.code == "unsupported-compaction"
    assert gather_ranges(load_snapshot(made(tmp_path / "empty"))) is None

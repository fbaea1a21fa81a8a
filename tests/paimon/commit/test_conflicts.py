"""Two writers at a time: whatever both have done, the table is as if one had come after the other, or one was told.

What either does is carried out without Spark: it reads the state that it was opened at, and commits beside the other.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from paimon_rows import append, open_target, stage
from pyroaring import BitMap64

import alluvium
from alluvium.errors import CommitConflict
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.features.deletion_vectors import vector_masks
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.rows.vectors import edit_files
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.upkeep.keyed.compaction import compacted_entries
from alluvium.paimon.write.target import PaimonTarget
from alluvium.paimon.write.write import added_entries
from alluvium.plan.changes import (
    TOUCHED_FILES,
    EditRows,
    NewFiles,
    Operation,
    Overwrite,
    ReadScope,
    Replace,
)
from alluvium.schema.arrow import schema_from_arrow
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = pa.schema([("k", pa.int32()), ("day", pa.string())])
BY_DAY = Replace(parse_predicate("day = 'a'", schema_from_arrow(SCHEMA)), "day = 'a'")
Rows = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class Verb:
    """What somebody does to a table, and what comes of its rows."""

    run: Callable[[PaimonTarget], object]
    model: Callable[[Rows], Rows]


def make(path: Path) -> Store:
    """Of each day the rows 1 to 4 are left of a file, of which 0 was deleted."""
    store = open_store(str(path))
    PaimonTable.create(store.url, SCHEMA, ["day"], options={"deletion-vectors.enabled": "true"})
    for day in "ab":
        append(open_target(store), some(day, 0, 1, 2, 3, 4))
        delete(open_target(store), day, 0)
    return store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table, to be copied."""
    path = tmp_path_factory.mktemp("made") / "t"
    make(path)
    return path


def some(day: str, *ks: int) -> list[dict[str, Any]]:
    return [{"k": k, "day": day} for k in ks]


def seen(target: PaimonTarget, day: str) -> list[dict[str, Any]]:
    said = alluvium.open(target.store.url, version=target.version).to_arrow().select(["k", "day"]).to_pylist()
    return [row for row in said if row["day"] == day]


def rows(store: Store) -> Rows:
    found = alluvium.open(store.url).to_arrow().select(["k", "day"]).to_pylist()
    assert len(found) == len({(row["day"], row["k"]) for row in found})
    return frozenset((row["day"], row["k"]) for row in found)


def touched(target: PaimonTarget, day: str, ks: Sequence[int]) -> tuple[pa.Table, list[int]]:
    """The files of a day with these rows, and what goes of them (of all rows: the file); which rows were there."""
    assert target.snapshot is not None
    masks = vector_masks(target.snapshot)
    paths, marks, found = [], [], []
    for file in alluvium.open(target.store.url, version=target.version).files().to_pylist():
        if dict(file["partition"])["day"] != day:
            continue
        name = file["path"].rpartition("/")[2]
        known = masks.load([name]).get(name) if masks is not None else None
        gone = BitMap64.deserialize(known) if known else BitMap64()
        values = pq.read_table(pa.BufferReader(target.store.get(file["path"])), columns=["k"])["k"].to_pylist()
        live = [n for n in range(len(values)) if n not in gone]
        wanted = [n for n in live if values[n] in ks]
        if wanted:
            paths.append(file["path"])
            marks.append(None if wanted == live else BitMap64(wanted).serialize())
            found += [values[n] for n in wanted]
    return pa.table([pa.array(paths, pa.string()), pa.array(marks, pa.binary())], schema=TOUCHED_FILES), found


def delete(target: PaimonTarget, day: str, *ks: int) -> object:
    files, found = touched(target, day, ks)
    if not found:
        return None
    return target.commit(EditRows(NewFiles.none(), files, Operation("DELETE"), ReadScope.table()))


def update(target: PaimonTarget, day: str, *ks: int) -> object:
    """Rows become others, by vectors and a new file; all of a file's: it is written anew."""
    files, found = touched(target, day, ks)
    if not found:
        return None
    new = stage(target, some(day, *(k + 10 for k in found))).new
    return target.commit(EditRows(new, files, Operation("UPDATE"), ReadScope.table()))


def merge(target: PaimonTarget) -> object:
    """MERGE whose source is the table: what day `b` has is inserted into `a`, one greater, if it is not there."""
    missing = {row["k"] + 1 for row in seen(target, "b")} - {row["k"] for row in seen(target, "a")}
    files, found = touched(target, "a", [4])
    new = stage(target, some("a", *missing, *(k + 10 for k in found))).new
    return target.commit(EditRows(new, files, Operation("MERGE"), ReadScope.table()))


def merged(before: Rows) -> Rows:
    missing = {("a", k + 1) for day, k in before if day == "b"} - before
    return updated("a", 4)(before) | missing


def overwrite(target: PaimonTarget, where: Replace) -> object:
    """INSERT OVERWRITE of a query over the same table: the rows of a day, and one more."""
    staged = stage(target, [*seen(target, "a"), *some("a", 30)], where)
    assert isinstance(staged, Overwrite)
    return target.commit(replace(staged, read=ReadScope.table()))


def rescale(target: PaimonTarget) -> object:
    """A day's rows in other files."""
    return replace(target, rescales=True).commit(stage(target, seen(target, "a"), BY_DAY))


def compact(target: PaimonTarget, day: str = "a") -> object:
    """The rows of a day that are left, in another file."""
    snapshot = target.snapshot
    assert snapshot is not None
    files, _ = touched(target, day, range(100))
    files = files.set_column(1, TOUCHED_FILES.field(1), pa.nulls(files.num_rows, pa.binary()))
    names = pc.replace_substring_regex(files["path"], "^.*/", "").combine_chunks()
    entries = snapshot.entries.filter(pc.is_in(snapshot.entries["file_name"], value_set=names))
    new = stage(target, seen(target, day), Replace()).new
    added = compacted_entries(added_entries(snapshot.schema, new.table, new.footers))
    paths = files.take(pc.index_in(entries["file_name"], value_set=names))
    return target.compact(new, added, entries, edit_files(snapshot, entries, paths).vectors)


def alter(target: PaimonTarget) -> object:
    return PaimonTable.forPath(target.store.url).alter([SchemaChange.add_column("x", "INT")])


def deleted(*gone: tuple[str, int]) -> Callable[[Rows], Rows]:
    return lambda before: before - set(gone)


def updated(day: str, *ks: int) -> Callable[[Rows], Rows]:
    return lambda before: frozenset((d, k + 10) if d == day and k in ks else (d, k) for d, k in before)


def same(before: Rows) -> Rows:
    return before


def deletes(day: str, *ks: int) -> Verb:
    return Verb(lambda t: delete(t, day, *ks), deleted(*((day, k) for k in ks)))


def updates(day: str, *ks: int) -> Verb:
    return Verb(lambda t: update(t, day, *ks), updated(day, *ks))


def appends(day: str, k: int) -> Verb:
    return Verb(lambda t: append(t, some(day, k)), lambda before: before | {(day, k)})


EVERY = range(5)
VERBS = {
    "append": appends("a", 7),
    "overwrite all": Verb(lambda t: overwrite(t, Replace()),
                          lambda before: frozenset(r for r in before if r[0] == "a") | {("a", 30)}),
    "overwrite days": Verb(lambda t: overwrite(t, Replace(dynamic=True)), lambda before: before | {("a", 30)}),
    "overwrite a day": Verb(lambda t: overwrite(t, BY_DAY), lambda before: before | {("a", 30)}),
    "rescale": Verb(rescale, same),
    "delete rows": deletes("a", 1),
    "delete a file": deletes("a", *EVERY),
    "update rows": updates("a", 1),
    "update a file": updates("a", *EVERY),
    "merge": Verb(merge, merged),
    "compact": Verb(compact, same),
}  # fmt: skip
#: What is done meanwhile: to the same rows, to others of the same file, to another day.
WINNERS = {
    "the same row deleted": deletes("a", 1),
    "others of its file deleted": deletes("a", 2, 3),
    "its file updated": updates("a", *EVERY),
    # By a condition that would take a row of the merge, too.
    "another day's rows deleted": Verb(lambda t: delete(t, "b", 4), deleted(("b", 4), ("a", 5))),
    "another day's rows updated": updates("b", 3),
    "compacted": Verb(compact, same),
    "another day compacted": Verb(lambda t: compact(t, "b"), same),
    "another day compacted, and deleted of": Verb(
        lambda t: (compact(t, "b"), delete(open_target(t.store), "b", 4)), deleted(("b", 4), ("a", 5))),
    "appended": appends("a", 8),
    "altered": Verb(alter, same),
}  # fmt: skip
#: Who is not to be told, for nothing of the other's can matter.
QUIET = {
    *(("append", winner) for winner in WINNERS),
    *((verb, winner) for verb in VERBS for winner in ("altered", "another day compacted")),
    *((verb, "another day's rows deleted") for verb in ("delete rows", "delete a file", "rescale", "compact")),
    *((verb, "another day's rows updated") for verb in ("rescale", "compact")),
    ("compact", "appended"), ("overwrite days", "compacted"), ("rescale", "compacted"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("verb", VERBS)
def test_one_after_the_other(tmp_path: Path, made: Path, verb: str) -> None:
    for name, winner in WINNERS.items():
        own, wrong = VERBS[verb], f"{verb} beside {name}"
        shutil.copytree(made, tmp_path / name)
        store = open_store(str(tmp_path / name))
        before, late = rows(store), open_target(store)
        winner.run(open_target(store))
        try:
            own.run(late)
        except CommitConflict as error:
            assert (verb, name) not in QUIET, f"{wrong}: {error}"
            assert rows(store) == winner.model(before), wrong
        else:
            assert rows(store) in (own.model(winner.model(before)), winner.model(own.model(before))), wrong
        ensure_vectors_of_live_files(store)


def ensure_vectors_of_live_files(store: Store) -> None:
    snapshot = load_snapshot(store)
    masks = vector_masks(snapshot)
    if masks is not None:
        assert set(masks.ranges["name"].to_pylist()) <= set(snapshot.entries["file_name"].to_pylist())

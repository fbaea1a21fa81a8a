"""Every kind of commit to a Paimon table, with every single request of it failing once: before and after it took effect,
softly and as a crash.

After each: the table is at a snapshot that somebody committed, readable, with nothing lost or doubled; what was reported
is what happened; and the next writer succeeds.
"""

from __future__ import annotations

import itertools
import multiprocessing
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from faulty_store import Crash, Fault, FaultyStore, When
from paimon_rows import append, compacted, full, new_target, open_target, stage, write_files
from pyroaring import BitMap64

import alluvium
from alluvium.errors import AlluviumError, CommitConflict, CommitUnknown, NotFound
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.rows.candidates import PaimonVersion
from alluvium.paimon.rows.row_ids import stored_ids
from alluvium.paimon.upkeep.keyed.plan import Asked, plan_compaction
from alluvium.plan.changes import TOUCHED_FILES, EditRows, NewFiles, Operation, Patches, ReadScope, Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SCHEMA = pa.schema([("k", pa.int32()), ("p", pa.string())])
State = tuple[int | None, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of commit: what was there before, the commit, the rows afterwards, and whether it brings data files."""

    make: Callable[[str], None]
    act: Callable[[Store], int]
    ks: tuple[int, ...]
    moves: bool = True


def nothing(url: str) -> None:
    pass


def make(url: str, **options: str) -> None:
    PaimonTable.create(url, SCHEMA, ["p"], options={"manifest.merge-min-count": "3", **options})
    store = open_store(url)
    append(open_target(store), [{"k": 1, "p": "a"}])
    append(open_target(store), [{"k": 2, "p": "b"}])
    append(open_target(store), [{"k": 3, "p": "b"}])


def buckets(url: str) -> None:
    make(url, **{"bucket": "2", "bucket-key": "k"})


def create(store: Store) -> int:
    return append(new_target(store, SCHEMA, ["p"]), [{"k": 100, "p": "a"}]).version


def add(store: Store) -> int:
    return append(open_target(store), [{"k": 100, "p": "a"}, {"k": 101, "p": None}]).version


def replace_where(store: Store) -> int:
    target = open_target(store)
    where = Replace(parse_predicate("p = 'a'", target.schema, "UTC"), "p = 'a'")
    return append(target, [{"k": 100, "p": "a"}], where).version


def replace_written(store: Store) -> int:
    return append(open_target(store), [{"k": 100, "p": "b"}], Replace(dynamic=True)).version


def keyed(url: str) -> None:
    """Two buckets in a partition, one in the other, and a hash index of each."""
    options = {"manifest.merge-min-count": "3", "dynamic-bucket.target-row-num": "2"}
    PaimonTable.create(url, SCHEMA, ["p"], ["k", "p"], options)
    store = open_store(url)
    append(open_target(store), [{"k": 1, "p": "a"}, {"k": 2, "p": "b"}, {"k": 3, "p": "b"}, {"k": 4, "p": "b"}])
    append(open_target(store), [{"k": 1, "p": "a"}])


def upsert(store: Store) -> int:
    return append(open_target(store), [{"k": 2, "p": "b"}, {"k": 100, "p": "b"}, {"k": 101, "p": "a"}]).version


def compact(store: Store) -> int:
    """The one bucket that has several files, its rows merged by our own reader; the others' files move up."""
    compaction = full(load_snapshot(store), None)
    anew = compaction.entries.filter(compaction.is_rewritten)
    assert anew.num_rows == 2 and compaction.moved.num_rows == 2
    return compacted(
        open_target(store), compaction, alluvium.open(store.url).to_arrow(where="p = 'a'").to_pylist()
    ).version


def lifted(url: str) -> None:
    """Three keys in the last level, and a newer row of one of them."""
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true",
               "compaction.size-ratio": "0"}  # fmt: skip
    PaimonTable.create(url, SCHEMA, ["p"], ["k", "p"], options)
    store = open_store(url)
    append(open_target(store), [{"k": k, "p": "a"} for k in (1, 2, 3)])
    compacted(open_target(store), full(load_snapshot(store)), [])
    append(open_target(store), [{"k": 2, "p": "a"}])


def lift(store: Store) -> int:
    """The new row moves up, its older one is marked."""
    compaction = plan_compaction(load_snapshot(store), Asked(is_full=False))
    above = compaction.entries["level"].to_pylist().index(5)
    rows = alluvium.open(store.url).to_arrow().to_pylist() if compaction.reads_rows else []
    return compacted(
        open_target(store), compaction, rows, {} if rows else {above: (BitMap64([1]).serialize(), 1)}
    ).version


def vectors(url: str) -> None:
    """Two files, of which one has a vector."""
    PaimonTable.create(url, SCHEMA, ["p"], options={"deletion-vectors.enabled": "true"})
    store = open_store(url)
    append(open_target(store), [{"k": k, "p": p} for k, p in ((0, "b"), (1, "a"), (2, "b"), (3, "b"))])
    mask(store, "p=b/", [0], [])


def mask(store: Store, folder: str, numbers: list[int] | None, rows: list[dict[str, object]]) -> int:
    """Rows of a file go, all without numbers, and others come."""
    target = open_target(store)
    files = alluvium.open(store.url).files()["path"].to_pylist()
    path = next(path for path in files if path.startswith(folder))
    gone = None if numbers is None else BitMap64(numbers).serialize()
    touched = pa.table([[path], pa.array([gone], pa.binary())], schema=TOUCHED_FILES)
    new = stage(target, rows).new if rows else NewFiles.none()
    return target.commit(EditRows(new, touched, Operation("UPDATE"), ReadScope.table())).version


def update_by_mask(store: Store) -> int:
    return mask(store, "p=b/", [1], [{"k": 100, "p": "b"}])


TRACKED = {"row-tracking.enabled": "true"}


def tracked(url: str) -> None:
    make(url, **TRACKED)


def update_with_ids(store: Store) -> int:
    """A file goes, its row comes changed, under its id, and another one beside it."""
    target = open_target(store)
    assert target.snapshot is not None
    ids = stored_ids(target.table)
    assert ids is not None
    path = next(f for f in alluvium.open(store.url).files()["path"].to_pylist() if f.startswith("p=a/"))
    touched = pa.table([[path], pa.array([None], pa.binary())], schema=TOUCHED_FILES)
    plan = target.plan_write(None, ())
    plan = replace(plan, directory=f"{plan.directory}-ids", stats_columns=(*plan.stats_columns, *ids.stats))
    row = {
        "k": pa.array([10], pa.int32()),
        "p": ["a"],
        "_ROW_ID": [0],
        "_SEQUENCE_NUMBER": pa.array([None], pa.int64()),
    }
    new = write_files(store, plan, {("a", None): pa.table(row)})
    fresh = stage(target, [{"k": 100, "p": "a"}]).new
    return target.commit(EditRows(new, touched, Operation("MERGE"), ReadScope.table(), fresh=fresh)).version


def evolved(url: str) -> None:
    make(url, **TRACKED, **{"data-evolution.enabled": "true"})


def update_columns(store: Store) -> int:
    """A column of a file's rows, and a new row."""
    target = open_target(store)
    assert target.snapshot is not None
    paths = PaimonVersion(target.snapshot).candidates(None).paths.to_pylist()
    path = next(path for path in paths if path.startswith("p=a/"))
    plan = target.plan_write(None, ()).only(("k",))
    new = write_files(store, plan, {(None,): pa.table({"k": pa.array([10], pa.int32())})})
    fresh = stage(target, [{"k": 100, "p": "a"}]).new
    patches = Patches(new, pa.array([path]), ("k",))
    touched = TOUCHED_FILES.empty_table()
    return target.commit(EditRows(fresh, touched, Operation("MERGE"), ReadScope.table(), patches=patches)).version


KINDS = {
    "create with rows": Kind(nothing, create, (100,)),
    "append with merged manifests": Kind(make, add, (1, 2, 3, 100, 101)),
    "append to buckets": Kind(buckets, add, (1, 2, 3, 100, 101)),
    "replace where": Kind(make, replace_where, (2, 3, 100)),
    "replace dynamically": Kind(make, replace_written, (1, 100)),
    "upsert with new keys": Kind(keyed, upsert, (1, 2, 3, 4, 100, 101)),
    "full compaction": Kind(keyed, compact, (1, 2, 3, 4)),
    "compaction that marks rows": Kind(lifted, lift, (1, 2, 3), moves=False),
    "rows behind masks": Kind(vectors, update_by_mask, (1, 3, 100)),
    "rows with ids": Kind(tracked, update_with_ids, (2, 3, 10, 100)),
    "columns of rows": Kind(evolved, update_columns, (2, 3, 10, 100)),
}


def state(url: str) -> State:
    """Snapshot and rows; None where there is no table, or none with a snapshot."""
    try:
        table = alluvium.open(url)
    except NotFound as error:
        assert error.code == "not-a-table"
        return None, ()
    return table.version, tuple(sorted(table.to_arrow(["k"])["k"].to_pylist()))


def copy(made: Path, url: Path) -> None:
    if made.exists():
        shutil.copytree(made, url)


#: Of those with many requests a failure before is soft, and one after a crash.
LONG = ("upsert with new keys", "full compaction", "compaction that marks rows", "rows behind masks", "rows with ids",
        "columns of rows")  # fmt: skip
CASES = [
    pytest.param(name, when, crash, id=f"{name}-{when.value}-{'crash' if crash else 'soft'}")
    for name, when, crash in itertools.product(KINDS, When, (False, True))
    if name not in LONG or crash is (when is When.AFTER)
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "when", "crash"), CASES)
def test_each_request_of_each_commit_fails_once(tmp_path: Path, name: str, when: When, crash: bool) -> None:
    kind, made = KINDS[name], tmp_path / "made"
    kind.make(str(made))
    copy(made, tmp_path / "counted")
    counted = FaultyStore(open_store(str(tmp_path / "counted")))
    kind.act(counted)
    verbs = {verb for verb, _ in counted.requests}
    assert "put_if_absent" in verbs and ("move" in verbs) is kind.moves
    for at in range(1, len(counted.requests) + 1):
        url = str(tmp_path / f"t{at}")
        copy(made, Path(url))
        before = state(url)
        store = FaultyStore(open_store(url), Fault(at, when, crash=crash))
        version = outcome = None
        try:
            version = kind.act(store)
        except (AlluviumError, Crash) as error:
            outcome = error
        assert store.failed == 1
        told = f"{name}: request {at} failed {when.value}: {outcome!r}"
        ensure_settled(url, kind, before, version, outcome, told)
        ensure_next_writer(url, told)


def ensure_settled(
    url: str, kind: Kind, before: State, version: int | None, outcome: BaseException | None, told: str
) -> None:
    after = ((before[0] or 0) + 1, kind.ks)
    found = state(url)
    assert found in (before, after), told
    if version is not None:
        assert found == after and version == after[0], f"{told}: reported as committed"
    elif not isinstance(outcome, (Crash, CommitUnknown)):
        assert found == before, f"{told}: reported as failed, yet committed"


def ensure_next_writer(url: str, told: str) -> None:
    version, ks = state(url)
    store = open_store(url)
    try:
        target = open_target(store)
    except NotFound:
        target = new_target(store, SCHEMA, ["p"])
    committed = append(target, [{"k": 500, "p": "a"}])
    assert (committed.version, committed.attempts) == ((version or 0) + 1, 1), told
    assert state(url)[1] == (*ks, 500), told


APPENDS = 8


def append_many(url: str, writer: int) -> None:
    for n in range(APPENDS):
        append(open_target(open_store(url)), [{"k": writer * 1000 + n, "p": "ab"[n % 2]}])


@pytest.mark.long
def test_appends_of_many_processes(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    PaimonTable.create(url, SCHEMA, ["p"], options={"bucket": "2", "bucket-key": "k", "manifest.merge-min-count": "5"})
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append_many, args=(url, w)) for w in range(3)]
    for process in writers:
        process.start()
    for process in writers:
        process.join(120)
    assert [process.exitcode for process in writers] == [0] * 3
    expected = tuple(sorted(w * 1000 + n for w in range(3) for n in range(APPENDS)))
    assert state(url) == (3 * APPENDS, expected)
    assert alluvium.open(url).system("snapshots")["total_record_count"].to_pylist()[-1] == len(expected)
    runs: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for row in alluvium.open(url).system("files").to_pylist():
        place, ends = (row["partition"], row["bucket"]), (row["min_sequence_number"], row["max_sequence_number"])
        runs.setdefault(place, []).append(ends)
    for ends in runs.values():
        ends.sort()
        assert all(second[0] == first[1] + 1 for first, second in itertools.pairwise(ends))


def test_two_tables_created_at_once(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "t"))
    one, other = new_target(store, SCHEMA, ["p"]), new_target(store, SCHEMA, ["p"])
    append(one, [{"k": 1, "p": "a"}])
    with pytest.raises(AlluviumError) as caught:
        append(other, [{"k": 2, "p": "a"}])
    assert caught.value.code == "table-exists"
    assert state(store.url) == (1, (1,))


def test_an_outcome_that_nobody_knows_keeps_the_files(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    make(url)
    faults = [Fault(n, When.AFTER, "put_if_absent") for n in (1, 2, 3)] + [Fault(n, verb="get", path="snapshot-4") for n in (1, 2, 3)]  # fmt: skip
    with pytest.raises(CommitUnknown):
        add(FaultyStore(open_store(url), *faults))
    assert state(url) == (4, (1, 2, 3, 100, 101))


def test_a_conflict_leaves_no_files(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    make(url)
    store = open_store(url)
    target = open_target(store)
    add(store)
    known = sorted(info.path for info in store.list_tree(""))
    with pytest.raises(CommitConflict):
        append(target, [{"k": 7, "p": "a"}], Replace(dynamic=True))
    left = {info.path for info in store.list_tree("")} - set(known)
    assert {path.split("/")[0] for path in left} <= {"_staging"}

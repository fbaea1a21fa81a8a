"""A table as a target: what is asked of a commit, what callers are told, and what becomes of files when it fails."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from faulty_store import Fault, FaultyStore
from paimon_rows import append, ks, make, new_target, open_target, stage
from pyroaring import BitMap64

import alluvium
from alluvium.errors import AlluviumError, CommitConflict, StorageError, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon import PaimonTable
from alluvium.paimon.commit.draft import Draft
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.write import target as targets
from alluvium.paimon.write.target import RETRACTS, PaimonTarget
from alluvium.plan.changes import (
    TOUCHED_FILES,
    Append,
    EditFigures,
    EditRows,
    NewFiles,
    Operation,
    Overwrite,
    ReadScope,
    Rearrange,
    Replace,
    WrittenRows,
)
from alluvium.storage.open import open_store
from alluvium.storage.store import Store
from alluvium.storage.stores.memory import MemoryStore

WRITE = Operation("WRITE")


def made(*keys: str, **options: str) -> Store:
    return make(f"memory://{uuid.uuid4().hex}/t", *keys, **options)


def where(target: PaimonTarget, sql: str) -> Replace:
    return Replace(parse_predicate(sql, target.schema), sql)


@pytest.fixture
def drafts(monkeypatch: pytest.MonkeyPatch) -> list[Draft]:
    """Those that are published."""
    found: list[Draft] = []
    publish = targets.publish

    def noting(store: Store, draft: Draft, *arguments: Any, **more: Any) -> object:
        found.append(draft)
        return publish(store, draft, *arguments, **more)

    monkeypatch.setattr(targets, "publish", noting)
    return found


def test_what_a_commit_depends_on(drafts: list[Draft]) -> None:
    store = made("day")
    nothing, table, whole = ReadScope.nothing(), ReadScope.table(), Replace()
    cases: list[tuple[Callable[[NewFiles], WrittenRows], bool, bool, tuple[str, int] | None]] = [
        (lambda new: Append(new, WRITE, nothing), False, False, None),
        (lambda new: Append(new, WRITE, table), True, False, None),
        (lambda new: Append(new, WRITE, nothing, ("job", 7)), False, False, ("job", 7)),
        (lambda new: Overwrite(new, whole, WRITE, nothing), False, True, None),
        (lambda new: Overwrite(new, whole, WRITE, table, ("job", 8)), True, True, ("job", 8)),
        (lambda new: Rearrange(new, whole, WRITE), False, True, None),
    ]
    for make_changes, reads, replaces, named in cases:
        target = replace(open_target(store), properties={"a": "b"}, rescales=replaces)
        target.commit(make_changes(stage(target, [{"k": 1, "day": "a"}]).new))
        draft = drafts.pop()
        assert (draft.reads, draft.replaced is not None, draft.is_named) == (reads, replaces, named is not None)
        assert named is None or (draft.user, draft.identifier) == named
        assert (draft.properties, draft.rescales) == ({"a": "b"}, replaces)
        assert (draft.compacts, draft.index, draft.told) == (False, None, None)


@pytest.mark.parametrize(
    ("replaced", "gone"), [(Replace(), [1, 2, 3]), (Replace(dynamic=True), [1, 2]), ("day = 'b'", [3])]
)
def test_which_files_an_overwrite_takes_out_is_told(replaced: Replace | str, gone: list[int]) -> None:
    store = made("day")
    for k, day in ((1, "a"), (2, "a"), (3, "b")):
        append(open_target(store), [{"k": k, "day": day}])
    before = dict(zip((1, 2, 3), load_snapshot(store).entries["file_size"].to_pylist(), strict=True))
    target = open_target(store)
    asked = where(target, replaced) if isinstance(replaced, str) else replaced
    day = "b" if isinstance(replaced, str) else "a"
    rows = [{"k": k, "day": day} for k in (8, 9)]
    done = append(target, rows, asked)
    assert ks(store) == sorted({1, 2, 3} - set(gone) | {8, 9})
    (size,) = done.files["size"].to_pylist()
    assert done.metrics == {
        "numFiles": "1", "numRemovedFiles": str(len(gone)), "numRemovedBytes": str(sum(before[k] for k in gone)),
        "numOutputRows": "2", "numOutputBytes": str(size),
    }  # fmt: skip


def test_what_an_append_tells() -> None:
    store = made("day")
    done = append(open_target(store), [{"k": k, "day": "ab"[k % 2]} for k in range(5)])
    listed = alluvium.open(store.url).files()
    assert done.files.column_names == ["path", "size", "num_rows", "partition"]
    assert done.files.to_pylist() == listed.select(done.files.column_names).to_pylist()
    size = sum(done.files["size"].to_pylist())
    assert done.metrics == {"numFiles": "2", "numOutputRows": "5", "numOutputBytes": str(size)}
    assert (done.version, done.attempts) == (1, 1)


def test_rows_that_are_none_make_no_snapshot_but_for_some() -> None:
    store = made("day")
    for replaced in (None, Replace(dynamic=True), Replace()):
        done = append(open_target(store), [], replaced)
        made_one = replaced == Replace()
        assert (done.attempts > 0) is made_one
        assert done.metrics == {"numFiles": "0", "numOutputRows": "0", "numOutputBytes": "0"} | (
            {"numRemovedFiles": "0", "numRemovedBytes": "0"} if made_one else {}
        )
    # The caller's name is noted.
    named = append(open_target(store), [], txn=("job", 1))
    assert (named.version, named.attempts) == (2, 1)
    idle = append(open_target(store), [])
    assert (idle.version, idle.files.num_rows, idle.attempts) == (2, 0, 0)


def test_a_table_that_is_made_with_its_first_rows() -> None:
    store = MemoryStore(uuid.uuid4().hex, "t")
    schema = pa.schema([("k", pa.int32()), ("day", pa.string())])
    target = new_target(store, schema, ["day"])
    assert (target.exists, target.version, target.url) == (False, 0, store.url)
    done = append(target, [{"k": 1, "day": "a"}], Replace(dynamic=True))
    assert done.version == 1 and done.metrics["numRemovedFiles"] == "0"
    assert [path for path in ("schema/schema-0", "snapshot/snapshot-1") if store.head(path)]
    assert (open_target(store).exists, open_target(store).version) == (True, 1)
    # Without rows it is there, and has no snapshot, whatever is replaced.
    for replaced in (None, Replace()):
        none = MemoryStore(uuid.uuid4().hex, "t")
        assert append(new_target(none, schema), [], replaced).attempts == 0
        assert open_target(none).exists and not list(none.list_tree("snapshot"))


@pytest.mark.parametrize(
    ("sql", "code", "column"),
    [("k = 1", "replace-where-data", "k"), ("day = 'a' and s = 'x'", "replace-where-data", "s"), ("day = 'a'", None, None)],
)  # fmt: skip
def test_which_rows_may_be_replaced_by_a_condition(sql: str, code: str | None, column: str | None) -> None:
    store = made("day")
    append(open_target(store), [{"k": 1, "day": "a"}])
    target = open_target(store)
    if code is None:
        (check,) = [one for one in target.plan_write(where(target, sql), ()).checks if one.name == "replaceWhere"]
        assert (check.sql, check.columns) == (f"({sql})", ("day",))
        return
    with pytest.raises(UnsupportedFeature) as caught:
        target.plan_write(where(target, sql), ())
    assert (caught.value.code, caught.value.column) == (code, column)
    assert caught.value.hint == "partition keys: day" and str(column) in caught.value.message


def data(store: Store) -> set[str]:
    return {info.path for info in store.list_tree("") if info.path.endswith(".parquet")}


def test_files_of_a_commit_that_does_not_stand_are_deleted() -> None:
    store = made()
    append(open_target(store), [{"k": 1}])
    late = open_target(store)
    changes = stage(late, [{"k": 2}], Replace())
    append(open_target(store), [{"k": 3}])
    known = data(store) - {path for path in data(store) if path.startswith("_staging")}
    with pytest.raises(CommitConflict):
        late.commit(changes)
    assert data(store) == known


@pytest.mark.parametrize("place", [1, 2])
def test_files_that_could_not_all_be_moved_are_deleted(place: int) -> None:
    store = made("day")
    rows = [{"k": 1, "day": "a"}, {"k": 2, "day": "b"}]
    changes = stage(open_target(store), rows)
    target = open_target(FaultyStore(store, Fault(place, verb="move")))
    with pytest.raises(StorageError):
        target.commit(changes)
    assert not [path for path in data(store) if not path.startswith("_staging")]
    assert load_snapshot(store).version is None


def test_files_of_a_commit_of_which_nobody_knows_stay() -> None:
    store = made()
    changes = stage(open_target(store), [{"k": 1}])
    lost = [Fault(n, verb="put_if_absent", path="snapshot/snapshot-1") for n in range(1, 9)]
    blind = [Fault(n, verb="get", path="snapshot/snapshot-1") for n in range(1, 9)]
    with pytest.raises(AlluviumError) as caught:
        open_target(FaultyStore(store, *lost, *blind)).commit(changes)
    assert caught.value.code != "attempts-exhausted"
    assert len([path for path in data(store) if not path.startswith("_staging")]) == 1


class Told(dict[str, EditFigures]):
    """Keeps what a verb is told of files."""

    def __call__(self, figures: EditFigures) -> dict[str, str]:
        self["figures"] = figures
        return {"mine": "1"}


def touched(*files: tuple[str, list[int] | None]) -> pa.Table:
    marks = [None if rows is None else BitMap64(rows).serialize() for _, rows in files]
    return pa.table([pa.array([path for path, _ in files], pa.string()), pa.array(marks, pa.binary())], schema=TOUCHED_FILES)  # fmt: skip


def test_what_an_edit_comes_to_in_files() -> None:
    store = made("day", **{"deletion-vectors.enabled": "true"})
    for day, count in (("a", 2), ("b", 3), ("c", 4)):
        append(open_target(store), [{"k": k, "day": day} for k in range(count)])
    listed = alluvium.open(store.url).files()
    paths = dict(
        zip((dict(p)["day"] for p in listed["partition"].to_pylist()), listed["path"].to_pylist(), strict=True)
    )
    sizes = {day: store.head(path).size for day, path in paths.items()}

    def edit(*files: tuple[str, list[int] | None], new: NewFiles | None = None) -> tuple[EditFigures, dict[str, str]]:
        told = Told()
        changes = EditRows(
            NewFiles.none() if new is None else new, touched(*files), Operation("UPDATE"), ReadScope.table(), describe=told
        )  # fmt: skip
        done = open_target(store).commit(changes)
        return told["figures"], dict(done.metrics)

    new = stage(open_target(store), [{"k": 7, "day": "a"}, {"k": 8, "day": "a"}]).new
    figures, metrics = edit((paths["a"], None), (paths["b"], [0]), (paths["c"], [1]), new=new)
    bytes_added = int(pc.sum(new.table["size"]).as_py())
    assert figures == EditFigures(1, bytes_added, 1, sizes["a"], 2, sizes["b"] + sizes["c"], 0, 0)
    assert (metrics["mine"], metrics["numOutputRows"], metrics["numFiles"]) == ("1", "2", "1")
    assert metrics["numRemovedFiles"] == "1"
    figures, metrics = edit((paths["b"], [1]))
    assert (figures.masks_added, figures.bytes_masked, figures.masks_updated) == (1, sizes["b"], 1)
    assert (figures.files_added, figures.files_removed, metrics["numFiles"]) == (0, 0, "0")
    assert ks(store) == [0, 2, 2, 3, 7, 8]


def test_rows_of_keys_that_change_are_written_as_others(drafts: list[Draft]) -> None:
    PaimonTable.create(
        url := f"memory://{uuid.uuid4().hex}/t", pa.schema([("k", pa.int32())]), (), ["k"], {"bucket": "1"}
    )
    store = open_store(url)
    append(open_target(store), [{"k": 1}])
    target = replace(open_target(store), kind=3)
    told = Told()
    new = stage(target, [{"k": 1}]).new
    changes = EditRows(new, touched(), Operation("DELETE"), ReadScope.table(), describe=told, txn=("job", 3))
    done = target.commit(changes)
    draft = drafts[-1]
    assert (draft.reads, draft.replaced, draft.user, draft.identifier, draft.is_named) == (True, None, "job", 3, True)
    assert told["figures"] == EditFigures(files_added=1)
    assert done.metrics["mine"] == "1" and RETRACTS not in done.metrics
    assert ks(store) == []


def test_keys_of_any_partition_tell_how_many_rows_were_taken_back() -> None:
    schema = pa.schema([("k", pa.int32()), ("p", pa.string())])
    PaimonTable.create(url := f"memory://{uuid.uuid4().hex}/t", schema, ["p"], ["k"])
    store = open_store(url)
    done = append(open_target(store), [{"k": 1, "p": "a"}])
    assert done.metrics[RETRACTS] == "0"
    taken = append(replace(open_target(store), kind=3), [{"k": 1, "p": "a"}])
    assert taken.metrics[RETRACTS] == "1"


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("rule", ["concurrent-append", "concurrent-delete-delete", "history-lost"])
def test_rows_that_a_caller_brings_may_be_written_anew_where_keys_have_moved(rule: str, reads: bool) -> None:
    """Only where its keys are has changed: nobody has to read anything again, but for who has read."""
    schema = pa.schema([("k", pa.int32()), ("p", pa.string())])
    table = PaimonTable.create(url := f"memory://{uuid.uuid4().hex}/t", schema, ["p"], ["k"])
    store = open_store(url)
    for k in (1, 2):
        append(open_target(store), [{"k": k, "p": "a"}])
    late = open_target(store)
    changes = stage(late, [{"k": 9, "p": "c"}])
    if rule == "concurrent-append":
        append(open_target(store), [{"k": 3, "p": "b"}])
    elif rule == "concurrent-delete-delete":
        append(open_target(store), [], Replace())
    else:
        table.rollback_to(1)
    assert isinstance(changes, Append)
    with pytest.raises(CommitConflict) as caught:
        late.commit(replace(changes, read=ReadScope.table()) if reads else changes)
    assert caught.value.code == (rule if reads else "concurrent-index")
    assert [one.rule for one in caught.value.conflicts][:1] == [rule]

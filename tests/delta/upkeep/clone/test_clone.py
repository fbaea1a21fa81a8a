"""CLONE without Spark: which files a clone names or copies, what its log says, who reads it, and what is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from faulty_store import FaultyStore
from plain_writer import SCHEMA, commit_rows, open_target
from vacuumed_tables import NOW, age, files_of, live, mask_first_file, newest, run

import alluvium
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.log_upkeep.checkpoints import write_checkpoint_at
from alluvium.delta.upkeep.clone.clone import CloneRequest, clone
from alluvium.delta.upkeep.restore import restore
from alluvium.delta.upkeep.vacuum.vacuum import VacuumPreview, VacuumRequest, vacuum
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import RECENT, load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import AlluviumError, CommitConflict, CorruptTable, InvalidRequest, NotFound, StorageError
from alluvium.plan.changes import Committed, Describe, Operation, Preview, ReadScope, Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import PutOutcome, Store

#: Of a folder, so that escapes of the path, and of what it is escaped from, matter.
ODD = "a b%20é+#"
KINDS = pytest.mark.parametrize("shallow", [True, False], ids=["shallow", "deep"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Versions 0 and 1 of one file each by partition; in version 2 the first row of one is deleted by a vector."""
    root = tmp_path / ODD
    store = open_store(root)
    commit_rows(open_target(store, partitioned=True), [1, 2], "x y%")
    commit_rows(open_target(store), [3, 4], "z")
    mask_first_file(store)
    return root


def cloned(source: Path, target: Path, shallow: bool, version: int | None = None, **said: object) -> Committed:
    done = ask(source, target, shallow, version, **said)
    assert isinstance(done, Committed)
    return done


def ask(source: Path, target: Path, shallow: bool, version: int | None = None, dry_run: bool = False, **said: object):
    store = open_store(target)
    existing = load_snapshot(store) if (target / "_delta_log").exists() else None
    request = CloneRequest("delta.`s`", shallow, engine="tests", **said)  # type: ignore[arg-type]
    return clone(load_snapshot(open_store(source), version), store, existing, request, dry_run)


def spelled(table: Path, ours: str, other: str) -> None:
    """The newest commit of a clone, with its source's address as another engine may write it."""
    path = max((table / "_delta_log").glob("*.json"))
    text = path.read_text()
    assert ours in text
    path.write_text(text.replace(ours, other))


@pytest.mark.parametrize("other", ["file:/", "file:///", "/"])
def test_a_dry_run_of_vacuum_tells_which_clones_need_what_goes(root: Path, tmp_path: Path, other: str) -> None:
    cloned(root, tmp_path / "old", shallow=True)
    cloned(root, tmp_path / "deep", shallow=False)
    store = open_store(root)
    commit_rows(open_target(store), [9], "z", Replace())
    cloned(root, tmp_path / "new", shallow=True)
    spelled(tmp_path / "old", '"path":"file:/', f'"path":"{other}')
    age(root, 20)
    clones = tuple(load_snapshot(open_store(tmp_path / name)) for name in ("new", "deep", "old"))
    found = vacuum(load_snapshot(store), VacuumRequest(0, checks=False, clones=clones), dry_run=True)
    assert isinstance(found, VacuumPreview) and found.files.num_rows
    assert found.lost_clones == (open_store(tmp_path / "old").url,)
    assert "so do 1 clones" in str(found)
    assert len(found.lost_times_ms) == len(found.lost_versions) > 0 and None not in found.lost_times_ms
    with pytest.raises(InvalidRequest) as refused:
        vacuum(load_snapshot(store), VacuumRequest(0, checks=False, clones=clones))
    assert refused.value.code == "contradicting-options"


def ids(root: Path, version: int | None = None) -> list[int]:
    return sorted(alluvium.open(str(root), version=version).to_arrow()["id"].to_pylist())


def actions_of(root: Path, version: int) -> list[dict]:
    return [json.loads(line) for line in (root / "_delta_log" / f"{version:020d}.json").read_text().splitlines()]


@KINDS
def test_a_clone_has_the_rows_of_its_version(root: Path, tmp_path: Path, shallow: bool):
    alive = ids(root)
    assert len(alive) == 3
    for version, expected in ((0, [1, 2]), (1, [1, 2, 3, 4]), (None, alive)):
        target = tmp_path / f"clone {version}%"
        done = cloned(root, target, shallow, version)
        assert (done.version, ids(target)) == (0, expected)
        assert alluvium.open(str(target)).to_arrow(where="p = 'z'").num_rows == len(set(expected) & {3, 4})


def test_a_shallow_clone_names_files_and_vectors_by_their_addresses(root: Path, tmp_path: Path):
    target = tmp_path / "c"
    done = cloned(root, target, shallow=True)
    where = f"file:{tmp_path}/a%20b%2520é+%23/"
    adds = [a["add"] for a in actions_of(target, 0) if "add" in a]
    assert len(adds) == 2 and all(add["path"].startswith(where) and add["dataChange"] for add in adds)
    (vector,) = [add["deletionVector"] for add in adds if "deletionVector" in add]
    assert vector["storageType"] == "p" and vector["pathOrInlineDv"].startswith(where + "deletion_vector_")
    assert files_of(target) == set()
    size = sum(file.stat().st_size for file in root.rglob("*.parquet"))
    assert done.metrics == {
        "sourceTableSize": str(size), "sourceNumOfFiles": "2", "numRemovedFiles": "0", "numCopiedFiles": "0",
        "removedFilesSize": "0", "copiedFilesSize": "0",
    }  # fmt: skip


def test_the_history_tells_where_a_clone_is_from(root: Path, tmp_path: Path):
    cloned(root, tmp_path / "c", shallow=True, version=1)
    info = actions_of(tmp_path / "c", 0)[0]["commitInfo"]
    assert info["operation"] == "CLONE"
    assert info["operationParameters"] == {"source": "delta.`s`", "sourceVersion": 1}
    assert (info["readVersion"], info["isBlindAppend"]) == (-1, False)


def test_a_deep_clone_lives_without_its_source(root: Path, tmp_path: Path):
    expected, target = ids(root), tmp_path / "c"
    done = cloned(root, target, shallow=False)
    assert done.metrics["numCopiedFiles"] == "2" and done.metrics["copiedFilesSize"] == done.metrics["sourceTableSize"]
    shutil.rmtree(root)
    assert ids(target) == expected
    assert len(files_of(target)) == 3


def test_a_deep_clone_made_again_copies_what_is_new(root: Path, tmp_path: Path):
    target = tmp_path / "c"
    cloned(root, target, shallow=False)
    before = files_of(target)
    again = cloned(root, target, shallow=False, replace=True)
    assert (again.version, again.metrics["numCopiedFiles"], again.metrics["numRemovedFiles"]) == (1, "0", "0")
    assert files_of(target) == before and not [a for a in actions_of(target, 1) if "add" in a or "remove" in a]
    commit_rows(open_target(open_store(root)), [5], "z")
    third = cloned(root, target, shallow=False, replace=True)
    assert third.metrics["numCopiedFiles"] == "1"
    assert len(files_of(target)) == len(before) + 1 and ids(target) == ids(root)
    # A file that got another vector is not copied again, its vector is.
    mask_first_file(open_store(root))
    fourth = cloned(root, target, shallow=False, replace=True)
    assert fourth.metrics["numCopiedFiles"] == "0" and ids(target) == ids(root)
    assert len(files_of(target)) == len(before) + 2
    assert ids(target, 0) == ids(root, 2)


def test_a_deep_clone_takes_back_what_was_changed_in_it(root: Path, tmp_path: Path):
    target = tmp_path / "c"
    cloned(root, target, shallow=False)
    commit_rows(open_target(open_store(target)), [99], "z", replace=Replace())
    done = cloned(root, target, shallow=False, replace=True)
    assert done.metrics["numRemovedFiles"] == "1" and ids(target) == ids(root)
    assert ids(target, 1) == [99]
    # The copies of before stand in version 0, and those of now in files of their own.
    assert ids(target, 0) == ids(root)


def test_clones_of_clones(root: Path, tmp_path: Path):
    expected = ids(root)
    cloned(root, tmp_path / "one", shallow=True)
    commit_rows(open_target(open_store(tmp_path / "one")), [9], "z")
    cloned(tmp_path / "one", tmp_path / "two", shallow=True)
    cloned(tmp_path / "two", tmp_path / "three", shallow=False)
    again = cloned(tmp_path / "two", tmp_path / "three", shallow=False, replace=True)
    assert again.metrics["numCopiedFiles"] == "0"
    for name in ("one", "two", "three"):
        assert ids(tmp_path / name) == sorted([*expected, 9])
    paths = data_paths(newest(open_store(tmp_path / "two")).files).to_pylist()
    assert {p.startswith(f"file:{tmp_path}/one/") for p in paths} == {True, False}
    shutil.rmtree(root)
    assert ids(tmp_path / "three") == sorted([*expected, 9])


def test_a_clone_back_over_its_source_names_own_files_relative(root: Path, tmp_path: Path):
    cloned(root, tmp_path / "c", shallow=True)
    commit_rows(open_target(open_store(tmp_path / "c")), [9], "z")
    expected = ids(tmp_path / "c")
    done = cloned(tmp_path / "c", root, shallow=True, replace=True)
    assert ids(root) == expected
    paths = sorted(live(open_store(root)))
    assert [p.startswith("file:") for p in paths] == [False, False, True] or sum("file:" in p for p in paths) == 1
    assert done.metrics["numRemovedFiles"] == "1"  # that whose vector has another name now
    age(root, 30)
    run(open_store(root), NOW)
    assert ids(root) == expected


@KINDS
def test_a_table_is_replaced_and_keeps_its_history(root: Path, tmp_path: Path, shallow: bool):
    target = tmp_path / "c"
    store = open_store(target)
    commit_rows(open_target(store, partitioned=True), [7], "z")
    table_id = newest(store).config.metadata.id
    done = cloned(root, target, shallow, replace=True)
    assert (done.version, done.metrics["numRemovedFiles"]) == (1, "1")
    assert newest(store).config.metadata.id == table_id != newest(open_store(root)).config.metadata.id
    assert (ids(target), ids(target, 0)) == (ids(root), [7])
    restore(newest(store), load_snapshot(store, 0), {"version": 0, "timestamp": None}, "tests")
    assert ids(target) == [7]


def test_vacuum_of_a_clone_touches_no_file_of_its_source(root: Path, tmp_path: Path):
    target = tmp_path / "c"
    cloned(root, target, shallow=True)
    store = open_store(target)
    commit_rows(open_target(store), [9], "z", replace=Replace())
    before = files_of(root)
    age(target, 30)
    run(store, NOW)
    assert files_of(root) == before and ids(target) == [9]


@KINDS
def test_a_checkpoint_of_a_clone_is_read(root: Path, tmp_path: Path, shallow: bool):
    target = tmp_path / "c"
    cloned(root, target, shallow)
    write_checkpoint_at(newest(open_store(target)))
    (target / "_delta_log" / f"{0:020d}.json").unlink()
    assert ids(target) == ids(root)


@KINDS
def test_statistics_that_a_checkpoint_has_as_columns_only_go_along(tmp_path: Path, shallow: bool):
    store = open_store(tmp_path / "s")
    columns_only = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}
    config = table_config(NewTable(SCHEMA, properties=columns_only))
    DeltaTarget(store, config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    commit_rows(open_target(store), [1, 2])
    commit_rows(open_target(store), [3], replace=Replace())
    write_checkpoint_at(load_snapshot(store, 1))
    for version in (0, 1):
        store.delete(f"_delta_log/{version:020d}.json")
    RECENT.clear()
    assert load_snapshot(store, 1).files.column("stats").null_count == 1
    cloned(tmp_path / "s", tmp_path / "c", shallow, 1)
    restore(newest(store), load_snapshot(store, 1), {"version": 1, "timestamp": None}, "tests")
    for root in (tmp_path / "c", tmp_path / "s"):
        (stats,) = newest(open_store(root)).files.column("stats").to_pylist()
        assert json.loads(stats)["numRecords"] == 2 and json.loads(stats)["maxValues"]["id"] == 2


def test_files_that_are_gone_are_named_before_anything_is_written(root: Path, tmp_path: Path):
    gone = next(iter(root.rglob("*.parquet")))
    commit_rows(open_target(open_store(root)), [9], "z", replace=Replace())
    gone.unlink()
    for shallow in (True, False):
        found = ask(root, tmp_path / "c", shallow, 1, dry_run=True)
        assert isinstance(found, Preview) and found.missing == (str(gone.relative_to(root)),)
        assert "misses" in str(found)
        with pytest.raises(NotFound) as caught:
            cloned(root, tmp_path / "c", shallow, 1)
        assert (caught.value.code, caught.value.version) == ("missing-file", 1)
        assert not (tmp_path / "c").exists() or files_of(tmp_path / "c") == set()


def test_files_that_vacuum_takes_while_a_clone_is_committed_are_told_of(root: Path, tmp_path: Path):
    commit_rows(open_target(open_store(root)), [9], replace=Replace())

    class Late(FaultyStore):
        def put_if_absent(self, path: str, data: bytes, **said: bool) -> PutOutcome:
            age(root, 30)
            run(open_store(root), NOW)
            return super().put_if_absent(path, data, **said)

    request = CloneRequest("delta.`s`", shallow=True)
    with pytest.raises(NotFound, match=r"version 0 of .* stands") as caught:
        clone(load_snapshot(open_store(root), 1), Late(open_store(tmp_path / "c")), None, request)
    assert caught.value.code == "missing-file"


def test_a_clone_of_a_clone_whose_source_is_gone(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cloned(root, tmp_path / "c", shallow=True)
    shutil.rmtree(root)
    for few in (500, 0):
        monkeypatch.setattr("alluvium.delta.upkeep.missing_files._FEW", few)
        with pytest.raises(NotFound) as caught:
            cloned(tmp_path / "c", tmp_path / "d", shallow=True)
        assert caught.value.code == "missing-file" and str(caught.value.path).startswith("file:")
    assert not (tmp_path / "d").exists()


def test_files_of_many_are_looked_up_by_folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cloned(root, tmp_path / "c", shallow=True)
    monkeypatch.setattr("alluvium.delta.upkeep.missing_files._FEW", 0)
    cloned(tmp_path / "c", tmp_path / "d", shallow=True)
    assert ids(tmp_path / "d") == ids(root)


@KINDS
def test_a_dry_run_writes_nothing(root: Path, tmp_path: Path, shallow: bool):
    found = ask(root, tmp_path / "c", shallow, dry_run=True, properties={"x": "1"})
    assert isinstance(found, Preview)
    assert (found.version, len(found.added), found.differences["property x"]) == (-1, 2, (None, "1"))
    assert found.operation.metrics["numCopiedFiles"] == ("0" if shallow else "2")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("place", [ODD, f"{ODD}/inner", "."])
def test_a_clone_lies_beside_its_source(root: Path, tmp_path: Path, place: str):
    with pytest.raises(InvalidRequest) as caught:
        cloned(root, tmp_path / place, shallow=True, replace=True)
    assert caught.value.code == "clone-of-itself"


@KINDS
@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_file_is_no_place_for_a_clone(root: Path, tmp_path: Path, shallow: bool, place: str):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError) as caught:
        cloned(root, tmp_path / place, shallow=shallow)
    assert "Not a directory" in caught.value.message and caught.value.url == open_store(tmp_path / place).url
    assert (tmp_path / "file").read_text() == "x"


@KINDS
def test_what_is_there_stays(root: Path, tmp_path: Path, shallow: bool):
    table, folder = tmp_path / "table", tmp_path / "folder"
    commit_rows(open_target(open_store(table)), [7])
    folder.mkdir()
    (folder / "x.txt").write_text("x")
    for target, code in ((table, "table-exists"), (folder, "location-not-empty")):
        before = files_of(target)
        with pytest.raises(InvalidRequest) as caught:
            cloned(root, target, shallow)
        assert caught.value.code == code and files_of(target) == before
    assert ids(table) == [7]


def test_a_file_that_goes_while_it_is_copied(root: Path, tmp_path: Path):
    """As if VACUUM of the source came meanwhile; and one that was cut short."""
    source, target = newest(open_store(root)), tmp_path / "c"
    whole = next(iter(root.rglob("*.parquet")))
    content = whole.read_bytes()
    whole.unlink()
    with pytest.raises(NotFound) as gone:
        clone(source, open_store(target), None, CloneRequest("s", False))
    assert gone.value.code == "missing-file"
    whole.write_bytes(content[:-1])
    with pytest.raises(CorruptTable) as short:
        clone(source, open_store(target), None, CloneRequest("s", False))
    assert short.value.code == "wrong-file-size"
    assert files_of(target) == set() and not (target / "_delta_log").exists()


def test_what_a_killed_clone_left_is_nobodys(root: Path, tmp_path: Path):
    left = tmp_path / "c" / f"copy-{'0' * 32}" / "x.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"cut sho")
    cloned(root, tmp_path / "c", shallow=False)
    assert ids(tmp_path / "c") == ids(root)


def test_who_writes_meanwhile_is_no_clones_loss(root: Path, tmp_path: Path):
    target = tmp_path / "c"
    store = open_store(target)
    commit_rows(open_target(store, partitioned=True), [7], "z")
    behind = newest(store)
    commit_rows(open_target(store), [8], "z")
    for shallow in (True, False):
        before = files_of(target)
        with pytest.raises(CommitConflict):
            clone(newest(open_store(root)), store, behind, CloneRequest("s", shallow, replace=True))
        assert files_of(target) == before
    assert ids(target) == [7, 8]


def test_who_rearranges_files_meanwhile_is_told_of(root: Path, tmp_path: Path):
    """Rows in other files, written by the description that was there: they are no files of the clone's."""
    target = tmp_path / "c"
    cloned(root, target, shallow=False)
    store = open_store(target)
    behind = newest(store)
    commit_rows(open_target(store), ids(target), "z", replace=Replace(), data_change=False)
    with pytest.raises(CommitConflict):
        clone(newest(open_store(root)), store, behind, CloneRequest("s", False, replace=True))
    assert ids(target) == ids(root)


def test_of_two_clones_to_one_place_the_loser_touches_no_file_of_the_other(root: Path, tmp_path: Path):
    store = open_store(tmp_path / "c")

    class Late:
        """A store where another clone comes first, when this one has copied its files."""

        def __init__(self, inner: Store) -> None:
            self.inner, self.done = inner, False

        def __getattr__(self, name: str) -> object:
            if name == "put_if_absent" and not self.done:
                self.done = True
                cloned(root, tmp_path / "c", shallow=False)
            return getattr(self.inner, name)

    with pytest.raises(CommitConflict):
        clone(newest(open_store(root)), Late(store), None, CloneRequest("s", False))  # type: ignore[arg-type]
    assert ids(tmp_path / "c") == ids(root)
    assert len(files_of(tmp_path / "c")) == 3


def test_hostile_paths_are_not_followed(tmp_path: Path):
    (tmp_path / "secret").write_bytes(b"x")
    root = tmp_path / "s"
    store = open_store(root)
    commit_rows(open_target(store), [1])
    log = root / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = "../secret"
    log.write_text("\n".join(map(json.dumps, lines)))
    for shallow in (True, False):
        with pytest.raises(CorruptTable) as caught:
            cloned(root, tmp_path / "c", shallow)
        assert caught.value.code == "path-escapes-root"
    assert not (tmp_path / "c").exists()


def test_a_shallow_clone_far_away_cannot_name_files_of_this_machine(root: Path):
    far = open_store("s3://bucket/t", {"access_key_id": "k", "secret_access_key": "s", "region": "us-east-1"})
    with pytest.raises(AlluviumError) as caught:
        clone(newest(open_store(root)), far, None, CloneRequest("s", True))
    assert caught.value.code == "unreachable-file"


def test_a_clone_around_a_table_whose_files_it_would_name_is_refused(tmp_path: Path):
    """By way of another clone: VACUUM LITE of the outer one took what it removed, the inner one's live files."""
    outer, inner, between = tmp_path / "t", tmp_path / "t" / "a" / "b", tmp_path / "s"
    commit_rows(open_target(open_store(outer)), [0])
    commit_rows(open_target(open_store(inner)), [1, 2])
    mask_first_file(open_store(inner))
    cloned(inner, between, shallow=True)
    with pytest.raises(InvalidRequest) as caught:
        cloned(between, outer, shallow=True, replace=True)
    assert (caught.value.code, ids(outer)) == ("clone-of-itself", [0])
    cloned(between, outer, shallow=False, replace=True)
    commit_rows(open_target(open_store(outer)), [9], replace=Replace())
    run(open_store(outer), replace(NOW, lite=True))
    assert (ids(outer), ids(inner)) == ([9], [2])


def test_a_clone_may_come_back_to_where_its_files_lie(tmp_path: Path):
    first, second = tmp_path / "t", tmp_path / "s"
    commit_rows(open_target(open_store(first), partitioned=True), [1, 2])
    mask_first_file(open_store(first))
    cloned(first, second, shallow=True)
    commit_rows(open_target(open_store(first)), [9], replace=Replace())
    cloned(second, first, shallow=True, replace=True)
    run(open_store(first), replace(NOW, lite=True))
    run(open_store(first), NOW)
    assert ids(first) == ids(second) == [2]


def test_a_link_does_not_hide_that_a_clone_would_lie_in_its_source(root: Path, tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(InvalidRequest) as caught:
        cloned(root, tmp_path / "link" / ODD / "inside", shallow=True)
    assert caught.value.code == "clone-of-itself"

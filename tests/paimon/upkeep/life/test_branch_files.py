"""Which files a branch is made of, goes away with, or leaves on the main branch that goes on as it."""

from __future__ import annotations

import json
import uuid

import pytest
from faulty_store import Fault, FaultyStore
from paimon_rows import append, ks, make

from alluvium.errors import AlluviumError, InvalidRequest, NotFound
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.names import list_branches
from alluvium.paimon.log.schema_log import list_schema_ids
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At, list_snapshots, list_tags
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.upkeep.life.branches import (
    create_branch,
    delete_branch,
    fast_forward,
    no_branch,
    rename_branch,
)
from alluvium.paimon.upkeep.life.tags import create_tag
from alluvium.paimon.write.target import PaimonTarget
from alluvium.storage.store import Store

OF_B = "branch/branch-b"


def written(store: Store, k: int, branch: str = "main") -> None:
    snapshot = load_snapshot(store, At(), branch)
    append(PaimonTarget(store, snapshot.schema, snapshot), [{"k": k}])


def widen(store: Store, name: str, branch: str = "main") -> None:
    PaimonTable.forPath(store.url, branch=branch).alter([SchemaChange.add_column(name, "INT")])


def files_of(store: Store, folder: str = OF_B) -> set[str]:
    return {info.path.removeprefix(f"{folder}/") for info in store.list_tree(folder)}


@pytest.fixture
def store() -> Store:
    """Snapshot 1 of schema 0, snapshots 2 and 3 of schema 1, and schema 2 without any; a tag of 1 and one of 2."""
    made = make(f"memory://{uuid.uuid4().hex}/t")
    written(made, 1)
    widen(made, "a")
    written(made, 2)
    written(made, 3)
    widen(made, "b")
    create_tag(made, "one", 1)
    create_tag(made, "two", 2)
    return made


@pytest.mark.parametrize(("tag", "number", "newest"), [("one", 1, 0), ("two", 2, 1)])
def test_a_branch_of_a_tag_has_its_snapshot_and_the_schemas_up_to_its_own(
    store: Store, tag: str, number: int, newest: int
) -> None:
    create_branch(store, "b", tag)
    schemas = {f"schema/schema-{n}" for n in range(newest + 1)}
    own = {f"tag/tag-{tag}", f"snapshot/snapshot-{number}", "alluvium-callers/complete"}
    assert files_of(store) == schemas | own
    for path in (*schemas, f"tag/tag-{tag}", f"snapshot/snapshot-{number}"):
        assert store.get(f"{OF_B}/{path}") == store.get(path)


def test_a_branch_of_no_tag_has_all_schemas_and_nothing_else(store: Store) -> None:
    counting = FaultyStore(store)
    create_branch(counting, "b")
    assert files_of(store) == {f"schema/schema-{n}" for n in range(3)}
    # A branch whose newest schema is an older one would be read wrongly.
    put = [path for verb, path in counting.requests if verb == "put" and "/schema-" in path]
    assert put == [f"{OF_B}/schema/schema-{n}" for n in (2, 1, 0)]


def test_of_a_branch_that_cannot_be_made_nothing_stays(store: Store) -> None:
    counting = FaultyStore(store)
    create_branch(counting, "b", "two")
    delete_branch(store, "b")
    puts = [path for verb, path in counting.requests if verb == "put"]
    assert len(puts) >= 4
    for path in puts:
        with pytest.raises(AlluviumError):
            create_branch(FaultyStore(store, Fault(1, verb="put", path=path)), "b", "two")
        assert files_of(store) == set() and list_branches(store) == []


def test_what_is_left_of_a_branch_can_be_deleted(store: Store) -> None:
    store.put(f"{OF_B}/_making", b"")
    with pytest.raises(InvalidRequest) as caught:
        create_branch(store, "b")
    assert caught.value.code == "branch-exists"
    delete_branch(store, "b")
    assert files_of(store) == set()
    with pytest.raises(NotFound) as missing:
        delete_branch(store, "b")
    assert missing.value.code == "branch-not-found"


def test_a_branch_goes_schemas_first(store: Store) -> None:
    """Without a schema there is no branch: nobody reads one of which half is gone."""
    create_branch(store, "b", "two")
    counting = FaultyStore(store)
    delete_branch(counting, "b")
    gone = [path for verb, path in counting.requests if verb.startswith("delete")]
    assert sorted(gone[:2]) == [f"{OF_B}/schema/schema-{n}" for n in (0, 1)] and gone[2] == OF_B
    assert list_snapshots(store) == [1, 2, 3] and list_tags(store) == ["one", "two"]


def test_which_branches_there_are_is_told_a_dozen_of_them(store: Store) -> None:
    assert no_branch(store, "x").hint == "the table has no branches"
    names = [f"b{n:02}" for n in range(14)]
    for name in names:
        store.put(f"branch/branch-{name}/schema/schema-0", b"{}")
    assert no_branch(store, "x").hint == f"branches: {', '.join(names[:12])}"
    assert no_branch(store, "x").code == "branch-not-found"


def test_the_main_branch_goes_on_with_the_schemas_of_another(store: Store) -> None:
    create_branch(store, "b", "two")
    written(store, 20, "b")
    widen(store, "other", "b")
    written(store, 21, "b")
    widen(store, "c")
    assert list_schema_ids(store) == [0, 1, 2, 3] and list_schema_ids(store, "b") == [0, 1, 2]
    own = {n: store.get(f"schema/schema-{n}") for n in (0, 1)}
    assert fast_forward(store, "b") == 4
    assert list_schema_ids(store) == [0, 1, 2]
    assert {n: store.get(f"schema/schema-{n}") for n in (0, 1)} == own
    assert store.get("schema/schema-2") == store.get(f"{OF_B}/schema/schema-2")
    assert [f.name for f in load_snapshot(store).schema.fields] == ["k", "s", "day", "a", "other"]
    assert (store.get("snapshot/LATEST"), store.get("snapshot/EARLIEST")) == (b"4", b"1")
    for number in (2, 3, 4):
        assert store.get(f"snapshot/snapshot-{number}") == store.get(f"{OF_B}/snapshot/snapshot-{number}")
    assert ks(store) == [1, 2, 20, 21] and ks(store, version=1) == [1]


def test_the_main_branch_goes_on_with_the_tags_of_another(store: Store) -> None:
    """Tags of before stay, those of what is gone from the history go."""
    create_branch(store, "b", "two")
    written(store, 20, "b")
    create_tag(store, "of b", 3, branch="b")
    create_tag(store, "three", 3)
    fast_forward(store, "b")
    assert sorted(list_tags(store)) == ["of b", "one", "two"]
    assert ks(store, tag="of b") == [1, 2, 20] and ks(store, tag="one") == [1]
    # One that the branch has no more goes as well.
    create_tag(store, "again", 2)
    fast_forward(store, "b")
    assert sorted(list_tags(store)) == ["of b", "one", "two"]


def test_a_main_branch_that_is_longer_is_cut(store: Store) -> None:
    create_branch(store, "b", "two")
    for k in range(4, 9):
        written(store, k)
    assert fast_forward(store, "b") == 2
    assert list_snapshots(store) == [1, 2] and ks(store) == [1, 2]
    assert (store.get("snapshot/LATEST"), store.get("snapshot/EARLIEST")) == (b"2", b"1")


@pytest.mark.parametrize("name", ["", " ", "main"])
def test_nothing_goes_on_as_what_is_no_other_branch(store: Store, name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        fast_forward(store, name)
    assert caught.value.code == "invalid-name" and list_snapshots(store) == [1, 2, 3]


def test_documents_are_copied_to_another_name_the_newest_first(store: Store) -> None:
    """A later number is a whole state by itself; hints and marks stay behind."""
    create_branch(store, "b", "two")
    for k in range(9):
        written(store, 20 + k, "b")
    counting = FaultyStore(store)
    before = {path: store.get(f"{OF_B}/{path}") for path in files_of(store)}
    assert {"snapshot/LATEST"} <= set(before)
    rename_branch(counting, "b", "c")
    put = [path for verb, path in counting.requests if verb == "put" and path.startswith("branch/branch-c/snapshot/")]
    assert put == [f"branch/branch-c/snapshot/snapshot-{n}" for n in range(11, 1, -1)]
    hints = {"snapshot/LATEST", "snapshot/EARLIEST"}
    assert files_of(store, "branch/branch-c") == set(before) - hints
    assert {path: store.get(f"branch/branch-c/{path}") for path in set(before) - hints} == {
        path: data for path, data in before.items() if path not in hints
    }
    assert ks(store, branch="c") == [1, 2, *range(20, 29)]


def test_a_branch_that_is_renamed_has_its_old_name_until_it_has_the_new_one(store: Store) -> None:
    create_branch(store, "b", "two")
    for path in ("schema/schema-0", "snapshot/snapshot-2", "tag/tag-two"):
        with pytest.raises(AlluviumError):
            rename_branch(FaultyStore(store, Fault(1, verb="put", path=f"branch/branch-c/{path}")), "b", "c")
        assert list_branches(store) == ["b"] and files_of(store, "branch/branch-c") == set()
        assert ks(store, branch="b") == [1, 2]
    assert json.loads(store.get(f"{OF_B}/snapshot/snapshot-2"))["id"] == 2

"""A branch gets another name: all that it has goes with it, and what is written to it meanwhile is not lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_store import Between, FaultyStore
from paimon_rows import append, ks, make, open_target

from alluvium.api.paimon.life.procedures import run_procedure
from alluvium.errors import AlluviumError, CommitUnknown, InvalidRequest, NotFound
from alluvium.paimon import PaimonTable
from alluvium.paimon.commit.callers import is_committed
from alluvium.paimon.log.names import list_branches
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At, list_snapshots, list_tags
from alluvium.paimon.schema import SchemaChange
from alluvium.paimon.upkeep.life.branches import rename_branch
from alluvium.paimon.write.target import PaimonTarget
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


def written(store: Store, branch: str, k: int, txn: tuple[str, int] | None = None) -> int | None:
    snapshot = load_snapshot(store, At(), branch)
    return append(PaimonTarget(store, snapshot.schema, snapshot), [{"k": k}], txn=txn).version


@pytest.fixture
def table(tmp_path: Path) -> PaimonTable:
    url = str(tmp_path / "t")
    store = make(url)
    append(open_target(store), [{"k": 1}])
    table = PaimonTable.forPath(url)
    table.create_tag("one")
    table.create_branch("b", "one")
    written(store, "b", 2)
    return table


def test_all_of_it_is_under_the_other_name(table: PaimonTable) -> None:
    store = open_store(table.url)
    of_branch = PaimonTable.forPath(table.url, branch="b")
    of_branch.create_tag("two")
    of_branch.reset_consumer("reader", 2)
    written(store, "b", 3, ("app", 7))
    done = run_procedure("rename_branch", table.url, {"from_branch": "b", "to_branch": "c"}, {})
    assert done == [{"result": True}]
    assert list_branches(store) == ["c"]
    assert not any(True for _ in store.list_tree("branch/branch-b"))
    assert ks(store, branch="c") == [1, 2, 3] and ks(store, branch="c", tag="two") == [1, 2]
    renamed = PaimonTable.forPath(table.url, branch="c")
    assert list_snapshots(store, "c") == [1, 2, 3] and list_tags(store, "c") == ["one", "two"]
    assert renamed.consumers()["next_snapshot_id"].to_pylist() == [2]
    # Who commits it again is told that it stands.
    assert is_committed(load_snapshot(store, At(), "c"), "app", 7)
    assert table.fast_forward("c") == 3 and ks(store) == [1, 2, 3]


def test_what_is_refused(table: PaimonTable) -> None:
    table.create_branch("other")
    for names, code, kind in [
        (("main", "c"), "invalid-name", InvalidRequest),
        (("nothing", "c"), "branch-not-found", NotFound),
        (("b", "other"), "branch-exists", InvalidRequest),
        (("b", "b"), "branch-exists", InvalidRequest),
        (("b", "main"), "invalid-name", InvalidRequest),
        (("b", "12"), "invalid-name", InvalidRequest),
        (("b", "../c"), "invalid-name", InvalidRequest),
    ]:
        with pytest.raises(kind) as raised:
            table.rename_branch(*names)
        assert raised.value.code == code, names
    assert list_branches(open_store(table.url)) == ["b", "other"]


def begun(path: Path) -> Store:
    store = make(str(path))
    append(open_target(store), [{"k": 1}])
    table = PaimonTable.forPath(store.url)
    table.create_tag("one")
    table.create_branch("b", "one")
    written(store, "b", 2)
    return store


def outcome(store: Store) -> str:
    """What the writer of another row is told."""
    try:
        written(store, "b", 3)
    except CommitUnknown:
        return "unknown"
    except AlluviumError:
        return "none"
    return "stands"


#: By what the writer is told, what may be under the new name.
HELD = {"stands": [[1, 2, 3]], "none": [[1, 2]], "unknown": [[1, 2], [1, 2, 3]]}


def test_what_is_committed_while_a_branch_is_renamed_goes_with_it(tmp_path: Path) -> None:
    counted = FaultyStore(begun(tmp_path / "counted"))
    rename_branch(counted, "b", "c")
    told = []
    for at in range(1, len(counted.requests) + 1):
        store = begun(tmp_path / f"t{at}")
        rename_branch(Between(store, at, lambda store=store: told.append(outcome(store))), "b", "c")
        assert ks(store, branch="c") in HELD[told[-1]], (at, told[-1])
    assert len(told) == len(counted.requests) and {"stands", "none"} <= set(told)


def test_a_branch_is_renamed_at_any_moment_of_a_commit(tmp_path: Path) -> None:
    counted = FaultyStore(begun(tmp_path / "counted"))
    assert outcome(counted) == "stands"
    told = []
    for at in range(1, len(counted.requests) + 1):
        store = begun(tmp_path / f"t{at}")
        told.append(outcome(Between(store, at, lambda store=store: rename_branch(store, "b", "c"))))
        assert ks(store, branch="c") in HELD[told[-1]], (at, counted.requests[at - 1])
    assert set(told) == set(HELD)


def test_the_newest_schema_is_there_before_older_ones(table: PaimonTable) -> None:
    """By an older one a branch would be read wrongly, for a moment, or for good after a crash."""
    of_branch = PaimonTable.forPath(table.url, branch="b")
    for n in range(10):
        of_branch.alter([SchemaChange.add_column(f"c{n}", "INT")])
    store = FaultyStore(open_store(table.url))
    rename_branch(store, "b", "c")
    written = [path for verb, path in store.requests if verb == "put" and path.startswith("branch/branch-c/")]
    schemas = [int(path.rpartition("-")[2]) for path in written if "/schema/" in path]
    assert schemas == list(range(10, -1, -1)) and "/schema/" not in written[len(written) - len(schemas) - 1]

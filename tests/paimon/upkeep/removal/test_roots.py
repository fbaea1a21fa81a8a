"""What is needed while others expire snapshots, give tags other names, or roll back: nothing that a root names goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_store import FaultyStore
from paimon_rows import append, ks, make, open_target

from alluvium.errors import CorruptTable, InvalidRequest, NotFound
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import list_snapshots, list_tags
from alluvium.paimon.upkeep.removal.needs import dead_files
from alluvium.paimon.upkeep.removal.orphans import remove_orphan_files
from alluvium.paimon.upkeep.removal.roots import list_roots
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


class Meanwhile(FaultyStore):
    """Somebody else acts, once, just before or after a request."""

    def __init__(self, store: Store, verb: str, path: str, act: Callable[[], object], is_after: bool = False) -> None:
        super().__init__(store)
        self._where, self._act, self._is_after = (verb, path), act, is_after

    def _request(self, name, path, act, lost=None):  # type: ignore[no-untyped-def]
        if (name, path) != self._where:
            return super()._request(name, path, act, lost)
        self._where = ("", "")
        if not self._is_after:
            self._act()
        answer = super()._request(name, path, act, lost)
        if self._is_after:
            self._act()
        return answer


@pytest.fixture
def table(tmp_path: Path) -> PaimonTable:
    """Four snapshots of an append each."""
    store = make(str(tmp_path / "t"))
    for n in range(4):
        append(open_target(store), [{"k": n}])
    return PaimonTable.forPath(str(tmp_path / "t"))


ONLY_THE_NEWEST = {"retain_max": 1, "retain_min": 1}


def test_a_snapshot_that_expires_while_it_is_read_has_given_its_place_to_another(table: PaimonTable) -> None:
    """Files of all older snapshots were deleted, those of the newest among them."""

    def act() -> None:
        append(open_target(table._store), [{"k": 4}])
        PaimonTable.forPath(table.url).expire_snapshots(**ONLY_THE_NEWEST)

    store = Meanwhile(open_store(table.url), "get", "snapshot/snapshot-4", act)
    # Of the three that go, this one's document is read; what stays is read afterwards.
    PaimonTable(store).expire_snapshots(**ONLY_THE_NEWEST)
    assert (list_snapshots(table._store), ks(table._store)) == ([5], [0, 1, 2, 3, 4])


def test_a_tag_that_gets_another_name_keeps_its_files(table: PaimonTable) -> None:
    append(open_target(table._store), [{"k": 9}])
    table.create_tag("a", 1)
    rolled = PaimonTable.forPath(table.url)
    store = Meanwhile(open_store(table.url), "get", "tag/tag-a", lambda: rolled.rename_tag("a", "b"))
    assert {root.path for root in list_roots(store)} >= {"tag/tag-b"}
    assert "tag/tag-a" not in {root.path for root in list_roots(store)}


def test_a_tag_that_cannot_be_replaced_stays(table: PaimonTable) -> None:
    """It was gone, with the only name that its rows had."""
    table.create_tag("a", 1)
    expiring = PaimonTable.forPath(table.url)
    act = lambda: expiring.expire_snapshots(**ONLY_THE_NEWEST)  # noqa: E731
    store = Meanwhile(open_store(table.url), "get", "snapshot/snapshot-2", act, is_after=True)
    with pytest.raises(NotFound) as raised:
        PaimonTable(store).replace_tag("a", 2)
    assert raised.value.code == "snapshot-expired"
    assert ks(table._store, tag="a") == [0]


def test_a_tag_in_the_place_of_another_needs_its_own_files(table: PaimonTable) -> None:
    """It stands where the old one stood, which was taken for it: what both need was deleted."""
    table.create_tag("a", 1)
    expiring = PaimonTable.forPath(table.url)
    act = lambda: expiring.expire_snapshots(**ONLY_THE_NEWEST)  # noqa: E731
    table.expire_snapshots(retain_max=3, retain_min=1)
    append(open_target(table._store), [{"k": 7}])
    append(open_target(table._store), [{"k": 8}], Replace())
    # The new tag is there, and its snapshot is looked for; then that expires, and the old tag's files may go.
    store = Meanwhile(open_store(table.url), "head", "snapshot/snapshot-3", act, is_after=True)
    PaimonTable(store).replace_tag("a", 3)
    assert (ks(table._store, tag="a"), ks(table._store)) == ([0, 1, 2], [8])


@pytest.mark.parametrize("act", ["delete", "put"])
def test_a_rollback_while_its_snapshot_expires(table: PaimonTable, act: str) -> None:
    """Both went on, and no snapshot was left."""
    other = PaimonTable.forPath(table.url)
    if act == "delete":
        # Whoever expires has made up his mind; all others are taken away before he goes on.
        store = Meanwhile(open_store(table.url), "delete", "snapshot/snapshot-1", lambda: other.rollback_to(2))
        PaimonTable(store).expire_snapshots(**ONLY_THE_NEWEST)
    else:
        expiring = lambda: other.expire_snapshots(**ONLY_THE_NEWEST)  # noqa: E731
        store = Meanwhile(open_store(table.url), "put", "snapshot/LATEST", expiring)
        assert PaimonTable(store).rollback_to(2) == 2
    assert ks(table._store) == [0, 1]
    assert list_snapshots(table._store)[-1] == 2
    assert list_tags(table._store) == []


def test_a_table_that_is_dropped_while_snapshots_expire(table: PaimonTable) -> None:
    """What is put back there would be those of the next table of that name."""
    act = lambda: open_store(table.url).delete_tree("")  # noqa: E731
    store = Meanwhile(open_store(table.url), "delete", "snapshot/snapshot-3", act, is_after=True)
    assert PaimonTable(store).expire_snapshots(**ONLY_THE_NEWEST).ids == ()
    assert list_snapshots(table._store) == []


def test_the_main_branch_is_never_without_rows(table: PaimonTable) -> None:
    """All that it has left is later than the branch: whoever read it meanwhile saw an empty table."""
    table.create_tag("a", 2)
    table.create_branch("b", "a")
    table.expire_snapshots(**ONLY_THE_NEWEST)
    seen: list[list[int]] = []
    act = lambda: seen.append(ks(table._store))  # noqa: E731
    store = Meanwhile(open_store(table.url), "delete", "snapshot/snapshot-4", act, is_after=True)
    assert PaimonTable(store).fast_forward("b") == 2
    assert (seen, ks(table._store)) == ([[0, 1]], [0, 1])


def test_a_rollback_while_somebody_commits(table: PaimonTable) -> None:
    """A snapshot behind those that were taken away was the newest, and had their rows."""
    act = lambda: append(open_target(table._store), [{"k": 9}])  # noqa: E731
    store = Meanwhile(open_store(table.url), "put", "snapshot/LATEST", act)
    assert PaimonTable(store).rollback_to(2) == 2
    assert (list_snapshots(table._store), ks(table._store)) == ([1, 2], [0, 1])
    # One that began on what it went back to stays.
    append(open_target(table._store), [{"k": 3}])
    store = Meanwhile(open_store(table.url), "delete", "snapshot/snapshot-3", act, is_after=True)
    assert PaimonTable(store).rollback_to(2) == 2
    assert ks(table._store) == [0, 1, 9]


def test_lists_of_the_states_of_changelogs_may_be_gone(table: PaimonTable, tmp_path: Path) -> None:
    """As Java leaves them where a table has a producer: nothing was cleaned up any more."""
    root = tmp_path / "t"
    (root / "changelog").mkdir()
    first = (root / "snapshot/snapshot-1").read_bytes()
    table.expire_snapshots(**ONLY_THE_NEWEST)
    (root / "changelog/changelog-1").write_bytes(first)
    table.create_tag("a")
    append(open_target(table._store), [{"k": 7}])
    assert table.expire_snapshots(**ONLY_THE_NEWEST).ids == (4,)
    table.delete_tag("a")
    assert table.remove_orphan_files("2020-01-01").count == 0
    assert ks(table._store) == [0, 1, 2, 3, 7]


def test_a_snapshot_with_a_changelog_needs_its_rows_all_the_same(table: PaimonTable) -> None:
    """Only what is left of an expired one has nothing but its changelog."""
    root = Path(table.url.removeprefix("file:"))
    newest = json.loads((root / "snapshot/snapshot-4").read_text())
    changelog = "manifest-list-of-a-changelog"
    (root / "manifest" / changelog).write_bytes((root / "manifest" / newest["deltaManifestList"]).read_bytes())
    (root / "snapshot/snapshot-4").write_text(json.dumps({**newest, "changelogManifestList": changelog}))
    table.expire_snapshots(**ONLY_THE_NEWEST)
    assert (list_snapshots(table._store), ks(table._store)) == ([4], [0, 1, 2, 3])


def test_a_branch_without_a_schema_ends_the_search_for_orphans(table: PaimonTable, tmp_path: Path) -> None:
    """Nobody knows what it needs."""
    table.create_tag("a")
    table.create_branch("half", "a")
    (tmp_path / "t/branch/branch-half/schema/schema-0").unlink()
    with pytest.raises(CorruptTable) as caught:
        table.remove_orphan_files("2020-01-01")
    assert caught.value.code == "branch-without-schema" and "half" in str(caught.value)
    table.delete_branch("half")
    assert table.remove_orphan_files("2020-01-01").count == 0


def test_what_is_written_now_is_no_orphan(table: PaimonTable) -> None:
    for older_than_ms in (5000, 5001):
        with pytest.raises(InvalidRequest) as caught:
            remove_orphan_files(table._store, load_snapshot(table._store).schema, older_than_ms, 5000, dry_run=True)
        assert caught.value.code == "invalid-retention"
    found = remove_orphan_files(table._store, load_snapshot(table._store).schema, 4999, 5000, dry_run=True)
    assert found.count == 0


def test_nothing_is_dead_where_nobody_knows_what_a_kept_state_needs(table: PaimonTable, tmp_path: Path) -> None:
    roots = {root.document.id: root for root in list_roots(table._store)}
    dying, kept = [roots[1], roots[2]], [roots[4]]
    assert dead_files(table._store, dying, kept).data.num_rows == 0
    table._store.delete(f"manifest/{roots[4].document.base_manifest_list}")
    with pytest.raises(NotFound):
        dead_files(table._store, dying, kept)
    # What a dying one names may be gone: another expiry was quicker.
    assert dead_files(table._store, [roots[4]], [roots[1]]).data.num_rows == 1

"""Every verb about the life of a Paimon table, with every single request of it failing once: before and after it took
effect, softly and as a crash. Afterwards every snapshot, tag, branch and changelog that is there reads as it always did,
and the verb done again does what it is for.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from faulty_store import Crash, Fault, FaultyStore, When
from paimon_rows import append, make, open_target

import alluvium
from alluvium.api.paimon.paimon_table import PaimonTable
from alluvium.errors import AlluviumError, InvalidRequest, NotFound
from alluvium.paimon.log.names import list_branches, list_names
from alluvium.paimon.log.schema_log import list_schema_ids
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At, list_snapshots
from alluvium.paimon.upkeep.life.tags import list_all_tags
from alluvium.paimon.upkeep.removal.roots import Kind, list_roots
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

Rows = tuple[int, ...]
#: What each snapshot of the table that all begin with holds; 5 on the branch.
HELD: dict[tuple[str, int], Rows] = {
    ("main", 1): (1,),
    ("main", 2): (1, 2),
    ("main", 3): (30,),
    ("main", 4): (30, 40),
    ("main", 5): (30, 40, 50),
    ("b", 2): (1, 2),
    ("b", 3): (1, 2, 99),
}


def made(url: str) -> None:
    """Five snapshots, the third without the files of those before; tags of 2 and 4; a branch from 2 with a commit."""
    make(url, "day", **{"snapshot.clean-empty-directories": "true"})
    store, table = open_store(url), PaimonTable.forPath(url)
    append(open_target(store), [{"k": 1, "day": "2020-01-01"}])
    append(open_target(store), [{"k": 2, "day": "2020-01-02"}])
    table.create_tag("two")
    append(open_target(store), [{"k": 30, "day": "2020-01-03"}], Replace())
    append(open_target(store), [{"k": 40, "day": "2020-01-04"}])
    table.create_tag("four", time_retained="1 ms")
    append(open_target(store), [{"k": 50, "day": "9999-01-01"}])
    table.create_branch("b", "two")
    append_to_branch(store, "b", 99)


def append_to_branch(store: Store, branch: str, k: int) -> None:
    snapshot = load_snapshot(store, At(), branch)
    append(PaimonTarget(store, snapshot.schema, snapshot), [{"k": k, "day": "2020-01-09"}])


@dataclass(frozen=True, slots=True)
class Verb:
    """What is done, and what is to be seen of it when it was done whole."""

    act: Callable[[PaimonTable], object]
    done: Callable[[str], bool]


def snapshots(url: str, branch: str = "main") -> list[int]:
    return list_snapshots(open_store(url), branch)


def tags(url: str) -> set[str]:
    return set(list_names(open_store(url), "tag", "tag-"))


def lasting(url: str) -> set[str]:
    """Tags but for those that a crash has left, or a request that failed behind the commit: these expire."""
    found = {tag.name: tag for tag in list_all_tags(open_store(url))}
    return {name for name, tag in found.items() if not (name.startswith("rollback-to-as-latest-") and tag.retained)}


def rows(url: str, **at: object) -> Rows:
    return tuple(sorted(alluvium.open(url, **at).to_arrow(columns=["k"])["k"].to_pylist()))  # type: ignore[arg-type]


def expire_all(table: PaimonTable) -> object:
    return table.expire_snapshots(retain_max=1, retain_min=1, older_than=int(time.time() * 1000) + 1000)


def orphans(table: PaimonTable) -> object:
    return table.remove_orphan_files(older_than=int(time.time() * 1000) - 1)


def renamed(url: str) -> bool:
    return list_branches(open_store(url)) == ["c"] and rows(url, branch="c") == (1, 2, 99)


VERBS = {
    "expire snapshots": Verb(expire_all, lambda url: snapshots(url) == [5]),
    "create tag": Verb(lambda t: t.create_tag("new", 3), lambda url: "new" in tags(url)),
    "rename tag": Verb(lambda t: t.rename_tag("two", "zwei"), lambda url: tags(url) == {"zwei", "four"}),
    "replace tag": Verb(lambda t: t.replace_tag("two", 5), lambda url: rows(url, tag="two") == (30, 40, 50)),
    "delete tag": Verb(lambda t: t.delete_tag("two"), lambda url: "two" not in tags(url)),
    "expire tags": Verb(lambda t: t.expire_tags(), lambda url: tags(url) == {"two"}),
    "rollback": Verb(lambda t: t.rollback_to(3), lambda url: snapshots(url) == [1, 2, 3] and tags(url) == {"two"}),
    "rollback to tag": Verb(lambda t: t.rollback_to("two"), lambda url: snapshots(url) == [1, 2] and tags(url) == {"two"}),
    "create branch": Verb(lambda t: t.create_branch("c", "four"), lambda url: rows(url, branch="c") == (30, 40)),
    "delete branch": Verb(lambda t: t.delete_branch("b"), lambda url: list_branches(open_store(url)) == []),
    "fast forward": Verb(lambda t: t.fast_forward("b"), lambda url: snapshots(url) == [1, 2, 3] and rows(url) == (1, 2, 99)),
    "rename branch": Verb(lambda t: t.rename_branch("b", "c"), renamed),
    "rollback as latest": Verb(lambda t: t.rollback_to_as_latest(snapshot_id=2), lambda url: rows(url) == (1, 2) and snapshots(url)[:5] == [1, 2, 3, 4, 5]),
    "rollback to tag as latest": Verb(lambda t: t.rollback_to_as_latest(tag="two"), lambda url: rows(url) == (1, 2) and lasting(url) == {"two", "four"}),
    "purge": Verb(lambda t: t.purge_files(), lambda url: rows(url) == () and len(snapshots(url)) == 1 and not tags(url)),
    "remove unexisting files": Verb(lambda t: t.remove_unexisting_files(), lambda url: rows(url) == (30, 40, 50)),
    "expire partitions": Verb(lambda t: t.expire_partitions("1 d"), lambda url: rows(url) == (50,)),
    "remove orphans": Verb(orphans, lambda url: not Path(url, "manifest/stray").exists()),
    "compact manifests": Verb(lambda t: t.compact_manifests(), lambda url: snapshots(url)[-1] >= 6),
    "mark done": Verb(lambda t: t.mark_partition_done("day=2020-01-03"), lambda url: Path(url, "day=2020-01-03/_SUCCESS").exists()),
}  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("life") / "made"
    made(str(path))
    (path / "manifest" / "stray").write_bytes(b"x")
    time.sleep(0.01)
    return path


def ensure_all_readable(url: str, told: str) -> None:
    """Every root that is there, and says what it said."""
    for root in list_roots(open_store(url)):
        at: dict[str, object] = {"version": root.document.id}
        if root.kind is Kind.TAG:
            at = {"tag": root.path.rpartition("/tag-")[2]}
        try:
            found = rows(url, branch=root.branch, **at)
        except NotFound as error:
            # What is left of a branch that was being made or deleted is none.
            assert error.code == "branch-not-found", told
            continue
        held = HELD.get((root.branch, root.document.id))
        if root.branch == "main" and root.document.commit_kind == "APPEND":
            assert found in (held, HELD.get(("b", root.document.id))), f"{told}: {root.path}"
    known = [(30, 40, 50), (30, 40), (30,), (1, 2), (1, 2, 99), (50,)]
    assert rows(url) in ([*known, ()] if told.startswith("purge") else known), told


def error_left(url: str) -> bool:
    """Whether the old name of a branch has no schema any more, and something of it is left."""
    store = open_store(url)
    return not list_schema_ids(store, "b") and any(True for _ in store.list_tree("branch/branch-b"))


#: Requests by which something changes; of the others a part fails, all of them where everything is played.
WRITES = ("put", "put_if_absent", "delete", "delete_all", "delete_tree", "remove_directory", "move")
READS_BETWEEN = 1 if os.environ.get("ALLUVIUM_FAULTS") == "all" else 30


def places(requests: list[tuple[str, str]]) -> list[int]:
    """Which requests fail, counted from 1."""
    return [n for n, (verb, _) in enumerate(requests, 1) if verb in WRITES or n % READS_BETWEEN == 0]


CASES = [
    pytest.param(name, when, crash, id=f"{name}-{when.value}-{'crash' if crash else 'soft'}")
    for name, when, crash in itertools.product(VERBS, When, (False, True))
    if crash is (when is When.AFTER)
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "when", "crash"), CASES)
def test_each_request_of_each_verb_fails_once(
    tmp_path: Path, original: Path, name: str, when: When, crash: bool
) -> None:
    verb = VERBS[name]
    shutil.copytree(original, tmp_path / "counted")
    counted = FaultyStore(open_store(str(tmp_path / "counted")))
    verb.act(PaimonTable(counted))
    assert verb.done(str(tmp_path / "counted"))
    ensure_all_readable(str(tmp_path / "counted"), name)
    for at in places(counted.requests):
        url = str(tmp_path / f"t{at}")
        shutil.copytree(original, url)
        store = FaultyStore(open_store(url), Fault(at, when, crash=crash))
        outcome: BaseException | None = None
        try:
            verb.act(PaimonTable(store))
        except (AlluviumError, Crash) as error:
            outcome = error
        request = store.requests[at - 1] if len(store.requests) >= at else None
        told = f"{name}: request {at} {request} failed {when.value}: {outcome!r}"
        ensure_all_readable(url, told)
        if outcome is None:
            assert verb.done(url), told
            continue
        try:
            verb.act(PaimonTable(open_store(url)))
        except (InvalidRequest, NotFound) as error:
            if error.code == "branch-exists":
                # Whole, or half made, where the other is still there.
                PaimonTable(open_store(url)).delete_branch("c")
                verb.act(PaimonTable(open_store(url)))
            else:
                assert error.code in ("tag-exists", "tag-not-found", "branch-not-found"), f"{told}: {error}"
        if name == "rename branch" and error_left(url):
            PaimonTable(open_store(url)).delete_branch("b")
        if name == "rename tag" and {"two", "zwei"} <= tags(url):
            PaimonTable(open_store(url)).delete_tag("two")
        assert verb.done(url), f"{told}, and again"
        ensure_all_readable(url, f"{told}, and again")
        shutil.rmtree(url)

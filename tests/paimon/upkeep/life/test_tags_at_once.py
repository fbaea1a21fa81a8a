"""A tag goes away, or names another snapshot, while somebody works with it: whatever is there afterwards can be read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from faulty_store import Between, FaultyStore
from paimon_rows import append, ks, make, open_target

from alluvium.errors import AlluviumError
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.names import list_branches
from alluvium.paimon.log.travel import list_snapshots, list_tags
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store

#: What each snapshot holds.
HELD = {1: [1], 2: [2], 3: [3], 4: [4]}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Only a tag keeps the files of the first snapshot, which has expired."""
    path = tmp_path_factory.mktemp("original") / "t"
    store = make(str(path))
    for k in (1, 2, 3, 4):
        append(open_target(store), [{"k": k}], Replace())
    table = PaimonTable.forPath(store.url)
    table.create_tag("one", 1)
    table.expire_snapshots(retain_max=2, retain_min=2)
    assert list_snapshots(store) == [3, 4] and ks(store, tag="one") == [1]
    return path


def states(url: str) -> Iterator[tuple[str, list[int]]]:
    store = open_store(url)
    for branch in ("main", *list_branches(store)):
        for number in list_snapshots(store, branch):
            yield f"{branch} {number}", ks(store, branch=branch, version=number)
        for tag in list_tags(store, branch):
            yield f"{branch} {tag}", ks(store, branch=branch, tag=tag)


ACTS: dict[str, Callable[[PaimonTable], object]] = {
    "renamed": lambda table: table.rename_tag("one", "eins"),
    "tagged": lambda table: table.create_tag("uno", 1),
    "branched": lambda table: table.create_branch("b", "one"),
    "the newest": lambda table: table.rollback_to_as_latest(tag="one"),
    "gone back to": lambda table: table.rollback_to("one"),
}
MEANWHILE: dict[str, Callable[[PaimonTable], object]] = {
    "deleted": lambda table: table.delete_tag("one"),
    "replaced": lambda table: table.replace_tag("one", 4),
}


@pytest.mark.long
@pytest.mark.parametrize("other", MEANWHILE)
@pytest.mark.parametrize("act", ACTS)
def test_whatever_is_there_can_be_read(tmp_path: Path, original: Path, act: str, other: str) -> None:
    shutil.copytree(original, tmp_path / "counted")
    counted = FaultyStore(open_store(str(tmp_path / "counted")))
    ACTS[act](PaimonTable(counted))
    count = len(counted.requests)
    for at in range(1, count + 1, 1 if count < 30 else 3):
        url = str(tmp_path / f"t{at}")
        shutil.copytree(original, url)

        def meanwhile(url: str = url) -> None:
            # A rollback has forgotten what it would name.
            with suppress(AlluviumError):
                MEANWHILE[other](PaimonTable.forPath(url))

        outcome = "done"
        try:
            ACTS[act](PaimonTable(Between(open_store(url), at, meanwhile)))
        except AlluviumError as error:
            outcome = error.code
        told = f"{other} before request {at}, {counted.requests[at - 1]}: {outcome}"
        assert outcome in ("done", "tag-not-found", "snapshot-expired", "snapshot-not-found"), told
        try:
            found = dict(states(url))
        except AlluviumError as error:
            pytest.fail(f"{told}, and then {error}")
        for name, rows in found.items():
            number = name.rpartition(" ")[2]
            assert rows in ([HELD[int(number)]] if number in ("3", "4") else [[1], [4]]), (told, name)
        shutil.rmtree(url)

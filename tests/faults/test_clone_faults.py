"""CLONE with every single request of it failing once: before and after it took effect, softly and as a crash.

After each the target is what it was, or the whole clone; and the next clone ends the work.
"""

from __future__ import annotations

import os
import shutil
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from faulty_store import Crash, Fault, FaultyStore, When
from plain_writer import commit_rows, open_target
from vacuumed_tables import files_of, mask_first_file

import alluvium
from alluvium.delta.upkeep.clone.clone import CloneRequest, clone
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.errors import AlluviumError
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

WAYS = [(when, crash) for when in When for crash in (False, True)]
PLAYS_ALL = os.environ.get("ALLUVIUM_FAULTS") == "all"
ROWS = [2, 3, 4]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files; the first row of one is deleted by a vector."""
    root = tmp_path_factory.mktemp("clone") / "s"
    store = open_store(root)
    commit_rows(open_target(store), [1, 2])
    commit_rows(open_target(store), [3, 4])
    mask_first_file(store)
    return root


def ids(root: Path) -> list[int]:
    return sorted(alluvium.open(str(root)).to_arrow()["id"].to_pylist())


def carry_out(source: Path, store: Store, shallow: bool, replaces: bool) -> None:
    existing: Snapshot | None = load_snapshot(store) if replaces else None
    clone(load_snapshot(open_store(source)), store, existing, CloneRequest("s", shallow, replaces))


@pytest.mark.long
@pytest.mark.parametrize("shallow", [False, True], ids=["deep", "shallow"])
@pytest.mark.parametrize("replaces", [False, True], ids=["new", "in place"])
def test_every_request_fails_once(source: Path, tmp_path: Path, shallow: bool, replaces: bool) -> None:
    def target(name: str) -> Path:
        if replaces:
            commit_rows(open_target(open_store(tmp_path / name)), [7])
        return tmp_path / name

    counted = FaultyStore(open_store(target("counted")))
    carry_out(source, counted, shallow, replaces)
    assert ids(tmp_path / "counted") == sorted(ids(source))
    for at in range(1, len(counted.requests) + 1):
        for when, crash in WAYS if PLAYS_ALL else [WAYS[at % len(WAYS)]]:
            root = target(f"{at}-{when.value}-{crash}")
            fault = Fault(at, when, crash=crash)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                survives(source, root, fault, shallow, replaces)
            shutil.rmtree(root)


def survives(source: Path, root: Path, fault: Fault, shallow: bool, replaces: bool) -> None:
    with suppress(AlluviumError, Crash):
        carry_out(source, FaultyStore(open_store(root), fault), shallow, replaces)
    exists = (root / "_delta_log" / f"{0:020d}.json").exists()
    if exists:
        assert ids(root) in ([7], ids(source)) if replaces else ids(root) == ids(source), fault
        assert not replaces or sorted(alluvium.open(str(root), version=0).to_arrow()["id"].to_pylist()) == [7]
    before = files_of(root)
    carry_out(source, open_store(root), shallow, exists)
    assert ids(root) == ids(source), fault
    assert before <= files_of(root), fault

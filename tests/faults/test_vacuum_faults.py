"""VACUUM with every single request of it failing once: before and after it took effect, softly and as a crash.

After each: the versions within the retention are whole, nothing of somebody else's is gone, and the next VACUUM ends
the work.
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
from vacuumed_tables import age, backdate_tombstones, files_of, litter, live, newest, overwritten

from alluvium.delta.upkeep.vacuum.vacuum import VacuumRequest, vacuum
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import AlluviumError
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store

ORPHANS = ("orphan.parquet", "d/orphan.parquet")
KEPT = ("_hidden/x",)
WAYS = [(when, crash) for when in When for crash in (False, True)]
PLAYS_ALL = os.environ.get("ALLUVIUM_FAULTS") == "all"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions 0 to 2 are past; 3 and 4 are within the retention, and 5 is the newest."""
    root = tmp_path_factory.mktemp("vacuum") / "t"
    store = overwritten(root, 2)
    backdate_tombstones(store)
    age(root, 30)
    for n in (3, 4, 5):
        commit_rows(open_target(store), [n], replace=Replace())
    litter(root, *ORPHANS, *KEPT)
    (root / "empty").mkdir()
    return root


def requests_of(template: Path, tmp_path: Path, lite: bool) -> int:
    shutil.copytree(template, tmp_path / "counted", symlinks=True)
    store = FaultyStore(open_store(tmp_path / "counted"))
    vacuum(load_snapshot(store), VacuumRequest(lite=lite))
    return len(store.requests)


@pytest.mark.long
@pytest.mark.parametrize("lite", [False, True], ids=["full", "lite"])
def test_every_request_fails_once(template: Path, tmp_path: Path, lite: bool) -> None:
    total = requests_of(template, tmp_path, lite)
    assert total > 15
    for at in range(1, total + 1):
        for when, crash in WAYS if PLAYS_ALL else [WAYS[at % len(WAYS)]]:
            root = tmp_path / f"{at}-{when.value}-{crash}"
            shutil.copytree(template, root, symlinks=True)
            survives(root, Fault(at, when, crash=crash), lite)
            shutil.rmtree(root)


def survives(root: Path, fault: Fault, lite: bool) -> None:
    store = open_store(root)
    needed = live(store, 2) | live(store, 3) | live(store, 4) | live(store, 5) | set(KEPT)
    past = live(store, 0) | live(store, 1)
    before = files_of(root)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(AlluviumError, Crash):
            vacuum(load_snapshot(FaultyStore(store, fault)), VacuumRequest(lite=lite))
        left = files_of(root)
        assert needed <= left <= before, fault
        assert live(store) <= left
        vacuum(newest(store), VacuumRequest(lite=lite))
        left = files_of(root)
        assert needed <= left, fault
        # What LITE has done it has noted; where the note is lost, it looks again.
        assert left & past == set(), fault
        assert set(ORPHANS) <= left if lite else not set(ORPHANS) & left
        assert sorted(load_snapshot(store, 2).files["size"].to_pylist())

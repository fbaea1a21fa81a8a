"""VACUUM and OPTIMIZE beside writers and a reader, all of them killed at random: no version within the retention loses a
file, whatever the clocks of the machines say, and no row is lost or doubled.

What makes files old is not the clock but this test: now and then it dates back the commits up to some version, and the
files that these knew. So it knows at any time which versions are within the retention.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from plain_writer import SCHEMA, commit_rows, open_target, rewrite_partition
from vacuumed_tables import DAY_S, files_of

import alluvium
from alluvium.delta.log.names import commit_path
from alluvium.delta.log.segment import list_log
from alluvium.delta.upkeep.clone.clone import CloneRequest, clone
from alluvium.delta.upkeep.restore import restore
from alluvium.delta.upkeep.vacuum.vacuum import HOUR_MS, VacuumRequest, vacuum
from alluvium.delta.view.scan import data_paths
from alluvium.delta.view.snapshot import RECENT, load_snapshot
from alluvium.errors import CommitConflict, NotFound
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import Replace
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

SECONDS = float(os.environ.get("ALLUVIUM_UPKEEP_SECONDS", "6"))
SEED = int(os.environ.get("ALLUVIUM_CHAOS_SEED", "7"))
PATIENT = RetryPolicy(max_attempts=100)
#: A retention of an hour; what is dated back is two hours old.
RETENTION_MS, AGED_S = HOUR_MS, 7200
#: For how long more a busy machine may need until the first file went.
PATIENCE_S, KILLS = 120, 3
#: How many of the newest versions stay within the retention when time leaps.
STAY = 5


def append(store: Store, n: int) -> None:
    commit_rows(open_target(store, retry=PATIENT), [n], "both")


def overwrite(store: Store, n: int) -> None:
    sql = "p = 'over'"
    commit_rows(open_target(store, retry=PATIENT), [-n - 2], "over", Replace(parse_predicate(sql, SCHEMA), sql))


def compact(store: Store, n: int) -> None:
    rewrite_partition(open_target(store, retry=PATIENT), "both")


def clean(store: Store, n: int) -> None:
    # That the retention is shorter than the table's is what this test is about.
    vacuum(load_snapshot(store), VacuumRequest(RETENTION_MS, checks=False), retry=PATIENT)


def clean_by_log(store: Store, n: int) -> None:
    vacuum(load_snapshot(store), VacuumRequest(RETENTION_MS, lite=True, checks=False, logs=False), retry=PATIENT)


def come_back(store: Store, n: int) -> None:
    current = load_snapshot(store)
    old = load_snapshot(store, max(current.version - 1 - n % 3, 0))
    restore(current, old, {"version": old.version, "timestamp": None}, "test", retry=PATIENT)


def copy_all(store: Store, n: int) -> None:
    """Beside the table; who copies what VACUUM takes meanwhile makes no clone."""
    beside = copy_of(store)
    there = load_snapshot(beside) if list_log(beside).latest >= 0 else None
    clone(load_snapshot(store), beside, there, CloneRequest("t", shallow=False, replace=True), retry=PATIENT)


def copy_of(store: Store) -> Store:
    return open_store(f"{store.url}-copy")


#: What each process does in turns, and by how much its clock is wrong. What comes back by RESTORE was a row before.
Roles = tuple[tuple[tuple[Callable[[Store, int], None], ...], int], ...]
ROWS: Roles = (
    ((append, overwrite), -400 * DAY_S),
    ((append, append, compact), 90 * DAY_S),
    ((clean, clean_by_log), 90 * DAY_S),
)
VERSIONS: Roles = (
    ((append, overwrite, come_back), -400 * DAY_S),
    ((append, come_back, compact), 90 * DAY_S),
    ((copy_all,), 0),
    ((clean, clean_by_log), 90 * DAY_S),
)


def work(url: str, notes: str, roles: Roles, role: int, begin: int) -> None:
    """Goes on until it is killed; notes what an append has done."""
    verbs, wrong_s = roles[role]
    now = time.time
    time.time = lambda: now() + wrong_s
    store, n = open_store(url), begin
    while True:
        do = verbs[n % len(verbs)]
        try:
            do(store, n)
        except (CommitConflict, NotFound):
            # Who was asleep for longer than the retention finds what he read gone.
            continue
        if do is append:
            with open(notes, "a") as file:
                file.write(f"{n}\n")
        n += 1
        if n - begin == 2 * len(verbs):
            mark_of(notes, os.getpid()).touch()


def mark_of(notes: str, pid: int | None) -> Path:
    """What a process leaves once it has done all that it does."""
    return Path(f"{notes}.{pid}")


def leap(root: Path, store: Store) -> int:
    """Time goes on for all that was done: the first version that is still within the retention."""
    newest = load_snapshot(store).version
    first = max(newest - STAY, 0)
    assert 0 in list_log(store).commits, "a clock that is ahead takes no log away"
    known: set[str] = set()
    for version in range(max(first - 20, 0), first + 1):
        known |= set(data_paths(load_snapshot(store, version).files).to_pylist())
    then = time.time() - AGED_S
    # What is within the retention already stays there: the version at its beginning was replaced later.
    for path in [*known, *(commit_path(version) for version in range(first))]:
        try:
            os.utime(root / path, (then, then))
        except FileNotFoundError:
            assert path in known, "commits stay"
    RECENT.clear()
    return first


def ensure_whole(root: Path, store: Store, first: int) -> None:
    """Every version from `first` on has its files."""
    for version in range(first, load_snapshot(store).version + 1):
        missing = [p for p in data_paths(load_snapshot(store, version).files).to_pylist() if not (root / p).exists()]
        assert not missing, f"version {version}, within the retention since {first}"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_version_within_the_retention_loses_a_file(tmp_path: Path) -> None:
    root, notes = tmp_path / "table", tmp_path / "notes"
    store = open_store(root)
    commit_rows(open_target(store, partitioned=True), [-1], "start")
    gone, kills = run(root, notes, store, ROWS)
    assert kills >= KILLS
    assert gone, "some files were old enough to go"
    ids = alluvium.open(str(root)).to_arrow(["id"]).column("id")
    done = {int(line) for line in notes.read_text().split("\n")[:-1]}
    found = [n for n in ids.to_pylist() if n >= 0]
    assert len(set(found)) == len(found), "a row stands twice"
    assert done <= set(found), "a row is gone"
    assert sum(n < -1 for n in ids.to_pylist()) <= 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_versions_that_come_back_and_copies_are_whole(tmp_path: Path) -> None:
    root = tmp_path / "table"
    store = open_store(root)
    commit_rows(open_target(store, partitioned=True), [-1], "start")
    gone, kills = run(root, tmp_path / "notes", store, VERSIONS)
    assert kills >= KILLS
    assert gone, "some files were old enough to go"
    operations = {row["operation"] for row in alluvium.open(str(root)).history().to_pylist()}
    assert "RESTORE" in operations
    copy = copy_of(store)
    assert load_snapshot(copy).version > 0, "the copy was made again"
    ensure_whole(Path(f"{root}-copy"), copy, load_snapshot(copy).version)
    assert alluvium.open(copy.url).count() == alluvium.open(copy.url).to_arrow().num_rows


def run(root: Path, notes: Path, store: Store, roles: Roles) -> tuple[set[str], int]:
    """Lets all of them work, kills one every now and then, and looks; the files that went, and the kills."""
    chance, context = random.Random(SEED), multiprocessing.get_context("spawn")
    starts, ever, gone = iter(range(0, 1 << 60, 1 << 20)), set[str](), set[str]()

    def start(role: int) -> BaseProcess:
        process = context.Process(target=work, args=(str(root), str(notes), roles, role, next(starts)), daemon=True)
        process.start()
        return process

    running, kills, first = [start(role) for role in range(len(roles))], 0, 0
    end = time.monotonic() + SECONDS
    try:
        while time.monotonic() < end or (time.monotonic() < end + PATIENCE_S and (kills < KILLS or not gone)):
            time.sleep(chance.uniform(0.2, 1))
            ever |= files_of(root)
            # What was within the retention until now.
            ensure_whole(root, store, first)
            first = leap(root, store)
            gone |= ever - files_of(root)
            # Who has just begun is left alone, or on a slow machine nobody would ever get to work.
            at_work = [role for role, process in enumerate(running) if mark_of(str(notes), process.pid).exists()]
            for role in at_work and [chance.choice(at_work)]:
                os.kill(running[role].pid or 0, signal.SIGKILL)
                running[role].join()
                assert running[role].exitcode == -signal.SIGKILL, f"{roles[role]} failed by itself"
                running[role] = start(role)
                kills += 1
    finally:
        for process in running:
            process.kill()
            process.join()
    ensure_whole(root, store, first)
    return gone, kills

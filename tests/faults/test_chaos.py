"""Writers that are killed at random instants, while others go on: nothing is lost, nothing doubled, all is readable.

Each process notes what it is about to do, and what it has done; after a kill its successor goes on at the last note. An
append carries a transaction identifier, so that a commit whose answer nobody heard is not repeated.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from plain_writer import SCHEMA, commit_rows, open_target

import alluvium
from alluvium.delta.description.evolve import set_properties
from alluvium.delta.log.checksum import check_checksum, parse_checksum
from alluvium.delta.log.names import checksum_path
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict, NotFound
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import Describe, ReadScope, Replace
from alluvium.plan.retry import RetryPolicy
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

WRITERS = 8
COMMITS = int(os.environ.get("ALLUVIUM_CHAOS_COMMITS", "300"))
SEED = int(os.environ.get("ALLUVIUM_CHAOS_SEED", "7"))
PATIENT = RetryPolicy(max_attempts=100)


class Notes:
    """What a writer is about to do (`+n`) and has done (`=n`), one line each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, text: str) -> None:
        with open(self._path, "a") as file:
            file.write(text + "\n")
            file.flush()

    def numbers(self, mark: str) -> set[int]:
        if not self._path.exists():
            return set()
        # A writer may have died within a line.
        lines = self._path.read_text().split("\n")[:-1]
        return {int(line[1:]) for line in lines if line.startswith(mark)}


def append(store: Store, writer: int, n: int) -> None:
    target = open_target(store, retry=PATIENT)
    assert target.snapshot is not None
    seen = target.snapshot.state.txns.get(f"writer-{writer}")
    if seen is None or seen.version < n:
        commit_rows(target, [writer * 1_000_000 + n], f"w{writer}", txn=(f"writer-{writer}", n))


def overwrite(store: Store, writer: int, n: int) -> None:
    sql = f"p = 'w{writer}'"
    commit_rows(
        open_target(store, retry=PATIENT),
        [writer * 1_000_000 + n],
        f"w{writer}",
        Replace(parse_predicate(sql, SCHEMA), sql),
    )


def change_property(store: Store, writer: int, n: int) -> None:
    snapshot = load_snapshot(store)
    change = set_properties(snapshot.config, {f"writer{writer}": str(n)})
    DeltaTarget(store, change.config, snapshot).commit(Describe(change.operation, ReadScope.nothing()))


def work(url: str, notes: Path, writer: int) -> None:
    """Commits until it is killed."""
    store, own = open_store(url), Notes(notes / str(writer))
    do = (append, append, append, append, overwrite, overwrite, overwrite, change_property)[writer]
    n = max(own.numbers("+"), default=-1)
    n = n if n >= 0 and n not in own.numbers("=") else n + 1
    while True:
        own.write(f"+{n}")
        try:
            do(store, writer, n)
        except CommitConflict:
            # Somebody changed the table's description meanwhile: what was to be said is said anew.
            continue
        own.write(f"={n}")
        n += 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_writers_lose_and_double_nothing(tmp_path: Path) -> None:
    url, notes = str(tmp_path / "table"), tmp_path / "notes"
    notes.mkdir()
    store = open_store(url)
    commit_rows(open_target(store, partitioned=True), [-1], "start")
    kills = run_writers(url, notes, store)
    assert kills > WRITERS
    ids = alluvium.open(url).to_arrow(["id"]).column("id").to_pylist()
    found = Counter(ids)
    assert set(found.values()) == {1}, "a row stands twice"
    for writer in range(WRITERS - 1):
        own = Notes(notes / str(writer))
        begun, done = own.numbers("+"), own.numbers("=")
        there = {row - writer * 1_000_000 for row in found if row // 1_000_000 == writer and row >= 0}
        if writer < 4:
            assert done <= there <= begun, f"writer {writer} appended"
        else:
            # On a slow machine a writer may lose every race that it is alive for: then it has done nothing.
            assert len(there) <= 1, f"writer {writer} overwrote"
            assert max(done, default=-1) <= max(there, default=-1) <= max(begun), f"writer {writer} overwrote"
    value = int(alluvium.open(url).properties.get(f"writer{WRITERS - 1}", "-1"))
    assert max(Notes(notes / str(WRITERS - 1)).numbers("="), default=-1) <= value
    ensure_every_version(store)


def run_writers(url: str, notes: Path, store: Store) -> int:
    """Lets writers run, and kills and replaces one of them every now and then, until there are enough commits."""
    chance = random.Random(SEED)
    context = multiprocessing.get_context("spawn")

    def start(writer: int) -> BaseProcess:
        process = context.Process(target=work, args=(url, notes, writer), daemon=True)
        process.start()
        return process

    running = [start(writer) for writer in range(WRITERS)]
    kills = 0
    try:
        while load_snapshot(store).version < COMMITS:
            time.sleep(chance.uniform(0.05, 1.5))
            writer = chance.randrange(WRITERS)
            os.kill(running[writer].pid or 0, signal.SIGKILL)
            running[writer].join()
            # Anything else than our kill is a failure of the writer itself.
            assert running[writer].exitcode == -signal.SIGKILL, f"writer {writer} failed by itself"
            running[writer] = start(writer)
            kills += 1
    finally:
        for process in running:
            process.kill()
            process.join()
    return kills


def ensure_every_version(store: Store) -> None:
    """Each version is readable, and agrees with its checksum where the writer lived long enough to write one."""
    newest = load_snapshot(store).version
    checked = 0
    for version in range(newest + 1):
        snapshot = load_snapshot(store, version)
        try:
            data = store.get(checksum_path(version))
        except NotFound:
            continue
        assert check_checksum(snapshot.state, parse_checksum(data, checksum_path(version), version)) == ()
        checked += 1
    assert checked > newest // 2

"""Writers of all kinds at once on one table: what comes out is what one of them after the other would have made.

Each writer notes the version that it made, and what that means for a dict of rows. Played in the order of versions, the
notes give every version of the table: nothing is lost, nothing doubled, and nobody acted on rows that were no longer so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest
from plain_writer import commit_rows

import alluvium
from alluvium import DeltaTable, RetryPolicy
from alluvium.commands.merge.merge import merge_rows
from alluvium.commands.merge.merge_clauses import Clause
from alluvium.commands.merge.merging import MergeRequest
from alluvium.delta.upkeep.checks.checkup import check_log, check_snapshot
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import Replace
from alluvium.plan.merging import Action, When
from alluvium.storage.open import open_store

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROUNDS = 3
PATIENT = RetryPolicy(max_repeats=100)
Rows: TypeAlias = dict[int, tuple[str, int | None]]


@dataclass
class Notes:
    """What each version means, by those who made them."""

    url: str
    steps: dict[int, Callable[[Rows], Rows]] = field(default_factory=dict)
    repeated: int = 0
    lost: int = 0
    failures: list[BaseException] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, version: int, attempts: int, step: Callable[[Rows], Rows]) -> None:
        with self.lock:
            self.repeated += attempts > 1
            if attempts:
                assert version not in self.steps, f"two writers were told that version {version} is theirs"
                self.steps[version] = step

    def lose(self) -> None:
        with self.lock:
            self.lost += 1

    def target(self) -> DeltaTarget:
        snapshot = load_snapshot(open_store(self.url))
        return DeltaTarget(snapshot.store, snapshot.config, snapshot)


def append(notes: Notes, n: int) -> None:
    """Without Spark, into the partition that others change."""
    ids = [1000 + n * 10 + i for i in range(10)]
    done = commit_rows(notes.target(), ids, "a")
    notes.take(done.version, done.attempts, lambda rows: rows | dict.fromkeys(ids, ("a", None)))


def rearrange(notes: Notes, n: int) -> None:
    """Without Spark, as a compaction: rows of a partition in one file, and nothing else is said to have changed."""
    target = notes.target()
    assert target.snapshot is not None
    table = alluvium.open(notes.url, version=target.snapshot.version)
    found = table.to_arrow(["id", "v"], where="p = 'a'").to_pylist()
    # The plain writer's files have no column `v`: it rearranges while nobody has set that.
    if any(row["v"] is not None for row in found):
        return
    where = Replace(parse_predicate("p = 'a'", target.config.schema), "p = 'a'")
    try:
        done = commit_rows(target, [row["id"] for row in found], "a", where, data_change=False)
    except CommitConflict as error:
        assert error.conflicts[0].rule == "concurrent-delete-delete"
        notes.lose()
    else:
        notes.take(done.version, done.attempts, lambda rows: rows)


def merge_into(partition: str, first: int) -> Callable[[object, Notes, int], None]:
    """Upserts of keys that only this writer touches, in a partition of its own."""

    def merge(spark, notes: Notes, n: int) -> None:
        keys = list(range(first, first + 3 + n))
        source = spark.createDataFrame([(k, partition, n) for k in keys], "id long, p string, v int").alias("s")
        clauses = (
            Clause(When.MATCHED, Action.UPDATE, None, {"v": "coalesce(t.v, 0) * 10 + s.v"}),
            Clause(When.NOT_MATCHED, Action.INSERT, None, None),
        )
        condition = f"t.id = s.id and t.p = '{partition}'"
        request = MergeRequest(source, condition, clauses, name=("t",))
        done = merge_rows(spark, load_snapshot(open_store(notes.url)), request, "tests", retry=PATIENT)

        def step(rows: Rows) -> Rows:
            after = {k: (partition, (rows[k][1] or 0) * 10 + n if k in rows else n) for k in keys}
            return rows | after

        notes.take(done.version, done.attempts, step)

    return merge


def delete(spark, notes: Notes, n: int) -> None:
    """Of whatever is there."""
    done = DeltaTable.forPath(spark, notes.url).delete(f"p = 'a' and id % 10 = {n}", retry=PATIENT)
    notes.take(
        done.version,
        done.attempts,
        lambda rows: {i: (p, v) for i, (p, v) in rows.items() if p != "a" or i % 10 != n},
    )


def update(spark, notes: Notes, n: int) -> None:
    """Every partition's rows of one kind: it meets everybody."""
    done = DeltaTable.forPath(spark, notes.url).update("id % 10 = 9 and p <> 'a'", {"v": "v + 1"}, retry=PATIENT)

    def step(rows: Rows) -> Rows:
        return {i: (p, v + 1 if v is not None and i % 10 == 9 and p != "a" else v) for i, (p, v) in rows.items()}

    notes.take(done.version, done.attempts, step)


@pytest.mark.parametrize("vectors", [False, True], ids=["rewrite", "mask"])
def test_the_outcome_is_that_of_a_serial_order(spark, tmp_path: Path, vectors: bool) -> None:
    notes = Notes(str(tmp_path / "t"))
    builder = DeltaTable.create(spark).location(notes.url).addColumn("id", "long").addColumn("p", "string")
    builder = builder.addColumn("v", "int").partitionedBy("p")
    builder.property("delta.enableDeletionVectors", str(vectors).lower()).property(
        "delta.checkpointInterval", "7"
    ).execute()
    first = [
        (i, p, 0)
        for i, p in [
            *((i, "a") for i in range(10)),
            *((i, "m") for i in range(100, 110)),
            *((i, "n") for i in range(200, 210)),
        ]
    ]
    alluvium.write(spark.createDataFrame(first, "id long, p string, v int").coalesce(1), notes.url, mode="append")
    DeltaTable.forPath(spark, notes.url).update("p = 'a'", {"v": "null"})
    start: Rows = {i: (p, None if p == "a" else v) for i, p, v in first}
    began = load_snapshot(open_store(notes.url)).version
    run(spark, notes)
    ensure_serial(notes, start, began)
    assert notes.repeated, "nobody met anybody: the test shows nothing"


def run(spark, notes: Notes) -> None:
    def of(act: Callable[[Notes, int], None]) -> Callable[[object, Notes, int], None]:
        return lambda _, own, n: act(own, n)

    def work(act: Callable[[object, Notes, int], None], pause: float) -> None:
        try:
            for n in range(ROUNDS):
                act(spark, notes, n)
                stop.wait(pause)
        except BaseException as error:  # noqa: BLE001 # a thread's failure is the test's
            notes.failures.append(error)

    stop = threading.Event()
    # Those without Spark take milliseconds, and are spread over the time that the others need.
    acts = [
        (of(append), 1.0),
        (of(rearrange), 1.5),
        (merge_into("m", 100), 0),
        (merge_into("n", 200), 0),
        (delete, 0),
        (update, 0),
    ]
    threads = [threading.Thread(target=work, args=a) for a in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if notes.failures:
        raise notes.failures[0]


def ensure_serial(notes: Notes, start: Rows, began: int) -> None:
    model, newest = start, load_snapshot(open_store(notes.url)).version
    assert sorted(notes.steps) == list(range(began + 1, newest + 1)), "each version is somebody's"
    for version in range(began, newest + 1):
        model = notes.steps[version](model) if version > began else model
        found = alluvium.open(notes.url, version=version).to_arrow(["id", "p", "v"]).to_pylist()
        assert sorted((r["id"], r["p"], r["v"]) for r in found) == sorted((i, p, v) for i, (p, v) in model.items()), (
            version
        )
    snapshot = load_snapshot(open_store(notes.url))
    findings = (*check_log(snapshot.store), *check_snapshot(snapshot))
    assert [finding for finding in findings if finding.level == "error"] == []

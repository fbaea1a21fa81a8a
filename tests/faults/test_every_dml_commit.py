"""DELETE, UPDATE and MERGE with every single request to the store failing once: before and after it took effect, softly
and as a crash.

After each: the table is at a version that somebody committed, readable, nothing lost or doubled; what was reported is
what happened; and the next verb succeeds. Spark carries each verb out once, up to its commit; the commit is then played
again, without Spark, on a copy of the table for every fault.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from captured_commits import Fact, act, captured, commit_again, copy, last_request
from dml_tables import MODES, make
from faulty_store import Crash, Fault, FaultyStore, When

import alluvium
from alluvium import DeltaTable
from alluvium.commands.delete import delete_rows
from alluvium.commands.merge.merge import merge_rows
from alluvium.commands.merge.merge_clauses import Clause
from alluvium.commands.merge.merging import MergeRequest
from alluvium.commands.optimize.optimize import OptimizeRequest, optimize_table
from alluvium.commands.update import UpdateRequest, update_rows
from alluvium.delta.upkeep.checks.checkup import check_log, check_snapshot
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitUnknown
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import TOUCHED_FILES, EditRows, NewFiles, Operation, ReadScope
from alluvium.plan.merging import Action
from alluvium.plan.merging import When as Matched
from alluvium.storage.open import open_store

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PLAYS_ALL = os.environ.get("ALLUVIUM_FAULTS") == "all"

#: The verbs' version writes a checkpoint, so that the requests of one are among those that fail.
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.checkpointInterval": "2",
}
BEFORE = {i: f"v{i}" for i in range(20)}
Verb = Callable[[object, Snapshot], object]


def delete(spark, snapshot: Snapshot) -> object:
    return delete_rows(spark, snapshot, "id in (3, 4, 5)", "tests")


def update(spark, snapshot: Snapshot) -> object:
    return update_rows(spark, snapshot, UpdateRequest("id in (3, 4)", {"v": "'u'"}), "tests")


def merge(spark, snapshot: Snapshot) -> object:
    rows = "select * from values (3L, 1, 'm'), (4L, 0, 'm'), (50L, 0, 'm') as s(id, p, v)"
    clauses = (
        Clause(Matched.MATCHED, Action.DELETE, "s.id = 4", None),
        Clause(Matched.MATCHED, Action.UPDATE, None, None),
        Clause(Matched.NOT_MATCHED, Action.INSERT, None, None),
    )
    return merge_rows(
        spark, snapshot, MergeRequest(spark.sql(rows).alias("s"), "t.id = s.id", clauses, name=("t",)), "tests"
    )


def optimize(spark, snapshot: Snapshot) -> object:
    return optimize_table(spark, snapshot, OptimizeRequest(("t",), "tests", order_by=(("id",),)))


VERBS: dict[str, tuple[Verb, dict[int, str]]] = {
    "delete": (delete, {i: v for i, v in BEFORE.items() if i not in (3, 4, 5)}),
    "update": (update, BEFORE | {3: "u", 4: "u"}),
    "optimize": (optimize, BEFORE),
    "merge": (merge, {i: v for i, v in BEFORE.items() if i != 4} | {3: "m", 50: "m"}),
}


def rows(url: str) -> dict[int, str]:
    found = alluvium.open(url).to_arrow(["id", "v"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a row stands twice"
    return {row["id"]: row["v"] for row in found}


def feed(url: str, version: int) -> set[tuple[int, str]]:
    return {(r["id"], r["_change_type"]) for r in alluvium.open(url).changes(version).to_pylist()}


def ensure_settled(url: str, before: int, expected: dict[int, str], fact: Fact) -> None:
    version, found = alluvium.open(url).version, rows(url)
    assert (version, found) in ((before, BEFORE), (before + 1, expected)), fact
    if fact.version is not None:
        assert (version, fact.version) == (before + 1, before + 1), f"{fact}: reported as committed"
    elif not isinstance(fact.error, (Crash, CommitUnknown)):
        assert version == before, f"{fact}: reported as failed, yet committed"
    if version > before:
        changed = {i for i in BEFORE.keys() | expected.keys() if BEFORE.get(i) != expected.get(i)}
        assert {i for i, _ in feed(url, version)} == changed, fact
        tracked = {r["id"]: r["_row_id"] for r in alluvium.open(url).to_arrow(["id", "_row_id"]).to_pylist()}
        assert {i: r for i, r in tracked.items() if i != 50} == {i: ROW_IDS[i] for i in tracked if i != 50}, fact
    findings = (*check_log(open_store(url)), *check_snapshot(load_snapshot(open_store(url))))
    assert [finding for finding in findings if finding.level == "error"] == [], fact


ROW_IDS: dict[int, int] = {}


def ensure_next_verb(url: str, fact: Fact) -> None:
    """The next verb finds nothing in its way: all rows of a partition go, which needs no Spark."""
    snapshot = load_snapshot(open_store(url))
    where = parse_predicate("p = 1", snapshot.config.schema)
    chosen = [p for p, values in zip(*(snapshot.files[n].to_pylist() for n in ("path", "partitionValues")), strict=True)
              if dict(values)["p"] == "1"]  # fmt: skip
    touched = TOUCHED_FILES.empty_table().from_pylist([{"path": p, "mask": None} for p in chosen], schema=TOUCHED_FILES)
    changes = EditRows(NewFiles.none(), touched, Operation("DELETE"), ReadScope.rows(where))
    before = rows(url)
    done = DeltaTarget(snapshot.store, snapshot.config, snapshot).commit(changes)
    assert (done.version, done.attempts) == (snapshot.version + 1, 1), fact
    assert rows(url) == {i: v for i, v in before.items() if i % 2 == 0}, fact


@pytest.fixture
def made(spark, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "made"
    make(spark, str(path), MODES[request.param] | PROPERTIES)
    tracked = alluvium.open(str(path)).to_arrow(["id", "_row_id"]).to_pylist()
    ROW_IDS.clear()
    ROW_IDS.update({r["id"]: r["_row_id"] for r in tracked})
    return path


# An UPDATE commits as a MERGE does: new files, and what old ones lose.
@pytest.mark.parametrize(
    ("name", "made"),
    [(name, mode) for name in VERBS for mode in MODES]
    if PLAYS_ALL
    else [("delete", "rewrite"), ("optimize", "rewrite"), ("merge", "mask")],
    indirect=["made"],
)
def test_each_request_of_each_commit_fails_once(spark, tmp_path: Path, made: Path, name: str) -> None:
    verb, expected = VERBS[name]
    version = load_snapshot(open_store(str(made))).version
    changes = captured(lambda: verb(spark, load_snapshot(open_store(str(made)))))
    counted = FaultyStore(open_store(copy(made, tmp_path / "counted")))
    assert commit_again(counted, changes) == version + 1
    paths = [path for request, path in counted.requests if request.startswith("put")]
    assert any(".checkpoint." in path for path in paths)
    for when in When:
        for crash in (False, True):
            for at in range(1, len(counted.requests) + 1):
                url = copy(made, tmp_path / f"{when.value}-{crash}-{at}")
                store = FaultyStore(open_store(url), Fault(at, when, crash=crash))
                told = partial(last_request, store, at, when)
                fact = act(partial(commit_again, store, changes), told)
                assert store.failed == 1
                ensure_settled(url, version, expected, fact)
                ensure_next_verb(url, fact)
                shutil.rmtree(url)


@pytest.mark.parametrize(
    ("made", "when"),
    [(mode, when) for mode in MODES for when in When] if PLAYS_ALL else [("mask", When.AFTER)],
    indirect=["made"],
    ids=str,
)
def test_each_request_of_a_whole_merge_fails_once(spark, tmp_path: Path, made: Path, when: When) -> None:
    """Also those around the commit: what Spark wrote is listed, footers are read, a lost attempt is swept away."""
    _, expected = VERBS["merge"]
    version = load_snapshot(open_store(str(made))).version
    url = copy(made, tmp_path / "counted")
    counted = FaultyStore(open_store(url))
    snapshot = load_snapshot(counted)
    first = len(counted.requests)
    merge(spark, snapshot)
    around = [n for n, (_, path) in enumerate(counted.requests, 1) if n > first and not path.startswith("_delta_log")]
    assert around
    for at in around:
        url = copy(made, tmp_path / f"t{at}")
        store = FaultyStore(open_store(url), Fault(at, when))
        fact = act(lambda: merge(spark, load_snapshot(store)).version, lambda: f"{store.requests[-1]} ({at})")  # type: ignore[attr-defined] # noqa: B023
        ensure_settled(url, version, expected, fact)
        shutil.rmtree(url)
    # And the verb itself goes on where a failed one has left its files.
    url = copy(made, tmp_path / "again")
    store = FaultyStore(open_store(url), Fault(around[-1], when))
    act(lambda: merge(spark, load_snapshot(store)).version, lambda: "")  # type: ignore[attr-defined]
    DeltaTable.forPath(spark, url).update("id = 7", {"v": "'seven'"})
    assert rows(url)[7] == "seven"

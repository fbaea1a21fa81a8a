"""Clustering with every single request of its commit failing once, and auto compaction with every request of its own:
the append that it follows stands, and is told as done.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from captured_commits import act, captured, commit_again, copy, last_request
from faulty_store import Fault, FaultyStore, When

import alluvium
from alluvium import DeltaTable
from alluvium.commands.optimize.auto import compact_written
from alluvium.commands.optimize.optimize import OptimizeRequest, optimize_table
from alluvium.delta.features.rows.clustering import clustering_columns
from alluvium.delta.upkeep.checks.checkup import check_log, check_snapshot
from alluvium.delta.upkeep.optimize import DEFAULT_SIZES
from alluvium.delta.upkeep.small_files import AutoCompaction
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CommitUnknown
from alluvium.storage.open import open_store
from alluvium.storage.store import Store

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILES, ROWS = 6, 30
Rows = dict[int, tuple[str, int]]


def rows(url: str) -> Rows:
    """By `id`: the value, and which row it is."""
    found = alluvium.open(url).to_arrow(["id", "v", "_row_id"]).to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a row stands twice"
    return {row["id"]: (row["v"], row["_row_id"]) for row in found}


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six files of five rows, clustered by two columns, in no order; the next version writes a checkpoint."""
    path = tmp_path_factory.mktemp("upkeep") / "made"
    builder = DeltaTable.create(spark).location(str(path)).addColumn("id", "long").addColumn("v", "string")
    builder = builder.clusterBy("id", "v").property("delta.enableRowTracking", "true")
    builder.property("delta.checkpointInterval", str(FILES + 1)).execute()
    for n in range(FILES):
        frame = spark.range(n, ROWS, FILES).selectExpr("id", "concat('v', id) as v")
        alluvium.write(frame.coalesce(1), str(path), mode="append")
    assert load_snapshot(open_store(str(path))).version == FILES
    return path


def ensure_whole(url: str, expected: Rows, told: object) -> None:
    assert rows(url) == expected, told
    snapshot = load_snapshot(open_store(url))
    assert [tuple(c) for c in clustering_columns(snapshot.state.domains, snapshot.config)] == [("id",), ("v",)], told
    findings = (*check_log(open_store(url)), *check_snapshot(snapshot))
    assert [finding for finding in findings if finding.level == "error"] == [], told


def test_each_request_of_a_clustering_commit_fails_once(spark, tmp_path: Path, made: Path) -> None:
    before = rows(str(made))
    changes = captured(
        lambda: optimize_table(spark, load_snapshot(open_store(str(made))), OptimizeRequest((), "tests"))
    )
    counted = FaultyStore(open_store(copy(made, tmp_path / "counted")))
    assert commit_again(counted, changes) == FILES + 1
    assert any(".checkpoint." in path for request, path in counted.requests if request.startswith("put"))
    for when in When:
        for crash in (False, True):
            for at in range(1, len(counted.requests) + 1):
                url = copy(made, tmp_path / f"{when.value}-{crash}-{at}")
                store = FaultyStore(open_store(url), Fault(at, when, crash=crash))
                told = partial(last_request, store, at, when)
                fact = act(partial(commit_again, store, changes), told)
                assert store.failed == 1
                ensure_whole(url, before, fact)
                clustered = load_snapshot(open_store(url)).version - FILES
                assert clustered in (0, 1), fact
                if fact.version is not None:
                    assert clustered == 1, fact
                elif clustered:
                    assert not hasattr(fact.error, "code") or isinstance(fact.error, CommitUnknown), fact
                shutil.rmtree(url)


@pytest.mark.parametrize("when", When, ids=str)
def test_each_request_of_an_auto_compaction_fails_once(spark, tmp_path: Path, made: Path, when: When) -> None:
    wanted = AutoCompaction(2, DEFAULT_SIZES)
    before = rows(str(made))

    def compact(store: Store) -> Callable[[], int]:
        def run() -> int:
            snapshot = load_snapshot(store)
            compact_written(spark, snapshot, snapshot.files["path"], wanted, OptimizeRequest((), "tests"))
            return load_snapshot(open_store(store.url)).version

        return run

    counted = FaultyStore(open_store(copy(made, tmp_path / "counted")))
    first = len(counted.requests)
    assert compact(counted)() == FILES + 1
    for at in range(first + 1, len(counted.requests) + 1):
        url = copy(made, tmp_path / f"{when.value}-{at}")
        store = FaultyStore(open_store(url), Fault(at, when))
        fact = act(compact(store), lambda: f"{store.requests[-1]} ({at}) failed {when.value}")  # noqa: B023
        ensure_whole(url, before, fact)
        if fact.version is not None:
            assert fact.version == load_snapshot(open_store(url)).version, fact
        shutil.rmtree(url)

"""Many processes write one table on local disk at once: nothing is lost, nothing doubled."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pyarrow.compute as pc
import pytest
from plain_writer import SCHEMA, commit_rows, open_target

import alluvium
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CommitConflict
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store

APPENDS = 15


def append_many(url: str, writer: int) -> None:
    for n in range(APPENDS):
        commit_rows(open_target(open_store(url)), [writer * 1000 + n])


@pytest.mark.long
def test_blind_appends_never_fail_each_other(tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    commit_rows(open_target(open_store(url)), [-1])
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append_many, args=(url, w)) for w in range(4)]
    for process in writers:
        process.start()
    for process in writers:
        process.join(120)
    assert [p.exitcode for p in writers] == [0] * 4
    t = alluvium.open(url)
    expected = sorted([-1, *(w * 1000 + n for w in range(4) for n in range(APPENDS))])
    assert sorted(t.to_arrow(["id"]).column("id").to_pylist()) == expected
    assert t.version == 4 * APPENDS
    # Checkpoints were written on the way by whoever's turn it was.
    assert (tmp_path / "table/_delta_log/00000000000000000050.checkpoint.parquet").exists()


@pytest.fixture
def store(tmp_path: Path):
    opened = open_store(str(tmp_path / "table"))
    commit_rows(open_target(opened, partitioned=True), [1, 2], "a")
    commit_rows(open_target(opened), [3], "b")
    return opened


def overwrite(p: str) -> Replace:
    sql = f"p = '{p}'"
    return Replace(parse_predicate(sql, SCHEMA), sql)


def test_an_append_survives_a_concurrent_append(store) -> None:
    slow = open_target(store)
    commit_rows(open_target(store), [4], "a")
    committed = commit_rows(slow, [5], "a")
    assert committed.attempts == 1
    assert load_snapshot(store).files.num_rows == 4


def test_overwrites_of_different_partitions_do_not_conflict(store) -> None:
    slow = open_target(store)
    commit_rows(open_target(store), [10], "a", overwrite("a"))
    assert commit_rows(slow, [11], "b", overwrite("b")).attempts == 1
    rows = alluvium.open(store.url).to_arrow()
    assert sorted(rows.column("id").to_pylist()) == [10, 11]


def test_overwrites_of_one_partition_conflict_and_name_the_winner(store) -> None:
    slow = open_target(store)
    commit_rows(open_target(store), [10], "a", overwrite("a"))
    with pytest.raises(CommitConflict) as caught:
        commit_rows(slow, [11], "a", overwrite("a"))
    rules = {c.rule for c in caught.value.conflicts}
    assert rules == {"concurrent-append", "concurrent-delete-read", "concurrent-delete-delete"}
    assert caught.value.conflicts[0].version == 2
    assert caught.value.conflicts[0].operation == "WRITE"
    assert "p=" not in str(caught.value) and "alluvium" not in str(caught.value.hint)


def test_an_append_into_an_overwritten_partition_conflicts_with_the_overwrite(store) -> None:
    slow = open_target(store)
    commit_rows(open_target(store), [4], "a")
    with pytest.raises(CommitConflict, match="rows where"):
        commit_rows(slow, [11], "a", overwrite("a"))


def test_an_overwrite_of_everything_conflicts_with_any_append(store) -> None:
    slow = open_target(store)
    commit_rows(open_target(store), [4], "b")
    with pytest.raises(CommitConflict, match="to the table"):
        commit_rows(slow, [11], "a", Replace())


def test_a_transaction_identifier_is_committed_once(store) -> None:
    slow = open_target(store)
    commit_rows(open_target(store), [4], "a", txn=("app", 7))
    with pytest.raises(CommitConflict) as caught:
        commit_rows(slow, [4], "a", txn=("app", 7))
    assert caught.value.code == "concurrent-transaction"
    assert alluvium.open(store.url).txns == {"app": 7}


def test_two_creations_at_once(tmp_path: Path) -> None:
    one, other = open_store(str(tmp_path / "new")), open_store(str(tmp_path / "new"))
    slow = open_target(one)
    commit_rows(open_target(other), [1])
    with pytest.raises(CommitConflict) as caught:
        commit_rows(slow, [2])
    assert caught.value.code == "protocol-changed"
    ids = alluvium.open(str(tmp_path / "new")).to_arrow().column("id")
    assert pc.sum(ids).as_py() == 1

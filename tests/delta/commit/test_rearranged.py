"""Commits that say that they only rearrange rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.delta.commit.rearranged import ensure_rearranged
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CommitConflict, InvalidRequest
from alluvium.plan.changes import Committed, Replace
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = open_store(str(tmp_path / "t"))
    commit_rows(open_target(opened), [1, 2])
    commit_rows(open_target(opened), [3])
    return opened


def rearrange(target, ids: list[int]) -> Committed:
    return commit_rows(target, ids, replace=Replace(), data_change=False)


def test_as_many_rows_come_as_go(store: Store) -> None:
    """ "When `false` [...] the records in the added file must be contained in one or more remove actions" """
    for ids in ([1, 2], [1, 2, 3, 4]):
        with pytest.raises(InvalidRequest) as caught:
            rearrange(open_target(store), ids)
        assert caught.value.code == "data-changed"
        assert f"3 rows were to be replaced, and {len(ids)} rows are to come" in str(caught.value)
    assert rearrange(open_target(store), [3, 2, 1]).version == 2
    files = load_snapshot(store).files
    assert files.num_rows == 1 and files.column("dataChange").to_pylist() == [False]


def test_files_without_counts_are_believed(store: Store) -> None:
    files = load_snapshot(store).files
    place = files.schema.get_field_index("stats")
    silent = files.set_column(place, files.schema.field(place), pa.nulls(files.num_rows, pa.string()))
    ensure_rearranged(files.slice(0, 1), silent)


def test_appends_meanwhile_stay(store: Store) -> None:
    slow = open_target(store)
    commit_rows(open_target(store), [4])
    assert rearrange(slow, [1, 2, 3]).attempts == 1
    assert sorted(alluvium.open(store.url).to_arrow(["id"]).column("id").to_pylist()) == [1, 2, 3, 4]


def test_rows_that_were_removed_meanwhile_do_not_come_back(store: Store) -> None:
    slow = open_target(store)
    commit_rows(open_target(store), [9], replace=Replace())
    with pytest.raises(CommitConflict) as caught:
        rearrange(slow, [1, 2, 3])
    assert caught.value.code == "concurrent-delete-delete"

"""Row ids for the files of before, beside writers who have these files removed meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plain_writer import SCHEMA, commit_rows, open_target

import alluvium
from alluvium.delta.description.create import new_config
from alluvium.delta.log.names import commit_path
from alluvium.delta.terms.config import parse_config
from alluvium.delta.upkeep.row_id_backfill import backfill_row_ids
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict
from alluvium.plan.changes import Replace
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.storage.open import open_store
from alluvium.storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A table that supports row tracking, one of whose files has no ids: it is from before."""
    store = open_store(str(tmp_path / "t"))
    commit_rows(open_target(store), [1, 2])
    supported = new_config(SCHEMA, [], {"delta.feature.rowTracking": "supported"}).protocol
    snapshot = load_snapshot(store)
    target = DeltaTarget(store, parse_config(supported, snapshot.config.metadata), snapshot)
    commit_rows(target, [3])
    return store


def ids(store: Store) -> list[int]:
    return sorted(alluvium.open(store.url).to_arrow(["id"])["id"].to_pylist())


def test_every_file_has_ids_afterwards(store: Store) -> None:
    assert load_snapshot(store).files["baseRowId"].null_count == 1
    found = backfill_row_ids(load_snapshot(store), "test", DEFAULT_RETRY)
    assert found.files["baseRowId"].null_count == 0
    assert ids(store) == [1, 2, 3]


@pytest.mark.parametrize("data_change", [True, False], ids=["overwrite", "compaction"])
def test_files_that_somebody_has_replaced_do_not_come_back(store: Store, data_change: bool) -> None:
    before = load_snapshot(store)
    commit_rows(open_target(store), [1, 2, 3], replace=Replace(), data_change=data_change)
    with pytest.raises(CommitConflict):
        backfill_row_ids(before, "test", DEFAULT_RETRY)
    assert ids(store) == [1, 2, 3]


def test_what_the_history_says_of_it(tmp_path: Path) -> None:
    """A table of an old protocol gets the feature first, in a commit of its own."""
    store = open_store(str(tmp_path / "t"))
    commit_rows(open_target(store), [1, 2])
    backfill_row_ids(load_snapshot(store), "test", DEFAULT_RETRY)
    upgraded, filled = (load_commit(store, version) for version in (1, 2))
    assert upgraded["operation"] == "UPGRADE PROTOCOL"
    assert json.loads(upgraded["operationParameters"]["newProtocol"]) == {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "readerFeatures": None,
        "writerFeatures": ["appendOnly", "domainMetadata", "invariants", "rowTracking"],
    }
    assert (filled["operation"], filled["operationParameters"]) == ("ROW TRACKING BACKFILL", {"batchId": "0"})


def load_commit(store: Store, version: int) -> dict[str, Any]:
    lines = map(json.loads, store.get(commit_path(version)).splitlines())
    return dict(next(line["commitInfo"] for line in lines if "commitInfo" in line))

"""What a commit of rows says of itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from plain_writer import commit_rows, open_target, stage_rows

import alluvium
from alluvium.plan.changes import Operation, Replace
from alluvium.storage.open import open_store


def told(path: Path) -> dict[str, str]:
    found = alluvium.open(str(path)).history(1)[0]["operationMetrics"]
    return {name: value for name, value in found.items() if not name.endswith("Bytes")}


def test_metrics_of_writes(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    commit_rows(open_target(store), [1, 2])
    assert told(tmp_path) == {"numFiles": "1", "numOutputRows": "2"}
    commit_rows(open_target(store), [3], replace=Replace())
    assert told(tmp_path) == {"numFiles": "1", "numOutputRows": "1", "numRemovedFiles": "1"}


def test_metrics_of_a_stream(tmp_path: Path) -> None:
    """The reference calls them otherwise."""
    target = open_target(open_store(str(tmp_path)))
    target.commit(replace(stage_rows(target, [1, 2]), operation=Operation("STREAMING UPDATE")))
    assert told(tmp_path) == {"numAddedFiles": "1", "numOutputRows": "2", "numRemovedFiles": "0"}

"""A small part of `make histories`: writers on one table, killed at random, leave the history of a serial order."""

from __future__ import annotations

from pathlib import Path

import pytest

from history.contest import Contest, hold, python_of

#: Of `make histories` play hundreds of times as many.
COMMITS = 60


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("isolation", ["Serializable", "WriteSerializable"])
def test_killed_writers_leave_a_serial_order(isolation: str, tmp_path: Path) -> None:
    kinds = ["python", "python", "python"]
    if isolation == "Serializable" and python_of("deltalake").exists():
        kinds.append("deltalake")
    properties = {"delta.isolationLevel": isolation}
    if "deltalake" not in kinds:
        properties["delta.enableDeletionVectors"] = "true"
    outcome = hold(Contest(1, kinds, COMMITS, 100, properties, kill_s=0.7), tmp_path / "contest")
    assert outcome.alone == []
    assert outcome.verdict.problems == []
    assert sum(outcome.verdict.commits.values()) == outcome.versions

"""UPDATE, DELETE and MERGE as texts, played by delta-spark and by us: the same answers, rows and history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import play_changes
import pytest
import recorded
import row_change_statements
from pyspark.sql import SparkSession
from reference_engine import NEEDS_REFERENCE

import alluvium

pytestmark = NEEDS_REFERENCE

JOBS = row_change_statements.jobs()
NAMES = [next(iter(job["tables"])) for job in JOBS]


@pytest.fixture(scope="module")
def enabled(spark) -> Iterator[SparkSession]:
    session = spark.newSession()
    alluvium.enable(session)
    yield session
    alluvium.disable(session)


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, list[dict[str, Any]]]:
    """By job, the reference's outcomes."""
    told = recorded.answers(tmp_path_factory.mktemp("rows"), JOBS, "play_changes", [])
    return dict(zip(NAMES, told, strict=True))


@pytest.mark.parametrize("job", JOBS, ids=NAMES)
def test_statements_come_to_the_same(enabled, answers, job):
    name = next(iter(job["tables"]))
    ours = play_changes.run(enabled, job)
    told = list(zip(job["steps"], ours, answers[name], strict=True))
    other = [(text, mine, theirs) for text, mine, theirs in told if _outcome(mine) != _outcome(theirs)]
    assert not other


def _outcome(step: dict[str, Any]) -> object:
    """Errors are compared as such: their texts are each engine's own."""
    if "error" in step:
        return "refused"
    # For rows without a match delta-spark writes every file anew, we those that lose rows: it counts what it copied.
    return {**step, "metrics": {k: v for k, v in step.get("metrics", {}).items() if k != "numOutputRows"}}

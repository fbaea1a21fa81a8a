"""INSERT and TRUNCATE, played by delta-spark and by us: the same rows, the same history, the same refusals."""

from __future__ import annotations

from pathlib import Path

import insert_statements
import play_sql
import pytest
from pyspark.sql import SparkSession
from recorded import answers
from reference_engine import NEEDS_REFERENCE, judge

import alluvium

pytestmark = [*NEEDS_REFERENCE, pytest.mark.slow]

#: They follow from how many tasks write, and each engine has its own number.
_OF_TASKS = ("numFiles", "numRemovedFiles")


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory) -> list[tuple[dict, dict]]:
    """Of each statement, what we and what the reference did; both begin with the tables that the reference has made."""
    folder: Path = tmp_path_factory.mktemp("inserts")
    play = [list(step) for step in insert_statements.PLAY]
    make = {"make": insert_statements.MAKE, "play": []}
    (made,) = judge(folder, [{**make, "root": f"{folder}/ours"}], script="play_sql")
    assert made["error"] is None, made["error"]
    (theirs,) = answers(folder, [{**make, "play": play, "root": f"{folder}/theirs"}], "play_sql", [])
    alluvium.enable(spark)
    ours = play_sql.run(spark, {"make": [], "play": play, "root": f"{folder}/ours"})
    alluvium.disable(spark)
    return list(zip(ours, theirs, strict=True))


def test_the_same_is_refused(told):
    other = [
        (ours["step"], ours.get("text"), theirs["error"]) for ours, theirs in told if _refused(ours) != _refused(theirs)
    ]
    assert not [step for step in other if step[0] not in insert_statements.OURS_ONLY]


def test_the_same_rows(told):
    assert not [(ours["step"], ours["rows"], theirs["rows"]) for ours, theirs in told if ours["rows"] != theirs["rows"]]


def test_the_same_answers_and_history(told):
    carried_out = [(ours, theirs) for ours, theirs in told if not _refused(ours) and not _refused(theirs)]
    assert not [
        (ours["step"], _shown(ours), _shown(theirs)) for ours, theirs in carried_out if _shown(ours) != _shown(theirs)
    ]


def _refused(step: dict) -> bool:
    return step["error"] is not None


def _shown(step: dict) -> list[object]:
    _, operation, parameters, metrics = step["history"]
    return [
        step["columns"],
        step["answer"],
        operation,
        parameters,
        {name: value for name, value in metrics.items() if name not in _OF_TASKS},
    ]

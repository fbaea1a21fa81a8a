"""Statements that make, rename and drop tables, played by delta-spark and by us: the same answers, entries and logs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from reference_engine import NEEDS_REFERENCE, judge
from table_statements.cases import CASES
from table_statements.compare import differing
from table_statements.look import play

import alluvium

pytestmark = NEEDS_REFERENCE


@pytest.fixture(scope="module")
def theirs(tmp_path_factory) -> dict[str, list[dict]]:
    root = tmp_path_factory.mktemp("theirs")
    jobs = [{"name": name, "statements": steps, "root": str(root)} for name, steps in CASES.items()]
    answers = judge(tmp_path_factory.mktemp("jobs"), jobs, script="reference_table_statements")
    assert not [answer["error"] for answer in answers if answer["error"]]
    return {name: answer["result"] for name, answer in zip(CASES, answers, strict=True)}


@pytest.fixture(scope="module")
def session(spark) -> Iterator[SparkSession]:
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.mark.parametrize("name", CASES)
def test_the_same_comes_of_them(session, theirs, tmp_path, name):
    ours = play(session, name, CASES[name], tmp_path)
    assert not differing(theirs[name], ours, name)

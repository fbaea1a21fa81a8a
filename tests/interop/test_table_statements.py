"""Statements that make, rename and drop tables, played by delta-spark and by us: the same answers, entries and logs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from recorded import INTEROP, answers
from reference_engine import NEEDS_REFERENCE
from table_statements.cases import CASES
from table_statements.compare import differing
from table_statements.look import play

import alluvium

pytestmark = NEEDS_REFERENCE


@pytest.fixture(scope="module")
def theirs(tmp_path_factory) -> dict[str, list[dict]]:
    root = tmp_path_factory.mktemp("theirs")
    jobs = [{"name": name, "statements": steps, "root": str(root)} for name, steps in CASES.items()]
    told = answers(root, jobs, "reference_table_statements", [INTEROP / "table_statements/look.py"])
    return dict(zip(CASES, told, strict=True))


@pytest.fixture(scope="module")
def session(spark) -> Iterator[SparkSession]:
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.mark.parametrize("name", CASES)
def test_the_same_comes_of_them(session, theirs, tmp_path, name):
    ours = play(session, name, CASES[name], tmp_path)
    assert not differing(theirs[name], ours, name)

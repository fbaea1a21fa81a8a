"""The statements that only Delta knows, given to delta-spark's own parser: the same are accepted, the same refused."""

from __future__ import annotations

import pytest
import sql_statements
from reference_engine import NEEDS_REFERENCE, judge

pytestmark = NEEDS_REFERENCE

#: By list of `sql_statements`, whether the reference's parser takes its statements.
TAKEN = {
    "DELTA_STATEMENTS": True,
    "REFUSED": False,
    "EXTENSIONS": False,
    "NARROWINGS": True,
    "SPARK_PARSED": True,
    "QUERIES": True,
    "REFUSED_BY_SPARK": False,
    "COMMENTS": True,
    "NOTHING": False,
}


@pytest.fixture(scope="module")
def plans(tmp_path_factory) -> dict[str, dict[str, str | None]]:
    """By list and statement, the class of the reference's plan."""
    lists = [getattr(sql_statements, name) for name in TAKEN]
    answers = judge(tmp_path_factory.mktemp("sql"), lists, script="reference_sql")
    assert not [answer["error"] for answer in answers if answer["error"]]
    return {
        name: dict(zip(texts, answer["result"], strict=True))
        for name, texts, answer in zip(TAKEN, lists, answers, strict=True)
    }


@pytest.mark.parametrize("name", TAKEN)
def test_the_reference_says_the_same(plans, name):
    other = {text: plan for text, plan in plans[name].items() if (plan is not None) is not TAKEN[name]}
    assert not other


def test_the_reference_takes_for_its_own_what_we_take(plans):
    """Not as Spark's parser would: a table's description is none of a column."""
    sparks = {"DescribeColumn", "DescribeRelation", "CreateTable"}
    assert not {text for text, plan in plans["DELTA_STATEMENTS"].items() if plan in sparks}
    assert not {text for text, plan in plans["SPARK_PARSED"].items() if plan is not None and "Delta" in plan}

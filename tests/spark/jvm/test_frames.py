"""Frames made in few round trips are those that PySpark makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import py4j.clientserver
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.spark.jvm.frames import (
    aggregate,
    column_of,
    expression_of,
    filter_rows,
    negated,
    select_column,
    select_texts,
    with_columns,
)

pytestmark = pytest.mark.spark

#: Dots, quotes, what Spark takes for a variable, what joins texts on their way, other alphabets.
NAMES = [
    "plain",
    "a.b",
    "back`tick",
    "${env:HOME}",
    "nul\x00byte",
    "Größe, größer",
    "line\nbreak",
    "'quoted'",
    "\\slash",
]


@pytest.fixture(scope="module")
def odd(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([tuple(range(len(NAMES)))], NAMES)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """How many requests the JVM gets, but for those that free what Python has let go."""
    asked: list[str] = []
    send = py4j.clientserver.ClientServerConnection.send_command

    def sent(self, command: str):
        if not command.startswith("m"):
            asked.append(command)
        return send(self, command)

    with monkeypatch.context() as patched:
        patched.setattr(py4j.clientserver.ClientServerConnection, "send_command", sent)
        yield lambda: len(asked)


def backticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def test_columns_of_any_name(odd: DataFrame):
    shown = select_texts(odd, [backticked(name) for name in reversed(NAMES)])
    assert shown.columns == NAMES[::-1]
    assert shown.collect() == [tuple(reversed(range(len(NAMES))))]


@pytest.mark.parametrize("name", NAMES)
def test_a_column_by_its_name(spark: SparkSession, odd: DataFrame, name: str):
    found = select_column(odd, column_of(spark, name), "value")
    assert (found.columns, found.collect()) == (["value"], [(NAMES.index(name),)])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_columns_added_and_replaced(spark: SparkSession, count: int):
    rows = spark.range(3)
    more = [("id", expression_of(spark, "id + 1")), ("b\x00", sf.lit("x"))][:count]
    assert with_columns(rows, more).collect() == rows.withColumns(dict(more)).collect()
    assert with_columns(rows, more).columns == rows.withColumns(dict(more)).columns


def test_rows_left_out(spark: SparkSession):
    rows = spark.range(6)
    even = expression_of(spark, "id % 2 = 0")
    assert [r.id for r in filter_rows(rows, even).collect()] == [0, 2, 4]
    assert [r.id for r in filter_rows(rows, negated(spark, even)).collect()] == [1, 3, 5]
    assert [r.id for r in filter_rows(rows, "id > 3").collect()] == [4, 5]


@pytest.mark.parametrize("by", [["even"], ["even", "low"]])
@pytest.mark.parametrize("texts", [["count(1) as many"], ["sum(id) as total", "max(id) as `most of`"]])
def test_groups(spark: SparkSession, by: list[str], texts: list[str]):
    rows = spark.range(9).selectExpr("id", "id % 2 = 0 as even", "id < 5 as low")
    found = aggregate(rows, by, texts)
    wanted = rows.groupBy(*by).agg(*map(sf.expr, texts))
    assert found.columns == wanted.columns
    assert sorted(found.collect()) == sorted(wanted.collect())


def test_errors_are_those_of_pyspark(spark: SparkSession):
    with pytest.raises(AnalysisException, match="nothing"):
        select_texts(spark.range(1), ["nothing"])


def test_many_columns_cost_no_more_requests_than_few(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    names = [f"c{n}" for n in range(100)]
    rows = spark.range(1).selectExpr(*(f"id as {name}" for name in names))
    select_texts(rows, names)
    with counted(monkeypatch) as requests:
        select_texts(rows, names[:2])
        few = requests()
        select_texts(rows, names)
        assert 0 < few == requests() - few

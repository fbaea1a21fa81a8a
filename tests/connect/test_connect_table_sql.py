"""SQL of a table over Spark Connect, beside what the session has registered; and what the server tells of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

import alluvium
from alluvium.errors import InvalidRequest
from alluvium.expr.sql.row_functions import JOB, ROW
from alluvium.spark.values.server_wall import called_functions, ensure_read_as_written, foreign_function

pytestmark = pytest.mark.connect


def create(url: str, constraint: str, **columns: str) -> str:
    log = Path(url) / "_delta_log"
    log.mkdir(parents=True)
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns.items()]
    meta = {
        "id": "made",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {"delta.constraints.c": constraint},
    }
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}, {"metaData": meta}]
    (log / f"{0:020}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))
    return url


def test_a_variable_of_the_session_is_not_read(connect, tmp_path):
    url = create(str(tmp_path / "t"), "id < year", id="long")
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(connect.range(3), url, mode="append")
    assert caught.value.code == "invalid-constraint"
    connect.sql("declare or replace variable year int default 5")
    try:
        with pytest.raises(InvalidRequest) as caught:
            alluvium.write(connect.range(3), url, mode="append")
    finally:
        connect.sql("drop temporary variable year")
    # Copies of a session, which Spark makes since 4.1, have no variables.
    assert caught.value.code in ("invalid-expression", "invalid-constraint")
    assert not list(Path(url).rglob("*.parquet"))


def test_a_function_of_the_session_is_not_called(connect, tmp_path):
    """Whether a name means Spark's own function or the session's depends on the version of Spark."""
    url = create(str(tmp_path / "t"), "upper(n) = n", n="string")
    # Of its own, since Spark 4.0 lets nobody drop a function of that name any more.
    fresh = connect.newSession()
    fresh.udf.register("upper", lambda n: n, "string")
    try:
        with pytest.raises(InvalidRequest) as caught:
            alluvium.write(fresh.range(1).select(sf.lit("a").alias("n")), url, mode="append")
        assert caught.value.code in ("constraint-violated", "invalid-expression")
    finally:
        fresh.client.release_session()
        fresh.client.close()
    assert not list(Path(url).rglob("*.parquet"))
    alluvium.write(connect.range(1).select(sf.lit("A").alias("n")), url, mode="append")


def test_texts_with_lines_that_look_like_a_plan(connect, tmp_path):
    url = create(
        str(tmp_path / "t"), "n <> 'x\n+- LocalRelation <empty>' and n not like '%more characters'", n="string"
    )
    alluvium.write(connect.range(1).select(sf.lit("a").alias("n")), url, mode="append")
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(connect.range(1).select(sf.lit("x\n+- LocalRelation <empty>").alias("n")), url, mode="append")
    assert caught.value.code == "constraint-violated"


@pytest.mark.parametrize(
    "text",
    ["exists(from some_rows)", "(select max(id) from some_rows) > 1", "sum(id) > 1", "explode(array(id)) > 1",
     "row_number() over (order by id) > 1", "id in (select id from some_rows)", "id < system.session.x",
     f"coalesce({'id, ' * 40} x) > 0", f"id in ({'1, ' * 40} x)"],
)  # fmt: skip
def test_what_got_past_the_gate_would_be_seen(connect, text):
    """The second wall by itself, by texts that the first one refuses."""
    connect.range(3).createOrReplaceTempView("some_rows")
    connect.sql("declare or replace variable x int default 5")
    rows = connect.range(3)
    with pytest.raises((InvalidRequest, AnalysisException)):
        ensure_read_as_written(rows, ["id > 0", text])
    ensure_read_as_written(rows, ["id > 0", "coalesce(id, 1) in (1, 2) and abs(id) > 0"])


def test_a_server_that_cuts_its_texts(connect):
    connect.conf.set("spark.sql.maxPlanStringLength", "60")
    try:
        with pytest.raises(InvalidRequest) as caught:
            ensure_read_as_written(connect.range(3), ["id > 0"])
    finally:
        connect.conf.unset("spark.sql.maxPlanStringLength")
    assert "spark.sql.maxPlanStringLength" in caught.value.message


def test_which_functions_a_text_calls():
    assert called_functions(["Upper ( `a` ) || trim(both 'f(' from b) in (1)"]) == {"upper", "trim"}


def test_all_functions_that_a_table_may_call_are_known_as_sparks(connect):
    assert foreign_function(connect, ROW | JOB) is None
    connect.udf.register("not_sparks", lambda n: n, "string")
    try:
        assert foreign_function(connect, frozenset({"abs", "not_sparks"})) == "not_sparks"
    finally:
        connect.sql("drop temporary function if exists not_sparks")

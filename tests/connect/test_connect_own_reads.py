"""Writes over Spark Connect whose rows were read from the table itself, beside writers who change what they saw."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import alluvium
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict

pytestmark = [pytest.mark.connect, pytest.mark.slow]

WEAKER = {"delta.isolationLevel": "WriteSerializable"}


@pytest.fixture
def path(connect, tmp_path: Path) -> str:
    url = str(tmp_path / "t")
    alluvium.write(batch(connect, 0, 1, 2, 3), url, partition_by="p")
    return url


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Lets somebody else act between a job and its commit, once."""
    pending: list[Callable[[], object]] = []
    commit = DeltaTarget.commit

    def interrupted(self: DeltaTarget, changes: object) -> object:
        if pending:
            pending.pop()()
        return commit(self, changes)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaTarget, "commit", interrupted)
    return pending.append


def batch(connect, *ids: int) -> DataFrame:
    return connect.createDataFrame([(i, i % 2, f"n{i}") for i in ids], "id long, p int, v string").coalesce(1)


def missing(connect, path: str, *ids: int, where: str = "true") -> DataFrame:
    known = alluvium.read(connect, path).where(where).select("id")
    return batch(connect, *ids).join(known, "id", "left_anti").select("id", "p", "v")


def is_blind(path: str) -> bool:
    newest = max(Path(path, "_delta_log").glob("*.json"))
    return json.loads(newest.read_text().splitlines()[0])["commitInfo"]["isBlindAppend"]


def ids(path: str) -> list[int]:
    return sorted(alluvium.open(path).to_arrow(["id"])["id"].to_pylist())


def append(rows: DataFrame, path: str) -> None:
    alluvium.write(rows, path, mode="append")


def test_two_appends_of_what_is_missing_do_not_both_pass(connect, path, meanwhile):
    meanwhile(lambda: append(missing(connect, path, 100), path))
    with pytest.raises(CommitConflict) as caught:
        append(missing(connect, path, 100), path)
    assert caught.value.code == "concurrent-append"
    assert ids(path) == [0, 1, 2, 3, 100] and not is_blind(path)
    append(missing(connect, path, 100, 101), path)
    assert ids(path) == [0, 1, 2, 3, 100, 101]


def test_a_blind_append_beside_it_passes_where_the_table_allows_that(connect, tmp_path, meanwhile):
    path = str(tmp_path / "weaker")
    alluvium.write(batch(connect, 0, 1), path, partition_by="p", **WEAKER)
    meanwhile(lambda: append(batch(connect, 200), path))
    append(missing(connect, path, 100), path)
    assert ids(path) == [0, 1, 100, 200]


def test_only_what_was_read_counts(connect, path, meanwhile):
    meanwhile(lambda: append(batch(connect, 101), path))
    append(missing(connect, path, 100, where="p = 0"), path)
    assert ids(path) == [0, 1, 2, 3, 100, 101] and not is_blind(path)


def _view(connect, path: str) -> str:
    alluvium.read(connect, path).where("p = 0").createOrReplaceTempView("own_rows")
    return "own_rows"


def _by_sql(connect, path: str) -> DataFrame:
    return connect.sql(f"select id + 100 as id, p, v from {_view(connect, path)} limit 1")


def _by_name(connect, path: str) -> DataFrame:
    return connect.table(_view(connect, path)).selectExpr("id + 100 as id", "p", "v").limit(1)


def _by_subquery(connect, path: str) -> DataFrame:
    batch(connect, 100).createOrReplaceTempView("new_rows")
    return connect.sql(f"select * from new_rows where id not in (select id from {_view(connect, path)})")


def _by_scalar_subquery(connect, path: str) -> DataFrame:
    return connect.sql(f"select (select max(id) from {_view(connect, path)}) + 98 as id, 0 as p, 'x' as v")


def _by_view_of_a_view(connect, path: str) -> DataFrame:
    connect.sql(f"create or replace temp view outer_rows as select * from {_view(connect, path)}")
    return connect.sql("with c as (select * from outer_rows) select id + 100 as id, p, v from c limit 1")


def _by_frame_in_sql(connect, path: str) -> DataFrame:
    own = alluvium.read(connect, path).where("p = 0")
    return connect.sql("select id + 100 as id, p, v from {own} limit 1", own=own)


def _by_frame_subquery(connect, path: str) -> DataFrame:
    own = alluvium.read(connect, path).where("p = 0")
    return batch(connect, 10_000).where(sf.col("id") > own.select(sf.max("id")).scalar())


def _by_union(connect, path: str) -> DataFrame:
    own = alluvium.read(connect, path).where("p = 0").select("*").where("id < 0")
    return batch(connect, 100).union(own)


def _cached(connect, path: str) -> DataFrame:
    rows = connect.sql(f"select id + 100 as id, p, v from {_view(connect, path)} limit 1").cache()
    rows.count()
    return rows


def _by_files(connect, path: str) -> DataFrame:
    return connect.sql(f"select 100 as id, 0 as p, v from parquet.`{path}/*/p=0` limit 1")


def _by_paths(connect, path: str) -> DataFrame:
    return connect.read.parquet(f"{path}/*/p=0").selectExpr("100 as id", "0 as p", "v").limit(1)


def _by_subquery_in_a_text(connect, path: str) -> DataFrame:
    return batch(connect, 10_000).where(f"id not in (select id from {_view(connect, path)})")


def _by_subquery_in_an_expression(connect, path: str) -> DataFrame:
    return batch(connect, 100).withColumn("id", sf.expr(f"(select min(id) from {_view(connect, path)}) + 100"))


def _function(connect, path: str) -> str:
    body = f"select max(id) from {_view(connect, path)}"
    connect.sql(f"create or replace temporary function own_end() returns bigint return {body}")
    return "own_end"


def _by_function(connect, path: str) -> DataFrame:
    return batch(connect, 100).withColumn("id", sf.call_function(_function(connect, path)) + 98)


def _by_function_in_a_text(connect, path: str) -> DataFrame:
    return batch(connect, 100).selectExpr(f"{_function(connect, path)}() + 98 as id", "p", "v")


_WAYS: list[Callable[[Any, str], DataFrame]] = [
    _by_sql, _by_name, _by_subquery, _by_scalar_subquery, _by_view_of_a_view, _by_frame_in_sql, _by_frame_subquery,
    _by_union, _cached, _by_files, _by_paths, _by_subquery_in_a_text, _by_subquery_in_an_expression, _by_function,
    _by_function_in_a_text,
]  # fmt: skip


@pytest.mark.parametrize("rows_of", _WAYS, ids=lambda way: way.__name__.strip("_"))
def test_however_the_table_comes_into_the_plan(connect, path, meanwhile, rows_of):
    rows = rows_of(connect, path).select(sf.col("id").cast("long"), sf.col("p").cast("int"), "v")
    meanwhile(lambda: append(batch(connect, 1000), path))
    with pytest.raises(CommitConflict):
        append(rows, path)
    assert ids(path) == [0, 1, 2, 3, 1000]
    append(rows_of(connect, path).select(sf.col("id").cast("long"), sf.col("p").cast("int"), "v"), path)
    assert not is_blind(path)
    connect.catalog.clearCache()


@pytest.mark.parametrize("how", ["plan", "view"])
def test_a_partition_that_was_not_read_may_change(connect, path, meanwhile, how):
    """What a view asks for is known, too: as its frame was narrowed when it was made."""
    rows = _by_sql(connect, path) if how == "view" else missing(connect, path, 100, where="p = 0")
    meanwhile(lambda: append(batch(connect, 101), path))
    append(rows, path)
    assert ids(path) == [0, 1, 2, 3, 100, 101]


def test_rows_of_another_table_are_blind(connect, path, tmp_path, meanwhile):
    other = str(tmp_path / "t2")
    alluvium.write(batch(connect, 7), other)
    alluvium.read(connect, other).createOrReplaceTempView("other_rows")
    connect.read.parquet(f"{other}/*/*.parquet").createOrReplaceTempView("other_files")
    both = "select * from other_rows union all select id + 1, p, v from other_files"
    for rows in (
        alluvium.read(connect, other),
        connect.sql(both),
        connect.table("other_rows"),
        connect.sql("select 9L id"),
    ):
        meanwhile(lambda: append(batch(connect, 100), path))
        append(rows.withColumn("p", sf.lit(1)), path)
        assert is_blind(path)


def test_a_version_that_was_asked_for_is_not_read_anew(connect, path):
    append(batch(connect, 5), path)
    then = alluvium.read(connect, path, version=0)
    then.createOrReplaceTempView("rows_of_then")
    append(batch(connect, 7), path)
    for rows in (then.where("id = 3"), connect.sql("select * from rows_of_then where id = 3")):
        append(rows, path)
        assert is_blind(path)
    assert ids(path) == [0, 1, 2, 3, 3, 3, 5, 7]


def test_rows_of_a_version_that_was_overtaken(connect, path):
    rows, whole = missing(connect, path, 100), alluvium.read(connect, path)
    even, odd = whole.where("p = 0"), whole.where("p = 1")
    whole.createOrReplaceTempView("own_rows")
    append(batch(connect, 100), path)
    for read, how in ((rows, {"mode": "append"}), (whole, {"mode": "overwrite"}),
                      (even, {"mode": "overwrite", "replaceWhere": "p = 0"}),
                      (connect.table("own_rows"), {"mode": "append"})):  # fmt: skip
        with pytest.raises(CommitConflict) as caught:
            alluvium.write(read, path, **how)
        assert caught.value.code == "concurrent-append"
        assert "read the table again" in caught.value.hint and "temporary view" in caught.value.hint
    assert ids(path) == [0, 1, 2, 3, 100]
    alluvium.write(odd, path, mode="overwrite", replaceWhere="p = 1")
    assert ids(path) == [0, 1, 2, 3, 100], "the partition that it replaces is as it was read"


def test_rows_by_python_workers(connect, path, meanwhile):
    newest = alluvium.read(connect, path, lane="python", where="p = 0")
    asked = alluvium.read(connect, path, version=0, lane="python", where="id = 1")
    newest.createOrReplaceTempView("rows_of_workers")
    append(batch(connect, 100), path)
    for rows in (newest, connect.table("rows_of_workers")):
        with pytest.raises(CommitConflict) as caught:
            append(rows, path)
        assert caught.value.code == "concurrent-append"
    append(asked, path)
    assert is_blind(path)
    append(alluvium.read(connect, path, lane="python", where="id = 0"), path)
    assert not is_blind(path)
    assert ids(path) == [0, 0, 1, 1, 2, 3, 100]


def test_a_table_that_sql_of_the_server_opened(connect, path, meanwhile):
    alluvium.enable(connect)
    try:
        connect.sql(f"create or replace temporary view opened using delta options (path '{path}')")
        rows = connect.sql("select id + 100 as id, p, v from opened where id = 0")
        meanwhile(lambda: append(batch(connect, 1000), path))
        with pytest.raises(CommitConflict):
            append(rows, path)
    finally:
        alluvium.disable(connect)
    assert ids(path) == [0, 1, 2, 3, 1000]


@pytest.mark.parametrize(
    ("setting", "value"), [("spark.sql.maxPlanStringLength", "300"), ("spark.sql.redaction.string.regex", "alluvium.*")]
)
def test_a_server_that_does_not_tell_all(connect, path, meanwhile, setting, value):
    """Then the rows may have been read from the table."""
    rows = _by_sql(connect, path)
    connect.conf.set(setting, value)
    try:
        meanwhile(lambda: append(batch(connect, 101), path))
        with pytest.raises(CommitConflict):
            append(rows, path)
    finally:
        connect.conf.unset(setting)


def test_a_batch_of_a_stream_that_is_joined_with_the_table(connect, path, tmp_path):
    batch(connect, 100, 101).write.parquet(str(tmp_path / "source"))

    def store(rows: DataFrame, number: int) -> None:
        known = alluvium.read(rows.sparkSession, path).select("id")
        alluvium.write(rows.join(known, "id", "left_anti").select("id", "p", "v"), path, mode="append")

    source = connect.readStream.schema("id long, p int, v string").parquet(str(tmp_path / "source"))
    stream = source.writeStream.foreachBatch(store).trigger(availableNow=True)
    query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    assert query.awaitTermination(120) and query.exception() is None
    assert ids(path) == [0, 1, 2, 3, 100, 101] and not is_blind(path)


def test_a_mark_costs_a_query_nothing(connect, path):
    plan = alluvium.read(connect, path).where("id = 3")._explain_string(extended=True)
    analysed, optimised = plan.split("== Optimized Logical Plan ==")
    assert "alluvium-scan:" in analysed and "alluvium-scan:" not in optimised


def _link(path: str) -> str:
    link = f"{path} by another name"
    Path(link).symlink_to(path)
    return link


def _frame_by_link(connect, link: str) -> DataFrame:
    return alluvium.read(connect, link).where("p = 0")


def _view_by_link(connect, link: str) -> DataFrame:
    _frame_by_link(connect, link).createOrReplaceTempView("linked_rows")
    return connect.sql("select * from linked_rows where id >= 0")


def _workers_by_link(connect, link: str) -> DataFrame:
    return alluvium.read(connect, link, lane="python", where="p = 0")


def _files_by_link(connect, link: str) -> DataFrame:
    return connect.read.parquet(f"{link}/*/p=0").selectExpr("id", "0 as p", "v")


def _files_by_pattern(connect, link: str) -> DataFrame:
    return connect.read.parquet(link.replace(" another", " a?other") + "/*/p=0").selectExpr("id", "0 as p", "v")


def _view_of_files(connect, link: str) -> DataFrame:
    connect.read.parquet(f"{link}/*/p=0").createOrReplaceTempView("linked_files")
    return connect.sql("select id, 0 as p, v from linked_files")


def _view_of_several(connect, link: str) -> DataFrame:
    """Spark prints the first address alone."""
    other = f"{link} (others)"
    batch(connect, 0).select("id", "v").write.mode("overwrite").parquet(other)
    connect.read.parquet(other, f"{link}/*/p=0").createOrReplaceTempView("several_files")
    return connect.sql("select distinct id, 0 as p, v from several_files")


_WAYS_BY_LINK: list[Callable[[Any, str], DataFrame]] = [
    _frame_by_link, _view_by_link, _workers_by_link, _files_by_link, _files_by_pattern, _view_of_files, _view_of_several,
]  # fmt: skip


@pytest.mark.parametrize("rows_of", _WAYS_BY_LINK, ids=lambda way: way.__name__.strip("_"))
@pytest.mark.parametrize("by_name", ["read", "written"])
def test_a_table_by_another_name(connect, path, meanwhile, rows_of, by_name):
    link = _link(path)
    read, written = (link, path) if by_name == "read" else (path, link)
    if by_name == "written" and rows_of is _files_by_pattern:
        pytest.skip("the pattern is one of the other name")

    def rows() -> DataFrame:
        found = rows_of(connect, read).select((sf.col("id") + 100).alias("id"), sf.col("p").cast("int"), "v")
        return found.where("id < 102")

    first = rows()
    meanwhile(lambda: append(batch(connect, 1000), path))
    with pytest.raises(CommitConflict):
        append(first, written)
    assert ids(path) == [0, 1, 2, 3, 1000]
    append(rows(), written)
    assert not is_blind(path) and ids(path) == [0, 1, 2, 3, 100, 1000]


def test_a_version_that_was_overtaken_under_another_name(connect, path):
    rows = alluvium.read(connect, _link(path)).where("p = 0")
    append(batch(connect, 100), path)
    with pytest.raises(CommitConflict) as caught:
        append(rows, path)
    assert "read the table again" in caught.value.hint


def test_a_copy_of_the_table_is_another(connect, path, tmp_path, meanwhile):
    shutil.copytree(path, tmp_path / "copy")
    append(batch(connect, 7), path)
    meanwhile(lambda: append(batch(connect, 100), path))
    append(alluvium.read(connect, str(tmp_path / "copy")).where("id = 3"), path)
    assert is_blind(path) and ids(path) == [0, 1, 2, 3, 3, 7, 100]

"""Writes whose rows were read from the table itself, beside writers who change what they saw."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from dml_tables import last, make, rows_of
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import CommitConflict

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SERIALIZABLE: dict[str, str] = {}
ZONE = "spark.sql.session.timeZone"
WEAKER = {"delta.isolationLevel": "WriteSerializable"}


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


def batch(spark, *ids: int):
    return spark.createDataFrame([(i, i % 2, f"n{i}") for i in ids], "id long, p int, v string").coalesce(1)


def missing(spark, path: str, *ids: int, where: str = "true"):
    """Those of some rows that the table has not got yet."""
    known = alluvium.read(spark, path).where(where).select("id")
    return batch(spark, *ids).join(known, "id", "left_anti").select("id", "p", "v")


def info(path: str) -> dict:
    return last(path, "commitInfo")[0]


def ids(path: str) -> list[int]:
    return sorted(alluvium.open(path).to_arrow(["id"])["id"].to_pylist())


@pytest.mark.parametrize("properties", [SERIALIZABLE, WEAKER], ids=["serializable", "weaker"])
def test_two_appends_of_what_is_missing_do_not_both_pass(spark, tmp_path, meanwhile, properties):
    path = str(tmp_path / "t")
    make(spark, path, properties, rows=4)
    meanwhile(lambda: alluvium.write(missing(spark, path, 100), path, mode="append"))
    with pytest.raises(CommitConflict) as caught:
        alluvium.write(missing(spark, path, 100), path, mode="append")
    assert caught.value.code == "concurrent-append"
    assert ids(path) == [0, 1, 2, 3, 100]
    assert info(path)["isBlindAppend"] is False
    assert sum(1 for _ in Path(path).rglob("*.parquet")) == 3, "what the loser wrote is gone"
    alluvium.write(missing(spark, path, 100, 101), path, mode="append")
    assert ids(path) == [0, 1, 2, 3, 100, 101]


def test_a_blind_append_beside_it_passes_where_the_table_allows_that(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    make(spark, path, WEAKER, rows=4)
    meanwhile(lambda: alluvium.write(batch(spark, 200), path, mode="append"))
    assert alluvium.write(missing(spark, path, 100), path, mode="append").version == 3
    assert [json.loads(p.read_text().splitlines()[0])["commitInfo"]["isBlindAppend"]
            for p in sorted(Path(path, "_delta_log").glob("*.json"))[-2:]] == [True, False]  # fmt: skip


def test_only_what_was_read_counts(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    make(spark, path, SERIALIZABLE, rows=4)
    meanwhile(lambda: alluvium.write(missing(spark, path, 101, where="p = 1"), path, mode="append"))
    alluvium.write(missing(spark, path, 100, where="p = 0"), path, mode="append")
    assert ids(path) == [0, 1, 2, 3, 100, 101]


@pytest.mark.parametrize("how", ["subquery", "view", "cached"])
def test_however_the_table_comes_into_the_plan(spark, tmp_path, meanwhile, how):
    path = str(tmp_path / "t")
    make(spark, path, SERIALIZABLE, rows=4)
    own = alluvium.read(spark, path)
    if how == "subquery":
        own.createOrReplaceTempView("own_rows")
        batch(spark, 100).createOrReplaceTempView("new_rows")
        rows = spark.sql("select * from new_rows where id not in (select id from own_rows)")
    elif how == "view":
        own.createOrReplaceTempView("own_rows")
        rows = spark.sql("select id + 100 as id, p, v from own_rows where p = 0 limit 1")
    else:
        rows = own.where("p = 0").withColumn("id", sf.lit(100).cast("long")).limit(1).cache()
        rows.count()
    meanwhile(lambda: alluvium.write(batch(spark, 100), path, mode="append"))
    with pytest.raises(CommitConflict):
        alluvium.write(rows, path, mode="append")
    assert ids(path) == [0, 1, 2, 3, 100]
    rows.unpersist()


def test_rows_of_another_table_are_blind(spark, tmp_path, meanwhile):
    path, other = str(tmp_path / "t"), str(tmp_path / "other")
    make(spark, path, SERIALIZABLE, rows=4)
    make(spark, other, SERIALIZABLE, rows=2)
    meanwhile(lambda: alluvium.write(batch(spark, 100), path, mode="append"))
    alluvium.write(alluvium.read(spark, other), path, mode="append")
    assert info(path)["isBlindAppend"] is True


def test_a_version_that_was_asked_for_is_not_read_anew(spark, tmp_path):
    path = str(tmp_path / "t")
    table = make(spark, path, SERIALIZABLE, rows=4)
    table.delete("id = 3")
    alluvium.write(alluvium.read(spark, path, version=1).where("id = 3"), path, mode="append")
    assert ids(path) == [0, 1, 2, 3]
    assert info(path)["isBlindAppend"] is True


def test_rows_of_a_version_that_was_overtaken(spark, tmp_path):
    """The reference plans such a frame anew; ours shows what it showed, and says so."""
    path = str(tmp_path / "t")
    make(spark, path, SERIALIZABLE, rows=4)
    append, whole = missing(spark, path, 100), alluvium.read(spark, path)
    even, odd = whole.where("p = 0"), whole.where("p = 1")
    alluvium.write(batch(spark, 100), path, mode="append")
    for rows, how in ((append, {"mode": "append"}), (whole, {"mode": "overwrite"}),
                      (even, {"mode": "overwrite", "replaceWhere": "p = 0"})):  # fmt: skip
        with pytest.raises(CommitConflict) as caught:
            alluvium.write(rows, path, **how)
        assert caught.value.code == "concurrent-append"
    assert ids(path) == [0, 1, 2, 3, 100]
    alluvium.write(odd, path, mode="overwrite", replaceWhere="p = 1")
    assert ids(path) == [0, 1, 2, 3, 100], "the partition that it replaces is as it was read"


def test_a_refusal_says_where_frames_of_older_versions_come_from(spark, tmp_path):
    path = str(tmp_path / "t")
    make(spark, path, SERIALIZABLE, rows=4)
    rows = missing(spark, path, 100)
    alluvium.write(batch(spark, 100), path, mode="append")
    with pytest.raises(CommitConflict) as caught:
        alluvium.write(rows, path, mode="append")
    assert "inside foreachBatch" in caught.value.hint
    assert "temporary view" in caught.value.hint


@pytest.mark.parametrize("mode", [{"replaceWhere": "p = 1"}, {"partitionOverwriteMode": "dynamic"}], ids=str)
def test_rows_of_the_whole_table_are_overtaken_wherever_they_go(spark, tmp_path, mode):
    """Somebody changed rows that these were computed from, and that they do not replace."""
    path = str(tmp_path / "t")
    make(spark, path, SERIALIZABLE, rows=4)
    total = alluvium.read(spark, path).selectExpr("sum(id) as id", "1 as p", "'sum' as v")
    alluvium.write(batch(spark, 100), path, mode="append")
    with pytest.raises(CommitConflict) as caught:
        alluvium.write(total, path, mode="overwrite", **mode)
    assert caught.value.code == "concurrent-append"
    assert ids(path) == [0, 1, 2, 3, 100]


def test_a_version_that_was_asked_for_and_the_newest_are_told_apart(spark, tmp_path):
    """Both are frames of one version, whichever was made last."""
    path = str(tmp_path / "t")
    make(spark, path, SERIALIZABLE, rows=4)
    first = alluvium.read(spark, path).where("id = 0")
    asked = alluvium.read(spark, path, version=1).where("id = 1")
    last_one = alluvium.read(spark, path).where("id = 2")
    alluvium.write(batch(spark, -2, 100), path, mode="append")
    alluvium.write(asked, path, mode="append")
    for rows in (first, last_one):
        with pytest.raises(CommitConflict):
            alluvium.write(rows, path, mode="append")
    assert ids(path) == [-2, 0, 1, 1, 2, 3, 100]


def test_rows_by_python_workers(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    path = str(tmp_path / "t")
    make(spark, path, SERIALIZABLE, rows=4)
    newest = alluvium.read(spark, path, lane="python", where="id = 0")
    asked = alluvium.read(spark, path, version=1, lane="python", where="id = 1")
    alluvium.write(batch(spark, 100), path, mode="append")
    with pytest.raises(CommitConflict) as caught:
        alluvium.write(newest, path, mode="append")
    assert caught.value.code == "concurrent-append"
    alluvium.write(asked, path, mode="append")
    assert info(path)["isBlindAppend"] is True
    alluvium.write(alluvium.read(spark, path, lane="python", where="id = 0"), path, mode="append")
    assert info(path)["isBlindAppend"] is False
    assert ids(path) == [0, 0, 1, 1, 2, 3, 100]


def test_rows_of_a_log_that_spark_reads(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    path = str(tmp_path / "t")
    make(spark, path, {"delta.checkpointInterval": "1"}, rows=4)
    spark.conf.set("spark.alluvium.log.maxCheckpointBytes", "1")
    try:
        newest = alluvium.read(spark, path).where("id = 0")
        asked = alluvium.read(spark, path, version=1).where("id = 1")
        alluvium.write(batch(spark, -2, 100), path, mode="append")
        with pytest.raises(CommitConflict) as caught:
            alluvium.write(newest, path, mode="append")
        assert caught.value.code == "concurrent-append"
        alluvium.write(asked, path, mode="append")
    finally:
        spark.conf.unset("spark.alluvium.log.maxCheckpointBytes")
    assert ids(path) == [-2, 0, 1, 1, 2, 3, 100]


def test_kept_rows_are_as_many_as_were_kept(spark, tmp_path):
    """One scan is planned with a filter, the other is in Spark's cache, which does not tell what it has read."""
    path = str(tmp_path / "t")
    make(spark, path, SERIALIZABLE, rows=4)
    kept = alluvium.read(spark, path).where("length(v) > 0").cache()
    kept.count()
    some = alluvium.read(spark, path).where("p = 0").select("id")
    rows = kept.where("id = 1").select("id", "p", "v").join(some, "id", "left_anti").select("id", "p", "v")
    alluvium.write(batch(spark, 101), path, mode="append")
    with pytest.raises(CommitConflict):
        alluvium.write(rows, path, mode="append")
    kept.unpersist()


def merge(spark, path: str, source) -> object:
    """New values for rows that match, and the others as new rows."""
    verb = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    return verb.whenMatchedUpdate(set={"v": "concat(s.v, '!')"}).whenNotMatchedInsertAll().execute()


def test_a_merge_of_rows_that_were_overtaken_loses_no_update(spark, tmp_path):
    path = str(tmp_path / "t")
    table = make(spark, path, SERIALIZABLE, rows=4)
    source = alluvium.read(spark, path)
    table.update("id = 1", {"v": "'changed'"})
    with pytest.raises(CommitConflict) as caught:
        merge(spark, path, source)
    assert caught.value.code == "concurrent-append"
    assert "inside foreachBatch" in caught.value.hint
    assert [r.v for r in rows_of(table)] == ["v0", "changed", "v2", "v3"]
    merge(spark, path, alluvium.read(spark, path))
    assert [r.v for r in rows_of(table)] == ["v0!", "changed!", "v2!", "v3!"]


@pytest.mark.parametrize("properties", [SERIALIZABLE, WEAKER], ids=["serializable", "weaker"])
def test_a_merge_of_what_was_missing_inserts_nothing_twice(spark, tmp_path, properties):
    """Also where blind appends may be ordered after others: this merge meets their rows in the table."""
    path = str(tmp_path / "t")
    make(spark, path, properties, rows=4)
    source = missing(spark, path, 100)
    alluvium.write(batch(spark, 100), path, mode="append")
    verb = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id and t.id < 0")
    with pytest.raises(CommitConflict):
        verb.whenNotMatchedInsertAll().execute()
    assert ids(path) == [0, 1, 2, 3, 100]


def test_a_merge_depends_on_what_its_source_has_read(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    table = make(spark, path, SERIALIZABLE, rows=4)
    source = alluvium.read(spark, path).where("p = 0")
    alluvium.write(batch(spark, 101), path, mode="append")
    merge(spark, path, source)
    assert [r.v for r in rows_of(table)] == ["v0!", "v1", "v2!", "v3", "n101"], "its partition is as it was read"
    verb = table.alias("t").merge(alluvium.read(spark, path).where("p = 1").alias("s"), "t.p = 0 and t.id + 1 = s.id")
    meanwhile(lambda: table.update("id = 3", {"v": "'changed'"}))
    with pytest.raises(CommitConflict) as caught:
        verb.whenMatchedUpdate(set={"v": "s.v"}).execute()
    assert "its source was read from the table itself" in caught.value.hint
    assert [r.v for r in rows_of(table)] == ["v0!", "v1", "v2!", "changed", "n101"]


def test_a_merge_of_a_version_that_was_asked_for(spark, tmp_path, meanwhile):
    """Rows of then may be put back whatever happened since, and the merge is repeated like any other."""
    path = str(tmp_path / "t")
    table = make(spark, path, SERIALIZABLE, rows=4)
    table.update("id = 1", {"v": "'changed'"})
    meanwhile(lambda: table.update("id = 3", {"v": "'changed'"}))
    merge(spark, path, alluvium.read(spark, path, version=1).where("p = 1"))
    assert [r.v for r in rows_of(table)] == ["v0", "v1!", "v2", "v3!"]


def test_a_merge_that_was_done_already_is_not_refused(spark, tmp_path):
    path = str(tmp_path / "t")
    table = make(spark, path, SERIALIZABLE, rows=4)
    source = alluvium.read(spark, path).where("id = 1")
    said = {
        f"spark.databricks.delta.write.{name}": value for name, value in (("txnAppId", "nightly"), ("txnVersion", "1"))
    }
    for name, value in said.items():
        spark.conf.set(name, value)
    try:
        for _ in range(2):
            merge(spark, path, source)
    finally:
        for name in said:
            spark.conf.unset(name)
    assert [r.v for r in rows_of(table)] == ["v0", "v1!", "v2", "v3"]


def test_an_overwrite_of_rows_is_told_of_what_it_has_read(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    make(spark, path, SERIALIZABLE, rows=4)
    rows = alluvium.read(spark, path).where("p = 0").selectExpr("id + 10 as id", "p", "'x' as v")
    meanwhile(lambda: alluvium.write(batch(spark, 300), path, mode="append"))
    with pytest.raises(CommitConflict):
        alluvium.write(rows, path, mode="overwrite", replaceWhere="v = 'x'")
    assert ids(path) == [0, 1, 2, 3, 300]


def test_an_update_by_a_subquery_has_read_what_that_has_read(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    table = make(spark, path, SERIALIZABLE, rows=4)
    alluvium.read(spark, path).createOrReplaceTempView("own_rows")
    values = {"v": "(select concat('max ', max(id)) from own_rows)"}
    meanwhile(lambda: alluvium.write(batch(spark, 101), path, mode="append"))
    with pytest.raises(CommitConflict) as caught:
        table.update("p = 0", values)
    assert "one of its subqueries has read the table itself" in str(caught.value)
    assert rows_of(table)[0].v == "v0"
    alluvium.read(spark, path).createOrReplaceTempView("own_rows")
    table.update("p = 0", values)
    assert rows_of(table)[0].v == "max 101"


@pytest.mark.parametrize("verb", ["delete", "update"])
def test_a_condition_by_a_subquery_has_read_what_that_has_read(spark, tmp_path, meanwhile, verb):
    """The row that came meanwhile is none that the condition itself speaks of."""
    path = str(tmp_path / "t")
    table = make(spark, path, SERIALIZABLE, rows=4)
    alluvium.read(spark, path).createOrReplaceTempView("own_rows")
    condition = "p = 0 and id < (select max(id) from own_rows)"
    change = {"delete": lambda: table.delete(condition), "update": lambda: table.update(condition, {"v": "'new'"})}
    meanwhile(lambda: alluvium.write(batch(spark, 101), path, mode="append"))
    with pytest.raises(CommitConflict) as caught:
        change[verb]()
    assert "one of its subqueries has read the table itself" in str(caught.value)
    alluvium.read(spark, path).createOrReplaceTempView("own_rows")
    change[verb]()
    assert [r.v for r in rows_of(table)] == {
        "delete": ["v1", "v3", "n101"],
        "update": ["new", "v1", "new", "v3", "n101"],
    }[verb]


@pytest.mark.parametrize("properties", [SERIALIZABLE, WEAKER], ids=["serializable", "weaker"])
def test_an_update_by_a_view_that_was_overtaken(spark, tmp_path, properties):
    path = str(tmp_path / "t")
    table = make(spark, path, properties, rows=4)
    alluvium.read(spark, path).createOrReplaceTempView("own_rows")
    alluvium.read(spark, path, version=1).createOrReplaceTempView("rows_of_then")
    alluvium.write(batch(spark, 101), path, mode="append")
    with pytest.raises(CommitConflict) as caught:
        table.update("p = 0", {"v": "(select concat('max ', max(id)) from own_rows)"})
    assert caught.value.code == "concurrent-append"
    assert "a temporary view over the table keeps the version" in caught.value.hint
    assert [r.v for r in rows_of(table)] == ["v0", "v1", "v2", "v3", "n101"]
    table.update("p = 0", {"v": "(select concat('max ', max(id)) from rows_of_then)"})
    assert [r.v for r in rows_of(table)] == ["max 3", "v1", "max 3", "v3", "n101"]


def test_an_update_by_a_version_that_was_asked_for_is_repeated(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    table = make(spark, path, SERIALIZABLE, rows=4)
    alluvium.read(spark, path, version=1).createOrReplaceTempView("rows_of_then")
    meanwhile(lambda: alluvium.write(batch(spark, 100), path, mode="append"))
    table.update("p = 0", {"v": "(select concat('max ', max(id)) from rows_of_then)"})
    assert [r.v for r in rows_of(table)] == ["max 3", "v1", "max 3", "v3", "max 3"]


def test_an_update_by_a_subquery_of_another_table_is_repeated(spark, tmp_path, meanwhile):
    path, other = str(tmp_path / "t"), str(tmp_path / "other")
    table = make(spark, path, SERIALIZABLE, rows=4)
    make(spark, other, SERIALIZABLE, rows=3)
    alluvium.read(spark, other).createOrReplaceTempView("other_rows")
    meanwhile(lambda: alluvium.write(batch(spark, 100), path, mode="append"))
    table.update("p = 0", {"v": "(select concat('max ', max(id)) from other_rows)"})
    assert [(r.id, r.v) for r in rows_of(table)] == [(0, "max 2"), (1, "v1"), (2, "max 2"), (3, "v3"), (100, "max 2")]


def test_ending_column_mapping_lets_no_append_through(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    table = make(spark, path, {"delta.columnMapping.mode": "name", **WEAKER}, rows=4)
    meanwhile(lambda: alluvium.write(batch(spark, 100), path, mode="append"))
    with pytest.raises(CommitConflict):
        alluvium.DeltaTable.forPath(spark, path).dropFeatureSupport("columnMapping")
    assert [(r.id, r.v) for r in rows_of(table)] == [(0, "v0"), (1, "v1"), (2, "v2"), (3, "v3"), (100, "n100")]


def test_a_constraint_is_not_added_beside_an_append(spark, tmp_path, meanwhile):
    path = str(tmp_path / "t")
    make(spark, path, WEAKER, rows=4)
    meanwhile(lambda: alluvium.write(batch(spark, 100), path, mode="append"))
    with pytest.raises(CommitConflict) as caught:
        DeltaTable.forPath(spark, path).addConstraint("few", "id < 50")
    assert caught.value.code == "concurrent-append"
    alluvium.write(batch(spark, 102), path, mode="append")


def test_what_was_read_is_said_in_the_zone_in_which_it_was_asked_for(spark, tmp_path, meanwhile):
    path, zone = str(tmp_path / "t"), spark.conf.get(ZONE)
    rows = "select cast(id as timestamp) t, id from values (0L), (90000L) as x(id)"
    alluvium.write(spark.sql(rows), path)
    known = alluvium.read(spark, path).where("cast(t as date) = date'1970-01-02'").select("id")
    # One hour before the day ends in UTC, which is the next day in Tokyo.
    late = spark.sql("select cast(169200 as timestamp) t, 7L id")
    fresh = spark.sql("select cast(0 as timestamp) t, 8L id").join(known.where("id = 7"), "id", "left_anti")
    meanwhile(lambda: alluvium.write(late, path, mode="append"))
    spark.conf.set(ZONE, "Asia/Tokyo")
    try:
        with pytest.raises(CommitConflict):
            alluvium.write(fresh.select("t", "id"), path, mode="append")
    finally:
        spark.conf.set(ZONE, zone)


@pytest.mark.parametrize("by_name", ["read", "written"])
@pytest.mark.parametrize("how", ["frame", "view", "files"])
def test_a_table_by_another_name(spark, tmp_path, meanwhile, by_name, how):
    path, link = str(tmp_path / "t"), str(tmp_path / "by another name")
    make(spark, path, SERIALIZABLE, rows=4)
    Path(link).symlink_to(path)
    read, written = (link, path) if by_name == "read" else (path, link)

    def rows():
        # By its files it is read at its root alone (as in the reference, what lies below counts for another place).
        files = spark.read.option("recursiveFileLookup", "true")
        own = files.schema("id long, p int, v string").parquet(read) if how == "files" else alluvium.read(spark, read)
        if how == "view":
            own.createOrReplaceTempView("linked_rows")
            own = spark.table("linked_rows")
        return own.selectExpr("id + 100 as id", "p", "v").limit(1)

    first = rows()
    meanwhile(lambda: alluvium.write(batch(spark, 1000), path, mode="append"))
    with pytest.raises(CommitConflict):
        alluvium.write(first, written, mode="append")
    assert ids(path) == [0, 1, 2, 3, 1000]
    alluvium.write(rows(), written, mode="append")
    assert info(path)["isBlindAppend"] is False and len(ids(path)) == 6


def test_a_merge_of_an_older_version_under_another_name(spark, tmp_path):
    path, link = str(tmp_path / "t"), str(tmp_path / "by another name")
    make(spark, path, SERIALIZABLE, rows=4)
    Path(link).symlink_to(path)
    source = alluvium.read(spark, link)
    alluvium.write(batch(spark, 1000), path, mode="append")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    with pytest.raises(CommitConflict) as caught:
        merge.whenMatchedUpdate(set={"v": "'x'"}).execute()
    assert "read the table again" in caught.value.hint


def test_a_copy_of_the_table_is_another(spark, tmp_path, meanwhile):
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    make(spark, path, SERIALIZABLE, rows=4)
    shutil.copytree(path, copy)
    alluvium.write(batch(spark, 7), path, mode="append")
    meanwhile(lambda: alluvium.write(batch(spark, 100), path, mode="append"))
    alluvium.write(alluvium.read(spark, copy).where("id = 3"), path, mode="append")
    assert info(path)["isBlindAppend"] is True and ids(path) == [0, 1, 2, 3, 3, 7, 100]

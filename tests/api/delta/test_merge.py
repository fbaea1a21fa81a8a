"""MERGE on tables with vectors and without: clauses, matches, stars, feed, row ids, files that are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from dml_tables import MODES, last, make, rows_of, tracked
from pyspark.sql import functions as sf

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Preview

pytestmark = pytest.mark.spark

FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}


def source(spark, rows: str):
    return spark.sql(f"select * from values {rows} as s(id, p, v)").selectExpr("cast(id as bigint) id", "p", "v")


@pytest.mark.parametrize("mode", MODES)
def test_matches_that_fall_under_no_clause_are_no_changes(spark, tmp_path, mode):
    """Their file may be written anew beside inserts; the feed tells of the inserts alone."""
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED)
    merge = table.alias("t").merge(source(spark, "(5, 1, 'x'), (100, 1, 's100')").alias("s"), "t.id = s.id")
    counts = merge.whenMatchedUpdateAll("s.v = 'y'").whenNotMatchedInsertAll().execute().first()
    assert tuple(counts) == (1, 0, 0, 1)
    feed = alluvium.open(path).changes(2).select(["id", "v", "_change_type"]).to_pylist()
    assert feed == [{"id": 100, "v": "s100", "_change_type": "insert"}]
    assert len(rows_of(table)) == 21


@pytest.mark.parametrize("mode", MODES)
def test_update_delete_and_insert(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED | TRACKED)
    before = {r["id"]: r["_row_id"] for r in tracked(path)}
    rows = source(spark, "(5, 1, 's5'), (6, 0, 's6'), (100, 1, 's100'), (null, 1, 'n')")
    merge = table.alias("t").merge(rows.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedDelete("s.id = 6").whenMatchedUpdateAll().whenNotMatchedInsertAll("s.id is not null")
    preview = merge.execute(dry_run=True)
    assert isinstance(preview, Preview)
    assert preview.operation.metrics["numTargetRowsInserted"] == "1" or mode == "rewrite"
    assert tuple(merge.execute().first()) == (3, 1, 1, 1)
    found = {r["id"]: r["v"] for r in rows_of(table)}
    assert found == {**{i: f"v{i}" for i in range(20) if i != 6}, 5: "s5", 100: "s100"}
    after = {r["id"]: r["_row_id"] for r in tracked(path)}
    assert {i: r for i, r in after.items() if i != 100} == {i: r for i, r in before.items() if i != 6}
    assert after[100] not in before.values()
    feed = alluvium.open(path).changes(2).select(["id", "v", "_change_type"]).to_pylist()
    assert sorted(tuple(r.values()) for r in feed) == [
        (5, "s5", "update_postimage"), (5, "v5", "update_preimage"), (6, "v6", "delete"), (100, "s100", "insert"),
    ]  # fmt: skip
    entry = table.history(1).first()
    assert entry["operation"] == "MERGE"
    metrics = entry["operationMetrics"]
    counts = {name: metrics[f"numTargetRows{name}"] for name in ("Updated", "Deleted", "Inserted")}
    assert (counts, metrics["numSourceRows"]) == ({"Updated": "1", "Deleted": "1", "Inserted": "1"}, "4")
    assert entry["operationParameters"]["matchedPredicates"] == (
        '[{"predicate":"(s.id = 6)","actionType":"delete"},{"actionType":"update"}]'
    )


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_the_source_lacks(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED)
    merge = table.alias("t").merge(source(spark, "(5, 1, 's5'), (100, 1, 'x')").alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"v": sf.col("s.v")}).whenNotMatchedInsert(values={"id": "id", "p": "s.p"})
    merge = merge.whenNotMatchedBySourceUpdate("id = 10", {"t.v": "concat(v, '?')"})
    assert tuple(merge.whenNotMatchedBySourceDelete("id < 4").execute().first()) == (7, 2, 4, 1)
    found = {r["id"]: r["v"] for r in rows_of(table)}
    assert found == {**{i: f"v{i}" for i in range(4, 20)}, 5: "s5", 10: "v10?", 100: None}
    metrics = table.history(1).first()["operationMetrics"]
    assert metrics["numTargetRowsMatchedUpdated"] == metrics["numTargetRowsNotMatchedBySourceUpdated"] == "1"
    assert metrics["numTargetRowsNotMatchedBySourceDeleted"] == "4"
    assert len(alluvium.open(path).changes(2)) == 9


@pytest.mark.parametrize("mode", MODES)
def test_only_new_rows_are_appended(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED)
    merge = table.alias("t").merge(source(spark, "(5, 1, 's5'), (100, 1, 'x')").alias("s"), "t.id = s.id")
    assert tuple(merge.whenNotMatchedInsertAll().execute().first()) == (1, 0, 0, 1)
    assert (len(last(path, "add")), last(path, "remove"), last(path, "cdc")) == (1, [], [])
    assert merge.whenNotMatchedInsertAll().execute().first()[0] == 0
    assert table.history(1).first()["version"] == 2


@pytest.mark.parametrize("mode", MODES)
def test_several_matches(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED)
    twice = source(spark, "(5, 1, 'a'), (5, 1, 'b'), (7, 1, 'c')")
    merge = table.alias("t").merge(twice.alias("s"), "t.id = s.id")
    ambiguous = [
        merge.whenMatchedUpdateAll(),
        merge.whenMatchedDelete("s.v <> 'z'"),
        # As in the reference, pairs count that fall under no clause.
        merge.whenMatchedUpdate("s.v = 'a'", {"v": "s.v"}),
        merge.whenMatchedUpdate("s.v = 'a'", {"v": "s.v"}).whenNotMatchedInsertAll(),
    ]
    for built in ambiguous:
        with pytest.raises(InvalidRequest, match='"id":5') as caught:
            built.execute()
        assert caught.value.code == "multiple-matches"
    assert table.history(1).first()["version"] == 1
    assert tuple(merge.whenMatchedDelete().whenNotMatchedBySourceUpdate("id = 9", {"v": "'n'"}).execute().first()) == (
        3, 1, 2, 0,
    )  # fmt: skip
    assert len(rows_of(table)) == 18
    feed = alluvium.open(path).changes(2).select(["id", "_change_type"]).to_pylist()
    assert sorted(tuple(r.values()) for r in feed) == [
        (5, "delete"), (7, "delete"), (9, "update_postimage"), (9, "update_preimage"),
    ]  # fmt: skip


def test_files_out_of_the_keys_reach_are_not_read(spark, tmp_path):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES["mask"])
    for file in Path(path).rglob("p=1/*.parquet"):
        file.write_bytes(b"nobody may read this")
    merge = table.alias("t").merge(source(spark, "(4, 0, 's4')").alias("s"), "t.id = s.id and t.p = s.p")
    assert merge.whenMatchedUpdateAll().execute().first()[1] == 1


@pytest.mark.parametrize("mode", MODES)
def test_the_source_may_be_the_table_itself(spark, tmp_path, mode):
    table = make(spark, str(tmp_path / "t"), MODES[mode])
    itself = table.toDF().where("id < 3").withColumn("id", sf.expr("id + 1"))
    merge = table.alias("t").merge(itself.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"v": "concat(t.v, s.v)"}).execute()
    assert [r["v"] for r in rows_of(table)][:5] == ["v0", "v1v0", "v2v1", "v3v2", "v4"]


@pytest.mark.parametrize("mode", MODES)
def test_a_source_that_is_not_deterministic_is_computed_once(spark, tmp_path, mode):
    table = make(spark, str(tmp_path / "t"), MODES[mode])
    drawn = spark.range(20).selectExpr("id", "rand() as r").where("r < 0.5").alias("s")
    done = table.alias("t").merge(drawn, "t.id = s.id").whenMatchedUpdate(set={"v": "'hit'"}).execute().first()
    assert done[1] == sum(r["v"] == "hit" for r in rows_of(table))


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_source(spark, tmp_path, mode):
    table = make(spark, str(tmp_path / "t"), MODES[mode])
    merge = table.alias("t").merge(source(spark, "(1, 1, 'x')").where("false").alias("s"), "t.id = s.id")
    assert merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().first()[0] == 0
    assert tuple(merge.whenNotMatchedBySourceDelete("p = 1").execute().first()) == (10, 0, 10, 0)


@pytest.mark.parametrize("mode", MODES)
def test_the_schema_evolves(spark, tmp_path, mode):
    table = make(spark, str(tmp_path / "t"), MODES[mode] | FEED)
    rows = source(spark, "(5, 1, 's5'), (100, 1, 'x')").withColumn("Z", sf.lit(1)).drop("v")
    merge = table.alias("t").merge(rows.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    with pytest.raises(InvalidRequest) as caught:
        merge.execute()
    assert caught.value.code == "unknown-column"
    merge.withSchemaEvolution().execute()
    found = {r["id"]: (r["v"], r["Z"]) for r in rows_of(table)}
    assert (found[5], found[100], found[4]) == (("v5", 1), (None, 1), ("v4", None))


@pytest.mark.parametrize("mode", MODES)
def test_values_that_the_table_makes(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    builder = DeltaTable.create(spark).location(path).addColumn("a", "int", nullable=False)
    builder = builder.addColumn("b", "int", generatedAlwaysAs="a * 2")
    for key, value in MODES[mode].items():
        builder = builder.property(key, value)
    table = builder.execute()
    alluvium.write(spark.sql("select cast(id as int) a from range(4)"), path, mode="append")
    rows = spark.sql("select * from values (1, 11), (7, 17) as s(k, n)").alias("s")
    merge = table.alias("t").merge(rows, "t.a = s.k")
    merge.whenMatchedUpdate(set={"a": "s.n"}).whenNotMatchedInsert(values={"a": "s.n"}).execute()
    assert sorted((r["a"], r["b"]) for r in rows_of(table)) == [(0, 0), (2, 4), (3, 6), (11, 22), (17, 34)]
    with pytest.raises(InvalidRequest):
        table.merge(rows, "a = k").whenNotMatchedInsert(values={"b": "s.n"}).execute()


def test_bad_merges_are_refused(spark, tmp_path):
    table = make(spark, str(tmp_path / "t"), {})
    rows = source(spark, "(5, 1, 'a')").alias("s")
    merge = table.alias("t").merge(rows, "t.id = s.id")
    bad = {
        "merge-without-clauses": merge,
        "unreachable-clause": merge.whenMatchedDelete().whenMatchedUpdateAll(),
        "unknown-column": merge.whenMatchedUpdate(set={"nope": "1"}),
        "assigned-twice": merge.whenMatchedUpdate(set={"v": "'1'", "V": "'2'"}),
        "invalid-expression": table.merge(rows, "id = s.id").whenMatchedDelete(),
    }
    bad_scope = [
        merge.whenNotMatchedInsert(values={"id": "t.id"}),
        merge.whenNotMatchedBySourceDelete("s.id = 1"),
        merge.whenMatchedDelete("rand() > 0.5"),
        merge.whenMatchedDelete("s.id in (select 1)"),
    ]
    for code, built in [*bad.items(), *(("invalid-expression", built) for built in bad_scope)]:
        with pytest.raises(InvalidRequest) as caught:
            built.execute()
        assert caught.value.code == code
    for wrong in [(None, "x"), (rows, None)]:
        with pytest.raises(ValueError, match="cannot be None"):
            table.merge(*wrong)
    with pytest.raises(TypeError):
        table.merge("source", "true")
    assert table.history(1).first()["version"] == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_merge_explains_itself(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode])
    merge = table.alias("t").merge(source(spark, "(5, 1, 's5'), (7, 1, 'x')").alias("s"), "t.id = s.id and t.p = s.p")
    plan = merge.whenMatchedUpdateAll("s.id = 5").whenNotMatchedInsertAll().explain()
    assert (plan.source_rows, len(plan.files), plan.total_files, len(plan.passes)) == (2, 1, 2, 1 + (mode == "rewrite"))
    assert sorted(plan.ranges) == ["id between 5 and 7", "p between 1 and 1"]
    assert "WHEN MATCHED THEN UPDATE * (under a condition)" in str(plan) and "1 of 2 may hold matches" in str(plan)
    assert "append" in merge.whenNotMatchedInsertAll().explain().mode
    assert "moving both sides" in _without_broadcasts(spark, merge.whenMatchedDelete().explain).join
    with pytest.raises(InvalidRequest):
        merge.explain()


def _without_broadcasts(spark, call):
    name = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(name)
    spark.conf.set(name, "-1")
    try:
        return call()
    finally:
        spark.conf.set(name, before)


@pytest.mark.parametrize("mode", MODES)
def test_a_preview_tells_rows_and_files(spark, tmp_path, mode):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode] | FEED)
    files = sorted(Path(path).rglob("*"))
    merge = table.alias("t").merge(source(spark, "(5, 1, 's5'), (7, 1, 'x'), (99, 1, 'n')").alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdateAll("s.id = 5").whenMatchedDelete().whenNotMatchedInsertAll()
    preview = merge.whenNotMatchedBySourceDelete("p = 0").execute(dry_run=True)
    counts = {name: preview.operation.metrics[f"numTargetRows{name}"] for name in ("Updated", "Deleted", "Inserted")}
    assert counts == {"Updated": "1", "Deleted": "11", "Inserted": "1"}
    assert len(preview.read) == 2
    emptied = tuple(path for path in preview.removed if "p=0/" in path)
    others = preview.masked if mode == "mask" else preview.rewritten
    assert len(emptied) == 1 and any("p=1/" in path for path in others)
    assert (len(preview.masked), len(preview.rewritten)) == ((1, 0) if mode == "mask" else (0, 2))
    assert "numTargetRowsDeleted" in str(preview)
    assert sorted(Path(path).rglob("*")) == files


def _jobs(spark) -> dict[int, list[int]]:
    """The jobs so far, with their stages."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    found = {}
    for job in (jobs.apply(n) for n in range(jobs.size())):
        found[job.jobId()] = [job.stageIds().apply(n) for n in range(job.stageIds().size())]
    return found


def _moved(spark, before: dict[int, list[int]]) -> int:
    """How many rows the jobs since then have written for others to read."""
    store = spark.sparkContext._jsc.sc().statusStore()
    new = {stage for job, stages in _jobs(spark).items() if job not in before for stage in stages}
    return sum(store.lastStageAttempt(stage).shuffleWriteRecords() for stage in new)


@pytest.mark.parametrize("broadcast", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_rows_of_the_table_are_not_moved(spark, tmp_path, mode, broadcast):
    path = str(tmp_path / "t")
    table = make(spark, path, MODES[mode], rows=5000)
    merge = table.alias("t").merge(
        source(spark, "(5, 1, 's5'), (6, 0, 's6'), (9999, 1, 'n')").alias("s"), "t.id = s.id"
    )
    merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
    before = _jobs(spark)
    run = merge.execute if broadcast else lambda: _without_broadcasts(spark, merge.execute)
    assert tuple(run().first()) == (3, 2, 0, 1)
    moved = _moved(spark, before)
    assert moved < 100 if broadcast else moved > 2000
    assert len(rows_of(table)) == 5001

"""DELETE, UPDATE and MERGE over Spark Connect: what they do without Spark, and what only a server can evaluate."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from row_verbs import KINDS, SOURCE, VERBS, changes, kept_ids, make_begun, rows, told
from templates import copy_of

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.errors import InvalidRequest, UnsupportedFeature

pytestmark = [pytest.mark.connect, pytest.mark.slow]

#: Each verb over a table that keeps everything, in partitions or not, and over one of another kind.
PLAYED = [
    (verb, kind, (number + turn) % 2)
    for number, verb in enumerate(VERBS)
    for turn, kind in enumerate(("all", ("plain", "feed")[number % 2]))
]
MODES = {"rewrite": {}, "mask": {"delta.enableDeletionVectors": "true"}}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_begun(tmp_path_factory.mktemp("begun"))


@pytest.mark.parametrize(("verb", "kind", "parts"), PLAYED)
def test_verbs_do_what_they_do_without_spark(connect: SparkSession, begun, tmp_path, verb, kind, parts):
    urls = [str(tmp_path / name) for name in ("here", "server")]
    for url in urls:
        shutil.copytree(begun / f"{kind}{parts}", url)
    VERBS[verb](PortableDeltaTable.forPath(urls[0]), SOURCE)
    VERBS[verb](DeltaTable.forPath(connect, urls[1]).alias("t"), connect.createDataFrame(SOURCE).alias("s"))
    assert rows(urls[0]) == rows(urls[1])
    assert told(urls[0]) == told(urls[1])
    assert changes(urls[0]) == changes(urls[1])
    assert kept_ids(urls[0], kind) == kept_ids(urls[1], kind)


def test_kinds_are_all_played():
    assert {kind for _, kind, _ in PLAYED} == set(KINDS)


@pytest.fixture(params=MODES)
def table(request, connect, tmp_path) -> DeltaTable:
    path = str(tmp_path / "t")
    rows = "select id, cast(id as int) n, concat('b', id) b, named_struct('x', id, 'y', 'q') s from range(6)"

    def make(new: str) -> None:
        alluvium.write(connect.sql(rows).coalesce(1), new, **MODES[request.param])

    copy_of((__name__, request.param), path, make)
    return DeltaTable.forPath(connect, path)


def shown(table: DeltaTable, *columns: str) -> list[tuple]:
    return sorted(map(tuple, table.toDF().select(*columns).collect()), key=repr)


def test_what_only_the_server_evaluates(connect, table):
    table.delete("soundex(b) = 'B000' and id in (0, 1) -- the first")
    table.update(sf.col("id") > 4, {"s.y": sf.lit("z"), "n": "try_divide(n, 0)"})
    table.update("array_contains(array(2, 3), n)", {"s": "named_struct('y', 'new', 'x', 7)", "b": "reverse(b)"})
    assert shown(table, "id", "n", "b", "s.x", "s.y") == [
        (2, 2, "2b", 7, "new"), (3, 3, "3b", 7, "new"), (4, 4, "b4", 4, "q"), (5, None, "b5", 5, "z")]  # fmt: skip


def test_a_value_that_fails_is_asked_of_no_other_row(connect, table):
    table.update("id > 0", {"n": "10 div id"})
    source = connect.sql("select id, 100 div (id - 1) q from range(2, 4)").alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate("t.id = 2", {"n": "1 div (t.id - 3)"})
    merge.whenNotMatchedBySourceUpdate("id <> 0", {"n": "1 div id"}).execute()
    assert shown(table, "id", "n") == [(0, 0), (1, 1), (2, -1), (3, 3), (4, 0), (5, 0)]


def test_columns_of_frames(connect, table):
    rows_ = table.toDF()
    table.delete(rows_["id"] == 0)
    named = table.alias("t")
    named.update(named.toDF().n == 1, {"n": table.toDF()["n"] + 10})
    new = connect.sql("select 2L as id, 'x' b, 9 as more union all select 9L, 'y', 9")
    both = new.where("more = 9")
    made = named.merge(both, (table.toDF()["id"] == new["id"]) & (both["more"] > 8))
    made = made.whenMatchedUpdate(new["b"] == "x", {"b": new["b"], "n": new["more"] + named.toDF()["n"]})
    made.whenNotMatchedInsert(values={"id": both["id"], "b": both.b}).execute()
    assert shown(table, "id", "n", "b") == [
        (1, 11, "b1"), (2, 11, "x"), (3, 3, "b3"), (4, 4, "b4"), (5, 5, "b5"), (9, None, "y")]  # fmt: skip


def test_several_clauses_whose_conditions_are_columns(connect, table):
    merge = table.alias("t").merge(connect.range(1, 3).alias("s"), "t.id = s.id")
    for number in (1, 2):
        merge = merge.whenMatchedUpdate(sf.col("t.n") == number, {"n": sf.lit(number * 100)})
    merge.execute()
    assert shown(table, "id", "n")[:3] == [(0, 0), (1, 100), (2, 200)]


def test_columns_called_like_rows(connect, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select id, if(id < 3, null, 'x') t from range(6)").coalesce(1), path)
    table = DeltaTable.forPath(connect, path).alias("t")
    source = connect.sql("select 4L id, cast(null as string) s union all select 5L, 'x' union all select 9L, null")
    merge = table.merge(source.alias("s"), "t.id = s.id and s is null").whenMatchedUpdate(set={"t": "'new'"})
    merge.whenNotMatchedInsert("s is null", {"id": "s.id"}).execute()
    assert shown(table, "id", "t") == [(0, None), (1, None), (2, None), (3, "x"), (4, "new"), (5, "x"), (9, None)]
    table.delete("t is null")
    assert shown(table, "id") == [(3,), (4,), (5,)]


def test_sources_with_a_name_twice(connect, table):
    source = connect.sql("select 1L k, 'a' d, 'b' d, 7 n").alias("s")
    table.alias("t").merge(source, "t.id = s.k").whenMatchedUpdate(set={"n": "s.n"}).execute()
    assert shown(table, "id", "n")[1] == (1, 7)


def test_columns_that_the_source_has_not(connect, table):
    base = connect.sql("select id, 7 v from range(1, 4)")
    made = base.withColumn("v", base["v"] + 1)
    merge = table.alias("t").merge(made.alias("s"), "t.id = s.id")
    with pytest.raises(InvalidRequest) as caught:
        merge.whenMatchedUpdate(set={"n": base["v"]}).execute()
    assert caught.value.code == "invalid-expression"
    merge.whenMatchedUpdate(made["id"] == base["id"], {"n": made["v"]}).execute()
    assert shown(table, "id", "n")[1] == (1, 8)


def test_the_time_is_the_statements(connect, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select id, timestamp'2020-01-01' at from range(4)").coalesce(1), path)
    table = DeltaTable.forPath(connect, path)
    table.update(set={"at": "current_timestamp()"})
    assert len({r["at"] for r in alluvium.open(path).to_arrow().to_pylist()}) == 1
    with pytest.raises(InvalidRequest, match="time"):
        table.delete("at < 'now'")
    table.delete((sf.col("at") < sf.call_function("now")) & (sf.col("id") > 0))
    assert shown(table, "id") == [(0,)]


def test_the_time_beside_texts_that_are_read_in_another_way(connect, tmp_path):
    """A column is no text: what its literals hold does not hang on how the session reads texts."""
    path = str(tmp_path / "t")
    made = connect.sql("select id, concat('it', chr(39), 's ', chr(92), 'n') s from range(3)")
    alluvium.write(made.coalesce(1), path)
    table = DeltaTable.forPath(connect, path)
    is_past = sf.lit("2020-01-01").cast("timestamp") < sf.call_function("now")
    connect.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        table.delete((sf.col("id") == 0) & (sf.col("s") == "it's \\n") & (sf.current_timestamp() > "2020-01-01"))
        table.update(sf.col("s").endswith("\\n") & is_past & (sf.col("id") == 1), {"s": sf.lit("\\t'")})
    finally:
        connect.conf.unset("spark.sql.parser.escapedStringLiterals")
    assert shown(table, "id", "s") == [(1, "\\t'"), (2, "it's \\n")]


def test_sources_are_computed_once(connect, table):
    source = connect.sql("select id, uuid() u from range(4, 8)")
    named = source.withColumnRenamed("id", "k")
    table.merge(named, "id = k").whenMatchedUpdate(set={"b": "u"}).whenNotMatchedInsert(
        values={"id": "k", "b": "u"}
    ).execute()
    found = {r["id"]: r["b"] for r in table.toDF().collect()}
    assert sorted(found) == list(range(8)) and len({found[k] for k in range(4, 8)}) == 4


def test_schema_evolution_and_stars(connect, table):
    source = connect.sql("select 1L ID, 5Y n, 'u' b, named_struct('x', 1, 'w', 2.5D) s, true more").alias("s")
    with pytest.raises(InvalidRequest, match="source"):
        table.alias("t").merge(source.drop("b"), "t.id = s.id").whenMatchedUpdateAll().execute()
    merge = table.alias("t").merge(source, "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert table.toDF().columns == ["id", "n", "b", "s", "more"]
    assert shown(table.alias("t"), "id", "n", "s.x", "s.y", "s.w", "more")[1] == (1, 5, 1, "q", 2.5, True)


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        (lambda t: t.delete("nope = 1"), "invalid-expression"),
        (lambda t: t.delete("id"), "invalid-expression"),
        (lambda t: t.delete("rand() > 0.5"), "invalid-expression"),
        (lambda t: t.delete("max(id) > 1"), "invalid-expression"),
        (lambda t: t.delete("id in (select 1)"), "invalid-expression"),
        (lambda t: t.delete("id = "), "invalid-expression"),
        (lambda t: t.delete("id = 1) or (id = 2"), "invalid-expression"),
        (lambda t: t.update(set={"s": "5L, 'x'"}), "invalid-expression"),
        (lambda t: t.update(set={"n": "(select 1)"}), "invalid-expression"),
        (lambda t: t.delete("explode(array(1)) = 1"), "invalid-expression"),
        (lambda t: t.update(set={"n": "nope"}), "invalid-expression"),
        (lambda t: t.update(set={"nope": "1"}), "unknown-column"),
        (lambda t: t.update(set={"n": "1", "N": "2"}), "assigned-twice"),
        (lambda t: t.update(set={"s": "named_struct('x', 1L, 'y', 'a')", "s.x": "2"}), "assigned-twice"),
        (lambda t: t.update(set={"n": "row_number() over (order by id)"}), "invalid-expression"),
        (lambda t: t.update(set={"n": "max(n)"}), "invalid-expression"),
        (lambda t: t.update(set={"n": "array(1)"}), "schema-mismatch"),
        (lambda t: t.merge(t.toDF().sparkSession.range(2).toDF("k"), "id = k").execute(), "merge-without-clauses"),
        (lambda t: t.merge(t.toDF().sparkSession.range(2).toDF("k"), "id = j").whenMatchedDelete().execute(),
         "invalid-expression"),
        (lambda t: t.merge(t.toDF().sparkSession.sql("select 1 k, 2 j union all select 1, 3"), "id = k")
         .whenMatchedUpdate(set={"n": "j"}).execute(), "multiple-matches"),
    ],
)  # fmt: skip
def test_what_is_refused_changes_nothing(table, verb, code):
    before = alluvium.open(table.detail().collect()[0]["location"])
    with pytest.raises(InvalidRequest) as caught:
        verb(table)
    assert caught.value.code == code
    assert before.refresh().version == before.version


def test_a_session_whose_casts_do_not_fail(connect, table):
    connect.conf.set("spark.sql.ansi.enabled", "false")
    try:
        table.update("id = 1", {"n": "cast(n as smallint)", "b": "n"})
        with pytest.raises(InvalidRequest, match="ansi"):
            table.update("id = 1", {"n": "id"})
    finally:
        connect.conf.unset("spark.sql.ansi.enabled")
    assert shown(table, "id", "n", "b")[1] == (1, 1, "1")


def test_the_tables_own_rules(connect, tmp_path):
    path = str(tmp_path / "t")
    (
        DeltaTable.create(connect).location(path).addColumn("k", "bigint", generatedAlwaysAs=alluvium.IdentityGenerator(5, 5))
        .addColumn("a", "int", nullable=False).addColumn("c", "char(3)").addColumn("d", "date")
        .execute()
    )  # fmt: skip
    table = DeltaTable.forPath(connect, path)
    table.addConstraint("small", "a < 100")
    source = connect.sql("select 1 a, 'x' c, date'2024-02-03' d union all select 2, 'yy', null").coalesce(1)
    table.merge(source, "false").whenNotMatchedInsertAll().execute()
    table.update("a = 2", {"c": "'zz'", "d": "'2024-05-06'"})
    assert [str(r["d"]) for r in table.toDF().orderBy("a").collect()] == ["2024-02-03", "2024-05-06"]
    assert len({r["k"] for r in table.toDF().collect()}) == 2
    for values, code in (({"a": "a + 99"}, "constraint-violated"), ({"a": "null"}, "not-null-violated")):
        with pytest.raises(InvalidRequest) as caught:
            table.update("a = 1", values)
        assert caught.value.code == code, caught.value
    assert alluvium.open(path).version == 3


def test_what_needs_no_rows(connect, table):
    table.setProperties({"note": "x"})
    assert table.detail().collect()[0]["properties"]["note"] == "x"
    table.delete("id = 1")
    assert table.history(1).collect()[0]["operation"] == "DELETE"
    table.restoreToVersion(0)
    assert table.toDF().count() == 6
    assert DeltaTable.isDeltaTable(connect, table.detail().collect()[0]["location"])
    copy = f"{table.detail().collect()[0]['location']}-copy"
    clone = table.cloneAtVersion(0, copy, isShallow=True)
    clone.delete("id > 2")
    assert (clone.toDF().count(), table.toDF().count()) == (3, 6)
    with pytest.raises(UnsupportedFeature, match="path"):
        table.clone("some.name")
    assert table.vacuum(dry_run=True) is not None and table.readable_versions().count() == 4


def test_what_needs_the_drivers_jvm_says_so(connect, table):
    with pytest.raises(UnsupportedFeature) as caught:
        DeltaTable.forName(connect, "somewhere.t")
    assert caught.value.code == "no-jvm-for-names"
    path = table.detail().collect()[0]["location"]
    assert DeltaTable.forName(connect, f"delta.`{path}`").toDF().count() == 6
    with pytest.raises(InvalidRequest) as refused:
        DeltaTable.convertToDelta(connect, "parquet.`/x`")
    assert refused.value.code == "no-jvm"


def test_statements(connect, table):
    alluvium.enable(connect)
    try:
        path = table.detail().collect()[0]["location"]
        connect.range(3, 8).selectExpr("id k", "id * 10 v").createOrReplaceTempView("coming")
        merge = f"""MERGE INTO delta.`{path}` t USING coming ON t.id = coming.k
            WHEN MATCHED AND v > 40 THEN UPDATE SET n = CASE WHEN v > 45 THEN v ELSE 0 END, s.y = 'then'
            WHEN NOT MATCHED AND k < 7 THEN INSERT (id, b) VALUES (k, concat('c', v))
            WHEN NOT MATCHED BY SOURCE AND t.id = 0 THEN DELETE"""
        assert connect.sql(merge).collect()[0].asDict() == {
            "num_affected_rows": 3, "num_updated_rows": 1, "num_deleted_rows": 1, "num_inserted_rows": 1}  # fmt: skip
        assert connect.sql(f"UPDATE delta.`{path}` SET n = -1 WHERE id IN (1, 2)").collect() == [(2,)]
        assert connect.sql(f"DELETE FROM delta.`{path}` AS d WHERE d.id = 3 -- one").collect() == [(1,)]
        source = connect.sql("select 9L id, 9 n, 'z' b, null s")
        text = f"MERGE INTO delta.`{path}` USING {{new}} s ON delta.`{path}`.id = s.id WHEN NOT MATCHED THEN INSERT *"
        with pytest.raises(InvalidRequest):
            connect.sql(text, new=source)
        connect.sql(text.replace(f"delta.`{path}`.id", "t.id").replace("` USING", "` t USING"), new=source)
        assert shown(table, "id", "n", "b") == [
            (1, -1, "b1"), (2, -1, "b2"), (4, 4, "b4"), (5, 50, "b5"), (6, None, "c60"), (9, 9, "z")]  # fmt: skip
        assert table.history(1).collect()[0]["operation"] == "MERGE"
    finally:
        alluvium.disable(connect)


@pytest.mark.parametrize("parts", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_files_are_put_together_as_without_spark(connect, begun, tmp_path, kind, parts):
    urls = [str(tmp_path / name) for name in ("here", "server")]
    for url in urls:
        shutil.copytree(begun / f"{kind}{parts}", url)
        PortableDeltaTable.forPath(url).delete("id in (5, 6)")
    before = rows(urls[0])
    where = "p = 'p1'" if parts else None
    for table in (PortableDeltaTable.forPath(urls[0]), DeltaTable.forPath(connect, urls[1])):
        builder = table.optimize() if where is None else table.optimize().where(where)
        builder.executeCompaction()
    assert rows(urls[0]) == rows(urls[1]) == before
    newest = [told(url) for url in urls]
    counts = [{k: v for k, v in metrics.items() if not k.endswith("FileSize")} for _, metrics, _ in newest]
    assert (
        counts[0] == counts[1] and [n[0] for n in newest] == ["OPTIMIZE", "OPTIMIZE"] and newest[0][2] == newest[1][2]
    )
    assert alluvium.open(urls[0]).files().num_rows == alluvium.open(urls[1]).files().num_rows
    assert changes(urls[0]) == changes(urls[1])
    assert kept_ids(urls[0], kind) == kept_ids(urls[1], kind)


def test_many_bins_and_auto_compaction(connect, tmp_path):
    path = str(tmp_path / "t")
    for _ in range(2):
        new = connect.range(0, 120).selectExpr("id", "id % 60 p").repartition(1)
        alluvium.write(new, path, mode="append", partition_by=("p",))
    alluvium.enable(connect)
    try:
        assert connect.sql(f"OPTIMIZE delta.`{path}`").collect()[0].metrics.numFilesAdded == 60
    finally:
        alluvium.disable(connect)
    assert alluvium.open(path).files().num_rows == 60 and alluvium.open(path).count() == 240
    DeltaTable.forPath(connect, path).setProperties({"delta.autoOptimize.autoCompact": "true"})
    connect.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
    try:
        alluvium.write(connect.range(0, 60).selectExpr("id", "0L p").coalesce(1), path, mode="append")
    finally:
        connect.conf.unset("spark.databricks.delta.autoCompact.minNumFiles")
    assert [h["operation"] for h in alluvium.open(path).history(2)] == ["OPTIMIZE", "WRITE"]
    assert alluvium.open(path).count() == 300 and alluvium.open(path).files().num_rows == 60


def test_deleted_rows_are_purged(connect, tmp_path):
    path = str(tmp_path / "t")
    alluvium.write(connect.range(10).coalesce(1), path, **MODES["mask"])
    table = DeltaTable.forPath(connect, path)
    table.delete("id < 4")
    table.optimize().executePurge()
    assert alluvium.open(path).history(1)[0]["operation"] == "REORG"
    assert sorted(r["id"] for r in alluvium.open(path).to_arrow().to_pylist()) == [4, 5, 6, 7, 8, 9]


def test_functions_of_the_session_are_not_taken_for_sparks(connect, table):
    """Which one `upper` is, versions of Spark say differently: whole files must not go by the other one."""
    connect.udf.register("upper", lambda text: "no")
    try:
        going = table.toDF().where("upper(b) = 'B1'").count()
        table.delete("upper(b) = 'B1'")
        assert table.toDF().count() == 6 - going
        staying = table.toDF().where("not (upper(b) = 'no' and id = 2)").count()
        table.delete("upper(b) = 'no' and id = 2")
        assert table.toDF().count() == staying
    finally:
        connect.sql("DROP TEMPORARY FUNCTION upper")


def test_names_that_two_could_have(connect, table):
    frame = table.toDF()
    with pytest.raises(InvalidRequest, match="both called"):
        table.alias("x").merge(frame.alias("X"), "x.id = 1").whenMatchedDelete().execute()
    with pytest.raises(InvalidRequest, match="one of the table's and one of the source's"):
        table.merge(frame.where("id = 1"), frame["id"] == 1).whenMatchedDelete().execute()


@pytest.mark.parametrize("mode", MODES)
def test_table_and_feed_tell_the_same_of_values_that_differ_each_time(connect, tmp_path, mode):
    path = str(tmp_path / "t")
    alluvium.write(connect.sql("select id, 'b' b from range(6)").coalesce(1), path, **MODES[mode], **KINDS["feed"])
    DeltaTable.forPath(connect, path).update("id > 2", {"b": "uuid()"})
    alluvium.write(connect.sql("select 1L id, uuid() b"), path, mode="overwrite", replaceWhere="id = 1")
    now = {(r["id"], r["b"]) for r in alluvium.open(path).to_arrow().to_pylist() if r["b"] != "b"}
    feed = alluvium.open(path).changes(1).to_pylist()
    assert now == {(r["id"], r["b"]) for r in feed if r["_change_type"] in ("update_postimage", "insert")}
    assert len(now) == 4

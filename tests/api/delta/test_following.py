"""Frames that show the newest version of their table at each query, as delta-spark's do."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark import InheritableThread
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from templates import copy_of

import alluvium
from alluvium import DeltaTable
from alluvium.errors import AlluviumError, CommitConflict, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.spark.scan.native_lane.query_versions import marked_statement

pytestmark = [pytest.mark.spark]


@pytest.fixture
def enabled(spark: SparkSession) -> SparkSession:
    alluvium.enable(spark)
    return spark


def ids(df: DataFrame) -> list[int]:
    return sorted(row[0] for row in df.select("id").collect())


def made(spark: SparkSession, url: str, *, count: int = 3, **properties: str) -> DeltaTable:
    def make(path: str) -> None:
        builder = DeltaTable.create(spark).location(path).addColumn("id", "long")
        for key, value in properties.items():
            builder = builder.property(key.replace("_", "."), value)
        builder.execute()
        alluvium.write(spark.range(count).coalesce(1), path, mode="append")

    copy_of((__name__, count, *properties.items()), url, make)
    return DeltaTable.forPath(spark, url)


def append(spark: SparkSession, url: str, *values: int) -> None:
    alluvium.write(spark.createDataFrame([(v,) for v in values], "id long").coalesce(1), url, mode="append")


def frames(spark: SparkSession, url: str) -> dict[str, DataFrame]:
    """Of each door that follows one, and of those that do not."""
    load = spark.read.format("delta").load(url)
    load.createOrReplaceTempView("followed_view")
    return {
        "load": load,
        "derived": load.where("id >= 0").select(sf.col("id")),
        "toDF": DeltaTable.forPath(spark, url).toDF(),
        "view": spark.table("followed_view"),
        "path": spark.table(f"delta.`{url}`"),
        "sql": spark.sql(f"select id from delta.`{url}` where id > -1"),
        "read": alluvium.read(spark, url, follow=True),
        "pinned read": alluvium.read(spark, url),
        "pinned load": spark.read.format("delta").option("follow", "false").load(url),
        "asked": spark.read.format("delta").option("versionAsOf", 1).load(url),
    }


def test_each_query_shows_the_newest_version(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = made(enabled, url)
    known = frames(enabled, url)
    assert {name: ids(df) for name, df in known.items()} == {name: [0, 1, 2] for name in known}
    append(enabled, url, 10)
    table.delete("id = 1")
    stays = ("pinned read", "pinned load", "asked")
    expected = {name: [0, 1, 2] if name in stays else [0, 2, 10] for name in known}
    assert {name: sorted(r[0] for r in df.where("id >= 0").collect()) for name, df in known.items()} == expected
    assert known["load"].count() == 3 and known["load"].rdd.count() == 3
    assert known["load"].alias("a").join(known["toDF"].alias("b"), "id").count() == 3
    assert enabled.sql("select count(*) from followed_view where id in (select id from followed_view)").first()[0] == 3


def test_rows_deleted_by_vectors(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = made(enabled, url, count=10, delta_enableDeletionVectors="true")
    df = enabled.read.format("delta").load(url)
    assert df.count() == 10
    table.delete("id % 2 = 0")
    assert (ids(df), df.count(), ids(df.where("id > 4"))) == ([1, 3, 5, 7, 9], 5, [5, 7, 9])
    append(enabled, url, 20)
    assert ids(df) == [1, 3, 5, 7, 9, 20]
    table.delete()
    assert ids(df.where("id > 0")) == [] and df.count() == 0
    append(enabled, url, 1)
    assert ids(df.where("id > 0")) == [1]


def test_vectors_that_nobody_expected(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = made(enabled, url, count=10)
    df = enabled.read.format("delta").load(url)
    table.addFeatureSupport("deletionVectors")
    enabled.sql(f"alter table delta.`{url}` set tblproperties ('delta.enableDeletionVectors' = 'true')")
    assert df.count() == 10
    table.delete("id % 2 = 0")
    with pytest.raises(InvalidRequest, match="vectors") as caught:
        df.where("id > -1").count()
    assert caught.value.code == "table-changed"


def test_columns_that_come_and_go(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    builder = DeltaTable.create(enabled).location(url).addColumn("id", "long").addColumn("s", "struct<a:int>")
    table = builder.property("delta.columnMapping.mode", "name").addColumn("x", "string").execute()
    alluvium.write(enabled.sql("select 1L id, named_struct('a', 5) s, 'x' x"), url, mode="append")
    df = enabled.read.format("delta").load(url)
    table.addColumns({"more": "int", "s.b": "int"})
    alluvium.write(enabled.sql("select 2L id, named_struct('a', 6, 'b', 7) s, 'y' x, 3 more"), url, mode="append")
    assert sorted(map(tuple, df.selectExpr("id", "s.a", "to_json(s)", "x").collect())) == [
        (1, 5, '{"a":5}', "x"), (2, 6, '{"a":6}', "y"),
    ]  # fmt: skip
    table.dropColumns("x")
    for query in (df, df.where("id = 1"), df.select("id")):
        with pytest.raises(InvalidRequest, match="column x") as caught:
            query.collect()
        assert (caught.value.code, caught.value.column) == ("table-changed", "x")


def test_rows_go_into_a_view_of_a_frame_with_room_for_vectors(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    declared = "(id long, v string) using delta tblproperties ('delta.enableDeletionVectors' = 'true')"
    enabled.sql(f"create table delta.`{url}` {declared}")
    load = enabled.read.format("delta").load(url)
    load.createOrReplaceTempView("masked_view")
    enabled.sql("insert into masked_view values (1, 'a'), (2, 'b')")
    enabled.sql("delete from masked_view where id = 1")
    enabled.read.format("delta").load(url).createOrReplaceTempView("masked_view")
    enabled.sql("insert into masked_view select id + 10, v from masked_view")
    enabled.sql("update masked_view set v = 'c' where id = 12")
    enabled.sql(
        "merge into masked_view t using (select 12L as id, 'd' as v) s on t.id = s.id and t.v = 'c' "
        "when matched then update set * when not matched then insert *"
    )
    assert ids(load) == [2, 12] and load.where("v = 'd'").count() == 1
    # Not the table, but some of its rows, or other columns under its names.
    others = {
        "rows": load.where("id > 0"), "fewer": load.select("id"), "swapped": load.selectExpr("id", "upper(v) as v"),
        "turned": load.selectExpr("v as id", "id as v"), "order": load.select("v", "id"),
    }  # fmt: skip
    for name, rows in others.items():
        rows.createOrReplaceTempView(f"masked_{name}")
        with pytest.raises((AnalysisException, AlluviumError)):
            enabled.sql(f"insert into masked_{name} select * from masked_{name}")
    assert ids(load.where("id > 0")) == [2, 12]


def test_texts_of_a_declared_length(enabled: SparkSession, tmp_path: Path) -> None:
    """What may become longer, as delta-spark's frames take it; what is padded may not change."""
    url = str(tmp_path / "t")
    declared = "id long, v varchar(3), s struct<v varchar(3)>, c char(3)"
    enabled.sql(f"create table delta.`{url}` ({declared}) using delta")
    df = enabled.read.format("delta").load(url)

    def insert(text: str) -> None:
        enabled.sql(f"insert into delta.`{url}` values ({len(text)}, '{text}', named_struct('v', 'v'), 'c')")

    insert("abc")
    enabled.sql(f"alter table delta.`{url}` alter column v type varchar(5)")
    insert("abcde")
    assert sorted(row.v for row in df.where("c = 'c'").collect()) == ["abc", "abcde"]
    enabled.sql(f"alter table delta.`{url}` alter column v type string")
    insert("abcdefg")
    assert ids(df.where("v > 'abca'")) == [5, 7] and df.where("length(c) = 3").count() == 3
    enabled.sql(f"alter table delta.`{url}` alter column c type string")
    with pytest.raises(InvalidRequest, match="cannot show it") as caught:
        df.where("id > 0").collect()
    assert caught.value.code == "table-changed"


def test_explained_files_are_those_of_the_newest_version(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = made(enabled, url, count=10, delta_enableDeletionVectors="true")
    table.delete("id % 2 = 0")
    df = enabled.read.format("delta").load(url)  # of which every file has a vector
    append(enabled, url, 20, 21)
    (scan,) = alluvium.explain(df.where("id > 0"))
    assert (scan.files, scan.version) == (2, "3")


def test_frames_that_cannot_follow_say_so(enabled: SparkSession, tmp_path: Path) -> None:
    url, keyed = str(tmp_path / "t"), str(tmp_path / "p")
    made(enabled, url, delta_enableChangeDataFeed="true")
    enabled.range(3).write.format("paimon").save(keyed)
    asked = [
        lambda: alluvium.read(enabled, url, lane="python", follow=True),
        lambda: alluvium.read(enabled, url, 1, follow=True),
        lambda: alluvium.read(enabled, url, follow=True, readChangeFeed=True, startingVersion=0),
        lambda: alluvium.read(enabled, keyed, follow=True),
        lambda: enabled.read.format("paimon").option("follow", "true").load(keyed),
        lambda: enabled.read.format("delta").option("follow", "true").option("versionAsOf", 1).load(url),
    ]
    for read in asked:
        with pytest.raises(UnsupportedFeature, match="cannot follow its table") as caught:
            read()
        assert (caught.value.code, caught.value.features) == ("unsupported-option", ("follow",))
    # Nobody said it of these.
    assert enabled.read.format("delta").option("versionAsOf", 1).load(url).count() == 3
    assert enabled.read.format("paimon").load(keyed).count() == 3
    assert alluvium.read(enabled, url, lane="python").count() == 3


def test_a_table_that_is_gone(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    made(enabled, url)
    df = enabled.read.format("delta").load(url)
    (tmp_path / "t").rename(tmp_path / "u")
    with pytest.raises(NotFound):
        df.count()


def test_statements_read_their_table_at_their_base(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = made(enabled, url)
    df = enabled.read.format("delta").load(url)
    append(enabled, url, 10)
    # delta-spark plans the frame anew: so does this, where it used to be a conflict.
    alluvium.write(df.where("id < 2 or id = 10"), url, mode="overwrite")
    assert ids(df.where("id >= 0")) == [0, 1, 10]
    append(enabled, url, 11)
    source = df.selectExpr("id + 100 as id")
    table.alias("t").merge(source.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    assert ids(df.where("id > 0")) == [1, 10, 11, 100, 101, 110, 111]
    df.createOrReplaceTempView("all_rows")
    enabled.sql(f"delete from delta.`{url}` where id in (select id + 100 from all_rows)")
    assert ids(df.where("id >= 0")) == [0, 1, 10, 11]
    df.write.format("delta").mode("append").save(url)
    assert df.count() == 8


def test_cached_rows_are_those_of_a_version(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    made(enabled, url)
    df = enabled.read.format("delta").load(url)
    cached = df.where("id > 0").cache()
    try:
        assert cached.count() == 2
        append_elsewhere(url)
        assert ids(cached.where("id >= 0")) == [1, 2]
        # Written back they would take away what came since.
        cached.createOrReplaceTempView("cached_rows")
        for rows in (cached, cached.union(df), df.where("id in (select id + 1 from cached_rows)")):
            with pytest.raises(CommitConflict):
                alluvium.write(rows, url, mode="overwrite")
    finally:
        cached.unpersist()
    alluvium.write(df.where("id > 0"), url, mode="overwrite")
    assert ids(df.where("id > -1")) == [1, 1, 2, 2]


def append_elsewhere(url: str) -> None:
    """The table's first rows once more, by somebody of whom the session knows nothing."""
    view = alluvium.open(url)
    added = next(line for line in Path(url, "_delta_log", f"{1:020}.json").read_text().splitlines() if '"add"' in line)
    add = json.loads(added)
    shutil.copy(Path(url, add["add"]["path"]), Path(url, "elsewhere.parquet"))
    add["add"]["path"] = "elsewhere.parquet"
    Path(url, "_delta_log", f"{view.version + 1:020}.json").write_text(json.dumps(add))


def test_cached_rows_are_renewed_by_own_verbs(enabled: SparkSession, tmp_path: Path) -> None:
    url, other = str(tmp_path / "t"), str(tmp_path / "other")
    table = made(enabled, url)
    made(enabled, other)
    df = enabled.read.format("delta").load(url)
    df.createOrReplaceTempView("renewed_rows")
    beside = enabled.read.format("delta").load(other)
    kept = {
        "itself": df.cache(),
        "derived": df.where("id >= 0").select("id").cache(),
        "above": df.where("id >= 0").select("id").where("id < 1000").cache(),
        "subquery": enabled.range(1000).where("id in (select id from renewed_rows)").cache(),
    }
    pinned, stays = alluvium.read(enabled, url).cache(), beside.where("id >= 0").cache()

    def shown() -> list[int]:
        found = {name: ids(rows.where("id > -1")) for name, rows in kept.items()}
        assert len({tuple(rows) for rows in found.values()}) == 1, found
        assert all(rows._jdf.storageLevel().useMemory() for rows in kept.values())
        assert ids(pinned.where("id > -1")) == [0, 1, 2] == ids(stays.where("id > -1"))
        return found["itself"]

    try:
        assert shown() == [0, 1, 2]
        append_elsewhere(other)  # of which the cache knows nothing
        append(enabled, url, 10)
        assert shown() == [0, 1, 2, 10]
        table.delete("id = 0")
        assert shown() == [1, 2, 10]
        table.update("id = 1", {"id": "7"})
        assert shown() == [2, 7, 10]
        source = enabled.createDataFrame([(7,), (8,)], "id long")
        merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
        merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
        assert shown() == [2, 8, 10]
        enabled.sql(f"insert overwrite delta.`{url}` values (5)")
        assert shown() == [5]
        table.restoreToVersion(1)
        assert shown() == [0, 1, 2]
        enabled.sql(f"truncate table delta.`{url}`")
        assert shown() == []
        DeltaTable.forPath(enabled, other).cloneAtVersion(1, Path(url).as_uri(), isShallow=True, replace=True)
        assert shown() == [0, 1, 2]
        builder = DeltaTable.replace(enabled).location(url).addColumn("id", "long")
        builder.execute()
        assert shown() == []
    finally:
        for rows in (*kept.values(), pinned, stays):
            rows.unpersist()


def test_a_table_cached_by_name_is_renewed(enabled: SparkSession, tmp_path: Path) -> None:
    enabled.sql(f"create table renewed_table (id long) using delta location '{tmp_path / 't'}'")
    try:
        enabled.sql("insert into renewed_table values (1), (2)")
        before = enabled.table("renewed_table")
        enabled.sql("cache table renewed_table")
        known = (before, enabled.table("renewed_table"))
        assert [df.count() for df in known] == [2, 2]
        enabled.sql("insert into renewed_table values (3)")
        assert [df.count() for df in known] == [3, 3]
        assert enabled.sql("select count(*) from renewed_table").first()[0] == 3
        enabled.createDataFrame([(4,)], "id long").write.mode("append").saveAsTable("renewed_table", format="delta")
        assert [df.count() for df in known] == [4, 4]
    finally:
        enabled.sql("drop table renewed_table")


def test_a_query_sees_one_version(enabled: SparkSession, tmp_path: Path) -> None:
    url = tmp_path / "t"
    made(enabled, str(url))
    (tmp_path / "link").symlink_to(url)
    one, two = (enabled.read.format("delta").load(str(tmp_path / name)) for name in ("t", "link"))
    both = one.selectExpr("1 as side").union(two.selectExpr("2 as side")).groupBy("side").count()
    with committing(url) as committed:
        seen = [dict(map(tuple, both.select("side", "count").collect())) for _ in range(15)]
        rounds = [one.union(two.where("id >= 0")).rdd.count() for _ in range(3)]
    assert [counts[1] for counts in seen] == [counts[2] for counts in seen]
    assert len({counts[1] for counts in seen}) > 5, "nothing was committed meanwhile"
    assert rounds == sorted(rounds)
    assert one.count() == 3 + committed[0] * 3


def test_rdds_see_one_version(enabled: SparkSession, tmp_path: Path) -> None:
    url = tmp_path / "t"
    made(enabled, str(url))
    one, two = (enabled.read.format("delta").load(str(url)) for _ in range(2))
    sides = [one.selectExpr("1 as side"), one.where("id >= 0").selectExpr("2 as side"), two.selectExpr("3 as side")]
    with committing(url):
        seen = []
        for _ in range(15):
            both = sides[0].union(sides[1]).union(sides[2]).groupBy("side").count()
            seen.append(dict(map(tuple, both.select("side", "count").rdd.collect())))
    assert all(len(set(counts.values())) == 1 for counts in seen), seen
    assert len({counts[1] for counts in seen}) > 5, "nothing was committed meanwhile"


def test_threads_of_a_statement_that_has_ended(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    made(enabled, url)
    df = enabled.read.format("delta").load(url)
    found: list[list[int]] = []
    ended = threading.Event()

    def ask() -> None:
        assert ended.wait(60)
        found.append(ids(df.where("id >= 0")))

    with marked_statement(enabled):
        assert ids(df.where("id >= 0")) == [0, 1, 2]
        late = InheritableThread(target=ask)
        late.start()  # with what this thread has, and it keeps it
        append(enabled, url, 10)
        assert ids(df.where("id >= 0")) == [0, 1, 2]
    ended.set()
    late.join()
    assert found == [[0, 1, 2, 10]]


@contextmanager
def committing(url: Path) -> Iterator[list[int]]:
    """Meanwhile the table's first file is added again and again, under other names."""
    first = json.loads((url / "_delta_log" / f"{1:020}.json").read_text().splitlines()[-1])
    assert "add" in first
    done, stop = [0], threading.Event()

    def commit() -> None:
        while not stop.wait(0.1):
            add = {**first["add"], "path": f"again-{done[0]}.parquet"}
            shutil.copy(url / first["add"]["path"], url / add["path"])
            entry = url / "_delta_log" / f"{2 + done[0]:020}.json"
            entry.with_suffix(".tmp").write_text(json.dumps({"add": add}))
            entry.with_suffix(".tmp").rename(entry)
            done[0] += 1

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


def test_a_table_made_anew_at_the_same_version(enabled: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    made(enabled, url)
    one, two = (enabled.read.format("delta").load(url) for _ in range(2))
    view = alluvium.open(url)
    assert (one.count(), two.count()) == (3, 3)
    (tmp_path / "t").rename(tmp_path / "old")
    made(enabled, url, count=7)
    # The version has the number that all know.
    assert view.refresh().count() == 7
    assert one.select("id").union(two.select("id")).count() == 14
    alluvium.write(two.where("id < 5"), url, mode="overwrite")
    assert ids(one) == ids(two) == [0, 1, 2, 3, 4]

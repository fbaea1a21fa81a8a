"""`spark.sql` of a Connect session: queries over paths, INSERT, statements of upkeep; the rest is refused by name."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

import alluvium
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature


@pytest.fixture(scope="module")
def sql(connect):
    alluvium.enable(connect)
    yield connect.sql
    alluvium.disable(connect)


@pytest.fixture(scope="module")
def path(connect, tmp_path_factory):
    """Three versions: ids 0 and 1; 2 and 3 beside; all in which id is not 0."""
    path = str(tmp_path_factory.mktemp("sql") / "a {b} `ü")
    rows = connect.range(4).selectExpr("id", "id % 2 as p", "cast(id as string) as v")
    alluvium.write(rows.where("id < 2"), path, partition_by=["p"])
    alluvium.write(rows.where("id >= 2"), path, mode="append")
    alluvium.write(rows.where("id > 0"), path, mode="overwrite")
    return path


def named(path):
    return "delta.`" + path.replace("`", "``") + "`"


def values(frame):
    return sorted(tuple(row) for row in frame.collect())


def test_queries(sql, path, connect):
    t = named(path)
    assert values(sql(f"select id, v from {t} where id > 1")) == [(2, "2"), (3, "3")]
    assert values(sql(f"select count(*) from {t} version as of 0")) == [(2,)]
    assert values(sql(f"select count(*), '{{x}}' from {t} version as of :v", {"v": 1})) == [(4, "{x}")]
    both = f"with c as (select * from {t}) select a.id from c a join {t} b on a.id = b.id + 1 where exists (select 1)"
    assert values(sql(both)) == [(2,), (3,)]
    braces = t.replace("{", "{{").replace("}", "}}")
    assert values(sql(f"select id from {braces} join {{ids}} using (id)", ids=connect.range(2))) == [(1,)]
    assert values(sql(f"select id from {named(path + '@v0')}")) == [(0,), (1,)]
    assert [row.col_name for row in sql(f"describe {t}").collect()][:3] == ["id", "p", "v"]
    assert "Scan" in sql(f"explain select * from {t}").collect()[0][0]


def test_views_are_temporary(sql, path, connect):
    sql(f"create or replace temp view shown (a) as select id from {named(path)} where p = 1")
    assert values(sql("select a from shown")) == [(1,), (3,)]
    with pytest.raises(UnsupportedFeature, match="temporary") as refused:
        sql(f"create view lasting as select * from {named(path)}")
    assert refused.value.code == "no-jvm-for-sql"
    connect.catalog.dropTempView("shown")
    sql(f"create temp view `we ird.ü` as select id from {named(path)}")
    assert values(sql("select count(*) from `we ird.ü`")) == [(3,)]
    connect.catalog.dropTempView("`we ird.ü`")


def test_a_table_that_stands_twice_is_read_once(sql, path):
    t = named(path)
    both = sql(f"select a.id from {t} a join {t} b using (id) join {t} version as of 0 c using (id)")
    assert values(both) == [(1,)]
    # Beside it something else that is called like the format.
    assert values(
        sql(f"with delta as (select 1 as `/x`) select delta.`/x`, max(id) from delta join {t} group by 1")
    ) == [(1, 3)]


def test_tables_of_others_are_made_of_ours(sql, path):
    sql(f"create or replace temp view two as select id from {named(path)} where id < 3")
    assert values(sql("select id from two")) == [(1,), (2,)]


def test_insert(sql, tmp_path, connect):
    t = named(str(tmp_path / "t"))
    alluvium.write(connect.range(1).selectExpr("id", "'a' as v"), str(tmp_path / "t"))
    assert sql(f"insert into {t} values (1, 'b')").columns == []
    sql(f"insert into {t} (v) select 'c'")
    sql(f"insert into {t} by name select 'd' as v, 3 as id")
    assert values(sql(f"select v, id from {t}")) == [("a", 0), ("b", 1), ("c", None), ("d", 3)]
    sql(f"insert into {t} replace where id > 0 select id, 'e' from {t} where id = 1")
    assert values(sql(f"select v from {t}")) == [("a",), ("c",), ("e",)]
    sql(f"insert overwrite {t} values (7, 'f')")
    assert values(sql(f"select * from {t}")) == [(7, "f")]
    with pytest.raises(InvalidRequest, match="not enough columns"):
        sql(f"insert into {t} values (1)")
    with pytest.raises(UnsupportedFeature, match="number 1 stands in REPLACE WHERE"):
        sql(f"insert into {t} replace where id = ? select ?, 'g'", [7, 7])


def test_upkeep(sql, tmp_path, connect):
    t = named(str(tmp_path / "t"))
    for n in range(2):
        properties = {"delta.enableChangeDataFeed": "true"} if n == 0 else {}
        alluvium.write(connect.range(n + 1), str(tmp_path / "t"), mode="append", **properties)
    assert [row.operation for row in sql(f"describe history {t} limit 1").collect()] == ["WRITE"]
    assert sql(f"describe detail {t}").collect()[0].numFiles > 0
    assert values(sql(f"select id, _commit_version from table_changes('{t}', 1)")) == [(0, 1), (1, 1)]
    assert sql(f"restore {t} to version as of 0").columns[0] == "table_size_after_restore"
    assert values(sql(f"select * from table_changes_by_path('{tmp_path}/t', 0, 0)"))[0][:2] == (0, "insert")
    assert [row.path for row in sql(f"vacuum '{tmp_path}/t' dry run").collect()] == []
    sql(f"alter table {t} add feature deletionVectors")
    assert "deletionVectors" in sql(f"describe detail {t}").collect()[0].tableFeatures
    assert sql(f"fsck repair table {t} dry run").collect() == []
    with pytest.raises(NotFound):
        sql(f"describe history {named(str(tmp_path / 'none'))}")


@pytest.mark.parametrize(
    "text",
    [
        "with c as (select 1 as n) merge into {t} using c on n = id when matched then delete",
        "delete from {t} where id = :x",
        "alter table {t} set tblproperties ('a' = 'b')",
        "truncate table {t}",
        "create table made using delta as select 1",
        "create table {t} (x int) using delta",
        "insert into {t} partition (p = 1) select 1",
        "convert to delta parquet.`/nothing`",
        "create table {t} shallow clone {t}",
    ],
)
def test_what_needs_the_drivers_jvm(sql, path, text):
    with pytest.raises((UnsupportedFeature, InvalidRequest), match="JVM") as refused:
        sql(text.format(t=named(path)))
    assert refused.value.hint and refused.value.code in ("no-jvm-for-sql", "no-jvm")


@pytest.mark.parametrize("text", ["vacuum a.b", "describe history b", "restore b to version as of 1"])
def test_names_are_the_servers(sql, text):
    with pytest.raises(UnsupportedFeature, match="named by its path") as refused:
        sql(text)
    assert refused.value.code == "no-jvm-for-names"


def test_the_servers_own_errors_stay(sql):
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("select * from delta_of_nobody").collect()


def test_values_beside_the_text(sql, path):
    asked = "select id, ? from delta.`{path}` version as of ? where id > ?"
    assert values(sql(asked, ["x", 1, 2], path=path.replace("`", "``"))) == [(3, "x")]

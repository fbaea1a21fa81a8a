"""UPDATE, DELETE and MERGE by SQL, where delta-spark refuses what they say, or says nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest, NotFound

pytestmark = pytest.mark.spark

KINDS = {
    "files": {},
    "masks": {"delta.enableDeletionVectors": "true"},
    "feed": {"delta.enableChangeDataFeed": "true"},
}


@pytest.fixture(scope="module")
def enabled(spark) -> Iterator[SparkSession]:
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.fixture
def name(enabled, tmp_path) -> Iterator[str]:
    """A table of eight rows."""
    found = f"t_{uuid.uuid4().hex[:8]}"
    make(enabled, found, 8, str(tmp_path / "t"))
    yield found
    enabled.sql(f"drop table {found}")


@pytest.fixture
def other(enabled, tmp_path) -> Iterator[str]:
    """Another table, of three."""
    found = f"o_{uuid.uuid4().hex[:8]}"
    make(enabled, found, 3, str(tmp_path / "o"))
    yield found
    enabled.sql(f"drop table {found}")


def make(spark: SparkSession, name: str, count: int, path: str, properties: dict[str, str] | None = None) -> None:
    rows = spark.range(count).selectExpr("id", "id * 10 v").repartition(2)
    rows.write.format("delta").options(**(properties or {})).option("path", path).saveAsTable(name)


def rows(spark: SparkSession, name: str) -> list[tuple]:
    return sorted(tuple(row) for row in spark.table(name).collect())


def ids(spark: SparkSession, name: str) -> list[int]:
    return [row[0] for row in rows(spark, name)]


class TestSubqueries:
    """In conditions they say the same in every pass over the table."""

    @pytest.fixture(params=KINDS)
    def table(self, enabled, tmp_path, request) -> Iterator[str]:
        found = f"t_{uuid.uuid4().hex[:8]}"
        make(enabled, found, 8, str(tmp_path / "q"), KINDS[request.param])
        yield found
        enabled.sql(f"drop table {found}")

    def test_of_all_kinds(self, enabled, table, other):
        done = enabled.sql(f"delete from {table} where id in (select id from {other} where id < 2)")
        assert [tuple(row) for row in done.collect()] == [(2,)]
        enabled.sql(f"update {table} set v = -1 where exists (select 1 from {other} o where o.id = {table}.id)")
        assert rows(enabled, table)[:2] == [(2, -1), (3, 30)]
        enabled.sql(f"delete from {table} where v = (select max(v) from {table})")
        assert ids(enabled, table) == [2, 3, 4, 5, 6]
        enabled.sql(f"update {table} set v = (select max(v) from {other} o where o.id = {table}.id) where id = 2")
        assert rows(enabled, table)[0] == (2, 20)
        enabled.sql(f"delete from {table} where id not in (select id from {other}) and id > 4")
        assert ids(enabled, table) == [2, 3, 4]

    def test_see_the_queries_of_with(self, enabled, table):
        enabled.sql(f"with c as (select 6 id) delete from {table} where id in (select id from c)")
        enabled.sql(
            f"with c as (select 5L id) update {table} set v = 0 where exists (select 1 from c where c.id = {table}.id)"
        )
        assert rows(enabled, table)[4:] == [(4, 40), (5, 0), (7, 70)]

    def test_see_the_time_of_the_statement(self, enabled, table, other):
        about = f"select 1 from {other} o where o.id = {table}.id and o.v < unix_seconds(now())"
        enabled.sql(f"delete from {table} where exists ({about}) and now() > timestamp'2020-01-01'")
        assert ids(enabled, table) == [3, 4, 5, 6, 7]

    def test_that_say_something_else_each_time_are_asked_once(self, enabled, table, other):
        """A limit without an order: in no pass may another row be the one."""
        enabled.sql(f"delete from {table} where id in (select id from {other} limit 1)")
        assert len(rows(enabled, table)) == 7

    def test_as_values_of_a_merge(self, enabled, table, other):
        """Of rows that change, of new ones, and of those without a partner; alone, and about the outer row."""
        enabled.sql(
            f"merge into {table} t using (select id + 6 id, v from {other}) s on t.id = s.id "
            f"when matched and t.id = 6 then update set v = (select max(v) from {other}) + s.v "
            f"when matched then update set v = (select o.v from {other} o where o.id = t.id - 6) "
            f"when not matched then insert (id, v) values (s.id, (select count(*) from {table})) "
            f"when not matched by source and t.id < 3 then update set v = (select o.v from {other} o where o.id = t.id)"
        )
        assert rows(enabled, table) == [
            (0, 0), (1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 20), (7, 10), (8, 8)
        ]  # fmt: skip


def test_a_subquery_of_the_table_itself_counts_as_read(enabled, name):
    """Nothing was changed by anybody else, so that the newest version is what it saw."""
    enabled.sql(f"delete from {name} where id > (select avg(id) from {name})")
    assert ids(enabled, name) == [0, 1, 2, 3]


def test_a_text_is_no_condition(enabled, name: str) -> None:
    for text in ("'true'", "'TRUE'", "'false'"):
        with pytest.raises(InvalidRequest) as caught:
            enabled.sql(f"delete from {name} where {text}")
        assert caught.value.code == "invalid-expression"
    assert len(rows(enabled, name)) == 8
    enabled.sql(f"delete from {name} where true")
    assert rows(enabled, name) == []


@pytest.mark.parametrize(("on", "also"), [("t.id in (select 1)", "true"), ("t.id = s.id", "s.id = (select 1)")])
def test_conditions_of_a_merge_have_no_subqueries(enabled, name, other, on, also):
    with pytest.raises(InvalidRequest, match="subqueries are not supported"):
        enabled.sql(f"merge into {name} t using {other} s on {on} when matched and {also} then delete")


def test_defaults_in_a_merge(enabled, name, other):
    enabled.sql(
        f"merge into {name} t using {other} s on t.id = s.id + 7 when matched then update set v = default "
        "when not matched then insert (id, v) values (s.id + 100, default)"
    )
    assert rows(enabled, name)[7:] == [(7, None), (101, None), (102, None)]


def test_names_by_identifier_and_values_by_parameters(enabled, name):
    enabled.sql("update identifier(:t) as q set q.v = :m['k'] where q.id = 0", {"t": name, "m": {"k": 77}})
    enabled.sql("update identifier(:t) set v = 5 where array_contains(:some, id)", {"t": name, "some": [1, 2]})
    enabled.sql(f"delete from identifier('{name[:2]}' || '{name[2:]}') where id > ?", [2])
    assert rows(enabled, name) == [(0, 77), (1, 5), (2, 5)]


def test_an_explanation_changes_nothing(enabled, name, other):
    before = DeltaTable.forName(enabled, name).history(1).first()["version"]
    merge = f"merge into {name} t using {other} s on t.id = s.id when matched then update set *"
    insert = f"insert into {name} values (9, 9)"
    for statement in (f"delete from {name} where id = 1", f"update {name} set v = 1 where id = 1", merge, insert):
        told = enabled.sql(f"explain {statement}")
        assert told.columns == ["plan"]
        assert statement.split(" ")[0].upper() in told.first()["plan"]
    assert DeltaTable.forName(enabled, name).history(1).first()["version"] == before


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("create table explained using delta as select 1 a", "CREATE TABLE `explained` AS SELECT"),
        (
            "create or replace table explained using delta as select 1 a",
            "CREATE OR REPLACE TABLE `explained` AS SELECT",
        ),
        ("create table explained (a int) using delta", "CREATE TABLE `explained`"),
        ("create table explained using parquet as select 1 a", "Physical Plan"),
    ],
)
def test_an_explanation_makes_nothing(enabled, statement, told):
    plan = enabled.sql(f"explain {statement}").first()["plan"]
    assert told in plan and "DATA_SOURCE_NOT_FOUND" not in plan
    assert not enabled.catalog.tableExists("explained")


def test_a_table_by_its_path_is_known_by_it(enabled, tmp_path):
    path = f"{tmp_path}/a.b c/t"
    rows_of = "select 1 id, named_struct('f', 1, 'x.y', 2) s, 3 `a b`, 4 `c.d`, 5 `e``f`"
    enabled.sql(rows_of).write.format("delta").option("delta.columnMapping.mode", "name").save(path)
    enabled.sql(
        f"update delta.`{path}` set s.`x.y` = 20, `a b` = 30, `c.d` = 40, `e``f` = 50 where delta.`{path}`.id = 1"
    )
    found = enabled.read.format("delta").load(path).first()
    assert (tuple(found["s"]), *tuple(found)[2:]) == ((1, 20), 30, 40, 50)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("update {t} set v = 1, v = 2", "assigned-twice"),
        ("update {t} set v = 1, V = 2", "assigned-twice"),
        ("update {t} set nope = 1", "unknown-column"),
        ("update {t} set v = nope", "invalid-expression"),
        ("delete from {t} where v", "invalid-expression"),
        ("merge into {t} using {t} s on id = id when matched then delete", "invalid-expression"),
        ("merge into {t} using {t} s on s.id = {t}.id when matched then update set s.v = 1", "unknown-column"),
    ],
)
def test_errors_are_those_of_the_verbs(enabled, name, statement, code):
    with pytest.raises(InvalidRequest) as caught:
        enabled.sql(statement.format(t=name))
    assert caught.value.code == code
    assert isinstance(caught.value, AnalysisException)


def test_columns_are_called_as_the_session_wants_them(enabled, name):
    """Before, a value went into a column that the session says is another one."""
    enabled.conf.set("spark.sql.caseSensitive", "true")
    try:
        for statement in (
            "update {t} set V = 1",
            "insert into {t} (id, V) values (1, 1)",
            "merge into {t} t using {t} s on t.id = s.id when matched then update set V = s.v",
        ):
            with pytest.raises(InvalidRequest) as caught:
                enabled.sql(statement.format(t=name))
            assert (caught.value.code, caught.value.column) == ("unknown-column", "V")
        enabled.sql(f"update {name} set v = 1 where id = 2")
        enabled.sql(f"insert into {name} (id, v) values (8, 8)")
    finally:
        enabled.conf.unset("spark.sql.caseSensitive")
    enabled.sql(f"update {name} set V = 5 where ID = 0")
    assert rows(enabled, name)[::4] == [(0, 5), (4, 40), (8, 8)]


def test_tables_of_others_are_sparks(enabled, tmp_path):
    with pytest.raises(AnalysisException) as caught:
        enabled.sql("update no_such_table set a = 1")
    assert not isinstance(caught.value, InvalidRequest)
    with pytest.raises(NotFound):
        enabled.sql(f"delete from paimon.`{tmp_path}/p` where id = 1")
    with pytest.raises(NotFound):
        enabled.sql(f"delete from delta.`{tmp_path}/none`")
    with pytest.raises(ParseException):
        enabled.sql("update t set")


def test_sources_that_sparks_grammar_lacks(enabled, name, other):
    enabled.sql(
        f"merge into {name} t using (values (1, -1L), (2, -2L)) as s(k, w) on t.id = s.k when matched then "
        "update set v = s.w"
    )
    enabled.sql(f"delete from {other}")
    enabled.sql(
        f"merge into {name} t using {other} version as of 0 s on t.id = s.id and s.id = 0 when matched then update "
        "set v = s.v + 1"
    )
    assert rows(enabled, name)[:3] == [(0, 1), (1, -1), (2, -2)]


def test_a_view_of_all_that_a_table_has_stands_for_it(enabled, name):
    """As in delta-spark: a view that leaves something out, or adds it, does not."""
    enabled.sql(f"create or replace temporary view all_of_it as select * from {name}")
    enabled.sql("update all_of_it set v = 1 where all_of_it.id = 1")
    enabled.table(name).createOrReplaceTempView("the_frame")
    enabled.sql("delete from the_frame as f where f.id > 1")
    assert rows(enabled, name) == [(0, 0), (1, 1)]
    others = {"id, v + 1 v from {}": "delete from part_of_it where id = 0",
              "* from {} where id = 1": "delete from part_of_it",
              "v, id from {}": "update part_of_it set v = 0",
              "v id, id v from {}": "delete from part_of_it where id = 0",
              "id from {}": "update part_of_it set id = 0",
              "* from {} version as of 0": "delete from part_of_it",
              # `id = '01'` is true of a number, not of its text.
              "cast(id as string) id, v from {}": "delete from part_of_it where id = '01'"}  # fmt: skip
    for other, statement in others.items():
        enabled.sql(f"create or replace temporary view part_of_it as select {other.format(name)}")
        with pytest.raises(InvalidRequest) as caught:
            enabled.sql(statement)
        assert caught.value.code == "changed-view"
    # A query of that name hides the table.
    with pytest.raises(InvalidRequest) as caught:
        enabled.sql(f"with {name} as (select 0 id) delete from {name} where id = 0")
    assert caught.value.code == "changed-view"
    enabled.sql(f"with {name} as (select 7 id) delete from default.{name} where id in (select id from {name})")
    assert len(rows(enabled, name)) == 2


def test_a_view_of_a_path_stands_for_its_table(enabled, name):
    path = DeltaTable.forName(enabled, name).detail().head()["location"]
    enabled.sql(f"create or replace temporary view of_path as select * from delta.`{path}`")
    enabled.sql("delete from of_path where id > 1")
    enabled.sql("drop view of_path")
    enabled.sql(f"create temporary view of_path using delta options (path '{path}')")
    enabled.sql("update of_path set v = 7 where id = 0")
    assert (0, 7) in rows(enabled, name)
    assert all(row[0] < 2 for row in rows(enabled, name))


def test_rows_are_deleted_by_what_a_view_shows(enabled, name):
    """As in delta-spark: rows go whole, whatever of their columns a view shows."""
    enabled.sql(f"create or replace temporary view only_ids as select id from {name}")
    with pytest.raises(InvalidRequest) as caught:
        enabled.sql("delete from only_ids where v = 0")
    assert caught.value.getCondition().startswith("UNRESOLVED_COLUMN")  # type: ignore[attr-defined]
    assert enabled.sql("delete from only_ids where only_ids.id = 0 and id < 9").collect() == [(1,)]
    assert enabled.sql("delete from only_ids as o where o.id = 1").collect() == [(1,)]
    left = len(rows(enabled, name))
    enabled.sql(f"create or replace temporary view computed as select id + 1 as next from {name}")
    assert enabled.sql("delete from computed").collect() == [(left,)]
    assert rows(enabled, name) == []

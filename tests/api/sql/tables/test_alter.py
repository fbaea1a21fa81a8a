"""ALTER TABLE, COMMENT, SHOW, by SQL: the log is changed, never the catalog's entry or the folder."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

import alluvium
from alluvium import DeltaTable
from alluvium.errors import AlluviumError, UnsupportedFeature

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark):
    alluvium.enable(spark)
    spark.sql("create database altered")
    spark.sql("use altered")
    yield spark
    spark.sql("use default")
    spark.sql("drop database altered cascade")
    alluvium.disable(spark)


@pytest.fixture
def table(session):
    """`t`: a struct `s` with `x`, an int `a`, a text `b`, two rows; columns can be renamed and widened."""
    builder = DeltaTable.create(session).tableName("t").addColumn("a", "int").addColumn("b", "varchar(5)")
    builder = builder.addColumn("s", "struct<x: int>")
    builder = builder.property("delta.columnMapping.mode", "name").property("delta.enableTypeWidening", "true")
    builder.execute()
    session.sql("insert into t values (1, 'one', named_struct('x', 10)), (2, 'two', named_struct('x', 20))")
    yield DeltaTable.forName(session, "t")
    session.sql("drop table t")


def schema(session) -> list[str]:
    return [f"{f.name} {f.dataType.simpleString()}" for f in session.table("t").schema.fields]


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("add columns (c int comment 'x', d varchar(3))", "a int, b string, s struct<x:int>, c int, d string"),
        ("add column (c int first)", "c int, a int, b string, s struct<x:int>"),
        ("ADD COLUMNS (s.y string, z date after a)", "a int, z date, b string, s struct<x:int,y:string>"),
        ("alter column a type bigint", "a bigint, b string, s struct<x:int>"),
        ("alter column b first", "b string, a int, s struct<x:int>"),
        ("alter column b type varchar(9)", "a int, b string, s struct<x:int>"),
        ("change column a a bigint after b", "b string, a bigint, s struct<x:int>"),
        ("rename column `a` to `odd.name`", "odd.name int, b string, s struct<x:int>"),
        ("rename column s.x to y", "a int, b string, s struct<y:int>"),
        ("drop column b", "a int, s struct<x:int>"),
        ("drop columns if exists (b, nope)", "a int, s struct<x:int>"),
    ],
)
def test_columns(session, table, statement, columns):
    session.sql(f"alter table t {statement}")
    assert ", ".join(schema(session)) == columns
    assert session.sql("select count(*) from t").head()[0] == 2


def test_comments(session, table):
    session.sql(r"""alter table altered.t alter column a comment 'it\'s "a"'""")
    session.sql("comment on table t is 'of two rows'")
    snapshot = DeltaTable.forName(session, "t").detail().head()
    assert snapshot["description"] == "of two rows"
    assert session.table("t").schema["a"].metadata["comment"] == 'it\'s "a"'


def test_properties(session, table):
    session.sql("alter table t set tblproperties ('k' = 'v', delta.appendOnly = true)")
    properties = table.detail().head()["properties"]
    assert (properties["k"], properties["delta.appendOnly"]) == ("v", "true")
    shown = dict(map(tuple, session.sql("show tblproperties t").collect()))
    assert shown["k"] == "v"
    assert shown["delta.minReaderVersion"].isdigit()
    assert session.sql("show tblproperties t ('k')").head()["value"] == "v"
    assert "does not have property" in session.sql("show tblproperties t ('none')").head()["value"]
    session.sql("alter table t unset tblproperties if exists ('k', 'none')")
    assert "k" not in table.detail().head()["properties"]


def test_constraints(session, table):
    session.sql("alter table t add constraint few check (a < 100)")
    with pytest.raises(AlluviumError, match="few"):
        session.sql("insert into t values (100, 'x', null)")
    with pytest.raises(AlluviumError):
        session.sql("alter table t add constraint none check (a > 100)")
    session.sql("alter table t drop constraint few")
    session.sql("insert into t values (100, 'x', null)")


def test_features(session, table):
    session.sql("alter table t add feature deletionVectors")
    assert "deletionVectors" in table.detail().head()["tableFeatures"]


def test_columns_are_shown(session, table):
    assert [row["col_name"] for row in session.sql("show columns in t").collect()] == ["a", "b", "s"]
    assert [row["col_name"] for row in session.sql("describe t").collect()][:3] == ["a", "b", "s"]


@pytest.mark.parametrize(
    "statement",
    [
        "alter table t replace columns (a int)",
        "alter table t alter column a set default 3",
        "alter table t add columns (c int default 3)",
        "alter table t cluster by (a)",
        "msck repair table t",
        "alter table t recover partitions",
        "analyze table t compute statistics",
        "show create table t",
        "show partitions t",
        "alter table t set serdeproperties ('a' = 'b')",
        "optimize t",
    ],
)
def test_what_cannot_be_done_yet_is_refused_by_us(session, table, statement):
    before = table.history().count()
    with pytest.raises(UnsupportedFeature):
        session.sql(statement)
    assert table.history().count() == before


def test_tables_of_others_go_on_to_spark(session):
    session.sql("create table p (a int) using parquet")
    try:
        session.sql("alter table p set tblproperties ('k' = 'v')")
        session.sql("alter table p add columns (b string)")
        session.sql("comment on table p is 'x'")
        session.sql("analyze table p compute statistics")
        assert dict(map(tuple, session.sql("show tblproperties p").collect()))["k"] == "v"
        assert [row["col_name"] for row in session.sql("show columns in p").collect()] == ["a", "b"]
        with pytest.raises(AnalysisException):
            session.sql("alter table p rename column a to c")
        with pytest.raises(AnalysisException):
            session.sql("alter table none set tblproperties ('k' = 'v')")
    finally:
        session.sql("drop table p")

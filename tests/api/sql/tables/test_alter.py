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
        ("alter column b first, s.x comment 'k', a after s", "b string, s struct<x:int>, a int"),
        (
            "replace columns (s struct<y: int, x: int>, b varchar(5), a int, n date)",
            "s struct<y:int,x:int>, b string, a int, n date",
        ),
        ("replace columns (b varchar(5), a bigint)", "b string, a bigint"),
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


def test_defaults_of_columns_that_are_there(session, table):
    with pytest.raises(AlluviumError, match="default"):
        session.sql("alter table t alter column a set default 5")
    session.sql("alter table t set tblproperties ('delta.feature.allowColumnDefaults' = 'supported')")
    session.sql("alter table t alter column a set default 2 + 3, b set default 'x'")
    session.sql("insert into t (s) values (null)")
    assert session.sql("select a, b from t where s is null").collect() == [(5, "x")]
    before = table.history().count()
    for value in ("'abc'", "b", "(select 1)"):
        with pytest.raises(AnalysisException):
            session.sql(f"alter table t alter column a set default {value}")
    assert table.history().count() == before
    session.sql("alter table t alter column a drop default")
    session.sql("insert into t (s) values (null)")
    assert session.sql("select a, b from t where s is null order by a").collect() == [(None, "x"), (5, "x")]


def test_clustering(session, table):
    session.sql("alter table t cluster by (b, s.x)")
    assert table.detail().head()["clusteringColumns"] == ["b", "s.x"]
    assert [c.name for c in session.catalog.listColumns("t") if c.isCluster] == ["b"]
    done = table.history(1).head()
    assert (done["operation"], done["operationParameters"]["newClusteringColumns"]) == ("CLUSTER BY", "b,s.x")
    with pytest.raises(AlluviumError, match="clustering column"):
        session.sql("alter table t drop column b")
    session.sql(f"alter table delta.`{table.detail().head()['location']}` cluster by none")
    assert table.detail().head()["clusteringColumns"] == []
    with pytest.raises((AlluviumError, AnalysisException)):
        session.sql("alter table t cluster by auto")


def test_identity_columns_are_synchronised(session):
    session.sql(
        "create table numbered (a bigint generated by default as identity (start with 1 increment by 2), b int) using delta"
    )
    session.sql("insert into numbered values (10, 1)")
    session.sql("alter table numbered alter column a sync identity")
    session.sql("insert into numbered (b) values (2)")
    assert session.sql("select a from numbered where b = 2").head()["a"] == 13
    with pytest.raises(AlluviumError, match="not an identity column"):
        session.sql("alter table numbered alter column b sync identity")
    session.sql("drop table numbered")


def test_columns_are_shown(session, table):
    assert [row["col_name"] for row in session.sql("show columns in t").collect()] == ["a", "b", "s"]
    assert [row["col_name"] for row in session.sql("describe t").collect()][:3] == ["a", "b", "s"]


@pytest.mark.parametrize(
    "statement",
    [
        "alter table t add columns (c int default 3)",
        "msck repair table t",
        "alter table t recover partitions",
        "analyze table t compute statistics",
        "alter table t set serdeproperties ('a' = 'b')",
    ],
)
def test_what_cannot_be_done_yet_is_refused_by_us(session, table, statement):
    before = table.history().count()
    with pytest.raises(UnsupportedFeature):
        session.sql(statement)
    assert table.history().count() == before


def test_refusals_have_the_conditions_of_delta_spark(session, table):
    expected = {
        "add columns (a.n int)": "INVALID_FIELD_NAME",
        "add columns (c int, C int)": "COLUMN_ALREADY_EXISTS",
        "add columns (c int not null)": "DELTA_OPERATION_NOT_ALLOWED",
        "add columns (c int after nope)": "FIELD_NOT_FOUND",
        "alter column s.x set default 1": "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
        "alter column a set not null": "_LEGACY_ERROR_TEMP_2330",
        "cluster by (nope)": "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
    }
    before = table.history(1).first().version
    found = {}
    for statement in expected:
        with pytest.raises(AnalysisException) as caught:
            session.sql(f"alter table t {statement}")
        found[statement] = caught.value.getCondition()
    assert found == expected
    assert table.history(1).first().version == before


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


def test_replaced_columns_of_other_types_have_a_condition_of_their_own(session, table):
    for columns in ("a int, b string, s struct<x: int>", "a string, b varchar(5), s struct<x: int>"):
        with pytest.raises(AnalysisException) as told:
            session.sql(f"alter table t replace columns ({columns})")
        assert told.value.getCondition() == "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"

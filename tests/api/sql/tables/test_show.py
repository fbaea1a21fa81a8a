"""What SHOW, DESCRIBE and the catalog tell of a table, by its log."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

import alluvium
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.spark.jvm.gateway import java_of
from alluvium.spark.sessions.catalog import find_entry
from alluvium.spark.sessions.entries import changed
from alluvium.spark.sessions.session import session_catalog

pytestmark = pytest.mark.spark

COLUMNS = """
    id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 3 INCREMENT BY 2) COMMENT 'it\\'s',
    a INT NOT NULL, v VARCHAR(4), d DECIMAL(9,2) DEFAULT 1.50, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)),
    at TIMESTAMP, s STRUCT<x: INT NOT NULL COMMENT 'k', `odd name`: ARRAY<STRING>>, m MAP<STRING, DOUBLE>, p INT, q STRING
"""
PROPERTIES = "'delta.feature.allowColumnDefaults' = 'supported', 'delta.columnMapping.mode' = 'name', 'k' = 'v\\\\w'"


@pytest.fixture(scope="module")
def session(spark):
    alluvium.enable(spark)
    spark.sql("create database shown")
    spark.sql("use shown")
    spark.sql(f"create table t ({COLUMNS}) using delta partitioned by (p, q) comment 'c' tblproperties ({PROPERTIES})")
    inner = "named_struct('x', 1, 'odd name', array('o'))"
    spark.sql(
        f"insert into t (a, s, p, q) select a, {inner}, p, q from values (1, 1, 'a'), (2, 1, 'b'), (3, 2, null) v(a, p, q)"
    )
    yield spark
    spark.sql("use default")
    spark.sql("drop database shown cascade")
    alluvium.disable(spark)


def test_the_statement_shown_makes_such_a_table(session):
    (text,) = session.sql("show create table t").head()
    session.sql(text.replace(".t (", ".again (", 1))
    again = session.sql("show create table again").head()[0]
    assert again.replace(".again (", ".t (", 1) == text
    assert session.table("again").schema == session.table("t").schema


def test_a_table_by_its_path_is_shown_by_it(session, tmp_path):
    session.sql(f"create table delta.`{tmp_path}/u` (a int, b int) using delta cluster by (b)")
    (text,) = session.sql(f"show create table delta.`{tmp_path}/u`").head()
    assert text.startswith(f"CREATE TABLE delta.`{tmp_path}/u` (")
    assert "CLUSTER BY (`b`)" in text


def test_partitions(session):
    assert session.sql("show partitions t").collect() == [(1, "a"), (1, "b"), (2, None)]
    assert session.sql("show partitions shown.t partition (P = 1)").collect() == [(1, "a"), (1, "b")]
    assert session.sql("show partitions t partition (p = 2, q = null)").collect() == [(2, None)]
    with pytest.raises(InvalidRequest, match="not partitioned by 'a'"):
        session.sql("show partitions t partition (a = 1)")


def test_tables_without_partitions_have_none_to_show(session, tmp_path):
    session.range(1).write.format("delta").save(str(tmp_path / "u"))
    with pytest.raises(InvalidRequest, match="not partitioned"):
        session.sql(f"show partitions delta.`{tmp_path}/u`")


def test_the_catalog_and_describe_tell_of_partitions(session):
    listed = {c.name: c for c in session.catalog.listColumns("t")}
    assert [name for name, c in listed.items() if c.isPartition] == ["p", "q"]
    assert [name for name, c in listed.items() if not c.nullable] == ["a"]
    told = [row["col_name"] for row in session.sql("describe extended t").collect()]
    assert told[told.index("# Partition Information") + 2 :][:2] == ["p", "q"]


def test_spark_recovers_no_partitions_of_a_table_whose_log_has_them(session):
    with pytest.raises(AnalysisException, match="NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"):
        session.catalog.recoverPartitions("t")


def test_partition_columns_that_are_not_the_last(session):
    session.sql("create table first (p int, a int) using delta partitioned by (p)")
    session.sql("insert into first values (1, 2)")
    assert [c.isPartition for c in session.catalog.listColumns("first")] == [True, False]
    told = [row["col_name"] for row in session.sql("describe first").collect()]
    assert told == ["p", "a", "# Partition Information", "# col_name", "p"]
    assert session.sql("select a from first where p = 1").collect() == [(2,)]


def test_secrets_are_hidden(session):
    session.sql("create table hidden (a int) using delta tblproperties ('my.password' = 'geheim', 'k' = 'v')")
    shown = dict(session.sql("show tblproperties hidden").collect())
    assert (shown["my.password"], shown["k"]) == ("*********(redacted)", "v")
    assert session.sql("show tblproperties hidden('my.password')").head()["value"] == "*********(redacted)"
    for text in ("show create table hidden", "describe extended hidden"):
        assert "geheim" not in str(session.sql(text).collect())


def test_described_at_length(session):
    session.sql(
        "create table told (id int comment 'c', v varchar(4), p int) using delta partitioned by (p) comment 'about'"
    )
    found = list(map(tuple, session.sql("describe extended told").collect()))
    assert found[:6] == [
        ("id", "int", "c"),
        ("v", "string", None),
        ("p", "int", None),
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        ("p", "int", None),
    ]
    assert [row[0] for row in found[8:]] == [
        "Catalog",
        "Namespace",
        "Database",
        "Table",
        "Type",
        "Comment",
        "Location",
        "Provider",
        "Is_managed_location",
        "Table Properties",
    ]
    assert dict(session.sql("describe extended told v").collect()) == {
        "col_name": "v",
        "data_type": "varchar(4)",
        "comment": "NULL",
    }
    with pytest.raises(InvalidRequest) as info:
        session.sql("describe told nope")
    assert info.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"


@pytest.mark.parametrize("statement", ["describe t partition (p = 1, q = 'a')", "desc extended t partition (p = 1)"])
def test_one_partition_is_not_described(session, statement):
    """Spark would say to have MSCK look for partitions, which is no way out."""
    with pytest.raises(UnsupportedFeature) as told:
        session.sql(statement)
    assert "SHOW PARTITIONS" in (told.value.hint or "")


def test_the_detail_of_a_path_without_a_table_is_where_it_is(session, tmp_path):
    session.range(1).write.parquet(str(tmp_path / "files"))
    (tmp_path / "empty").mkdir()
    for name in ("files", "empty"):
        row = session.sql(f"describe detail '{tmp_path}/{name}'").first()
        assert {k: v for k, v in row.asDict().items() if v is not None} == {
            "location": f"{tmp_path}/{name}",
            "properties": {},
        }
    with pytest.raises(NotFound, match="DELTA_FILE_NOT_FOUND"):
        session.sql(f"describe detail '{tmp_path}/nothing'")
    with pytest.raises(NotFound, match="DELTA_MISSING_DELTA_TABLE"):
        session.sql(f"describe detail delta.`{tmp_path}/files`")


def test_a_table_of_a_folder_without_a_log_needs_columns(session, tmp_path):
    session.range(1).write.parquet(str(tmp_path / "files"))
    for columns, condition in (("", "EXTERNAL_TABLE_WITHOUT_TXN_LOG"), ("(a int)", "TABLE_WITH_NON_EMPTY_LOCATION")):
        with pytest.raises(InvalidRequest, match=f"DELTA_CREATE_{condition}"):
            session.sql(f"create table of_files {columns} using delta location '{tmp_path}/files'")


def test_the_owner_that_the_catalog_knows(session):
    """Hive's knows one; dbt asks for it."""
    session.sql("create table owned (id int) using delta")
    entry, catalog = find_entry(session, ("owned",)), session_catalog(session)
    assert entry is not None
    catalog.alterTable(changed(java_of(session), entry.java, {"owner": "somebody"}))
    assert ("Owner", "somebody", "") in map(tuple, session.sql("describe extended owned").collect())

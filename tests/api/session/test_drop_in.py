"""Where notebooks lean on what delta-spark raises and shows: kinds of errors, order of checks, NOT NULL in schemas."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import types as s

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest, NotFound

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark, tmp_path):
    alluvium.write(spark.sql("select 'a' key, 1L value"), str(tmp_path / "t"))
    return DeltaTable.forPath(spark, str(tmp_path / "t"))


def test_what_is_not_there_is_an_analysis_error(spark, tmp_path):
    for call in (
        lambda: DeltaTable.forPath(spark, str(tmp_path / "none")),
        lambda: DeltaTable.forName(spark, "no_such_table"),
        lambda: DeltaTable.forName(spark, f"delta.`{tmp_path}/none`"),
    ):
        with pytest.raises(NotFound, match="is not a Delta table") as caught:
            call()
        assert isinstance(caught.value, AnalysisException)
    with pytest.raises(NotFound, match="'no_such_table' to replace cannot be found") as caught:
        DeltaTable.replace(spark).tableName("no_such_table").addColumn("a", "int").execute()
    assert isinstance(caught.value, AnalysisException)


def test_what_is_there_already_is_an_analysis_error(spark, tmp_path, table):
    with pytest.raises(InvalidRequest, match="already exists") as caught:
        DeltaTable.create(spark).location(str(tmp_path / "t")).addColumn("a", "int").execute()
    assert isinstance(caught.value, AnalysisException)


def test_a_type_that_does_not_parse_is_a_parse_error(spark, tmp_path):
    builder = DeltaTable.create(spark).location(str(tmp_path / "new"))
    with pytest.raises(InvalidRequest) as caught:
        builder.addColumn("a", "1")
    assert isinstance(caught.value, ParseException)
    assert (caught.value.code, caught.value.column) == ("invalid-type", "a")


def test_the_list_is_checked_before_the_condition(spark, table):
    source = spark.sql("select 'a' k, 2L v")
    for wrong in ({"value": "2"}, 1, "key = 'a'"):
        with pytest.raises(ValueError, match="'set' cannot be None"):
            table.update(wrong)
        with pytest.raises(ValueError, match="'values' in whenNotMatchedInsert cannot be None"):
            table.merge(source, "key = k").whenNotMatchedInsert(wrong)
        with pytest.raises(ValueError, match="'set' in whenNotMatchedBySourceUpdate cannot be None"):
            table.merge(source, "key = k").whenNotMatchedBySourceUpdate(wrong)
    with pytest.raises(TypeError, match="'condition' must be a Spark SQL Column or a string"):
        table.update(1, {})
    for wrong in ("whenMatchedDelete", "whenMatchedUpdateAll", "whenNotMatchedInsertAll"):
        with pytest.raises(TypeError, match="must be a Spark SQL Column or a string"):
            getattr(table.merge(source, "key = k"), wrong)(1)


def test_an_update_of_no_columns_is_no_clause(spark, table):
    source = spark.sql("select 'a' k, 2L v")
    with pytest.raises(InvalidRequest) as caught:
        table.merge(source, "key = k").whenMatchedUpdate(set={}).execute()
    assert caught.value.code == "merge-without-clauses"
    table.merge(source, "key = k").whenMatchedUpdate("v = 2", {}).whenMatchedDelete().execute()
    assert table.toDF().count() == 0


def test_versions_and_times_of_other_types(table):
    for call, text in (
        (lambda: table.restoreToVersion("0"), "version needs to be an int but got '<class 'str'>'"),
        (lambda: table.restoreToTimestamp(12), "timestamp needs to be a string but got '<class 'int'>'"),
        (lambda: table.upgradeTableProtocol("1", 2), "readerVersion needs to be an integer but got '<class 'str'>'"),
        (lambda: table.addFeatureSupport(1), "featureName needs to be a string but got '<class 'int'>'"),
        (lambda: table.dropFeatureSupport("a", "x"), "truncateHistory needs to be a boolean but got '<class 'str'>'"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(InvalidRequest, match=r"'05/04/1999'\) cannot be converted to a valid timestamp"):
        table.restoreToTimestamp("05/04/1999")


def test_settings_of_file_systems_that_do_not_concern_the_table(spark, tmp_path, table):
    settings = {"fs.fake.impl": "x.Fake", "fs.fake.impl.disable.cache": "true", "dfs.nothing": "1"}
    assert DeltaTable.forPath(spark, str(tmp_path / "t"), settings).toDF().count() == 1


def test_schemas_show_what_the_table_promises(spark, tmp_path):
    path = str(tmp_path / "promises")
    nested = s.StructType([s.StructField("x", s.IntegerType(), False)])
    fields = [
        s.StructField("a", s.IntegerType(), False, {"comment": "first"}),
        s.StructField("b", s.StringType()),
        s.StructField("c", nested),
        s.StructField("d", s.ArrayType(s.IntegerType(), False)),
    ]
    table = DeltaTable.create(spark).location(path).addColumns(s.StructType(fields)).execute()
    for frame in (table.toDF(), table.alias("t").toDF(), alluvium.read(spark, path)):
        assert frame.schema == s.StructType(fields)
        # Spark itself believes nothing.
        assert frame._jdf.schema().apply("a").nullable()
    assert alluvium.read(spark, path, columns=["b", "a"]).schema == s.StructType([fields[1], fields[0]])


def test_expressions_that_do_not_resolve_are_analysis_errors(spark, table):
    merge = table.alias("t").merge(spark.sql("select 'a' k, 2L v").alias("s"), "t.key = s.k")
    for call in (
        lambda: table.delete("nope = 1"),
        lambda: table.update(set={"nope": "1"}),
        lambda: table.update(set={"value": "1", "VALUE": "2"}),
        lambda: table.update(set={"value": "array(1)"}),
        lambda: merge.whenMatchedUpdateAll().execute(),
        lambda: merge.execute(),
        lambda: merge.whenMatchedDelete().whenMatchedDelete("t.value = 1").execute(),
    ):
        with pytest.raises(InvalidRequest) as caught:
            call()
        assert isinstance(caught.value, AnalysisException)

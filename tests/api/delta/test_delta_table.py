"""DeltaTable: delta-spark's names, and what they do; pure rules are tested in tests/delta."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import types as s

import alluvium
from alluvium import DeltaTable, IdentityGenerator
from alluvium.delta.features.registry import BY_NAME
from alluvium.errors import CommitConflict, InvalidRequest, NotFound, UnsupportedFeature
from alluvium.plan.changes import Preview

pytestmark = pytest.mark.spark

#: Methods of delta.tables.DeltaTable 4.4, and their arguments behind self or cls.
SIGNATURES = {
    "forPath": ("sparkSession", "path", "hadoopConf"),
    "forName": ("sparkSession", "tableOrViewName"),
    "isDeltaTable": ("sparkSession", "identifier"),
    "convertToDelta": ("sparkSession", "identifier", "partitionSchema"),
    "create": ("sparkSession",),
    "createIfNotExists": ("sparkSession",),
    "replace": ("sparkSession",),
    "createOrReplace": ("sparkSession",),
    "toDF": (),
    "alias": ("aliasName",),
    "generate": ("mode",),
    "delete": ("condition",),
    "update": ("condition", "set"),
    "merge": ("source", "condition"),
    "vacuum": ("retentionHours",),
    "history": ("limit",),
    "detail": (),
    "upgradeTableProtocol": ("readerVersion", "writerVersion"),
    "addFeatureSupport": ("featureName",),
    "dropFeatureSupport": ("featureName", "truncateHistory"),
    "restoreToVersion": ("version",),
    "restoreToTimestamp": ("timestamp",),
    "optimize": (),
    "clone": ("target", "isShallow", "replace", "properties"),
    "cloneAtVersion": ("version", "target", "isShallow", "replace", "properties"),
    "cloneAtTimestamp": ("timestamp", "target", "isShallow", "replace", "properties"),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "t")


@pytest.fixture
def table(spark, path: str) -> DeltaTable:
    builder = DeltaTable.create(spark).location(path).addColumn("a", "int").addColumn("b", "string", comment="hi")
    return builder.partitionedBy("b").property("x", "1").comment("about").execute()


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_names_and_arguments_are_delta_spark_s(name: str):
    found = inspect.signature(getattr(DeltaTable, name)).parameters.values()
    parameters = [p.name for p in found if p.name not in ("self", "cls") and p.kind is not p.KEYWORD_ONLY]
    assert tuple(p for p in parameters if p not in ("dry_run", "retry")) == SIGNATURES[name]


def test_a_table_is_created_and_described(spark, table: DeltaTable, path: str):
    detail = table.detail().collect()[0]
    assert (detail["format"], detail["name"], detail["description"]) == ("delta", None, "about")
    assert detail["location"] == f"file:{path}"
    assert (detail["partitionColumns"], detail["clusteringColumns"]) == (["b"], [])
    assert (detail["numFiles"], detail["sizeInBytes"], detail["properties"]) == (0, 0, {"x": "1"})
    assert (detail["minReaderVersion"], detail["minWriterVersion"]) == (1, 2)
    assert detail["tableFeatures"] == ["appendOnly", "invariants"]
    (created,) = table.history().collect()
    assert (created["version"], created["operation"], created["isBlindAppend"]) == (0, "CREATE TABLE", True)
    assert created["operationParameters"] == {
        "partitionBy": '["b"]', "clusterBy": "[]", "description": "about", "isManaged": "false",
        "properties": '{"x":"1"}',
    }  # fmt: skip
    assert table.history().schema["job"].dataType.fields[0].simpleString() == "jobId:string"
    assert table.toDF().columns == ["a", "b"]
    assert table.toDF().count() == 0


def test_rows_go_into_a_created_table(spark, table: DeltaTable, path: str):
    alluvium.write(spark.sql("select 'x' b, 1 a"), path, mode="append")
    assert [tuple(r) for r in table.toDF().collect()] == [(1, "x")]
    assert [tuple(r) for r in table.alias("t").toDF().selectExpr("t.a").collect()] == [(1,)]
    assert [r["version"] for r in table.history(1).collect()] == [1]


def test_what_exists_is_left_refused_or_replaced(spark, table: DeltaTable, path: str):
    with pytest.raises(InvalidRequest) as caught:
        DeltaTable.create(spark).location(path).addColumn("z", "int").execute()
    assert caught.value.code == "table-exists"
    kept = DeltaTable.createIfNotExists(spark).location(path).addColumn("z", "int").execute()
    assert kept.toDF().columns == ["a", "b"]
    alluvium.write(spark.sql("select 'x' b, 1 a"), path, mode="append")
    replaced = (
        DeltaTable.createOrReplace(spark)
        .location(path)
        .addColumns(s.StructType([s.StructField("z", s.IntegerType(), False)]))
        .execute()
    )
    assert replaced.toDF().collect() == []
    (last,) = replaced.history(1).collect()
    assert (last["operation"], last["isBlindAppend"]) == ("CREATE OR REPLACE TABLE", False)
    assert not alluvium.open(path).schema.to_spark()["z"].nullable
    with pytest.raises(NotFound):
        DeltaTable.replace(spark).location(path + "2").addColumn("z", "int").execute()


def test_a_place_that_holds_something_else_is_refused(spark, tmp_path: Path):
    (tmp_path / "x.txt").write_text("mine")
    with pytest.raises(InvalidRequest) as caught:
        DeltaTable.create(spark).location(str(tmp_path)).addColumn("z", "int").execute()
    assert caught.value.code == "location-not-empty"


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda b: b.addColumn(1, "int"), TypeError),
        (lambda b: b.addColumn("a", 1), TypeError),
        (lambda b: b.addColumn("a", "int", nullable=1), TypeError),
        (lambda b: b.addColumn("a", "int", comment=1), TypeError),
        (lambda b: b.addColumn("a", "int", generatedAlwaysAs=1), TypeError),
        (lambda b: b.addColumn("a", "bigint", generatedByDefaultAs="x"), TypeError),
        (lambda b: b.addColumn("a", "bigint", generatedByDefaultAs=IdentityGenerator(step=0)), ValueError),
        (
            lambda b: b.addColumn("a", "int", generatedAlwaysAs="1", generatedByDefaultAs=IdentityGenerator()),
            ValueError,
        ),
        (lambda b: b.addColumns([1]), TypeError),
        (lambda b: b.addColumns("a int"), TypeError),
        (lambda b: b.partitionedBy(1), TypeError),
        (lambda b: b.clusterBy([1]), TypeError),
        (lambda b: b.property("a", 1), TypeError),
        (lambda b: b.location(1), TypeError),
        (lambda b: b.tableName(1), TypeError),
        (lambda b: b.comment(1), TypeError),
        # Not an argument: the reference's JVM says so.
        (lambda b: b.execute(), AnalysisException),
    ],
)
def test_wrong_arguments_are_errors_of_python_and_of_ours(spark, build, error: type[Exception]):
    with pytest.raises(error) as caught:
        build(DeltaTable.create(spark))
    assert isinstance(caught.value, InvalidRequest)


@pytest.mark.parametrize(
    ("column", "data_type", "generated", "code"),
    [
        ("g", "string", "a + 1", "invalid-expression"),
        ("g", "int", "zz + 1", "invalid-expression"),
        ("g", "double", "rand()", "invalid-expression"),
        ("g", "bigint", "sum(a)", "invalid-expression"),
        ("i", "int", IdentityGenerator(), "invalid-identity"),
    ],
)
def test_columns_that_cannot_be_generated(spark, path: str, column: str, data_type: str, generated, code: str):
    builder = DeltaTable.create(spark).location(path).addColumn("a", "int")
    with pytest.raises(InvalidRequest) as caught:
        builder.addColumn(column, data_type, generatedAlwaysAs=generated).execute()
    assert caught.value.code == code
    assert not Path(path).exists()


def test_generated_and_identity_columns_as_the_flags_allow(spark, path: str):
    built = DeltaTable.columnBuilder(spark, "i").dataType(s.LongType()).generatedByDefaultAsIdentity(5, 3).build()
    assert built.metadata == {
        "delta.identity.start": 5, "delta.identity.step": 3, "delta.identity.allowExplicitInsert": True,
    }  # fmt: skip
    builder = DeltaTable.create(spark).location(path).addColumn("a", "int")
    builder.addColumn(DeltaTable.columnBuilder("g").dataType("int").generatedAlwaysAs("a + 1").comment("c"))
    if BY_NAME["generatedColumns"].writable:
        builder.execute()
        assert "generatedColumns" in alluvium.open(path).protocol.writer_features
    else:
        with pytest.raises(UnsupportedFeature) as caught:
            builder.execute()
        assert caught.value.features == ("generatedColumns",)


def test_columns_and_properties_as_methods(spark, table: DeltaTable, path: str):
    alluvium.write(spark.sql("select 'x' b, 1 a"), path, mode="append")
    table.addColumns({"s": "struct<x:int>", "d": s.DecimalType(5, 2)}, position="after a")
    table.addColumns([s.StructField("v", s.VarcharType(3))])
    table.addColumns({"s.y": "string"})
    table.alterColumn("d", comment="money", position="first")
    assert isinstance(table.setProperties({"delta.appendOnly": "true"}, dry_run=True), Preview)
    table.unsetProperties("x")
    assert table.toDF().columns == ["d", "a", "s", "b", "v"]
    assert alluvium.open(path).metadata.configuration == {}
    assert alluvium.open(path).schema.to_spark()["v"].metadata == {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    for change, code in (
        (lambda: table.renameColumn("a", "q"), "no-column-mapping"),
        (lambda: table.dropColumns("a"), "no-column-mapping"),
        (lambda: table.alterColumn("a", type="bigint"), "no-type-widening"),
        (lambda: table.dropConstraint("nope"), "unknown-constraint"),
        (lambda: table.setProperties({"delta.apendOnly": "true"}), "unknown-property"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            change()
        assert caught.value.code == code


def test_a_constraint_is_checked_on_the_rows_that_are_there(spark, table: DeltaTable, path: str):
    alluvium.write(spark.sql("select 'x' b, cast(id as int) a from range(5)"), path, mode="append")
    for condition, code in (
        ("zz > 1", "invalid-constraint"),
        ("a + 1", "invalid-constraint"),
        ("sum(a) > 1", "invalid-constraint"),
        # What no later write could check.
        ("rand() >= 0", "invalid-constraint"),
        ("a in (select 1) or true", "invalid-constraint"),
        ("_metadata.file_path is not null", "invalid-constraint"),
        ("reflect('java.lang.Math', 'abs', 1) is not null", "invalid-constraint"),
        (r"b rlike r'^\w+$'", "invalid-constraint"),
        ("a >= 0 /*+ hint */", "invalid-constraint"),
        ("a >= 0 /* of /* this */ */", "invalid-constraint"),
        ("a >= 0;", "invalid-constraint"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            table.addConstraint("c", condition)
        assert caught.value.code == code
    if not BY_NAME["checkConstraints"].writable:
        with pytest.raises(UnsupportedFeature):
            table.addConstraint("c", "a >= 0")
        return
    with pytest.raises(InvalidRequest) as caught:
        table.addConstraint("c", "a > 1")
    assert caught.value.code == "constraint-violated"
    assert caught.value.message.startswith("2 rows")
    assert '{"a":0}' in caught.value.message
    table.addConstraint("c", "a >= 0")
    with pytest.raises(InvalidRequest):
        alluvium.write(spark.sql("select 'x' b, -1 a"), path, mode="append")
    table.dropConstraint("C")
    alluvium.write(spark.sql("select 'x' b, -1 a"), path, mode="append")
    assert table.history(1).first()["version"] == 4


def test_comments_of_a_constraint_are_left_out(spark, table: DeltaTable, path: str):
    alluvium.write(spark.sql("select '-- x' b, 1 a"), path, mode="append")
    for number, (text, kept) in enumerate(
        [
            ("a >= 0 -- not below", "a >= 0"),
            ("a /* c */ >= 0", "a >= 0"),
            ("b like '-- _' --one\nor/**/a > 5", "b like '-- _' or a > 5"),
        ]
    ):
        table.addConstraint(f"c{number}", text)
        assert alluvium.open(path).metadata.configuration[f"delta.constraints.c{number}"] == kept
    alluvium.write(spark.sql("select 'x' b, 7 a"), path, mode="append")
    with pytest.raises(InvalidRequest):
        alluvium.write(spark.sql("select 'x' b, 5 a"), path, mode="append")


def test_a_table_is_not_made_with_what_no_writer_could_compute(spark, tmp_path):
    default = s.StructType([s.StructField("v", s.StringType(), True, {"CURRENT_DEFAULT": "uuid()"})])
    supported = ("delta.feature.allowColumnDefaults", "supported")

    def plain():
        return DeltaTable.create(spark).addColumn("id", "long").location(str(tmp_path / "t"))

    for builder, code in (
        (plain().property("delta.constraints.c", "rand() >= 0"), "invalid-constraint"),
        (plain().addColumns(default).property(*supported), "invalid-expression"),
        (plain().addColumn("g", "long", generatedAlwaysAs="abs(id) /* c */"), "invalid-expression"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            builder.execute()
        assert caught.value.code == code
        assert not (tmp_path / "t").exists()


def test_protocol_and_restore(spark, table: DeltaTable, path: str):
    alluvium.write(spark.sql("select 'x' b, 1 a"), path, mode="append")
    table.upgradeTableProtocol(1, 3)
    alluvium.write(spark.sql("select 'y' b, 2 a"), path, mode="overwrite")
    table.dropFeatureSupport("checkConstraints")
    (row,) = table.restoreToVersion(1).collect()
    assert (row["num_restored_files"], row["num_removed_files"], row["num_of_files_after_restore"]) == (1, 1, 1)
    assert [tuple(r) for r in table.toDF().collect()] == [(1, "x")]
    assert table.restoreToVersion(5).collect() == []
    assert table.history(1).collect()[0]["operationParameters"]["version"] == "1"
    newest = alluvium.open(path).timestamp.strftime("%Y-%m-%d %H:%M:%S.%f")
    assert table.restoreToTimestamp(newest).collect() == []
    for version in (99,):
        with pytest.raises(NotFound):
            table.restoreToVersion(version)
    with pytest.raises(NotFound):
        table.restoreToTimestamp("2009-01-01")
    with pytest.raises(InvalidRequest):
        table.restoreToTimestamp("foo")
    for call in (
        lambda: table.restoreToVersion("1"),
        lambda: table.upgradeTableProtocol("1", 2),
        lambda: table.addFeatureSupport(1),
    ):
        with pytest.raises(ValueError):
            call()
    table.addFeatureSupport("timestampNtz")
    table.addColumns({"n": "timestamp_ntz"})
    assert table.detail().collect()[0]["tableFeatures"] == ["appendOnly", "invariants", "timestampNtz"]


def test_where_there_is_no_table(spark, tmp_path: Path):
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path))
    alluvium.write(spark.range(1), str(tmp_path / "paimon"), format="paimon")
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path / "paimon"))
    with pytest.raises(NotFound):
        DeltaTable.forPath(spark, str(tmp_path))
    with pytest.raises(NotFound):
        DeltaTable.forName(spark, "no_such_table")
    spark.range(1).createOrReplaceTempView("a_view")
    with pytest.raises(NotFound):
        DeltaTable.forName(spark, "a_view")
    with pytest.raises(IllegalArgumentException, match="DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF"):
        DeltaTable.forPath(spark, str(tmp_path), {"foo": "1"})


def test_a_second_creator_loses_or_finds_the_table(spark, path: str, monkeypatch: pytest.MonkeyPatch):
    DeltaTable.create(spark).location(path).addColumn("a", "int").execute()
    monkeypatch.setattr("alluvium.api.delta.delta_access.TableAccess.newest", lambda self: None)
    monkeypatch.setattr("alluvium.api.delta.creation.create.ensure_empty", lambda store, has_columns: None)
    with pytest.raises(CommitConflict):
        DeltaTable.create(spark).location(path).addColumn("b", "int").execute()
    found = DeltaTable.createIfNotExists(spark).location(path).addColumn("b", "int").execute()
    assert found.toDF().columns == ["a"]

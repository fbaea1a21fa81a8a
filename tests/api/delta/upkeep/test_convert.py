"""CONVERT TO DELTA from DeltaTable and from SQL: names, answers, the catalog. What becomes of files is tested in
tests/delta/upkeep/convert.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, ParseException, SparkRuntimeException
from pyspark.sql.types import IntegerType, StructType

import alluvium
from alluvium import DeltaTable, Preview
from alluvium.delta.upkeep.convert.partition_types import infer_type
from alluvium.errors import InvalidRequest, NotFound
from alluvium.schema.spark_json import parse_schema
from alluvium.schema.types import STRING, VOID
from alluvium.spark.sessions.catalog import find_table

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def session(spark):
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


def partitioned(root: Path) -> str:
    for p in (1, 2):
        folder = root / f"p={p}" / f"q=a%2F{p}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [p, p + 10]}), folder / "f.parquet")
    (root / "_SUCCESS").touch()
    return f"parquet.`{root}`"


def commit_of(root: Path, version: int = 0) -> dict[str, object]:
    lines = (root / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return json.loads(lines[0])["commitInfo"]


def test_from_python(session, tmp_path: Path) -> None:
    name = partitioned(tmp_path)
    preview = DeltaTable.convertToDelta(session, name, dry_run=True)
    assert isinstance(preview, Preview)
    assert (preview.version, len(preview.added)) == (-1, 2)
    for wrong, condition in (
        ("p int", "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
        ("x int, q string", "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"),
    ):
        with pytest.raises(AnalysisException, match=condition):
            DeltaTable.convertToDelta(session, name, wrong)
    with pytest.raises(SparkRuntimeException, match="DELTA_FAILED_CAST_PARTITION_VALUE"):
        DeltaTable.convertToDelta(session, name, "p int, q int")
    with pytest.raises(ParseException):
        DeltaTable.convertToDelta(session, name, "p nonsense")
    assert not (tmp_path / "_delta_log").exists()
    schema = StructType().add("p", IntegerType()).add("q", "string")
    table = DeltaTable.convertToDelta(session, name, schema)
    assert sorted(map(tuple, table.toDF().collect())) == [
        (1, 1, "a/1"), (2, 2, "a/2"), (11, 1, "a/1"), (12, 2, "a/2"),
    ]  # fmt: skip
    row = table.history().collect()[0]
    assert (row["operation"], row["readVersion"], row["isBlindAppend"]) == ("CONVERT", -1, False)
    assert row["operationMetrics"] == {"numConvertedFiles": "2"}
    assert row["operationParameters"] == {
        "numFiles": "2", "partitionedBy": '["p","q"]', "collectStats": "true", "sourceFormat": "parquet",
    }  # fmt: skip
    again = DeltaTable.convertToDelta(session, name, "something int")
    assert type(again) is DeltaTable and again.history().count() == 1
    assert DeltaTable.convertToDelta(session, f"delta.`{tmp_path}`").history().count() == 1


def test_what_a_streaming_query_left_behind_does_not_count(session, tmp_path: Path) -> None:
    source, folder = str(tmp_path / "in"), tmp_path / "o ü%"
    session.range(4).selectExpr("id", "id % 2 as p").coalesce(1).write.parquet(source)
    rows = session.readStream.schema("id long, p long").parquet(source).writeStream.partitionBy("p").format("parquet")
    query = rows.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start(str(folder))
    query.awaitTermination()
    # As of a task that died: what it had written, another one has written again.
    (file, *_) = (folder / "p=0").glob("*.parquet")
    (folder / "p=0" / "part-00000-dead.parquet").write_bytes(file.read_bytes())
    name = f"parquet.`{folder}`"
    session.sql(f"CREATE TABLE delta.`{tmp_path / 'clone'}` SHALLOW CLONE {name}")
    assert alluvium.open(str(tmp_path / "clone")).count() == 4
    everything = "spark.databricks.delta.convert.useMetadataLog"
    session.conf.set(everything, "false")
    try:
        told = DeltaTable.convertToDelta(session, name, dry_run=True)
    finally:
        session.conf.unset(everything)
    assert told.operation.metrics == {"numConvertedFiles": "3"}
    DeltaTable.convertToDelta(session, name, "p long")
    assert sorted(alluvium.open(str(folder)).to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]


def test_by_sql(session, tmp_path: Path) -> None:
    name = partitioned(tmp_path)
    answer = session.sql(f"CONVERT TO DELTA {name} NO STATISTICS PARTITIONED BY (p BIGINT COMMENT 'of it', q STRING)")
    assert (answer.columns, answer.count()) == ([], 0)
    assert commit_of(tmp_path)["operationParameters"]["collectStats"] is False
    assert session.sql(f"CONVERT TO DELTA {name}").count() == 0
    fields = session.table(f"delta.`{tmp_path}`").schema.fields
    assert [(f.name, f.dataType.simpleString()) for f in fields] == [("id", "bigint"), ("p", "bigint"), ("q", "string")]
    session.sql(f"DELETE FROM delta.`{tmp_path}` WHERE id = 1")
    session.sql(f"INSERT INTO delta.`{tmp_path}` VALUES (7, 7, 'z')")
    assert session.sql(f"SELECT sum(id) FROM delta.`{tmp_path}` WHERE q <> 'a/2'").collect()[0][0] == 18
    session.sql(f"ANALYZE TABLE delta.`{tmp_path}` COMPUTE DELTA STATISTICS")
    assert commit_of(tmp_path, 3)["operation"] == "COMPUTE STATS"
    assert alluvium.open(str(tmp_path)).count("id = 12") == 1


def test_tables_of_the_catalog(session, tmp_path: Path) -> None:
    session.sql(
        f"CREATE TABLE conv_t (id INT, p INT) USING parquet PARTITIONED BY (p) TBLPROPERTIES ('k' = 'v') "
        f"LOCATION '{tmp_path}/t'"
    )
    session.sql("INSERT INTO conv_t VALUES (1, 1), (2, 2)")
    with pytest.raises(AnalysisException, match="DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER"):
        session.sql("CONVERT TO DELTA conv_t PARTITIONED BY (p STRING)")
    try:
        table = DeltaTable.convertToDelta(session, "conv_t")
        assert find_table(session, "conv_t").provider == "delta"
        assert sorted(map(tuple, session.table("conv_t").collect())) == [(1, 1), (2, 2)]
        assert commit_of(tmp_path / "t")["operationParameters"] == {
            "catalogTable": "`spark_catalog`.`default`.`conv_t`",
            "numFiles": 2, "partitionedBy": "[]", "collectStats": True, "sourceFormat": "parquet",
        }  # fmt: skip
        assert table.detail().collect()[0]["properties"]["k"] == "v"
        session.sql("INSERT INTO conv_t VALUES (3, 3)")
        assert session.sql("CONVERT TO DELTA conv_t").count() == 0
        assert DeltaTable.forName(session, "conv_t").toDF().count() == 3
    finally:
        session.sql("DROP TABLE IF EXISTS conv_t")


@pytest.fixture
def conv_p(session, tmp_path: Path):
    """A table of three partitions, by name."""
    session.sql(f"CREATE TABLE conv_p (id INT, p STRING) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'")
    session.sql("INSERT INTO conv_p VALUES (1, 'a'), (2, 'b/c'), (3, NULL)")
    yield "conv_p"
    session.sql("DROP TABLE IF EXISTS conv_p")


def test_partitions_that_the_catalog_has_dropped_do_not_come_back(session, conv_p: str, tmp_path: Path) -> None:
    session.sql("ALTER TABLE conv_p DROP PARTITION (p = 'a')")
    assert len(list((tmp_path / "t").glob("p=a/*.parquet"))) == 1
    session.sql(f"CREATE TABLE delta.`{tmp_path}/clone` SHALLOW CLONE conv_p")
    session.sql("CONVERT TO DELTA conv_p")
    for name in ("conv_p", f"delta.`{tmp_path}/clone`"):
        rows = session.sql(f"SELECT id, p FROM {name} ORDER BY id").collect()
        assert [tuple(row) for row in rows] == [(2, "b/c"), (3, None)]


def test_a_table_of_which_the_catalog_knows_no_partition(session, conv_p: str, tmp_path: Path) -> None:
    session.sql("DROP TABLE conv_p")
    session.sql(f"CREATE TABLE conv_p (id INT, p STRING) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'")
    with pytest.raises(NotFound, match=r"DELTA_CONVERSION_NO_PARTITION_FOUND.*\n.*MSCK REPAIR TABLE"):
        session.sql("CONVERT TO DELTA conv_p")
    assert not (tmp_path / "t" / "_delta_log").exists()
    session.sql("MSCK REPAIR TABLE conv_p")
    session.sql("CONVERT TO DELTA conv_p")
    assert session.table("conv_p").count() == 3


def test_a_partition_in_the_folder_of_another_value(session, conv_p: str, tmp_path: Path) -> None:
    session.sql("ALTER TABLE conv_p DROP PARTITION (p = 'a')")
    session.sql(f"ALTER TABLE conv_p ADD PARTITION (p = 'z') LOCATION '{tmp_path}/t/p=a'")
    with pytest.raises(InvalidRequest, match=r"folder of its values: .*p=a"):
        session.sql("CONVERT TO DELTA conv_p")
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_columns_are_those_of_the_catalog(session, tmp_path: Path) -> None:
    """As delta-spark's; but that a column which only files have stays hidden for ever."""
    session.sql(
        f"CREATE TABLE conv_c (Id INT COMMENT 'a', v VARCHAR(5), n BIGINT, p INT) USING parquet PARTITIONED BY (p) "
        f"LOCATION '{tmp_path}/t'"
    )
    try:
        session.sql("INSERT INTO conv_c VALUES (1, 'x', 7, 1)")
        session.sql("SELECT 2 id, 'y' v, 8 n, 'old' extra").coalesce(1).write.parquet(f"{tmp_path}/t/p=2")
        session.sql("ALTER TABLE conv_c ADD PARTITION (p = 2)")
        session.sql("ALTER TABLE conv_c CHANGE COLUMN Id COMMENT 'b'")
        session.sql("ALTER TABLE conv_c ADD COLUMNS (c STRING COMMENT 'new')")
        before = sorted(map(tuple, session.table("conv_c").collect()))
        session.sql("CONVERT TO DELTA conv_c")
        after = session.table("conv_c")
        assert sorted(map(tuple, after.collect())) == before
        assert after.columns == ["Id", "v", "n", "c", "p"]
        comments = {f.name: f.metadata.get("comment") for f in after.schema.fields}
        assert (comments["Id"], comments["c"]) == ("b", "new")
        with pytest.raises(InvalidRequest):
            session.sql("INSERT INTO conv_c VALUES (3, 'far too long', 1, '', 3)")
        session.sql("ALTER TABLE conv_c ADD COLUMNS (extra STRING)")
        assert [row[0] for row in session.sql("SELECT DISTINCT extra FROM conv_c").collect()] == [None]
    finally:
        session.sql("DROP TABLE IF EXISTS conv_c")


def test_defaults_of_the_catalog(session, tmp_path: Path) -> None:
    session.sql(f"CREATE TABLE conv_d (id INT, d INT DEFAULT 7) USING parquet LOCATION '{tmp_path}/t'")
    try:
        session.sql("INSERT INTO conv_d (id) VALUES (1)")
        session.sql("ALTER TABLE conv_d ADD COLUMNS (e INT DEFAULT 8)")
        with pytest.raises(InvalidRequest, match="files lack 'e', which is 8"):
            session.sql("CONVERT TO DELTA conv_d")
        assert not (tmp_path / "t" / "_delta_log").exists()
        session.sql("DROP TABLE conv_d")
        session.sql(f"CREATE TABLE conv_d (id INT, d INT DEFAULT 7) USING parquet LOCATION '{tmp_path}/t'")
        session.sql("CONVERT TO DELTA conv_d")
        session.sql("INSERT INTO conv_d (id) VALUES (2)")
        assert sorted(map(tuple, session.table("conv_d").collect())) == [(1, 7), (2, 7)]
    finally:
        session.sql("DROP TABLE IF EXISTS conv_d")


def test_types_that_the_catalog_has_otherwise(session, tmp_path: Path) -> None:
    session.sql("SELECT 1 id, 'a' v").coalesce(1).write.parquet(f"{tmp_path}/t")
    session.sql(f"CREATE TABLE conv_o (id INT, v DATE) USING parquet LOCATION '{tmp_path}/t'")
    try:
        with pytest.raises(InvalidRequest, match="files have 'v' as string, and the catalog as date"):
            session.sql("CONVERT TO DELTA conv_o")
    finally:
        session.sql("DROP TABLE IF EXISTS conv_o")


def test_a_paimon_table(session, tmp_path: Path) -> None:
    path = str(tmp_path / "p")
    alluvium.write(session.range(3), path, format="paimon")
    with pytest.raises(InvalidRequest, match="a table of Paimon"):
        session.sql(f"CONVERT TO DELTA parquet.`{path}`")
    session.sql(f"CONVERT TO DELTA paimon.`{path}`")
    session.sql(f"INSERT INTO delta.`{path}` VALUES (7)")
    assert session.sql(f"SELECT sum(id) FROM delta.`{path}`").collect()[0][0] == 10
    with pytest.raises(NotFound, match="no Paimon table"):
        DeltaTable.convertToDelta(session, partitioned(tmp_path / "q").replace("parquet.", "paimon."))


def test_what_cannot_be_converted(session, tmp_path: Path) -> None:
    session.range(1).createOrReplaceTempView("conv_view")
    session.sql(f"CREATE TABLE conv_csv (id INT) USING csv LOCATION '{tmp_path}/csv'")
    try:
        for name, condition in (
            ("conv_view", "DELTA_OPERATION_NOT_ALLOWED_DETAIL"),
            ("conv_csv", "DELTA_CONVERT_NON_PARQUET_TABLE"),
            ("conv_nothing", "TABLE_OR_VIEW_NOT_FOUND"),
            (f"orc.`{tmp_path}`", "DELTA_CONVERT_NON_PARQUET_TABLE"),
        ):
            with pytest.raises(AnalysisException, match=condition):
                session.sql(f"CONVERT TO DELTA {name}")
        (tmp_path / "empty").mkdir()
        with pytest.raises(SparkRuntimeException, match="DELTA_EMPTY_DIRECTORY") as nothing:
            session.sql(f"CONVERT TO DELTA parquet.`{tmp_path}/empty`")
        assert isinstance(nothing.value, NotFound)
        partitioned(tmp_path / "part")
        (tmp_path / "part" / "p=1" / "q=a%2F1" / "notes.txt").write_text("no Parquet")
        with pytest.raises(InvalidRequest, match=r"notes\.txt"):
            session.sql(f"CONVERT TO DELTA parquet.`{tmp_path}/part`")
        assert not (tmp_path / "part" / "_delta_log").exists()
    finally:
        session.sql("DROP TABLE conv_csv")


#: Names of folders whose column has one type.
NAMES = (
    ("1", "2"), ("01", "-3"), ("+5",), ("2147483648", "1"), ("99999999999999999999", "1"), ("1.5", "1"), ("1e5",),
    ("1E2", "7"), ("2024-01-01",), ("2024-01-01", "2024-01-01 10%3A00%3A00"), ("2024-01-01 10%3A00%3A00",),
    ("2024-01-01 10%3A00%3A00.5",), ("2024-1-1",), ("2024-02-30",), ("true",), ("NaN",), ("Infinity", "1"), ("1d",),
    ("__HIVE_DEFAULT_PARTITION__",), ("__HIVE_DEFAULT_PARTITION__", "3"), ("1", "x"), ("2147483648", "1.5"),
    ("99999999999999999999", "1.5"), ("2024-01-01", "1"), (" 1",), ("1_000",), ("0x10",), ("a%2Fb",), (".5",), ("5.",),
    ("1e-3", "2"), ("99999999999999999999999999999999999999999",),
)  # fmt: skip


def test_types_are_inferred_as_spark_infers_them(session, tmp_path: Path) -> None:
    """A column each, one folder in the other, so that Spark looks at all of them at once."""
    for number in (0, -1):
        folder = tmp_path.joinpath(*(f"c{i}={values[number]}" for i, values in enumerate(NAMES)))
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1]}), folder / f"{number}.parquet")
    found = parse_schema(session.read.parquet(str(tmp_path)).schema.json())
    types = [found.find(f"c{i}").type for i in range(len(NAMES))]
    expected = {values: str(STRING if kind == VOID else kind) for values, kind in zip(NAMES, types, strict=True)}
    assert {values: str(infer_type(values)) for values in NAMES} == expected

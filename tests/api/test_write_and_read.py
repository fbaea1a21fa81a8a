"""The front door with Spark, end to end: write, read, travel, prune, refuse."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

import alluvium
from alluvium.errors import CorruptTable, InvalidRequest, NotFound, UnsupportedFeature

pytestmark = pytest.mark.spark


@pytest.fixture
def enabled(spark):
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "a table, 100% ü")


def log_files(url: str) -> list[str]:
    return sorted(p.name for p in Path(url, "_delta_log").iterdir())


def data_files(url: str) -> set[str]:
    return {str(p) for p in Path(url).rglob("*.parquet") if "_delta_log" not in str(p)}


def rows(df) -> list[tuple]:
    return sorted(tuple(r) for r in df.collect())


def test_create_append_overwrite(enabled, url: str) -> None:
    df = enabled.range(10).selectExpr("id", "id % 2 as p")
    first = alluvium.write(df, url, partition_by="p")
    assert (first.version, first.attempts, first.metrics["numOutputRows"]) == (0, 1, "10")
    df.write.format("delta").mode("append").save(url)
    assert enabled.read.format("delta").load(url).count() == 20
    df.where("id > 7").write.format("delta").mode("overwrite").save(url)
    assert rows(enabled.read.format("delta").load(url)) == [(8, 0), (9, 1)]
    assert alluvium.read(enabled, url, version=1).count() == 20
    assert alluvium.open(url).partition_columns == ("p",)


def test_modes_error_and_ignore(enabled, url: str) -> None:
    df = enabled.range(3)
    df.write.format("delta").save(url)
    with pytest.raises(InvalidRequest) as caught:
        df.write.format("delta").save(url)
    assert caught.value.code == "table-exists"
    assert alluvium.write(df, url, mode="ignore").attempts == 0
    df.write.format("delta").mode("ignore").save(url)
    assert alluvium.open(url).version == 0
    with pytest.raises(InvalidRequest, match="did you mean 'append'"):
        alluvium.write(df, url, mode="apend")


def test_partition_values_of_all_types_null_and_empty(spark, url: str) -> None:
    df = spark.sql("""
        select * from values
          (1, true, 1Y, 2S, 3, 4L, 1.5F, double('NaN'), 1.25, 'x/y=z %', date'2024-02-29', timestamp'2024-02-29 12:34:56.789012', timestamp_ntz'1900-01-01 00:00:00'),
          (2, false, -1Y, -2S, -3, -4L, float('-Infinity'), -0.5D, -99.99, '', date'1582-10-15', timestamp'1969-12-31 23:59:59', timestamp_ntz'9999-12-31 23:59:59.999999'),
          (3, null, null, null, null, null, null, null, null, null, null, null, null)
        as t(v, b, y, s, i, l, f, d, e, t, dt, ts, tn)""")
    partition_by = ["b", "y", "s", "i", "l", "f", "d", "e", "t", "dt", "ts", "tn"]
    alluvium.write(df, url, partition_by=partition_by)
    # "An empty string for any type translates to a `null` partition value."
    expected = df.selectExpr("*").na.replace("", None, "t")
    got = alluvium.read(spark, url)
    assert got.columns == df.columns
    assert sorted(map(repr, got.collect())) == sorted(map(repr, expected.collect()))
    assert alluvium.open(url).to_arrow().sort_by("v").column("ts").to_pylist() == (
        expected.orderBy("v").toArrow().column("ts").to_pylist()
    )
    for predicate in ("d = double('NaN')", "t = 'x/y=z %'", "b", "e < 0", "ts = timestamp'2024-02-29 12:34:56.789012'",
                      "tn > timestamp_ntz'2000-01-01 00:00:00'", "dt is null", "f < 0", "t <=> null", "y = -1"):  # fmt: skip
        assert rows(got.where(predicate).select("v")) == rows(expected.where(predicate).select("v")), predicate
        assert alluvium.open(url).files(predicate).num_rows <= 2


def test_any_later_filter_prunes(spark, url: str) -> None:
    df = spark.range(0, 1000, 1, 10).selectExpr("id", "cast(id as string) s", "named_struct('x', id) st")
    alluvium.write(df, url)
    table = alluvium.read(spark, url)
    for predicate in (
        "id = 777",
        "777 = id",
        "id in (777)",
        "st.x = 777",
        "id > 776 and id < 778",
        "id between 777 and 777",
    ):
        found = table.where(predicate)
        assert rows(found.select("id")) == [(777,)]
        (explanation,) = alluvium.explain(found)
        assert (explanation.files, explanation.skipped["statistics"]) == (1, 9), predicate
    table.createOrReplaceTempView("numbers")
    joined = spark.sql("select a.id from numbers a join numbers b on a.id = b.id + 1 where a.id = 5 and b.s = '4'")
    assert rows(joined) == [(5,)]
    assert sorted(e.files for e in alluvium.explain(joined)) == [1, 1]
    assert table.union(table).count() == 2000
    assert table.cache().count() == 1000 == alluvium.read(spark, url).count()
    table.unpersist()


def test_time_travel(enabled, url: str) -> None:
    for n in range(3):
        alluvium.write(enabled.range(n, n + 1), url, mode="append")
    assert alluvium.read(enabled, url, version=1).count() == 2
    assert enabled.read.format("delta").option("versionAsOf", 0).load(url).count() == 1
    times = [row["timestamp"] for row in alluvium.open(url).history()]
    assert times == sorted(times, reverse=True)
    assert alluvium.read(enabled, url, timestamp=times[1]).count() == 2
    assert enabled.read.format("delta").option("timestampAsOf", times[2].isoformat()).load(url).count() == 1
    assert alluvium.open(url, timestamp=times[0] - dt.timedelta(milliseconds=1)).version == 1
    with pytest.raises(NotFound) as caught:
        alluvium.read(enabled, url, version=3)
    assert caught.value.code == "missing-version"


def test_history(spark, url: str) -> None:
    alluvium.write(spark.range(3), url)
    alluvium.write(spark.range(3), url, mode="append", userMetadata="nightly")
    newest, oldest = alluvium.open(url).history()
    assert (newest["version"], newest["operation"], newest["userMetadata"]) == (1, "WRITE", "nightly")
    assert newest["operationParameters"] == {"mode": "Append", "partitionBy": "[]"}
    assert newest["operationMetrics"]["numOutputRows"] == "3"
    assert newest["isBlindAppend"] is True and newest["readVersion"] == 0
    assert oldest["operationParameters"]["mode"] == "ErrorIfExists"
    assert "Alluvium" in str(oldest["engineInfo"])
    assert len(alluvium.open(url).history(limit=1)) == 1


def test_replace_where_and_dynamic_overwrite(spark, url: str) -> None:
    df = spark.range(9).selectExpr("id", "id % 3 as p")
    alluvium.write(df, url, partition_by="p")
    alluvium.write(spark.sql("select 100L id, 1L p"), url, mode="overwrite", replaceWhere="p = 1")
    assert rows(alluvium.read(spark, url).where("p = 1")) == [(100, 1)]
    alluvium.write(spark.sql("select 200L id, 2L p"), url, mode="overwrite", partitionOverwriteMode="dynamic")
    assert rows(alluvium.read(spark, url)) == [(0, 0), (3, 0), (6, 0), (100, 1), (200, 2)]
    before = (log_files(url), data_files(url))
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.sql("select 5L id, 2L p"), url, mode="overwrite", replaceWhere="p = 1")
    assert caught.value.code == "constraint-violated" and "replaceWhere" in str(caught.value)
    with pytest.raises(InvalidRequest):
        alluvium.write(df, url, mode="overwrite", replaceWhere="id = 1")
    assert (log_files(url), data_files(url)) == before


def test_schema_check(spark, url: str) -> None:
    alluvium.write(spark.sql("select 1L as id, 'a' as name, named_struct('x', 1) as st"), url)
    alluvium.write(spark.sql("select 'b' as NAME, 2L as Id"), url, mode="append")
    assert rows(alluvium.read(spark, url).select("id", "name")) == [(1, "a"), (2, "b")]
    before = (log_files(url), data_files(url))
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.sql("select 3L as id, 'c' as naem"), url, mode="append")
    assert caught.value.code == "schema-mismatch"
    assert "+" in str(caught.value) and "naem" in str(caught.value)
    assert (log_files(url), data_files(url)) == before


def test_idempotent_writes(spark, url: str) -> None:
    for version in (1, 1, 2, 1):
        alluvium.write(spark.range(1), url, mode="append", txnAppId="job", txnVersion=version)
    assert alluvium.read(spark, url).count() == 2
    assert alluvium.open(url).txns == {"job": 2}


def test_an_empty_append_makes_no_commit(spark, url: str) -> None:
    alluvium.write(spark.range(0), url)
    assert (alluvium.open(url).version, alluvium.open(url).files().num_rows) == (0, 0)
    assert alluvium.read(spark, url).count() == 0
    assert alluvium.write(spark.range(0), url, mode="append").attempts == 0
    assert log_files(url) == ["00000000000000000000.crc", "00000000000000000000.json"]
    assert data_files(url) == set()


def test_append_only_and_invariants(spark, url: str) -> None:
    alluvium.write(spark.range(3), url, **{"delta.appendOnly": True})
    alluvium.write(spark.range(3), url, mode="append")
    before = (log_files(url), data_files(url))
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.range(3), url, mode="overwrite")
    assert caught.value.code == "append-only"
    assert (log_files(url), data_files(url)) == before


def test_not_null_and_expression_invariants(spark, url: str) -> None:
    alluvium.write(spark.sql("select 1 as a, 5 as b"), url)
    commit = Path(url, "_delta_log/00000000000000000000.json")
    text = commit.read_text()
    text = text.replace(
        r"{\"name\":\"a\",\"type\":\"integer\",\"nullable\":true,\"metadata\":{}}",
        r"{\"name\":\"a\",\"type\":\"integer\",\"nullable\":false,\"metadata\":{}}",
    ).replace(
        r"{\"name\":\"b\",\"type\":\"integer\",\"nullable\":true,\"metadata\":{}}",
        r"{\"name\":\"b\",\"type\":\"integer\",\"nullable\":true,\"metadata\":{\"delta.invariants\":\"{\\\"expression\\\":{\\\"expression\\\":\\\"b > 3\\\"}}\"}}",
    )
    commit.write_text(text)
    alluvium.write(spark.sql("select 2 as a, 4 as b"), url, mode="append")
    before = (log_files(url), data_files(url))
    for query in (
        "select cast(null as int) as a, 4 as b",
        "select 1 as a, 3 as b",
        "select 1 as a, cast(null as int) as b",
        "select 4 as b",
    ):
        with pytest.raises(InvalidRequest) as caught:
            alluvium.write(spark.sql(query), url, mode="append")
        assert caught.value.code in ("constraint-violated", "not-null-violated", "schema-mismatch"), query
    assert (log_files(url), data_files(url)) == before


def test_a_failed_job_leaves_no_trace(spark, url: str) -> None:
    alluvium.write(spark.range(3), url)
    before = {str(p) for p in Path(url).rglob("*")}
    bad = spark.range(100).selectExpr("if(id = 77, raise_error('boom'), id) as id")
    with pytest.raises(Exception, match="boom"):
        alluvium.write(bad, url, mode="append")
    assert {str(p) for p in Path(url).rglob("*")} == before


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"replaceWher": "p = 1"}, "unknown-option"),
        ({"optimizeWrite": "perhaps"}, "invalid-option"),
        ({"txnAppId": "a"}, "contradicting-options"),
        ({"delta.apendOnly": "true"}, "unknown-property"),
        ({"delta.appendOnly": "maybe"}, "invalid-property"),
        ({"delta.enableIcebergCompatV3": "true"}, "unsupported-feature"),
        ({"partitionOverwriteMode": "sometimes"}, "invalid-option"),
    ],
)
def test_bad_options(spark, url: str, options: dict[str, str], code: str) -> None:
    with pytest.raises((InvalidRequest, UnsupportedFeature)) as caught:
        alluvium.write(spark.range(1), url, mode="overwrite", **options)
    assert caught.value.code == code
    assert not Path(url).exists()


@pytest.mark.parametrize("query", ["select 1 as `a b`", "select 1 as a, 2 as A", "select array(null) as a, 1 as b"])
def test_schemas_that_no_table_may_have(spark, url: str, query: str) -> None:
    with pytest.raises((InvalidRequest, UnsupportedFeature)):
        alluvium.write(spark.sql(query), url)
    assert not Path(url).exists()


@pytest.mark.parametrize("partition_by", [["x"], ["id", "id"], ["id"], ["st"]])
def test_bad_partition_columns(spark, url: str, partition_by: list[str]) -> None:
    df = spark.sql("select 1 as id, named_struct('x', 1) as st") if partition_by == ["st"] else spark.range(1)
    with pytest.raises(InvalidRequest):
        alluvium.write(df, url, partition_by=partition_by)
    alluvium.write(spark.range(2).selectExpr("id", "id as p"), url, partition_by="p")
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.range(2).selectExpr("id", "id as p"), url, mode="append", partition_by="id")
    assert caught.value.code == "partition-mismatch"


def test_a_dataframe_is_pinned_to_its_version(spark, url: str) -> None:
    alluvium.write(spark.range(3), url)
    pinned = alluvium.read(spark, url)
    # A table may be overwritten from its own rows.
    alluvium.write(pinned.selectExpr("id + 10 as id"), url, mode="overwrite")
    assert rows(pinned) == [(0,), (1,), (2,)]
    assert rows(alluvium.read(spark, url)) == [(10,), (11,), (12,)]


def test_disabled_sessions_are_untouched(spark, url: str) -> None:
    alluvium.enable(spark)
    alluvium.disable(spark)
    with pytest.raises(Exception) as caught:
        spark.read.format("delta").load(url)
    assert not isinstance(caught.value, alluvium.errors.AlluviumError)
    alluvium.enable(spark)
    spark.range(2).write.format("parquet").save(url)
    assert spark.read.format("parquet").load(url).count() == 2
    alluvium.disable(spark)


def test_schema_and_unknown_read_options(enabled, url: str) -> None:
    alluvium.write(enabled.range(1), url)
    with pytest.raises(InvalidRequest, match="versionAsOf"):
        enabled.read.format("delta").option("versionAsOff", 0).load(url)
    with pytest.raises(InvalidRequest):
        enabled.read.format("delta").schema("id long").load(url)
    with pytest.raises(InvalidRequest):
        enabled.read.format("delta").option("readChangeFeed", "true").load(url)
    with pytest.raises(NotFound):
        enabled.read.format("delta").load(url + "x")


def test_a_data_file_that_is_gone(spark, url: str) -> None:
    alluvium.write(spark.range(10), url)
    table = alluvium.read(spark, url)
    victim = next(iter(data_files(url)))
    Path(victim).unlink()
    for act in (table.count, table.collect, table.toArrow, lambda: table.write.format("noop").mode("overwrite").save()):
        with pytest.raises(NotFound) as caught:
            act()
        assert caught.value.code == "missing-file"
        assert Path(victim).name in str(caught.value.path)


def test_a_data_file_that_is_damaged(spark, url: str) -> None:
    alluvium.write(spark.range(10), url)
    table = alluvium.read(spark, url)
    for victim in data_files(url):
        Path(victim).write_bytes(b"no parquet at all" * 100)
    for act in (table.collect, table.toArrow):
        with pytest.raises(CorruptTable) as caught:
            act()
        assert caught.value.code == "damaged-file"
        assert str(caught.value.path).startswith("file:/")


def test_fields_of_array_elements_are_not_the_columns_of_their_names(spark, tmp_path):
    """Files are left out by what Spark prints of a filter: `items.price is null`, beside a column `price`."""
    path = str(tmp_path / "t")
    rows = "select 1 id, 5 price, null items union all select 2, null, array(named_struct('price', 7))"
    alluvium.write(spark.sql(rows).repartition(2, "id"), path)
    alluvium.write(spark.sql("select 3 id, 5 price, null items").coalesce(1), path, mode="append")
    found = alluvium.read(spark, path)
    for condition, ids in {"items.price is null": [1, 3], "items.price is not null": [2]}.items():
        assert sorted(row["id"] for row in found.where(condition).collect()) == ids

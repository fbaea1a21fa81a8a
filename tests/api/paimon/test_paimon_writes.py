"""Rows of DataFrames into Paimon append tables: created, appended, overwritten as a whole and by partitions, refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import alluvium
from alluvium.codecs.binary_rows.binary_row_encode import buckets_of, encode_rows, hash_rows
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, SchemaChange, parse_type
from alluvium.plan.changes import Committed
from alluvium.schema import types as t

pytestmark = pytest.mark.spark


@pytest.fixture
def enabled(spark):
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "a table, 100% ü")


def rows(url: str, *columns: str) -> list[tuple]:
    table = alluvium.open(url).to_arrow(columns=list(columns) or None)
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def data_files(url: str) -> set[str]:
    return {str(p.relative_to(url)) for p in Path(url).rglob("*") if p.is_file() and "bucket-" in str(p)}


def test_create_append_overwrite(enabled, url: str) -> None:
    df = enabled.range(10).selectExpr("id", "cast(id % 2 as int) as p")
    first = alluvium.write(df, url, format="paimon", partition_by="p", **{"target-file-size": "64 mb"})
    assert (first.version, first.attempts, first.metrics["numOutputRows"]) == (1, 1, "10")
    assert first.files["path"].to_pylist()[0].startswith("p=0/bucket-0/data-")
    df.write.format("paimon").mode("append").save(url)
    table = alluvium.open(url)
    assert (table.version, table.format, table.to_arrow().num_rows) == (2, "paimon", 20)
    assert enabled.read.format("paimon").load(url).where("p = 1").count() == 10
    # What the log says is all that lies there.
    assert data_files(url) == set(table.files()["path"].to_pylist())
    assert {p.name for p in Path(url).iterdir()} <= {"schema", "snapshot", "manifest", "p=0", "p=1", "_staging"}
    df.where("id > 7").write.format("paimon").mode("overwrite").save(url)
    assert rows(url) == [(8, 0), (9, 1)]
    assert alluvium.open(url, version=1).to_arrow().num_rows == 10
    assert PaimonTable.forPath(url).schema.options["target-file-size"] == "64 mb"
    document = alluvium.open(url).system("snapshots").to_pylist()[-1]
    assert (document["commit_kind"], document["total_record_count"], document["delta_record_count"]) == (
        "OVERWRITE", 2, -18,
    )  # fmt: skip


def test_modes_error_and_ignore(enabled, url: str) -> None:
    df = enabled.range(3)
    df.write.format("paimon").save(url)
    with pytest.raises(InvalidRequest) as caught:
        df.write.format("paimon").save(url)
    assert caught.value.code == "table-exists"
    assert alluvium.write(df, url, mode="ignore", format="paimon").attempts == 0
    assert alluvium.open(url).version == 1
    empty = alluvium.write(df.limit(0), url, mode="append", format="paimon")
    assert (empty.version, empty.attempts) == (1, 0)


def test_partitions_of_every_kind(spark, url: str) -> None:
    """ "null, "" and " " share a directory and differ only in the manifest" """
    days = [None, "", " ", "x/y=%2F", "__HIVE_DEFAULT_PARTITION__", "__DEFAULT_PARTITION__", "é"]
    values = [(n, day, dt.date(2024, 1, 1 + n), Decimal("1.50") * n, n % 2 == 0) for n, day in enumerate(days)]
    df = spark.createDataFrame(values, "k int, day string, d date, c decimal(20,2), b boolean")
    alluvium.write(df, url, format="paimon", partition_by=["day", "d", "c", "b"])
    assert sorted(rows(url), key=lambda row: row[0]) == values
    found = alluvium.open(url).files()
    assert found.num_rows == len(days)
    assert {path.split("/")[0] for path in found["path"].to_pylist()} == {
        "day=__DEFAULT_PARTITION__", "day=x%2Fy%3D%252F", "day=__HIVE_DEFAULT_PARTITION__", "day=é",
    }  # fmt: skip
    assert {path.split("/")[1] for path in found["path"].to_pylist()} == {f"d={19723 + n}" for n in range(len(days))}
    alluvium.write(df.where("day = ''"), url, format="paimon", mode="overwrite", partitionOverwriteMode="dynamic")
    assert sorted(rows(url), key=lambda row: row[0]) == values


def test_partitions_of_times(spark, url: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        moment = dt.datetime(1969, 12, 31, 23, 59, 59, 123456)
        df = spark.sql(
            "select 1 k, timestamp_ntz'1969-12-31 23:59:59.123456' n, timestamp'1969-12-31 23:59:59.123456Z' z, "
            "float(1.5) f, double(-0.1) d, bigint(-5) l"
        )
        alluvium.write(df, url, format="paimon", partition_by=["n", "z", "f", "d", "l"])
        assert rows(url) == [(1, moment, moment.replace(tzinfo=dt.timezone.utc), 1.5, -0.1, -5)]
    finally:
        # Not unset: that is the zone of the machine, and the session is that of every other test.
        spark.conf.set("spark.sql.session.timeZone", before)


def test_dynamic_and_static_partition_overwrite(spark, url: str) -> None:
    df = spark.range(9).selectExpr("id", "id % 3 as p")
    alluvium.write(df, url, format="paimon", partition_by="p")
    new = spark.createDataFrame([(100, 1)], "id long, p long")
    done = alluvium.write(new, url, format="paimon", mode="overwrite", partitionOverwriteMode="dynamic")
    assert int(done.metrics["numRemovedFiles"]) >= 1
    assert rows(url) == [(0, 0), (100, 1), (2, 2), (3, 0), (5, 2), (6, 0), (8, 2)]
    alluvium.write(spark.createDataFrame([(7, 0)], "id long, p long"), url, format="paimon", mode="overwrite",
                   replaceWhere="p = 0 or p = 2")  # fmt: skip
    assert rows(url) == [(100, 1), (7, 0)]
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(new, url, format="paimon", mode="overwrite", replaceWhere="p = 0")
    assert caught.value.code == "constraint-violated"
    with pytest.raises(UnsupportedFeature) as unsupported:
        alluvium.write(new, url, format="paimon", mode="overwrite", replaceWhere="id = 100")
    assert unsupported.value.code == "replace-where-data"
    before = alluvium.open(url).version
    none = alluvium.write(new.limit(0), url, format="paimon", mode="overwrite", partitionOverwriteMode="dynamic")
    assert (none.attempts, alluvium.open(url).version) == (0, before)
    alluvium.write(new.limit(0), url, format="paimon", mode="overwrite")
    assert rows(url) == []


def test_fixed_buckets(spark, url: str) -> None:
    """ "`bucket=N>0` fixed: `abs(hash % N)`" """
    df = spark.range(500).selectExpr("id as k", "concat('name ', id) as s", "id % 2 as p")
    alluvium.write(df, url, format="paimon", partition_by="p", bucket=4, **{"bucket-key": "s,k"})
    alluvium.write(df, url, mode="append", format="paimon")
    files = alluvium.open(url).files()
    assert files.num_rows == 16
    for path in files["path"].to_pylist():
        bucket = int(path.split("/")[1].removeprefix("bucket-"))
        table = pq.read_table(Path(url) / path, partitioning=None)
        rows_ = encode_rows([table["s"].combine_chunks(), table["k"].combine_chunks()], [(t.STRING, 0), (t.LONG, 0)])
        assert set(buckets_of(hash_rows(rows_), 4).to_pylist()) == {bucket}
        assert table.schema.names == ["k", "s", "p"]
    details = alluvium.open(url).system("files")
    runs: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for row in details.to_pylist():
        runs.setdefault((row["partition"], row["bucket"]), []).append(
            (row["min_sequence_number"], row["max_sequence_number"])
        )
    for ends in runs.values():
        ends.sort()
        assert ends[0][0] == 0 and ends[1][0] == ends[0][1] + 1
    assert alluvium.open(url).to_arrow(where="s = 'name 7' and k = 7").num_rows == 2


def test_statistics_and_field_ids(spark, url: str) -> None:
    df = spark.sql(
        "select 5 as i, 'Two roads diverged in a wood' as s, array(1) as l, named_struct('x', 1, 'y', 'b') as r, "
        "cast(null as date) as d union all select -3, 'a', null, null, date'2024-01-02'"
    ).coalesce(1)
    alluvium.write(df, url, format="paimon")
    (entry,) = alluvium.open(url).system("files").to_pylist()
    assert (entry["min_value_stats"], entry["max_value_stats"]) == (
        "{d=19724, i=-3, l=null, r=null, s=Two roads diverg}",
        "{d=19724, i=5, l=null, r=null, s=a}",
    )
    assert entry["null_value_counts"] == "{d=1, i=0, l=null, r=null, s=0}"
    table = alluvium.open(url)
    assert table.files(where="i > 5").num_rows == 0 and table.files(where="s > 'b'").num_rows == 0
    schema = pq.read_schema(Path(url) / table.files()["path"][0].as_py())
    ids = {f.name: int(f.metadata[b"PARQUET:field_id"]) for f in schema}
    assert ids == {f.name: f.id for f in PaimonTable.forPath(url).schema.fields}
    inner = PaimonTable.forPath(url).schema.find("r")
    assert inner is not None
    assert [int(f.metadata[b"PARQUET:field_id"]) for f in schema.field("r").type] == [f.id for f in inner.type.fields]


def test_repeated_commits_of_an_application(spark, url: str) -> None:
    df = spark.range(3)
    said = {"format": "paimon", "mode": "append", "txnAppId": "job"}
    assert alluvium.write(df, url, txnVersion=7, **said).version == 1
    assert alluvium.write(df, url, txnVersion=7, **said).attempts == 0
    assert alluvium.write(df, url, txnVersion=6, **said).attempts == 0
    assert alluvium.write(df, url, txnVersion=8, **said).version == 2
    (first, second) = alluvium.open(url).system("snapshots").to_pylist()
    assert (first["commit_user"], first["commit_identifier"], second["commit_identifier"]) == ("job", 7, 8)
    assert data_files(url) == set(alluvium.open(url).files()["path"].to_pylist())


def test_what_is_refused_leaves_the_table_alone(spark, url: str, tmp_path: Path) -> None:
    fields = [DataField(0, "k", parse_type("INT NOT NULL")), DataField(1, "s", parse_type("STRING"))]
    table = PaimonTable.create(url, fields, options={"metadata.stats-mode": "counts"})
    df = spark.createDataFrame([(1, "a")], "k int, s string")

    def refused(code: str, df=df, at: str = url, mode: str = "append", **options) -> AlluviumError:
        before = sorted(str(p) for p in Path(at).rglob("*") if p.is_file())
        with pytest.raises(AlluviumError) as caught:
            alluvium.write(df, at, mode=mode, format="paimon", **options)
        assert caught.value.code == code
        assert sorted(str(p) for p in Path(at).rglob("*") if p.is_file()) == before
        return caught.value

    refused("not-null-violated", spark.createDataFrame([(None, "a")], "k int, s string"))
    refused("schema-mismatch", spark.createDataFrame([(1, 2, 3)], "k int, s int, x int"))
    refused("schema-mismatch", df.withColumn("x", df.k))
    refused("unknown-option", partitionOverwritMode="dynamic")
    refused("invalid-option", mode="overwrite", partitionOverwriteMode="all")
    refused("replace-where-mode", replaceWhere="k = 1")
    refused("contradicting-options", txnAppId="a")
    refused("unsupported-option", overwriteSchema=True)
    refused("invalid-option", mergeSchema="perhaps")
    refused("cast-not-allowed", spark.createDataFrame([("a", 1)], "k string, s int"), mergeSchema=True)
    refused("replace-where-mode", df.withColumn("x", df.k), mergeSchema=True, replaceWhere="k = 1")
    refused("partition-mismatch", partition_by="k")
    refused("bucket-change", bucket=2)
    refused("immutable-option", **{"bucket-key": "k"})
    refused("unsupported-file-format", **{"file.format": "lance"})
    refused("invalid-table-option", **{"metadata.stats-mode": "most"})
    refused("invalid-table-option", **{"changelog-producer": "input"})
    refused("branch-not-found", branch="b")
    table.alter([SchemaChange.add_column("v", {"type": "VECTOR", "element": "FLOAT", "length": 2})])
    refused("unsupported-type", df)
    fresh = str(tmp_path / "fresh")
    error = refused("unsupported-option", at=fresh, partition_by="s", **{"primary-key": "k", "bucket": 2})
    assert "bucket = 2" in str(error)
    refused("invalid-key", at=fresh, partition_by="nothing")
    assert not Path(fresh).exists()
    delta = str(tmp_path / "delta")
    alluvium.write(df, delta)
    refused("table-exists", at=delta)
    with pytest.raises(UnsupportedFeature):
        alluvium.write(df, url, mode="append")


def test_row_tracking(spark, url: str) -> None:
    df = spark.range(6).coalesce(1)
    alluvium.write(df, url, format="paimon", **{"row-tracking.enabled": "true"})
    alluvium.write(df.selectExpr("id + 6 as id"), url, mode="append", format="paimon")
    found = alluvium.open(url).to_arrow(columns=["id", "_ROW_ID", "_SEQUENCE_NUMBER"])
    expected = [(n, n, 1 + n // 6) for n in range(12)]
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == expected
    for lane in (None, "python"):
        whole = alluvium.read(spark, url, lane=lane, rowIds=True)
        assert whole.columns == ["id", "_ROW_ID", "_SEQUENCE_NUMBER"]
        assert sorted(map(tuple, whole.collect())) == expected
        some = alluvium.read(spark, url, lane=lane, columns=["_sequence_number", "*", "_ROW_ID"], where="_ROW_ID >= 7")
        assert some.columns == ["_SEQUENCE_NUMBER", "id", "_ROW_ID"]
        assert sorted(map(tuple, some.collect())) == [(2, n, n) for n in range(7, 12)]
    assert alluvium.read(spark, url, columns=["*"]).columns == ["id"]


def test_rows_without_ids_have_none_to_ask_for(spark, url: str) -> None:
    alluvium.write(spark.range(6), url, format="paimon")
    for asked in ({"rowIds": True}, {"columns": ["id", "_ROW_ID"]}):
        with pytest.raises(InvalidRequest) as caught:
            alluvium.read(spark, url, **asked)
        assert caught.value.code == "row-tracking-disabled"


def test_writing_to_a_branch_of_history_that_went_on(spark, url: str) -> None:
    """A column that was added since is null in the old files, and new rows have it."""
    alluvium.write(spark.range(2), url, format="paimon")
    PaimonTable.forPath(url).alter([SchemaChange.add_column("note", "STRING"), SchemaChange.rename_column("id", "n")])
    alluvium.write(spark.createDataFrame([(5, "x")], "n long, note string"), url, mode="append", format="paimon")
    assert rows(url) == [(0, None), (1, None), (5, "x")]


def test_what_spark_cannot_write_workers_do(spark, url: str) -> None:
    kinds = {
        "k": "INT",
        "n": {"type": "ARRAY", "element": "TIMESTAMP(3)"},
        "t": "TIMESTAMP(9)",
        "c": "TIME(3)",
        "p": "STRING",
    }
    fields = [DataField(0, name, parse_type(kind)) for name, kind in kinds.items()]
    PaimonTable.create(url, fields, ["p"], options={"bucket": "2", "bucket-key": "k", "target-file-size": "1 b"})
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 123456)
    values = [(n, [moment, None], moment, 1000 * n, [None, "", "a/b"][n % 3]) for n in range(9)]
    df = spark.createDataFrame(values, "k int, n array<timestamp_ntz>, t timestamp_ntz, c int, p string")
    alluvium.write(df, url, mode="append", format="paimon")
    cut = moment.replace(microsecond=123000)
    found = alluvium.open(url).to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        (n, [cut, None], moment, dt.time(0, 0, n), p) for n, *_, p in values
    ]
    assert alluvium.open(url).to_arrow(where="k = 4").num_rows == 1
    assert data_files(url) == set(alluvium.open(url).files()["path"].to_pylist())
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(df.withColumn("c", df.p), url, mode="append", format="paimon")
    assert caught.value.code == "schema-mismatch"


def test_rows_beside_nan_are_found_in_files_of_workers(spark, url: str) -> None:
    """Spark trusts the bounds of a file, and to it NaN is greater than any number."""
    fields = [
        DataField(0, name, parse_type(kind)) for name, kind in {"k": "INT", "x": "DOUBLE", "t": "TIMESTAMP(9)"}.items()
    ]
    PaimonTable.create(url, fields)
    moment = dt.datetime(2024, 5, 6)
    df = spark.createDataFrame(
        [(1, 1.0, moment), (2, float("nan"), moment), (3, None, moment)], "k int, x double, t timestamp_ntz"
    ).coalesce(1)
    alluvium.write(df, url, mode="append", format="paimon")
    for where in ("x > 5", "x = double('NaN')", "not (x <= 5)"):
        assert spark_rows(spark, url, where) == [2], where
        assert alluvium.open(url).to_arrow(columns=["k"], where=where)["k"].to_pylist() == [2], where


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_files_of_other_formats(spark, url: str, form: str) -> None:
    kinds = {"k": "INT", "d": "DECIMAL(38, 10)", "t": "TIMESTAMP(3)", "z": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
             "c": "TIME(3)", "n": {"type": "ARRAY", "element": "INT"}, "p": "STRING"}  # fmt: skip
    fields = [DataField(0, name, parse_type(kind)) for name, kind in kinds.items()]
    PaimonTable.create(url, fields, ["p"], options={"file.format": form, "target-file-size": "1 b"})
    moment = dt.datetime(2024, 5, 6, 23, 59, 59, 123000)
    values = [
        (n, Decimal(n) / 1000, moment, moment.replace(tzinfo=dt.timezone.utc), 1000 * n, [n, None], "ab"[n % 2])
        for n in range(-4, 4)
    ]
    df = spark.createDataFrame(
        values, "k int, d decimal(38,10), t timestamp_ntz, z timestamp, c int, n array<int>, p string"
    )
    done = alluvium.write(df.where("k >= 0").coalesce(1), url, mode="append", format="paimon")
    alluvium.write(
        df.where("k < 0").drop("c").selectExpr("*", "0 as c").coalesce(1), url, mode="append", format="paimon"
    )
    table = alluvium.open(url)
    assert {path.rpartition(".")[2] for path in data_files(url)} == {form}
    assert data_files(url) == set(table.files()["path"].to_pylist())
    assert done.metrics["numOutputRows"] == "4"
    expected = [(k, d, t_, z, dt.time(0, 0, max(k, 0)), n, p) for k, d, t_, z, _, n, p in values]
    assert sorted(tuple(row.values()) for row in table.to_arrow().to_pylist()) == expected
    # Statistics skip, and skip nothing that is there.
    for n in range(-4, 4):
        assert table.to_arrow(columns=["k"], where=f"d = {n / 1000}")["k"].to_pylist() == [n]
        assert spark_rows(spark, url, f"k = {n} and z < timestamp'2025-01-01'") == [n]
    assert table.files(where="k >= 0").num_rows == 2
    # And files of several formats stand side by side.
    alluvium.write(df.where("k = 0"), url, mode="append", format="paimon", **{"file.format": "parquet"})
    assert spark_rows(spark, url, "k = 0") == [0, 0]


def spark_rows(spark, url: str, where: str) -> list[int]:
    return sorted(row.k for row in alluvium.read(spark, url).where(where).select("k").collect())


def test_what_orc_cannot_tell(spark, url: str) -> None:
    """Writers do not agree on times before 1970 finer than milliseconds, and Java's reader fails over Arrow's; Arrow's
    fails over times that 64 bits of nanoseconds cannot tell.
    """
    kept = "1969-12-31 23:59:59.5", "1900-01-01 00:00:00.001", "1677-09-21 00:12:44", "2262-04-11 23:47:16.854775"
    refused = "1969-12-31 23:59:59.0005", "1900-01-01 00:00:00.000001", "1677-09-21 00:12:43", "9999-12-31 00:00:00"
    forms = "{}", "array(null, {})", "named_struct('x', {})", "map({}, 1)", "map(1, array(named_struct('x', {})))"
    value = [form.format("n") for form in forms]

    def written(texts: Sequence[str], *columns: str) -> Committed:
        times = ", ".join(f"({place}, timestamp_ntz'{text}')" for place, text in enumerate([*texts, texts[0]]))
        df = spark.sql(f"select * from values {times} t(k, n)")
        return alluvium.write(df.selectExpr(*columns), url, mode="append", format="paimon", **{"file.format": "orc"})

    columns = [f"{text} as c{place}" for place, text in enumerate(value)]
    written(kept, "k", *columns, "cast(n as timestamp) z")
    found = sorted(alluvium.open(url).to_arrow(columns=["k", "c0"]).to_pylist(), key=lambda row: row["k"])
    expected = [dt.datetime.fromisoformat(_six(text)) for text in (*kept, kept[0])]
    assert [row["c0"].replace(tzinfo=None) for row in found] == expected
    files = data_files(url)
    for text, place in [(text, 0) for text in refused] + [(refused[0], place) for place in range(1, 5)]:
        with pytest.raises(InvalidRequest) as caught:
            written([text], "k", f"{value[place]} as c{place}")
        assert (caught.value.code, caught.value.column) == ("not-in-orc", f"c{place}")
        assert "Parquet" in str(caught.value)
    assert data_files(url) == files


def test_workers_tell_what_they_cannot_read(spark, url: str) -> None:
    """Java writes such times, and reads them: our error comes out of Spark's workers as what it is."""
    df = spark.sql("select timestamp_ntz'2024-01-01 00:00:00' n")
    alluvium.write(df, url, format="paimon", **{"file.format": "orc"})
    (path,) = data_files(url)
    orc.write_table(pa.table({"n": pa.array([dt.datetime(9999, 12, 31)], pa.timestamp("us"))}), f"{url}/{path}")
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.read(spark, url).collect()
    assert (caught.value.code, caught.value.features) == ("unsupported-file-type", ("timestamp",))
    assert path in str(caught.value) and "Parquet" in str(caught.value)
    Path(f"{url}/{path}").write_bytes(b"ORC, and no more")
    with pytest.raises(CorruptTable) as caught:
        alluvium.read(spark, url).collect()
    assert caught.value.code == "damaged-file"


def _six(text: str) -> str:
    """With six digits of a fraction, which every Python reads."""
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction:0<6}"


def test_defaults_and_lengths(spark, url: str) -> None:
    fields = [
        DataField(0, "k", parse_type("INT")),
        DataField(0, "s", parse_type("VARCHAR(4)"), default="it's"),
        DataField(0, "d", parse_type("DATE"), default="2024-01-02"),
        DataField(0, "x", parse_type("DECIMAL(5, 2)"), default="'1.5'"),
        DataField(0, "i", parse_type("INT"), default="5.7"),
        DataField(0, "e", parse_type("DATE"), default="-1"),
        DataField(0, "b", parse_type("BINARY(3)"), default="a"),
        DataField(0, "c", parse_type("CHAR(3)"), default="abcd"),
        DataField(0, "t", parse_type("TIME(0)"), default="00:00:01"),
    ]
    PaimonTable.create(url, fields)
    alluvium.write(spark.createDataFrame([(1,)], "k int"), url, mode="append", format="paimon")
    alluvium.write(spark.createDataFrame([(2, None)], "k int, s string"), url, mode="append", format="paimon")
    # By Java's casts, and as there a null that comes is the default, too.
    eve, second = dt.date(1969, 12, 31), dt.time(0, 0, 1)
    made = ("it's", dt.date(2024, 1, 2), Decimal("1.50"), 5, eve, b"a\0\0", "abc", second)
    assert rows(url) == [(1, *made), (2, *made)]
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.createDataFrame([(3, "äöüß!")], "k int, s string"), url, mode="append", format="paimon")
    assert caught.value.code == "text-too-long"


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_nulls_of_keyed_rows_become_defaults(spark, url: str, engine: str) -> None:
    """`TableWriteImpl.writeAndReturn`: "checkNullability", then "wrapDefaultValue"."""
    fields = [
        DataField(0, "k", parse_type("INT NOT NULL")),
        DataField(0, "v", parse_type("INT"), default="5"),
        DataField(0, "n", parse_type("INT NOT NULL"), default="6"),
    ]
    table = PaimonTable.create(url, fields, primary_keys=["k"], options={"bucket": "1", "merge-engine": engine})
    columns = "k int, v int, n int"
    for brought in ([(1, None, 1), (2, 7, 1)], [(2, None, 1)]):
        alluvium.write(spark.createDataFrame(brought, columns), url, mode="append", format="paimon")
    assert rows(url) == [(1, 5, 1), (2, 5, 1)]
    table.update("k = 1", {"v": "8"})
    table.update("k = 1", {"v": "null"})
    assert rows(url) == [(1, 5, 1), (2, 5, 1)]
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(spark.createDataFrame([(3, 1, None)], columns), url, mode="append", format="paimon")
    assert caught.value.code == "not-null-violated"


def test_changed_bucket_counts(spark, url: str) -> None:
    """ "total buckets of a partition unchanged (except OVERWRITE)" """
    df = spark.range(20)
    alluvium.write(df, url, format="paimon", bucket=2, **{"bucket-key": "id"})
    PaimonTable.forPath(url).alter([SchemaChange.set_option("bucket", "3")])
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(df, url, mode="append", format="paimon")
    assert caught.value.code == "bucket-change"
    assert data_files(url) == set(alluvium.open(url).files()["path"].to_pylist())
    alluvium.write(df, url, mode="overwrite", format="paimon")
    assert len(set(alluvium.open(url).system("files")["bucket"].to_pylist())) == 3


def test_types(spark, url: str) -> None:
    df = spark.sql(
        "select cast(1 as tinyint) by, cast(2 as smallint) sh, bigint(3) l, float(1.5) f, double(2.5) d, cast(1 as decimal(9,2)) d9, "
        "cast(2 as decimal(38,10)) d38, true b, x'00ff' bin, map('a', array(1, null)) m, "
        "array(named_struct('x', 1)) rs, timestamp'2024-01-01 00:00:00Z' z, timestamp_ntz'2024-01-01 00:00:00' n"
    )
    alluvium.write(df, url, format="paimon")
    moment = dt.datetime(2024, 1, 1)
    assert alluvium.open(url).to_arrow().to_pylist() == [
        {"by": 1, "sh": 2, "l": 3, "f": 1.5, "d": 2.5, "d9": Decimal("1.00"), "d38": Decimal("2.0000000000"), "b": True,
         "bin": b"\x00\xff", "m": [("a", [1, None])], "rs": [{"x": 1}],
         "z": moment.replace(tzinfo=dt.timezone.utc), "n": moment}
    ]  # fmt: skip
    assert alluvium.read(spark, url).collect() == df.collect()

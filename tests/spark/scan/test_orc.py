"""Spark's own ORC reader gives the rows that the lane without Spark gives, and is left alone where it would not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from orc_of_java import write_as_java
from orc_tables import (
    CONDITIONS,
    HOLLOW,
    MISREAD,
    NESTED,
    ROW,
    VALUES,
    YEAR,
    add,
    assert_same,
    create,
    instants,
    lanes,
    write_everything,
)
from paimon_rows import append, open_target
from paimon_tables import HandWritten
from pyarrow import orc
from pyspark.sql import SparkSession

import alluvium
from alluvium.errors import UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import SchemaChange
from alluvium.storage.open import open_store

pytestmark = pytest.mark.spark


@pytest.fixture
def everything(tmp_path: Path) -> str:
    write_everything(url := str(tmp_path / "t"))
    return url


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.sql.orc.enableVectorizedReader": "false"},
        {"spark.sql.orc.enableNestedColumnVectorizedReader": "false"},
        {"spark.sql.caseSensitive": "true", "spark.sql.orc.impl": "hive", "spark.sql.orc.mergeSchema": "true"},
        {"orc.force.positional.evolution": "true", "spark.sql.timestampType": "TIMESTAMP_NTZ"},
        {"spark.sql.orc.filterPushdown": "true", "spark.sql.orc.aggregatePushdown": "true",
         "spark.sql.session.timeZone": "America/Los_Angeles", "spark.sql.ansi.enabled": "false"},
    ],
    ids=["defaults", "rows", "nested rows", "names", "places", "pushdown"],
)  # fmt: skip
def test_values_of_all_types(spark: SparkSession, everything: str, settings: Mapping[str, str]) -> None:
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    df = alluvium.read(session, everything)
    assert lanes(df) == {"native"}
    assert_same(df, everything)
    is_asked_all = not settings or "spark.sql.orc.filterPushdown" in settings
    asked = (*CONDITIONS, *(f"{name} is null" for name in VALUES)) if is_asked_all else CONDITIONS[::6]
    for condition in (*asked, "p = 'a'", "p is null and i4 is not null"):
        assert_same(df, everything, condition, ["k", "p"])
    assert df.count() == df.selectExpr("max(k) m").first().m * 2 + 2 == 8
    assert df.select("p").where("p is null").count() == 4
    assert df.selectExpr("min(i8)", "max(i8)", "count(s)").first()[:] == (-(2**63), 2**63 - 1, 6)
    assert df.selectExpr("_metadata.file_path f").distinct().count() == 2


def test_explain_says_which_reader(spark: SparkSession, everything: str) -> None:
    (scan,) = alluvium.explain(alluvium.read(spark, everything).where("p = 'a'"))
    assert (scan.lane, scan.files, dict(scan.skipped)["partition"]) == ("native", 1, 1)
    assert "ORC reader" in scan.why and "Parquet" not in scan.why
    # Files of both formats side by side.
    parquet = open_target(open_store(everything), **{"file.format": "parquet"})
    append(parquet, [{"k": 9, "p": "a"}])
    df = alluvium.read(spark, everything)
    assert sorted(scan.why.split(" reader")[0].rsplit(" ", 1)[1] for scan in alluvium.explain(df)) == ["ORC", "Parquet"]
    assert df.where("k = 9 and p = 'a'").count() == 1


def test_names(spark: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    names = ["a.b", "a b", "a:b", "a,b", "ü", "a<b>", "A", "select", "_col0", "_tmp", "a'b", 'a"b', "{x}", "a/b"]
    inner = {"type": "ROW", "fields": [{"id": n, "name": name, "type": "INT"} for n, name in enumerate(names)]}
    create(url, {**dict.fromkeys(names, "INT"), "row": inner})
    add(url, {**{name: n for n, name in enumerate(names)}, "row": {name: -n for n, name in enumerate(names)}}, {})
    df = alluvium.read(spark, url)
    assert lanes(df) == {"native"}
    assert_same(df, url)
    for n, name in enumerate(names):
        assert [r[0] for r in df.where(f"`{name}` = {n}").selectExpr(f"row.`{name}`").collect()] == [-n]


def test_evolution(spark: SparkSession, tmp_path: Path) -> None:
    """Columns are found by the names that they had, and numbers widened as Paimon does."""
    url = str(tmp_path / "t")
    create(url, {"k": "INT", "a": "INT", "b": "STRING", "c": "TINYINT", "f": "FLOAT", "r": NESTED})
    add(url, {"k": 1, "a": 1, "b": "b", "c": -5, "f": 0.1, "r": ROW}, {"k": 2})
    table = PaimonTable.forPath(url)
    # Names change hands.
    table.alter([SchemaChange.rename_column("a", "x"), SchemaChange.rename_column("b", "a")])
    table = PaimonTable.forPath(url)
    table.alter([SchemaChange.add_column("b", "DATE"), SchemaChange.update_column_type("x", "BIGINT"),
                 SchemaChange.update_column_type("c", "INT"), SchemaChange.update_column_type("f", "DOUBLE")])  # fmt: skip
    add(url, {"k": 3, "x": 2**40, "a": "new", "b": dt.date(2024, 2, 29), "c": 2**20, "f": 0.1, "r": HOLLOW})
    PaimonTable.forPath(url).alter([SchemaChange.drop_column("k")])
    df = alluvium.read(spark, url)
    assert lanes(df) == {"native"}
    assert_same(df, url)
    for condition in ("x = 1", "a = 'b'", "a = 'new'", "b is null", "b > date'2020-01-01'", "c < 0", "f < 1"):
        assert_same(df, url, condition)
    PaimonTable.forPath(url).alter([SchemaChange.update_column_type("c", "STRING")])
    df = alluvium.read(spark, url)
    assert lanes(df) == {"native"}
    for condition in ("true", "c = '-5'", "c > '0'", "c is null"):
        assert_same(df, url, condition)
    # What Spark's casts do not do as Paimon's, workers do.
    PaimonTable.forPath(url).alter([SchemaChange.update_column_type("f", "STRING")])
    df = alluvium.read(spark, url)
    assert lanes(df) == {"python"}
    assert_same(df, url)


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "first-row"])
def test_rows_merge_by_key(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    url = str(tmp_path / "t")
    schema = pa.schema([pa.field("k", pa.int64(), False), ("s", pa.string()), ("d", pa.date32())])
    table = HandWritten(url, schema, ["k"], **{"file.format": "orc", "merge-engine": engine})
    day = dt.date(2020, 1, 1)
    table.commit([{"k": k, "s": f"s{k}", "d": day} for k in range(6)])
    table.commit([{"k": k, "d": None if k % 2 else day} for k in range(3, 9)])
    if engine == "deduplicate":
        table.commit([{"k": 4, "s": "gone"}, {"k": 20, "s": "kept"}], ["-D", "+I"])
    df = alluvium.read(spark, url)
    assert lanes(df) == {"native"}
    assert_same(df, url)
    for condition in ("k = 4", "s is null", "s = 's3'", "d is null"):
        assert_same(df, url, condition)


@pytest.mark.parametrize(("make", "why"), MISREAD.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_what_workers_read(spark: SparkSession, tmp_path: Path, make: Any, why: str) -> None:
    url = str(tmp_path / "t")
    make(url)
    df = alluvium.read(spark, url)
    (scan,) = alluvium.explain(df)
    assert scan.lane == "python" and why in scan.why
    assert_same(df, url)


def test_row_ids_stay_with_workers(spark: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    create(url, {"k": "INT"}, **{"row-tracking.enabled": "true"})
    add(url, {"k": 1}, {"k": 2})
    assert lanes(alluvium.read(spark, url)) == {"native"}
    df = alluvium.read(spark, url, system="row_tracking")
    assert lanes(df) == {"python"}
    assert sorted(r[:2] for r in df.select("k", "_ROW_ID").collect()) == [(1, 0), (2, 1)]


def test_statistics_that_lie_lose_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    """By the bounds in a file Spark would skip these rows: texts go by UTF-16 there, and NaN and -0.0 by nobody."""
    url = str(tmp_path / "t")
    create(url, {"k": "INT", "s": "STRING", "f": "DOUBLE"})
    add(url, *({"k": k, "s": text, "f": number} for k, (text, number) in enumerate(
        [("a", -0.0), ("\uffff" * 17, -0.0), ("\U0010ffff" * 20, float("nan")), (None, None)])))  # fmt: skip
    df = alluvium.read(spark, url)
    assert lanes(df) == {"native"}
    for text in ("\uffff" * 17, "\U0010ffff" * 20):
        assert_same(df, url, f"s = '{text}'")
        assert_same(df, url, f"s >= '{text}'")
    for condition in ("f = 0.0", "f > 1", "isnan(f)"):
        assert df.where(condition).count() == {"f = 0.0": 2}.get(condition, 1)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "lz4", "zlib", "none"])
def test_codecs(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    url = str(tmp_path / "t")
    create(url, {"k": "INT", "s": "STRING"})
    add(url, *({"k": k, "s": f"row {k % 7}"} for k in range(5000)))
    (path,) = alluvium.open(url).files()["path"].to_pylist()
    rows = orc.read_table(f"{url}/{path}")
    orc.write_table(rows, f"{url}/{path}", compression="uncompressed" if codec == "none" else codec)
    df = alluvium.read(spark, url)
    assert lanes(df) == {"native"}
    assert df.selectExpr("sum(k)", "count(distinct s)").first()[:] == (5000 * 4999 // 2, 7)


def test_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    create(url, {"k": "INT", "d": "DATE"})
    assert alluvium.read(spark, url).count() == 0
    add(url, {"k": 1})
    (path,) = alluvium.open(url).files()["path"].to_pylist()
    orc.write_table(orc.read_table(f"{url}/{path}").slice(0, 0), f"{url}/{path}")
    df = alluvium.read(spark, url)
    assert lanes(df) == {"native"}
    assert df.collect() == [] and df.count() == 0


@pytest.fixture
def set_zone(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    key = "spark.sql.session.timeZone"
    before = spark.conf.get(key)
    yield lambda zone: spark.conf.set(key, zone)
    spark.conf.set(key, before)


def test_instants_by_the_clock_of_java(spark: SparkSession, tmp_path: Path, set_zone: Callable[[str], None]) -> None:
    """As in Java, the session's zone is that of the writer where nothing else tells it, and where the bounds agree."""
    url = str(tmp_path / "t")
    instants(url)
    write_as_java(url, "America/New_York", False, "k")
    set_zone("America/New_York")
    df = alluvium.read(spark, url)
    assert [row["z"] for row in df.orderBy("k").toArrow().to_pylist()] == YEAR
    assert [row.k for row in df.where("z = timestamp'2024-06-01 12:30:00.123456Z'").collect()] == [5]
    assert alluvium.read(spark, url, where="z < timestamp'2024-02-01 12:30:00.2Z'").count() == 2
    set_zone("Asia/Shanghai")
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.read(spark, url).collect()
    assert caught.value.code == "unknown-writer-zone"
    assert alluvium.read(spark, url, columns=["k"]).distinct().count() == 12

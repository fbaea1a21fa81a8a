"""Texts of conditions mean what the server makes of them: variables in them, and functions of the caller's by the names
of Spark's own, which stand before these in some versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from templates import copy_of

import alluvium
from alluvium import DeltaTable
from alluvium.spark.sessions.readings import reading_zone

pytestmark = pytest.mark.connect

#: Functions that are true of one row alone, where they are the ones that are meant.
OWN: dict[str, tuple[Callable[..., object], str]] = {
    "upper": (lambda p: "A1" if p == "b1" else "no", "string"),
    "ucase": (lambda p: "A1" if p == "b1" else "no", "string"),
    "startswith": (lambda p, start: p == "b1", "boolean"),
    "left": (lambda p, count: "a" if p == "b1" else "z", "string"),
    "nvl": (lambda p, other: "a1" if p == "b1" else "z", "string"),
    "len": (lambda p: 2 if p == "b1" else 0, "int"),
    "year": (lambda day: 2024 if day.year == 2023 else 1, "int"),
    "isnull": (lambda p: p == "b1", "boolean"),
    "isnotnull": (lambda p: p == "b1", "boolean"),
    "like": (lambda p, pattern: p == "b1", "boolean"),
}
#: What a Column calls by a name, and its text has as words.
COLUMNS: dict[str, Callable[[], Column]] = {
    "isNull": lambda: sf.col("p").isNull(),
    "isNotNull": lambda: sf.col("p").isNotNull(),
    "like": lambda: sf.col("p").like("a%"),
    "not like": lambda: ~sf.col("p").like("a%"),
}
CONDITIONS = [
    "p = '${my.p}'", "p <> '${my.p}'", "id > 1 and p in ('${my.p}', 'b1')",
    "upper(p) = 'A1'", "`upper`(p) = 'A1'", "ucase(p) = 'A1'", "startswith(p, 'a')", "left(p, 1) = 'a'", "nvl(p, 'x') = 'a1'",
    "len(p) = 2", "year(day) = 2024", "isnull(p)",
]  # fmt: skip
DAYS = pa.array([19_000, 19_400, 19_800, 19_900], pa.int32()).cast(pa.date32())
ROWS = pa.table({"id": [1, 2, 3, 4], "p": ["a1", "b1", "c1", "a1"], "day": DAYS})


@pytest.fixture(scope="module")
def session(connect: SparkSession) -> Iterator[SparkSession]:
    connect.conf.set("my.p", "a1")
    for name, (function, kind) in OWN.items():
        connect.udf.register(name, function, kind)
    yield connect
    connect.conf.unset("my.p")
    # Spark 4.0 takes them for its own by now, and keeps them: there this module is played alone.
    with suppress(AnalysisException):
        for name in OWN:
            connect.sql(f"DROP TEMPORARY FUNCTION `{name}`")


@pytest.fixture
def url(tmp_path: Path) -> str:
    copy_of((__name__,), str(tmp_path / "t"), lambda new: alluvium.write(ROWS, new, partition_by=["p"]))
    return str(tmp_path / "t")


def ids(df: DataFrame) -> list[int]:
    return sorted(row["id"] for row in df.select("id").collect())


@pytest.mark.parametrize("text", CONDITIONS)
def test_rows_are_those_that_sparks_own_filter_finds(session: SparkSession, url: str, text: str) -> None:
    found = ids(session.createDataFrame(ROWS).where(text))
    table = DeltaTable.forPath(session, url)
    assert ids(alluvium.read(session, url).where(text)) == found
    assert ids(alluvium.read(session, url, where=text)) == found
    table.update(text, {"id": "id + 10"})
    changed = [n + 10 if n in found else n for n in (1, 2, 3, 4)]
    assert sorted(alluvium.open(url).to_arrow()["id"].to_pylist()) == sorted(changed)
    table.restoreToVersion(0)
    table.delete(text)
    left = sorted({1, 2, 3, 4} - {*found})
    assert sorted(alluvium.open(url).to_arrow()["id"].to_pylist()) == left
    table.restoreToVersion(0)
    alluvium.write(alluvium.read(session, url).where("false"), url, mode="overwrite", replaceWhere=text)
    assert sorted(alluvium.open(url).to_arrow()["id"].to_pylist()) == left


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_mean_what_the_server_makes_of_their_names(session: SparkSession, url: str, name: str) -> None:
    found = ids(session.createDataFrame(ROWS).where(COLUMNS[name]()))
    table = DeltaTable.forPath(session, url)
    assert ids(alluvium.read(session, url)) == [1, 2, 3, 4]
    assert ids(alluvium.read(session, url).where(COLUMNS[name]())) == found
    table.delete(COLUMNS[name]())
    assert sorted(alluvium.open(url).to_arrow()["id"].to_pylist()) == sorted({1, 2, 3, 4} - {*found})


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "UTC"])
def test_zones_whose_clock_is_the_servers(connect: SparkSession, zone: str) -> None:
    """The server is asked, once a zone."""
    before = str(connect.conf.get("spark.sql.session.timeZone"))
    connect.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert reading_zone(connect, ["id = 5"]) == zone
    finally:
        connect.conf.set("spark.sql.session.timeZone", before)


TWICE = "2005-10-30 02:00:01"


@pytest.mark.parametrize(("op", "is_parted"), [(">", True), ("<=", True), ("=", True), ("in", True), (">", False)])
def test_local_times_that_a_clock_shows_twice(connect: SparkSession, tmp_path: Path, op: str, is_parted: bool) -> None:
    """Spark compares the instant with the first of both: rows were lost, and others deleted."""
    before, url = str(connect.conf.get("spark.sql.session.timeZone")), str(tmp_path / "t")
    text = f"cast(ts as timestamp_ntz) {op} (timestamp_ntz'{TWICE}')"
    times = ["2005-10-30 01:00:01Z", "2005-10-30 00:00:01Z", "2005-10-31 12:00:00Z"]
    connect.conf.set("spark.sql.session.timeZone", "Europe/Amsterdam")
    try:
        rows = connect.sql(" union all ".join(f"select {n} id, timestamp'{x}' ts" for n, x in enumerate(times)))
        alluvium.write(rows, url, partition_by=["ts"] if is_parted else [])
        rows.write.parquet(str(tmp_path / "rows"))
        found = ids(connect.read.parquet(str(tmp_path / "rows")).where(text))
        assert ids(alluvium.read(connect, url).where(text)) == ids(alluvium.read(connect, url, where=text)) == found
        table, left = DeltaTable.forPath(connect, url), sorted({0, 1, 2} - {*found})

        def held() -> list[int]:
            return sorted(alluvium.open(url).to_arrow()["id"].to_pylist())

        table.delete(text)
        assert held() == left
        table.restoreToVersion(0)
        table.update(text, {"id": "id + 10"})
        assert held() == sorted([*left, *(n + 10 for n in found)])
        table.restoreToVersion(0)
        table.alias("t").merge(connect.sql("select 1 as one").alias("s"), text).whenMatchedDelete().execute()
        assert held() == left
        table.restoreToVersion(0)
        alluvium.write(rows.where("false"), url, mode="overwrite", replaceWhere=text)
        assert held() == left
    finally:
        connect.conf.set("spark.sql.session.timeZone", before)

"""ORC files of Paimon tables, written by Spark itself: what they hold, what manifests say of them, who writes the rest."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

import alluvium
from alluvium.errors import InvalidRequest
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, parse_type

pytestmark = pytest.mark.spark

ROW = {"type": "ROW", "fields": [{"id": 0, "name": "x y", "type": "INT"}, {"id": 1, "name": "d", "type": "DATE"}]}
KINDS: dict[str, Any] = {
    "k": "INT NOT NULL", "by": "TINYINT", "sh": "SMALLINT", "l": "BIGINT", "f": "FLOAT", "d": "DOUBLE",
    "d38": "DECIMAL(38, 10)", "bo": "BOOLEAN", "s": "STRING", "ch": "CHAR(5)", "v": "VARCHAR(40)", "b": "BYTES",
    "da": "DATE", "tm": "TIME(3)", "a.b `ü": "INT", "r": ROW, "arr": {"type": "ARRAY", "element": ROW},
    "m": {"type": "MAP", "key": "STRING NOT NULL", "value": ROW}, "ms": {"type": "MULTISET", "element": "INT NOT NULL"},
}  # fmt: skip
SQL = (
    "k int, by tinyint, sh smallint, l bigint, f float, d double, d38 decimal(38,10), bo boolean, s string, ch string, "
    "v string, b binary, da date, tm int, `a.b ``ü` int, r struct<`x y`: int, d: date>, "
    "arr array<struct<`x y`: int, d: date>>, m map<string, struct<`x y`: int, d: date>>, ms map<int, int>"
)
DAY = dt.date(1582, 10, 15)
FULL = (
    1, -128, -(2**15), -(2**63), -1.5, -0.0, Decimal("-" + "9" * 28 + "." + "9" * 10), True, "ä€😀", "ab", "v" * 40,
    b"\x00\xff", DAY, 86_399_999, 7, {"x y": None, "d": DAY}, [None, {"x y": 1, "d": None}], {"b": None, "a": {"x y": 1, "d": DAY}}, {3: 2},
)  # fmt: skip
NULLS = (2, *[None] * 18)
OTHER = (
    3, 127, 2**15 - 1, 2**63 - 1, math.inf, math.nan, Decimal("0.0000000001"), False, "", "abcde", "", b"",
    dt.date(9999, 12, 31), 0, -7, {"x y": 5, "d": None}, [], {}, {},
)  # fmt: skip


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "a table, 100% ü")


def make(url: str, *partition_keys: str, kinds: dict[str, Any] | None = None, **options: str) -> None:
    fields = [DataField(n, name, parse_type(kind)) for n, (name, kind) in enumerate((kinds or KINDS).items())]
    PaimonTable.create(url, fields, partition_keys, options={"file.format": "orc", **options})


def writers(url: str) -> set[str]:
    """Who wrote the files of the newest version."""
    return {orc.ORCFile(f"{url}/{path}").writer for path in alluvium.open(url).files()["path"].to_pylist()}


def rows(url: str, **options: Any) -> list[tuple[Any, ...]]:
    table = alluvium.open(url).to_arrow(**options)
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=lambda row: row[0])


def as_read(row: tuple[Any, ...]) -> tuple[Any, ...]:
    row = tuple(sorted(value.items()) if isinstance(value, dict) and "x y" not in value else value for value in row)
    time = row[13]
    return (*row[:13], None if time is None else (dt.datetime.min + dt.timedelta(milliseconds=time)).time(), *row[14:])


@pytest.mark.parametrize("keys", [(), ("s", "da"), ("tm", "d38", "bo")], ids=["plain", "texts", "times"])
def test_spark_writes_every_type(spark, url: str, keys: tuple[str, ...]) -> None:
    make(url, *keys)
    df = spark.createDataFrame([FULL, NULLS, OTHER, FULL], SQL)
    done = alluvium.write(df.coalesce(1), url, mode="append", format="paimon")
    assert done.metrics["numOutputRows"] == "4"
    assert writers(url) == {"ORC_JAVA"}
    expected = [as_read(row) for row in (FULL, FULL, NULLS, OTHER)]
    # NaN is no equal of itself.
    assert repr(rows(url)) == repr(expected)
    found = alluvium.read(spark, url).orderBy("k").drop("d").collect()
    assert [row.da for row in found] == [DAY, DAY, None, dt.date(9999, 12, 31)]
    assert [row["a.b `ü"] for row in found] == [7, 7, None, -7]


def test_statistics_skip_and_lose_nothing(spark, url: str) -> None:
    """Each row a file of its own, and all in one: every value is found, whichever the others are."""
    make(url, "k")
    cases: list[tuple[Any, ...]] = [FULL, NULLS, OTHER]
    df = spark.createDataFrame(cases, SQL)
    alluvium.write(df, url, mode="append", format="paimon")
    table = alluvium.open(url)
    assert table.files().num_rows == 3
    for condition, expected in {
        "by = -128": [1], "sh >= 0": [3], "l = -9223372036854775808": [1], "f > 1e30": [3], "d38 < 0": [1],
        "not bo": [3], "s = ''": [3], "s = 'ä€😀'": [1], "ch = 'ab'": [1], "v is null": [2],
        "da = date'1582-10-15'": [1], "r is null": [2], "arr is not null": [1, 3],
        # No bounds where there is NaN, which is greater than all; and zeros are one value.
        "d > 1e308": [3], "d = 0.0": [1], "d < 5": [1],
    }.items():  # fmt: skip
        assert sorted(table.to_arrow(columns=["k"], where=condition)["k"].to_pylist()) == expected, condition
        found = sorted(row.k for row in alluvium.read(spark, url).where(condition).select("k").collect())
        assert found == expected, condition
    assert table.files(where="by = -128").num_rows == 1
    assert table.files(where="da > date'2000-01-01'").num_rows == 1
    counts = table.system("files").sort_by("min_value_stats")["null_value_counts"].to_pylist()
    assert sorted(str(count).count("=1") + str(count).count(": 1") for count in counts)[-1] >= 17


def test_the_order_of_rows_is_no_part_of_statistics(spark, url: str) -> None:
    make(url, kinds={"k": "INT", "d": "DOUBLE"})
    for number, values in enumerate(([1.0, math.nan, 5.0], [math.nan, 2.0], [0.0, -0.0], [-0.0, 0.0], [3.0, 4.0])):
        df = spark.createDataFrame([(number, value) for value in values], "k int, d double").coalesce(1)
        alluvium.write(df, url, mode="append", format="paimon")
    table = alluvium.open(url)
    # Files that others wrote may have NaN beside an upper bound: only the lower one skips.
    assert table.files(where="d < -1e0").num_rows == 2
    assert table.files(where="d = 0e0").num_rows == 4
    assert table.to_arrow(where="d = 0e0").num_rows == 4


OLD = [dt.date(1, 1, 1), dt.date(1500, 2, 28), dt.date(1582, 10, 4), dt.date(1582, 10, 10), dt.date(1582, 10, 14)]


@pytest.mark.parametrize("form", ["{}", "array(null, {})", "named_struct('x', {})", "map({}, 1)", "map(1, array({}))"])
def test_days_of_the_other_calendar_are_left_to_workers(spark, url: str, form: str) -> None:
    """Spark's writer counts them otherwise than Paimon's readers do."""
    days = ", ".join(f"({n}, date'{day}')" for n, day in enumerate([*OLD, DAY]))
    df = spark.sql(f"select k, {form.format('c')} as c from values {days} as t(k, c)").coalesce(1)
    options = {"file.format": "orc"}
    alluvium.write(df, url, format="paimon", **options)
    assert writers(url) == {"ORC_CPP"}
    found = [row[1] for row in rows(url)]
    day = {"{}": lambda v: v, "array(null, {})": lambda v: v[1], "named_struct('x', {})": lambda v: v["x"],
           "map({}, 1)": lambda v: v[0][0], "map(1, array({}))": lambda v: v[0][1][0]}[form]  # fmt: skip
    assert [day(value) for value in found] == [*OLD, DAY]
    alluvium.write(df.where("k = 5"), url, mode="overwrite", format="paimon")
    assert (writers(url), len(rows(url))) == ({"ORC_JAVA"}, 1)
    assert not list((Path(url) / "_staging").rglob("*.orc"))


def test_who_breaks_a_condition_is_told_so_by_either_writer(spark, url: str) -> None:
    make(url, kinds={"k": "INT NOT NULL", "c": "DATE"})
    for day in ("1000-01-01", "2000-01-01"):
        df = spark.sql(f"select * from values (1, date'{day}'), (cast(null as int), date'{day}') as t(k, c)")
        with pytest.raises(InvalidRequest) as caught:
            alluvium.write(df.coalesce(1), url, mode="append", format="paimon")
        assert (caught.value.code, caught.value.column) == ("not-null-violated", "k")
    assert rows(url) == []


@pytest.mark.parametrize(
    ("options", "compression", "writer"),
    [
        ({}, "zstd", "ORC_JAVA"),
        ({"file.compression.zstd-level": "9", "file.block-size": "64 kb"}, "zstd", "ORC_JAVA"),
        ({"file.compression": "snappy", "orc.row.index.stride": "1000"}, "snappy", "ORC_JAVA"),
        ({"orc.compress": "ZLIB", "file.compression": "snappy"}, "zlib", "ORC_JAVA"),
        ({"file.compression": "none", "orc.bloom.filter.columns": "s"}, "uncompressed", "ORC_JAVA"),
        ({"file.compression": "lz4"}, "lz4", "ORC_CPP"),
        ({"orc.row.index.stride": "0"}, "zstd", "ORC_JAVA"),
    ],
)
def test_options_of_the_table(spark, url: str, options: dict[str, str], compression: str, writer: str) -> None:
    make(url, kinds={"k": "BIGINT", "s": "STRING"}, **options)
    df = spark.range(50_000).selectExpr("id as k", "sha2(cast(id as string), 512) as s").coalesce(1)
    alluvium.write(df, url, mode="append", format="paimon")
    (path,) = alluvium.open(url).files()["path"].to_pylist()
    file = orc.ORCFile(f"{url}/{path}")
    assert (file.compression.lower(), file.writer) == (compression, writer)
    if writer == "ORC_JAVA":
        assert (file.nstripes > 1) == ("file.block-size" in options)
    table = alluvium.open(url)
    assert table.to_arrow(where="k = 49999").num_rows == 1
    # Without an index Spark's writer counts nothing, and nothing is said of the columns.
    assert table.files(where="k = 50000").num_rows == int(options.get("orc.row.index.stride") == "0")


def test_settings_of_the_session_change_nothing(spark, url: str) -> None:
    settings = {
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.orc.impl": "hive",
        "spark.sql.orc.compression.codec": "snappy",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
    }
    before = {name: spark.conf.get(name, None) for name in settings}
    make(url)
    df = spark.createDataFrame([FULL, NULLS], SQL)
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        alluvium.write(df.coalesce(1), url, mode="append", format="paimon")
        assert spark.conf.get("spark.sql.orc.impl") == "hive"
    finally:
        for name, value in before.items():
            spark.conf.set(name, value) if value is not None else spark.conf.unset(name)
    assert rows(url) == [as_read(FULL), as_read(NULLS)]
    (path,) = alluvium.open(url).files()["path"].to_pylist()
    assert orc.ORCFile(f"{url}/{path}").compression.lower() == "zstd"


def test_buckets_and_empty_tasks(spark, url: str) -> None:
    make(url, "p", kinds={"k": "INT", "p": "STRING"}, bucket="3", **{"bucket-key": "k"})
    df = spark.range(30).selectExpr("cast(id as int) k", "if(id % 2 = 0, 'a/b', null) p").repartition(7)
    alluvium.write(df, url, mode="append", format="paimon")
    files = alluvium.open(url).files()
    assert (files.num_rows, writers(url)) == (6, {"ORC_JAVA"})
    assert [row[0] for row in rows(url)] == list(range(30))
    assert alluvium.write(df.where("k < 0"), url, mode="append", format="paimon").attempts == 0
    on_disk = {str(path.relative_to(url)) for path in Path(url).rglob("*.orc")}
    assert on_disk == set(files["path"].to_pylist())


def test_workers_tell_what_they_cannot_write(spark, url: str) -> None:
    """Our error comes out of Spark's workers as what it is: the table, the column, and what to do."""
    make(url, kinds={"k": "INT", "t": "TIMESTAMP(9)"}, **{"file.format": "parquet"})
    df = spark.sql("select 1 as k, timestamp_ntz'9999-12-31 00:00:00' as t")
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(df, url, mode="append", format="paimon")
    assert (caught.value.code, caught.value.column) == ("invalid-data", "t")
    assert caught.value.url is not None and caught.value.url.endswith(url)
    assert "parquet" in caught.value.message and caught.value.hint
    assert rows(url) == []
    # A codec that nobody knows is found by the writer alone.
    df = spark.sql("select 1 as k, timestamp_ntz'2000-01-01 00:00:00' as t")
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(df, url, mode="append", format="paimon", compression="brotlyy")
    assert caught.value.code == "invalid-data"


def test_files_of_pyarrow_and_of_spark_stand_side_by_side(spark, url: str) -> None:
    make(url, kinds={"k": "INT", "da": "DATE"})
    for day in ("1000-01-01", "2000-01-01"):
        alluvium.write(spark.sql(f"select 1 as k, date'{day}' as da"), url, mode="append", format="paimon")
    assert writers(url) == {"ORC_CPP", "ORC_JAVA"}
    assert [row[1] for row in rows(url)] == [dt.date(1000, 1, 1), dt.date(2000, 1, 1)]
    assert pa.array(alluvium.open(url).to_arrow()["da"]).null_count == 0


def test_sizes_of_files_are_those_of_parquet(spark, tmp_path: Path) -> None:
    """`target-file-size` counts where rows are shuffled, `maxRecordsPerFile` everywhere, in both formats of Spark's own."""
    frame = spark.range(0, 80_000, 1, 8).selectExpr("id", "cast(id % 4 as int) p", "uuid() text")
    counts: dict[str, list[int]] = {}
    for form in ("orc", "parquet"):
        counts[form] = []
        for n, (keys, options) in enumerate((
            ((), {"optimizeWrite": True, "target-file-size": "1 mb"}),
            (("p",), {"optimizeWrite": True, "target-file-size": "256 mb"}),
            ((), {"bucket": 2, "bucket-key": "id", "target-file-size": "1 mb"}),
            (("p",), {"maxRecordsPerFile": 500}),
        )):  # fmt: skip
            one = str(tmp_path / f"{form}{n}")
            alluvium.write(frame, one, format="paimon", partition_by=keys, **{"file.format": form, **options})
            if form == "orc":
                assert writers(one) == {"ORC_JAVA"}
            files = alluvium.open(one).files()
            assert sum(files["num_rows"].to_pylist()) == 80_000
            counts[form].append(files.num_rows)
    assert counts["orc"] == counts["parquet"]
    split, parted, buckets, short = counts["orc"]
    assert split > 1 and parted == 4 and buckets > 2 and short == 160

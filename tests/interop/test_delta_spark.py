"""delta-spark reads and continues what we write; we read what it continues."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference_engine import NEEDS_REFERENCE, judge

import alluvium

pytestmark = NEEDS_REFERENCE

ROWS = """
select id, cast(id % 3 as int) p, if(id % 7 = 0, null, concat('s ', id)) s, cast(id / 7 as double) d,
       cast(id as decimal(12,3)) dec, timestamp_micros(1700000000123456 + id * 1000001) t,
       date_add(date'2024-01-01', cast(id as int)) dt, id % 2 = 0 b, named_struct('x', cast(id as int), 'y', array(id)) st,
       map('k', id) m, cast(concat('b', id) as binary) bin
from range(100)
"""
SPECIAL = [
    "a b",
    "a/b",
    "100%",
    "ü=ö",
    "a:b",
    "x'y",
    'q"q',
    "{c}",
    "[d]",
    "e^f",
    "#h?i",
    "a\\b",
    "tab\tnl\n",
    "..",
    "%20",
]


def rows_of(table: pa.Table) -> list[str]:
    return sorted(repr(sorted(row.items(), key=lambda kv: kv[0])) for row in table.to_pylist())


def same_rows(ours: pa.Table, theirs_path: Path) -> bool:
    theirs = pq.read_table(theirs_path).cast(ours.schema.remove_metadata() if ours.schema else None)
    return rows_of(ours) == rows_of(theirs.select(ours.column_names))


@pytest.fixture(scope="module")
def judged(spark, tmp_path_factory):
    """Tables written by us; then delta-spark's verdict on each, and its continuation."""
    root = tmp_path_factory.mktemp("interop")
    plain, parted, special, ntz = (str(root / name) for name in ("plain", "parted by p", "special", "ntz"))
    df = spark.sql(ROWS)
    alluvium.write(df, plain)
    for _ in range(11):
        alluvium.write(df.limit(5), plain, mode="append")
    alluvium.write(df, parted, partition_by=["p", "dt"])
    alluvium.write(df.where("p = 1"), parted, mode="overwrite", replaceWhere="p = 1")
    alluvium.write(df.where("p = 2").limit(3), parted, mode="overwrite", partitionOverwriteMode="dynamic")
    values = spark.createDataFrame([(v, i) for i, v in enumerate([*SPECIAL, None])], "v string, i int")
    alluvium.write(values, special, partition_by="v")
    alluvium.write(spark.sql("select id, timestamp_ntz'2024-01-01 01:02:03.000004' n from range(3)"), ntz)
    before = {name: alluvium.open(name).to_arrow() for name in (plain, parted, special, ntz)}
    # The checkpoint must carry the table alone: without the commits that it covers.
    for version in range(5):
        (Path(plain) / f"_delta_log/{version:020d}.json").unlink()
    jobs = [{"do": "read", "table": t, "out": f"{t}.out"} for t in before]
    jobs += [
        {"do": "detail", "table": parted},
        {"do": "read", "table": parted, "version": 0, "out": f"{parted}.v0"},
        {"do": "read", "table": parted, "where": "p = 1 and dt > '2024-02-01'", "out": f"{parted}.where"},
        {
            "do": "read",
            "table": plain,
            "where": "t > timestamp'2023-11-14 22:14:00' and s like 's 9%'",
            "out": f"{plain}.where",
        },
        {"do": "write", "table": parted, "mode": "append", "sql": ROWS + " where id < 10"},
        {"do": "statement", "table": parted, "sql": "OPTIMIZE {table} WHERE p = 1"},
        {"do": "statement", "table": special, "sql": "DELETE FROM {table} WHERE v = 'a/b'"},
        {"do": "read", "table": parted, "out": f"{parted}.after"},
        {"do": "read", "table": special, "out": f"{special}.after"},
    ]
    results = judge(root, jobs)
    return before, plain, parted, special, dict(zip([json.dumps(j) for j in jobs], results, strict=True)), results


def test_every_job_was_carried_out(judged) -> None:
    errors = {job: r["error"] for job, r in judged[4].items() if r["error"]}
    assert not errors


def test_delta_spark_reads_the_same_rows(judged) -> None:
    for url, ours in judged[0].items():
        assert same_rows(ours, Path(f"{url}.out")), url


def test_delta_spark_travels_and_filters_alike(judged) -> None:
    _, plain, parted, _, _, _ = judged
    assert same_rows(alluvium.open(parted, version=0).to_arrow(), Path(f"{parted}.v0"))
    # Read at the version that the judge saw, before it went on.
    where = "p = 1 and dt > '2024-02-01'"
    assert same_rows(alluvium.open(parted, version=2).to_arrow(where=where), Path(f"{parted}.where"))
    where = "t > timestamp'2023-11-14 22:14:00' and s like 's 9%'"
    assert same_rows(alluvium.open(plain).to_arrow(where=where), Path(f"{plain}.where"))


def test_delta_spark_sees_our_history(judged) -> None:
    detail = judged[5][4]["result"]
    assert detail["operations"] == ["WRITE"] * 3
    assert detail["files"] == alluvium.open(judged[2], version=2).files().num_rows
    assert set(detail["metrics"]) == {
        "numFiles",
        "numRemovedFiles",
        "numRemovedBytes",
        "numOutputRows",
        "numOutputBytes",
    }


def test_we_read_what_delta_spark_continued(judged, spark) -> None:
    for url in (judged[2], judged[3]):
        assert same_rows(alluvium.open(url).to_arrow(), Path(f"{url}.after")), url
        assert same_rows(alluvium.read(spark, url).toArrow(), Path(f"{url}.after")), url

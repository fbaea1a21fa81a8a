"""Rows of DataFrames into Paimon tables with a primary key: merged before they are written, taken back, updated, refused."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium.codecs.binary_rows.binary_row_encode import buckets_of, encode_rows, hash_rows
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.schema import types as t

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [("k", pa.int64()), ("p", pa.string()), ("s", pa.string()), ("n", pa.int32()), ("kind", pa.string())]
)
COLUMNS = "k long, p string, s string, n int, kind string"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "a table, 100% ü")


def make(url: str, *keys: str, parted: tuple[str, ...] = (), **options: str) -> PaimonTable:
    return PaimonTable.create(url, SCHEMA, parted, keys, {"bucket": "1", **options})


def write(spark, url: str, *rows: tuple[Any, ...], **options: object):
    full = [(*row, *[None] * (5 - len(row))) for row in rows]
    return alluvium.write(
        spark.createDataFrame(full, COLUMNS).coalesce(1), url, mode="append", format="paimon", **options
    )


def rows(url: str, *columns: str) -> list[tuple[Any, ...]]:
    found = alluvium.open(url).to_arrow(columns=list(columns) or ["k", "p", "s", "n"]).to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def files(url: str) -> list[dict[str, Any]]:
    return sorted(
        alluvium.open(url).system("files").to_pylist(), key=lambda f: (f["min_sequence_number"], f["file_path"])
    )


def test_files_are_those_of_java(spark, url: str) -> None:
    make(url, "k", "p", parted=("p",), bucket="2")
    df = spark.range(40).selectExpr(
        "id % 16 as k", "cast(id % 2 as string) as p", "concat('s', id) as s", "cast(id as int) as n"
    )
    done = alluvium.write(df, url, mode="append", format="paimon")
    assert (done.version, done.metrics["numOutputRows"], done.metrics["numFiles"]) == (1, "16", "4")
    # The last row of a key, as they stand in the frame, is the one that stays.
    expected = {(n % 16, str(n % 2)): (n % 16, str(n % 2), f"s{n}", n) for n in range(40)}
    assert rows(url) == sorted(expected.values(), key=repr)
    write(spark, url, (3, "1", "new"), (3, "1", "newer"), (100, "1", "x"))
    assert len(rows(url)) == 17 and (3, "1", "newer", None) in rows(url)
    for told in files(url):
        table = pq.read_table(Path(url) / told["file_path"], partitioning=None)
        assert table.schema.names == ["_KEY_k", "_SEQUENCE_NUMBER", "_VALUE_KIND", *SCHEMA.names]
        assert table["_KEY_k"].to_pylist() == sorted(table["k"].to_pylist()) == table["k"].to_pylist()
        bucket = {told["bucket"]}
        assert (
            set(buckets_of(hash_rows(encode_rows([table["k"].combine_chunks()], [(t.LONG, 0)])), 2).to_pylist())
            == bucket
        )
        numbers = table["_SEQUENCE_NUMBER"].to_pylist()
        assert (min(numbers), max(numbers)) == (told["min_sequence_number"], told["max_sequence_number"])
        assert (told["min_key"], told["max_key"]) == (f"[{table['k'][0]}]", f"[{table['k'][-1]}]")
    ids = {f.name: f.metadata[b"PARQUET:field_id"] for f in pq.read_schema(Path(url) / told["file_path"])}
    assert (ids["_KEY_k"], ids["_SEQUENCE_NUMBER"], ids["_VALUE_KIND"], ids["s"]) == (
        b"1073741823", b"2147483646", b"2147483645", b"2",
    )  # fmt: skip
    # One exchange brings a bucket's rows together; numbers go on within each bucket.
    bounds = {(f["partition"], f["bucket"]): 0 for f in files(url)}
    for told in files(url):
        place = (told["partition"], told["bucket"])
        assert told["min_sequence_number"] >= bounds[place]
        bounds[place] = told["max_sequence_number"] + 1


def test_overwrites(spark, url: str) -> None:
    make(url, "k", "p", parted=("p",))
    write(spark, url, (1, "a", "old"), (1, "b", "old"), (2, "c", "old"))
    new = spark.createDataFrame([(5, "a", "new", 1, None)], COLUMNS)
    alluvium.write(new, url, mode="overwrite", format="paimon", partitionOverwriteMode="dynamic")
    assert rows(url, "k", "p") == [(1, "b"), (2, "c"), (5, "a")]
    alluvium.write(
        new.selectExpr("k", "'b' as p", "s", "n", "kind"),
        url,
        mode="overwrite",
        format="paimon",
        replaceWhere="p >= 'b'",
    )
    assert rows(url, "k", "p") == [(5, "a"), (5, "b")]
    alluvium.write(new, url, mode="overwrite", format="paimon")
    assert (rows(url, "k", "p"), files(url)[0]["min_sequence_number"]) == ([(5, "a")], 0)


def test_keys_of_several_columns_and_kinds(spark, url: str) -> None:
    make(url, "s", "k", **{"rowkind.field": "kind", "sequence.field": "n", "sequence.field.sort-order": "descending"})
    write(
        spark,
        url,
        (1, "", "a", 5, "+I"),
        (1, "", "a", 3, "-D"),
        (2, "", "b", 2, "+I"),
        (2, "", "b", 7, "-D"),
        (0, "", "c", 1, "+U"),
    )
    (told,) = files(url)
    told_of = (told["min_key"], told["max_key"], told["deleteRowCount"], told["record_count"])
    assert told_of == ("[a, 1]", "[c, 0]", 1, 3)
    # "Descending" is for rows that were not written together: in its writer Java knows nothing of it.
    assert rows(url, "k", "s", "n") == [(0, "c", 1), (1, "a", 5)]
    write(spark, url, (1, "", "a", 4, "+U"), (0, "", "c", 2, "-D"))
    assert rows(url, "k", "s", "n") == [(0, "c", 1), (1, "a", 4)]
    for bad, code in (((3, "", "a", 1, "+D"), "invalid-row-kind"), ((None, "", "a", 1, "+I"), "not-null-violated")):
        with pytest.raises(InvalidRequest) as caught:
            write(spark, url, bad)
        assert caught.value.code == code
    assert alluvium.open(url).version == 2
    assert not [p for p in Path(url).rglob("*") if "_staging" in p.parts and p.is_file()]


@pytest.mark.parametrize(
    ("options", "expected", "count"),
    [
        ({"merge-engine": "partial-update", "fields.n.sequence-group": "s"}, (1, "b", 7, "+I"), 1),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum",
          "fields.s.aggregate-function": "listagg"}, (1, "a,b,c", 9, "+I"), 1),
        # No operator of Spark's adds decimals or collects values as Java does: rows of a key go to files of their own.
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.s.aggregate-function": "listagg",
          "fields.s.distinct": "true"}, (1, "a,b,c", 9, "+I"), 3),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.s.aggregate-function": "last_value",
          "rowkind.field": "kind"}, (1, "c", 9, "+I"), 3),
    ],
    ids=["group", "sums", "distinct", "retracts"],
)  # fmt: skip
def test_rows_of_a_key_merge_before_they_are_written(
    spark, url: str, options: dict[str, str], expected: tuple[Any, ...], count: int
) -> None:
    make(url, "k", **options)
    done = write(
        spark, url, (1, "", "a", 2, "+I"), (1, "", "b", 7, "+I"), (1, "", "c", None, "+I"), (2, "", "z", 1, "+I")
    )
    assert (int(done.metrics["numFiles"]), int(done.metrics["numOutputRows"])) == (count, 2 if count == 1 else 4)
    found = alluvium.open(url).system("audit_log")
    (row,) = (row for row in found.to_pylist() if row["k"] == 1)
    assert (row["k"], row["s"], row["n"], row["kind"]) == expected


def test_retracts_that_an_engine_refuses(spark, url: str) -> None:
    make(url, "k", **{"merge-engine": "partial-update", "rowkind.field": "kind"})
    with pytest.raises(InvalidRequest) as caught:
        write(spark, url, (1, "", "a", 2, "-D"))
    assert caught.value.code == "unsupported-retract" and "ignore-delete" in (caught.value.hint or "")
    ignoring = url + "2"
    make(ignoring, "k", **{"merge-engine": "partial-update", "rowkind.field": "kind", "ignore-delete": "true"})
    write(spark, ignoring, (1, "", "a", 2, "+I"), (1, "", None, None, "-D"), (2, "", "b", 2, "-U"))
    assert rows(ignoring, "k", "s", "n") == [(1, "a", 2)]


def test_files_that_workers_write(spark, url: str) -> None:
    """In formats that Spark has no writer for, rows stand in the order of keys, too."""
    schema = pa.schema([("t", pa.timestamp("ms")), ("k", pa.int64()), ("s", pa.string())])
    PaimonTable.create(url, schema, (), ["t", "k"], {"bucket": "2", "file.format": "avro"})
    df = spark.range(30).selectExpr(
        "timestamp_ntz'2024-01-01 00:00:00' + make_dt_interval(0, 0, 0, cast(id % 3 as int)) as t",
        "30 - id as k",
        "'x' as s",
    )
    alluvium.write(df, url, mode="append", format="paimon")
    alluvium.write(df.where("k = 4").selectExpr("t", "k", "'new' as s"), url, mode="append", format="paimon")
    found = alluvium.open(url).to_arrow()
    assert found.num_rows == 30 and found["s"].to_pylist().count("new") == 1
    assert sum(f["record_count"] for f in files(url)) == 31
    assert {f["deleteRowCount"] for f in files(url)} == {0}
    first = min(f["min_key"] for f in files(url))
    assert first.startswith("[2024-01-01T00:00") and dt.datetime(2024, 1, 1) == min(found["t"].to_pylist())


def test_sql_and_frames_write_keyed_rows(spark, url: str) -> None:
    alluvium.enable(spark)
    try:
        df = spark.createDataFrame([(1, "a"), (2, "b")], "k long, s string")
        df.write.format("paimon").option("primary-key", "k").option("bucket", "1").save(url)
        assert PaimonTable.forPath(url).schema.primary_keys == ("k",)
        spark.sql(f"insert into paimon.`{url}` values (2, 'B'), (3, 'c')")
        spark.sql(f"insert into paimon.`{url}` (k) values (1)")
        assert rows(url, "k", "s") == [(1, None), (2, "B"), (3, "c")]
        assert spark.read.format("paimon").load(url).where("k = 2").collect()[0]["s"] == "B"
    finally:
        alluvium.disable(spark)


def test_rows_are_deleted_and_updated_by_their_keys(spark, url: str) -> None:
    table = make(url, "k", "p", parted=("p",))
    write(spark, url, *((n, "ab"[n % 2], f"s{n}", n) for n in range(6)))
    preview = table.delete("n >= 4", dry_run=True)
    assert (preview.operation.metrics, alluvium.open(url).version) == ({"numDeletedRows": "2"}, 1)
    done = table.delete("n >= 4")
    assert (done.version, done.metrics["numDeletedRows"], rows(url, "k")) == (2, "2", [(0,), (1,), (2,), (3,)])
    done = table.update("p = 'a'", {"s": "concat(s, '!')", "n": "n * 10"})
    assert done.metrics["numUpdatedRows"] == "2"
    assert rows(url) == [(0, "a", "s0!", 0), (1, "b", "s1", 1), (2, "a", "s2!", 20), (3, "b", "s3", 3)]
    assert [kind["rowkind"] for kind in alluvium.open(url).system("audit_log").to_pylist()].count("-D") == 2
    assert sum(f["deleteRowCount"] for f in files(url)) == 2
    assert table.delete("k = 77").attempts == 0
    for column in ("k", "p"):
        with pytest.raises(InvalidRequest) as caught:
            table.update("n = 3", {column: "null"})
        assert (caught.value.code, caught.value.column) == ("key-changed", column)
    with pytest.raises(InvalidRequest) as caught:
        table.delete("nothing > 3")
    assert caught.value.code == "invalid-expression"
    table.delete()
    assert rows(url) == []
    other = make(url + "2", "k", **{"merge-engine": "aggregation"})
    with pytest.raises(UnsupportedFeature) as refused:
        other.delete("k = 1")
    assert (refused.value.code, refused.value.features) == ("unsupported-row-change", ("merge-engine = aggregation",))


def test_full_compaction(spark, url: str) -> None:
    table = make(url, "k", "p", parted=("p",), bucket="2", **{"rowkind.field": "kind", "sequence.field": "n"})
    for turn in range(3):
        write(spark, url, *((k, "ab"[k % 2], f"{turn}", 10 - turn if k < 4 else turn, "+I") for k in range(10)))
    write(spark, url, (5, "b", "gone", 9, "-D"), (99, "a", "none", 9, "-D"))
    before = rows(url)
    partly = table.compact("p = 'a'")
    assert {f["level"] for f in files(url) if f["partition"] == "{a}"} == {5}
    assert (partly.version, rows(url)) == (5, before)
    done = table.compact()
    assert (done.version, rows(url), table.compact().attempts) == (6, before, 0)
    told = files(url)
    assert {(f["level"], f["file_source"], f["deleteRowCount"]) for f in told} == {(5, "COMPACT", 0)}
    assert (len(told), sum(f["record_count"] for f in told)) == (4, len(before))
    document = alluvium.open(url).system("snapshots").to_pylist()[-1]
    assert (document["commit_kind"], document["total_record_count"]) == ("COMPACT", len(before))
    # Rows keep their numbers: what comes later is newer.
    write(spark, url, (1, "b", "later", 10, "+I"), (3, "b", "older", 1, "+I"))
    assert {row[0]: row[2] for row in rows(url)} | {1: "later", 3: "0"} == {row[0]: row[2] for row in rows(url)}
    numbers = sorted((f["partition"], f["bucket"], f["level"], f["min_sequence_number"]) for f in files(url))
    assert len(numbers) > 4


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_full_compaction_by_engine(spark, url: str, engine: str) -> None:
    options = {"fields.n.aggregate-function": "sum"} if engine == "aggregation" else {}
    table = make(url, "k", **{"merge-engine": engine, "write-only": "true", **options})
    write(spark, url, (1, "", "a", 2), (2, "", "b", 5))
    write(spark, url, (1, "", "c", None), (1, "", None, 7))
    table.compact()
    expected = {"partial-update": ("c", 7), "aggregation": ("c", 9)}[engine]
    assert rows(url, "k", "s", "n") == [(1, *expected), (2, "b", 5)]
    assert [(f["level"], f["record_count"]) for f in files(url)] == [(5, 2)]


def test_rows_that_only_a_compaction_shows_are_compacted_at_once(spark, url: str) -> None:
    make(url, "k", **{"merge-engine": "first-row"})
    write(spark, url, (1, "", "first", 1), (2, "", "first", 1))
    write(spark, url, (1, "", "second", 2), (3, "", "second", 2))
    assert rows(url, "k", "s") == [(1, "first"), (2, "first"), (3, "second")]
    kinds = alluvium.open(url).system("snapshots")["commit_kind"].to_pylist()
    assert kinds == ["APPEND", "COMPACT"] * 2 and all(f["level"] for f in files(url))
    vectors = make(url + "2", "k", **{"deletion-vectors.enabled": "true"})
    write(spark, url + "2", (1, "", "a", 1), (2, "", "b", 1))
    write(spark, url + "2", (1, "", "A", 2))
    vectors.delete("k = 2")
    assert rows(url + "2", "k", "s") == [(1, "A")]


def test_dynamic_buckets_and_a_full_compaction_of_them(spark, url: str) -> None:
    table = PaimonTable.create(url, SCHEMA, ["p"], ["k", "p"], {"dynamic-bucket.target-row-num": "10"})
    df = spark.range(50).selectExpr(
        "id as k", "cast(id % 2 as string) as p", "'old' as s", "cast(id as int) as n", "'' as kind"
    )
    alluvium.write(df, url, mode="append", format="paimon")
    assert sorted({(f["partition"], f["bucket"]) for f in files(url)}) == [
        (f"{{{p}}}", b) for p in "01" for b in range(3)
    ]
    write(spark, url, *((k, str(k % 2), "new", k) for k in range(45, 55)))
    assert [row[0] for row in sorted(rows(url))] == list(range(55))
    assert sorted(row[0] for row in rows(url) if row[2] == "new") == list(range(45, 55))
    table.delete("k < 10")
    table.update("k = 20", {"s": "'set'"})
    before = rows(url)
    assert len(before) == 45 and (20, "0", "set", 20) in before
    table.compact()
    assert (rows(url), {f["level"] for f in files(url)}) == (before, {5})
    write(spark, url, (20, "0", "last", 1))
    assert len(rows(url)) == 45 and (20, "0", "last", 1) in rows(url)
    alluvium.write(df.where("k < 4"), url, mode="overwrite", format="paimon", partitionOverwriteMode="dynamic")
    assert rows(url, "k") == [(0,), (1,), (2,), (3,)]


def test_the_last_row_of_a_key_stays_however_buckets_are_brought_to_the_rows(
    spark, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    PaimonTable.create(url, SCHEMA, [], ["k"])
    part = spark.range(0, 2000, 1, 3)
    frames = [part.selectExpr("id as k", "'' as p", f"'{s}' as s", "1 as n", "'' as kind") for s in ("a", "c", "b")]
    df = frames[0].union(frames[1]).union(frames[2])
    # As with more keys than a task is told of, and more rows than an exchange sorts in memory.
    monkeypatch.setattr("alluvium.spark.assigned._BROADCAST", 10)
    conf = spark.sparkContext._jsc.sc().conf()
    spill, broadcast = "spark.shuffle.spill.numElementsForceSpillThreshold", "spark.sql.autoBroadcastJoinThreshold"
    conf.set(spill, "100")
    spark.conf.set(broadcast, "-1")
    try:
        alluvium.write(df, url, mode="append", format="paimon")
    finally:
        conf.remove(spill)
        spark.conf.unset(broadcast)
    assert rows(url, "k", "s") == sorted(((k, "b") for k in range(2000)), key=repr)


def test_the_order_of_a_frame_tells_which_row_of_a_key_is_last(spark, url: str) -> None:
    # The optimizer would take the sort away below the join that finds dynamic buckets.
    PaimonTable.create(url, SCHEMA, [], ["k"])
    df = spark.range(0, 100, 1, 1).selectExpr(
        "id % 2 as k", "'' as p", "cast(id as string) as s", "1 as n", "'' as kind"
    )
    alluvium.write(df.orderBy(df.s.cast("int").desc()), url, mode="append", format="paimon")
    assert rows(url, "k", "s") == [(0, "0"), (1, "1")]
    table_in, columns = url + "2", "k long, p string, s string, n int, kind string"
    PaimonTable.create(table_in, SCHEMA, [], ["k"], {"changelog-producer": "input"})
    told = spark.createDataFrame([(1, "", s, n, "") for n, s in enumerate("dbca")], columns).orderBy("s")
    alluvium.write(told, table_in, mode="append", format="paimon")
    log = alluvium.open(table_in).changes(0, 1, mode="changelog").to_pylist()
    assert ([row["s"] for row in log], rows(table_in, "s")) == (["a", "b", "c", "d"], [("d",)])

"""Tables of keys that are compacted by those who write them, and by a job: levels, changelogs, vectors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import alluvium
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import SchemaChange

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("n", pa.int64())])
Row = tuple[Any, ...]


def make(path: Path, **options: str) -> str:
    PaimonTable.create(url := str(path / "t"), SCHEMA, [], ["k"], {"bucket": "1", **options})
    return url


def write(spark, url: str, *rows: Row, **options: str) -> None:
    df = spark.createDataFrame(list(rows), "k long, s string, n long").coalesce(1)
    alluvium.write(df, url, mode="append", format="paimon", **options)


def rows(url: str) -> list[Row]:
    return sorted(tuple(row.values()) for row in alluvium.open(url).to_arrow().to_pylist())


def told(url: str) -> list[Row]:
    """What the changelogs say, in order of snapshots and keys."""
    table = alluvium.open(url)
    found: list[Row] = []
    for version in range(1, (table.version or 0) + 1):
        changes = table.changes(version - 1, version, mode="changelog").to_pylist()
        found += sorted((tuple(row.values()) for row in changes), key=lambda row: (row[1], "+-".index(row[0][0]) == 0))
    return found


def levels(url: str) -> list[tuple[int, int]]:
    files = alluvium.open(url).system("files").to_pylist()
    return sorted((f["level"], f["record_count"]) for f in files)


def test_a_writer_joins_runs_once_they_are_enough(spark, tmp_path: Path) -> None:
    url = make(tmp_path, **{"num-sorted-run.compaction-trigger": "3", "num-levels": "6"})
    for turn in range(3):
        assert levels(url) == [(0, 2)] * turn
        write(spark, url, (turn, "a", 1), (9, f"{turn}", 1))
    assert (levels(url), rows(url)[-1]) == ([(5, 4)], (9, "2", 1))
    kinds = alluvium.open(url).system("snapshots")["commit_kind"].to_pylist()
    assert kinds == ["APPEND"] * 3 + ["COMPACT"]
    table = PaimonTable.forPath(url)
    write(spark, url, (1, "b", 1), **{"write-only": "true"})
    assert table.compact(compact_strategy="minor", spark=spark).attempts == 0
    assert table.compact(partition_idle_time="1 h", spark=spark).attempts == 0
    with pytest.raises(InvalidRequest) as refused:
        table.compact(compact_strategy="most", spark=spark)
    assert refused.value.code == "invalid-option"
    assert table.compact(spark=spark).attempts == 1 and levels(url) == [(5, 4)]


def test_files_of_columns_that_became_wider_are_compacted(spark, tmp_path: Path) -> None:
    """A full compaction was refused where numbers had become texts, and rows that wait for one stayed hidden."""
    schema = pa.schema([("k", pa.int64()), ("i", pa.int32()), ("d", pa.decimal128(5, 2))])
    PaimonTable.create(url := str(tmp_path / "t"), schema, [], ["k"], {"bucket": "1", "write-only": "true"})
    old = "k long, i int, d decimal(5,2)"
    alluvium.write(
        spark.createDataFrame([(1, -7, None), (2, 2**31 - 1, None), (3, None, None)], old),
        url,
        mode="append",
        format="paimon",
    )
    alluvium.write(spark.sql("select 4L k, 40 i, cast(1.25 as decimal(5,2)) d"), url, mode="append", format="paimon")
    changes = [
        SchemaChange.update_column_type("i", "STRING"),
        SchemaChange.update_column_type("d", "DECIMAL(9, 4)"),
    ]
    PaimonTable.forPath(url).alter(changes)
    alluvium.write(spark.sql("select 1L k, 'new' i, cast(2.5 as decimal(9,4)) d"), url, mode="append", format="paimon")
    expected = [(1, "new", "2.5000"), (2, "2147483647", "None"), (3, None, "None"), (4, "40", "1.2500")]

    def found() -> list[Row]:
        return [(k, i, str(d)) for k, i, d in rows(url)]

    def by_spark(where: str) -> list[Row]:
        return [(r.k, r.i, str(r.d)) for r in alluvium.read(spark, url).where(where).orderBy("k").collect()]

    assert found() == by_spark("true") == expected
    assert by_spark("i = '40'") == by_spark("i > '3' and k = 4") == by_spark("d = 1.25") == expected[3:]
    assert PaimonTable.forPath(url).compact(spark=spark).attempts == 1
    assert found() == by_spark("true") == expected and len(levels(url)) == 1
    assert by_spark("i = '40'") == expected[3:]


def test_changelogs_of_full_compactions(spark, tmp_path: Path) -> None:
    url = make(tmp_path, **{"changelog-producer": "full-compaction", "changelog-producer.row-deduplicate": "true"})
    table = PaimonTable.forPath(url)
    write(spark, url, (1, "a", 1), (2, "b", 1), (3, "c", 1))
    table.compact(spark=spark)
    # The only file of the bucket is in another level now, and its rows are told.
    assert (levels(url), alluvium.open(url).system("files")["file_source"].to_pylist()) == ([(5, 3)], ["APPEND"])
    assert told(url) == [("+I", 1, "a", 1), ("+I", 2, "b", 1), ("+I", 3, "c", 1)]
    write(spark, url, (1, "a", 1), (2, "B", 2))
    table.delete("k = 3")
    table.compact(spark=spark)
    assert told(url)[3:] == [("-U", 2, "b", 1), ("+U", 2, "B", 2), ("-D", 3, "c", 1)]
    assert alluvium.open(url).system("snapshots")["changelog_record_count"].to_pylist()[-1] == 3


def test_writers_end_with_a_full_compaction_where_one_is_due(spark, tmp_path: Path) -> None:
    """`full-compaction.delta-commits`: each batch by itself, and each so many of a stream."""
    url = make(tmp_path, **{"changelog-producer": "full-compaction", "full-compaction.delta-commits": "2"})
    write(spark, url, (1, "a", 1), (2, "b", 1))
    assert told(url) == [("+I", 1, "a", 1), ("+I", 2, "b", 1)]
    PaimonTable.forPath(url).delete("k = 2")
    assert (told(url)[2:], levels(url)) == ([("-D", 2, "b", 1)], [(5, 1)])
    for number in range(4):
        write(spark, url, (1, f"of {number}", 1), txnAppId="q", txnVersion=number)
        assert len(levels(url)) == 2 - number % 2
    assert told(url)[3:] == [("-U", 1, "a", 1), ("+U", 1, "of 1", 1), ("-U", 1, "of 1", 1), ("+U", 1, "of 3", 1)]
    kinds = alluvium.open(url).system("snapshots")["commit_kind"].to_pylist()
    assert kinds == ["APPEND", "COMPACT"] * 2 + ["APPEND", "APPEND", "COMPACT"] * 2
    write(spark, url, (5, "later", 1), **{"write-only": "true"})
    assert levels(url) == [(0, 1), (5, 1)]


def test_what_replaces_rows_is_compacted_whole_without_a_word(spark, tmp_path: Path) -> None:
    url = make(tmp_path, **{"changelog-producer": "input", "full-compaction.delta-commits": "1"})
    write(spark, url, (1, "a", 1))
    df = spark.createDataFrame([(3, "c", 1)], "k long, s string, n long")
    alluvium.write(df, url, mode="overwrite", format="paimon")
    assert (rows(url), levels(url), told(url)) == ([(3, "c", 1)], [(5, 1)], [("+I", 1, "a", 1)])


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_changelogs_of_lookups(spark, tmp_path: Path, vectors: str) -> None:
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    url = make(tmp_path, **{"changelog-producer": "lookup", "deletion-vectors.enabled": vectors, **options})
    write(spark, url, *((k, "old", k) for k in range(200)))
    write(spark, url, (3, "new", 10), (500, "new", 1))
    # What was looked up was merged with the new row, and the old one counts no more.
    assert levels(url) == [(4, 2), (5, 200)]
    assert told(url)[200:] == [("-U", 3, "old", 3), ("+U", 3, "new", 13), ("+I", 500, "new", 1)]
    assert len(rows(url)) == 201 and (3, "new", 13) in rows(url)
    found = alluvium.read(spark, url).where("k = 3").collect()
    assert [tuple(row) for row in found] == [(3, "new", 13)]
    marked = alluvium.open(url).system("table_indexes").num_rows
    assert marked == (1 if vectors == "true" else 0)
    PaimonTable.forPath(url).compact(spark=spark)
    assert levels(url) == [(5, 201)] and (3, "new", 13) in rows(url) and len(told(url)) == 203
    assert alluvium.open(url).system("table_indexes").num_rows == 0


LOOK_UPS = {"lookup": {"changelog-producer": "lookup"}, "vectors": {"deletion-vectors.enabled": "true"}, "none": {}}


@pytest.mark.parametrize("name", LOOK_UPS)
def test_look_ups_send_rows_that_are_alone_through_the_merge(spark, tmp_path: Path, name: str) -> None:
    """`LookupChangelogMergeFunctionWrapper`; the merge of others leaves such a row as it is."""
    options = {"merge-engine": "partial-update", "fields.s.sequence-group": "n", **LOOK_UPS[name]}
    url = make(tmp_path, **options)
    looks_up = name != "none"
    # The only file goes up as it is.
    write(spark, url, *((k, "a", k) for k in range(200)), (900, None, 9))
    write(spark, url, (3, "b", 2), (500, None, 5))
    expected = [(500, None, None if looks_up else 5), (900, None, 9)]
    assert rows(url)[200:] == expected and (3, "b", 2) in rows(url)
    if name == "lookup":
        # What is told was merged.
        assert told(url)[200:] == [
            ("+I", 900, None, None), ("-U", 3, "a", 3), ("+U", 3, "b", 2), ("+I", 500, None, None)
        ]  # fmt: skip
    # Nothing is new now, and no key is looked up.
    PaimonTable.forPath(url).compact(spark=spark)
    assert levels(url) == [(5, 202)] and rows(url)[200:] == expected


@pytest.mark.parametrize("name", LOOK_UPS)
def test_look_ups_keep_what_is_taken_back_of_keys_that_are_not_there(spark, tmp_path: Path, name: str) -> None:
    sums = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "rowkind.field": "s"}
    url = make(tmp_path, **sums, **LOOK_UPS[name], **{"fields.s.ignore-retract": "true"})
    looks_up = name != "none"
    write(spark, url, (1, "-D", 4), (2, "+I", 3))
    assert rows(url) == ([(1, None, -4)] if looks_up else []) + [(2, "+I", 3)]
    write(spark, url, (1, "+I", 7))
    assert rows(url) == [(1, "+I", 3), (2, "+I", 3)]


def test_look_ups_tell_of_first_rows_by_the_kinds_that_they_have(spark, tmp_path: Path) -> None:
    url = make(tmp_path, **{"changelog-producer": "lookup", "merge-engine": "first-row", "rowkind.field": "s"})
    write(spark, url, (1, "+U", 1), (2, "+I", 1))
    write(spark, url, (1, "+I", 2), (3, "+U", 1))
    assert told(url) == [("+U", 1, "+U", 1), ("+I", 2, "+I", 1), ("+U", 3, "+U", 1)]


@pytest.mark.parametrize("engine", ["deduplicate", "first-row"])
def test_look_ups_in_tables_with_names_that_sql_would_take_apart(spark, tmp_path: Path, engine: str) -> None:
    """No compaction came about, and what it would have told or shown stayed hidden."""
    schema = pa.schema([("k.`1", pa.int64()), ("s.t", pa.string())])
    options = {"bucket": "1", "changelog-producer": "lookup", "merge-engine": engine}
    table = PaimonTable.create(url := str(tmp_path / "t"), schema, [], ["k.`1"], options)
    for brought in ([(1, "a"), (2, "a")], [(1, "b"), (3, "b")]):
        df = spark.createDataFrame(brought, "`k.``1` long, `s.t` string").coalesce(1)
        alluvium.write(df, url, mode="append", format="paimon")
    last = "a" if engine == "first-row" else "b"
    assert rows(url) == [(1, last), (2, "a"), (3, "b")] and (0, 2) not in levels(url)
    changed = [] if engine == "first-row" else [("-U", 1, "a"), ("+U", 1, "b")]
    assert told(url) == [("+I", 1, "a"), ("+I", 2, "a"), *changed, ("+I", 3, "b")]
    assert table.compact(compact_strategy="minor", spark=spark).attempts == 0


def test_changelogs_of_what_came(spark, tmp_path: Path) -> None:
    url = make(tmp_path, **{"changelog-producer": "input"})
    write(spark, url, (1, "a", 1), (1, "b", 2), (2, "c", 1))
    PaimonTable.forPath(url).delete("k = 2")
    assert told(url) == [("+I", 1, "a", 1), ("+I", 1, "b", 2), ("+I", 2, "c", 1), ("-D", 2, "c", 1)]
    assert rows(url) == [(1, "b", 2)]
    PaimonTable.forPath(url).compact(spark=spark)
    assert len(told(url)) == 4


def test_vectors_mark_what_was_written_again(spark, tmp_path: Path) -> None:
    url = make(tmp_path, **{"deletion-vectors.enabled": "true"})
    write(spark, url, *((k, "old", k) for k in range(200)))
    assert levels(url) == [(5, 200)]
    write(spark, url, (3, "new", 10), (500, "new", 1))
    PaimonTable.forPath(url).delete("k = 7")
    assert [level for level, _ in levels(url)] in ([4, 5], [3, 4, 5])
    expected = [(k, "old", k) for k in range(200) if k not in (3, 7)] + [(3, "new", 10), (500, "new", 1)]
    assert rows(url) == sorted(expected) == sorted(tuple(r) for r in alluvium.read(spark, url).collect())
    PaimonTable.forPath(url).compact(spark=spark)
    assert (levels(url), rows(url)) == ([(5, 200)], sorted(expected))
    assert alluvium.open(url).system("table_indexes").num_rows == 0


@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_rows_whose_deletion_is_ignored_stay_where_they_are(spark, tmp_path: Path, producer: str) -> None:
    url = str(tmp_path / "t")
    schema = pa.schema([*SCHEMA, ("kind", pa.string())])
    vectors = {"deletion-vectors.enabled": "true", "changelog-producer": producer}
    PaimonTable.create(url, schema, [], ["k"], {"bucket": "1", "rowkind.field": "kind", **vectors})

    def put(*rows: Row) -> None:
        frame = spark.createDataFrame(list(rows), "k long, s string, n long, kind string").coalesce(1)
        alluvium.write(frame, url, mode="append", format="paimon", **{"write-only": "true"})

    put((1, "a", 1, "+I"), (2, "b", 2, "+I"), (3, "c", 3, "+I"))
    table = PaimonTable.forPath(url)
    table.compact(spark=spark)
    put((1, "a", 1, "-D"), (2, "b", 2, "-U"), (4, "d", 4, "+I"))
    table.alter([SchemaChange.parse({"action": "setOption", "key": "ignore-delete", "value": "true"})])
    table.compact(compact_strategy="minor", spark=spark)
    assert [row[0] for row in rows(url)] == [1, 2, 3, 4]
    assert [row[1] for row in told(url)] == ([1, 2, 3, 4] if producer == "lookup" else [])


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_nothing_is_told_of_overwrites(spark, tmp_path: Path, producer: str) -> None:
    """As in Java, whose writers compact what they have written in the place of other rows, and tell nothing of it."""
    url = make(tmp_path, **{"changelog-producer": producer})
    table = PaimonTable.forPath(url)
    write(spark, url, (1, "a", 1), (2, "b", 2))
    table.compact(spark=spark)
    df = spark.createDataFrame([(2, "c", 3), (5, "e", 5)], "k long, s string, n long").coalesce(1)
    alluvium.write(df, url, mode="overwrite", format="paimon")
    table.rescale(2, spark=spark)
    PaimonTable.forPath(url).alter([SchemaChange.set_option("bucket", "2")])
    write(spark, url, (5, "f", 6))
    table.compact(spark=spark)
    assert told(url) == [("+I", 1, "a", 1), ("+I", 2, "b", 2), ("-U", 5, "e", 5), ("+U", 5, "f", 6)]
    assert rows(url) == [(2, "c", 3), (5, "f", 6)]


def test_rows_that_no_compaction_has_seen_are_not_lost(spark, tmp_path: Path) -> None:
    """Readers are not shown them; verbs over rows see them, and an overwrite by what readers see is refused."""
    url = make(tmp_path, **{"deletion-vectors.enabled": "true"})
    table = PaimonTable.forPath(url)
    write(spark, url, (1, "a", 1), (2, "b", 2))
    write(spark, url, (1, "hidden", 7), (3, "hidden", 3), (4, "hidden", 4), **{"write-only": "true"})
    shown = alluvium.read(spark, url)
    assert sorted(row["k"] for row in shown.collect()) == [1, 2]
    with pytest.raises(UnsupportedFeature) as caught:
        alluvium.write(shown.where("k < 9"), url, mode="overwrite", format="paimon")
    assert caught.value.code == "hidden-rows"
    source = spark.createDataFrame([(4, "x", 0)], "k long, s string, n long")
    merge = table.alias("t").merge(source.alias("s"), "t.k = s.k").whenMatchedUpdate(set={"n": "t.n + 1"})
    merge.whenNotMatchedInsertAll().execute()
    write(spark, url, (1, "again", 8), **{"write-only": "true"})
    assert table.update("k = 1", {"n": "n + 1"}).metrics["numUpdatedRows"] == "1"
    write(spark, url, (3, "more", 3), **{"write-only": "true"})
    assert table.delete("s = 'more'").metrics["numDeletedRows"] == "1"
    assert rows(url) == [(1, "again", 9), (2, "b", 2), (4, "hidden", 5)]


def test_rows_whose_time_has_passed_are_left_out(spark, tmp_path: Path) -> None:
    now = int(time.time())
    url = make(tmp_path, **{"record-level.expire-time": "1 h", "record-level.time-field": "n"})
    write(spark, url, (1, "a", now), (2, "b", now - 7200), (3, "c", None), (4, "d", now * 1000))
    assert [row[0] for row in rows(url)] == [1, 2, 3, 4]
    PaimonTable.forPath(url).compact(spark=spark)
    assert [row[0] for row in rows(url)] == [1, 3, 4]


@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_rows_whose_time_has_passed_leave_those_before_them_alone(spark, tmp_path: Path, producer: str) -> None:
    now = int(time.time())
    times = {"record-level.expire-time": "1 h", "record-level.time-field": "n", "changelog-producer": producer}
    url = make(tmp_path, **{"deletion-vectors.enabled": "true", **times})
    unseen = {"write-only": "true"}
    # So many that the next compaction leaves the highest level alone.
    write(spark, url, (1, "a", now), (2, "b", now), (3, "c", now), *((k, "d", now) for k in range(10, 3000)), **unseen)
    PaimonTable.forPath(url).compact(spark=spark)
    write(spark, url, (1, "old", now - 7200), (2, "new", now), (4, "old", now - 7200), **unseen)
    PaimonTable.forPath(url).compact(compact_strategy="minor", spark=spark)
    assert [row[:2] for row in rows(url) if row[0] < 10] == [(1, "a"), (2, "new"), (3, "c")]


def test_options_of_a_call_say_what_is_compacted(spark, tmp_path: Path) -> None:
    url = make(tmp_path, **{"write-only": "true"})
    write(spark, url, (1, "a", 1))
    write(spark, url, (1, "b", 2), (2, "c", 3))
    table = PaimonTable.forPath(url)
    assert table.compact(spark=spark, compact_strategy="minor").attempts == 0
    eager = table.with_options({"num-sorted-run.compaction-trigger": "2"})
    assert eager.compact(spark=spark, compact_strategy="minor").attempts == 1
    assert [row[:2] for row in rows(url)] == [(1, "b"), (2, "c")]
    assert alluvium.open(url).files().num_rows == 1 and "num-sorted-run.compaction-trigger" not in table.schema.options

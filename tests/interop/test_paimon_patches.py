"""MERGE into tables with data evolution: columns beside the files whose rows they are of, as Java reads and writes them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import SchemaChange

pytestmark = NEEDS_PAIMON

#: Java finds the partition of a row that has some columns by its place in whole ones: it stands first.
FIELDS = pa.schema({
    "p": pa.string(), "id": pa.int32(), "a": pa.string(), "b": pa.decimal128(10, 2), "c": pa.list_(pa.int32()),
})  # fmt: skip
SCHEMA = "p string, id int, a string, b decimal(10, 2), c array<int>"
EVOLVES = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
TABLES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "plain": ((), {}), "parted": (("p",), {}), "orc": (("p",), {"file.format": "orc"}),
    "dense": ((), {"metadata.stats-mode": "none"}),
}  # fmt: skip
ASKED = ["p", "id", "a", "b", "c", "_ROW_ID", "_SEQUENCE_NUMBER"]


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr([row[name] for name in ASKED if name in row]) for row in rows)


def ours(url: str) -> list[dict[str, Any]]:
    return alluvium.open(url).to_arrow(ASKED).to_pylist()


def by_id(url: str) -> dict[int, tuple[Any, ...]]:
    return {row["_ROW_ID"]: (row["p"], row["id"], row["a"], str(row["b"]), row["c"]) for row in ours(url)}


def files(url: str) -> list[tuple[int, int, list[str] | None]]:
    """The first id of each live file, how many rows it has, and its columns."""
    entries = alluvium.open(url)._snapshot.entries
    columns = [entries[name].to_pylist() for name in ("first_row_id", "row_count", "write_cols")]
    return sorted(zip(*columns, strict=True), key=repr)


@pytest.mark.parametrize("name", TABLES)
def test_java_reads_columns_that_we_merged(spark, tmp_path: Path, name: str) -> None:
    parted, options = TABLES[name]
    url = str(tmp_path / "w.db" / name)
    table = PaimonTable.create(url, FIELDS, parted, (), {**EVOLVES, **options}).alias("t")
    for first, count in ((0, 4), (4, 3)):
        rows = [("xy"[k % 2], k, f"a{k}", None, [k]) for k in range(first, first + count)]
        rows.sort(key=lambda row: row[0])
        alluvium.write(spark.createDataFrame(rows, SCHEMA).coalesce(1), url, mode="append", format="paimon")
    want = by_id(url)
    places = {row[1]: number for number, row in want.items()}
    before = files(url)

    # One range of rows changes, in one column; a row comes.
    news = spark.createDataFrame([("x", 4, "A4", 4.5), ("y", 50, "a50", 50.25)], "p string, id int, a string, b double")
    merge = table.merge(news.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"b": "s.b", "a": "s.a"})
    done = merge.whenNotMatchedInsert(values={"p": "s.p", "id": "s.id", "a": "s.a", "b": "s.b"}).execute().collect()[0]
    assert (done.num_updated_rows, done.num_inserted_rows) == (1, 1)
    want[places[4]] = ("x", 4, "A4", "4.50", [4])
    want[7] = ("y", 50, "a50", "50.25", None)
    assert by_id(url) == want
    added = [f for f in files(url) if f not in before]
    patched = next(f for f in before if f[0] <= places[4] < f[0] + f[1])
    assert added == sorted([(patched[0], patched[1], ["a", "b"]), (7, 1, None)], key=repr)

    # Clauses with conditions, a star; rows of all ranges, and of columns that were patched before.
    news = spark.createDataFrame(
        [("x", 0, "n0", None, [9, 9]), ("x", 4, "n4", None, None), ("y", 1, "no", None, None)], SCHEMA
    )
    merge = table.merge(news.alias("s"), "t.id = s.id").whenMatchedUpdate("t.id = 0", {"a": "concat(t.a, s.a)"})
    merge.whenMatchedUpdateAll("s.a = 'n4'").execute()
    want[places[0]] = ("x", 0, "a0n0", "None", [0])
    want[places[4]] = ("x", 4, "n4", "None", None)
    assert by_id(url) == want
    # Nothing but new rows: no file of columns.
    before = files(url)
    news = spark.createDataFrame([("y", 51, "a51", None, [])], SCHEMA)
    table.merge(news.alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    want[8] = ("y", 51, "a51", "None", [])
    assert by_id(url) == want and [f for f in files(url) if f not in before] == [(8, 1, None)]

    # Java goes on with a range of its own, and one of ours.
    where = next(f for f in before if f[0] <= places[0] < f[0] + f[1])
    rows = [[want[n][0], f"java{n}"] for n in range(where[0], where[0] + where[1])]
    patch = {"columns": ["p", "a"], "rows": rows, "first": where[0]}
    paimon(tmp_path, {"table": url, "steps": [
        {"read": {"out": f"{url}.first", "columns": ASKED}}, {"patch": patch}, {"read": {"out": f"{url}.second", "columns": ASKED}},
    ]})  # fmt: skip
    assert texts(pq.read_table(f"{url}.first").to_pylist()) == texts(
        alluvium.open(url, version=alluvium.open(url).version - 1).to_arrow(ASKED).to_pylist()
    )
    want |= {n: (want[n][0], want[n][1], f"java{n}", *want[n][3:]) for n in range(where[0], where[0] + where[1])}
    assert by_id(url) == want and texts(pq.read_table(f"{url}.second").to_pylist()) == texts(ours(url))
    news = spark.range(60).selectExpr("cast(id as int) id", "cast(id as decimal(10, 2)) b")
    table.merge(news.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"b": "s.b"}).execute()
    want = {n: (*row[:3], f"{row[1]}.00", row[4]) for n, row in want.items()}
    assert by_id(url) == want
    paimon(tmp_path, {"table": url, "steps": [{"read": {"out": f"{url}.third", "columns": ASKED}}]})
    assert texts(pq.read_table(f"{url}.third").to_pylist()) == texts(ours(url)) and len(want) == 9


def test_a_column_that_came_later_is_filled(spark, tmp_path: Path) -> None:
    """Of files of before it, and of some after."""
    url = str(tmp_path / "w.db" / "t")
    table = PaimonTable.create(url, FIELDS, ["p"], (), EVOLVES).alias("t")
    rows = spark.createDataFrame([("x", k, f"a{k}", None, None) for k in range(3)], SCHEMA)
    alluvium.write(rows.coalesce(1), url, mode="append", format="paimon")
    table.alter([SchemaChange.add_column(("a.b",), "INT"), SchemaChange.rename_column("a", "z")])
    rows = spark.createDataFrame([("x", 3, "a3", None, None, 7)], f"{SCHEMA.replace(' a ', ' z ')}, `a.b` int")
    alluvium.write(rows, url, mode="append", format="paimon")
    news = spark.range(5).selectExpr("cast(id as int) id", "cast(id * 10 as int) n").where("id <> 1")
    merge = table.merge(news.alias("s"), "t.id = s.id").whenMatchedUpdate("s.id <> 2", {"`a.b`": "s.n"})
    merge.whenMatchedUpdate(set={"z": "'two'"}).execute()
    asked = ["id", "z", "a.b", "_ROW_ID", "_SEQUENCE_NUMBER"]
    paimon(tmp_path, {"table": url, "steps": [{"read": {"out": f"{url}.rows", "columns": asked}}]})
    ours_now = sorted(map(repr, alluvium.open(url).to_arrow(asked).to_pylist()))
    assert sorted(map(repr, pq.read_table(f"{url}.rows").to_pylist())) == ours_now
    found = {row["id"]: (row["z"], row["a.b"]) for row in alluvium.open(url).to_arrow(asked[:3]).to_pylist()}
    assert found == {0: ("a0", 0), 1: ("a1", None), 2: ("two", None), 3: ("a3", 30)}


@pytest.mark.parametrize("name", TABLES)
def test_both_compact_alike(spark, tmp_path: Path, name: str) -> None:
    parted, options = TABLES[name]
    url, other = str(tmp_path / "w.db" / name), str(tmp_path / "w.db" / "java")
    options = {**EVOLVES, **options, "compaction.min.file-num": "2"}
    table = PaimonTable.create(url, FIELDS, parted, (), options).alias("t")
    for first, count in ((0, 4), (4, 3), (7, 4)):
        rows = [("xy"[k % 2], k, f"a{k}", None, [k]) for k in range(first, first + count)]
        rows.sort(key=lambda row: row[0])
        alluvium.write(spark.createDataFrame(rows, SCHEMA).coalesce(1), url, mode="append", format="paimon")
        news = spark.createDataFrame([(first, f"A{first}", 4.5)], "id int, a string, b double")
        table.merge(news.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"b": "s.b", "a": "s.a"}).execute()
    table.alter([SchemaChange.add_column("late", "STRING")])
    before = by_id(url)
    shutil.copytree(url, other)
    paimon(tmp_path, {"table": other, "steps": [{"compact_evolved": {}}]})
    done = table.compact(spark=spark)
    assert done.attempts == 1 and by_id(url) == by_id(other) == before

    def told(of: str) -> list[tuple[Any, ...]]:
        entries = alluvium.open(of)._snapshot.entries
        names = ("first_row_id", "row_count", "min_sequence_number", "max_sequence_number", "file_source", "write_cols")
        return sorted(zip(*(entries[n].to_pylist() for n in names), strict=True), key=repr)

    assert told(url) == told(other)
    # Whoever comes next writes columns, appends, compacts: each of what the other has left.
    news = spark.range(12).selectExpr("cast(id as int) id", "cast(id as decimal(10, 2)) b")
    for of in (url, other):
        merge = PaimonTable.forPath(of).alias("t").merge(news.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdate(set={"b": "s.b"}).execute()
    want = {n: (*row[:3], f"{row[1]}.00", row[4]) for n, row in before.items()}
    assert by_id(url) == by_id(other) == want
    paimon(tmp_path, {"table": url, "steps": [
        {"read": {"out": f"{url}.first", "columns": ASKED}}, {"compact_evolved": {}}, {"read": {"out": f"{url}.second", "columns": ASKED}},
    ]})  # fmt: skip
    PaimonTable.forPath(other).compact(spark=spark)
    assert by_id(url) == by_id(other) == want and told(url) == told(other)
    assert texts(pq.read_table(f"{url}.second").to_pylist()) == texts(ours(url))

"""Partition values over Connect that stand in the files' folders, and those that folders tell wrongly or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

import alluvium
from alluvium.api.delta.snapshots import open_snapshot
from alluvium.codecs.partition_path import format_partition_path
from alluvium.delta.view.source import DeltaSource
from alluvium.spark.scan.connect_lane.connect import read_plan
from alluvium.storage.open import open_store

pytestmark = pytest.mark.connect

#: More than are read as a relation each; what Hive escapes, what URIs do, what patterns mean, what Spark could infer.
TEXTS = (
    "a b", "50%", "%41", "a=b", "a:b/c", "é😀", "x{1}[2]*?", "q#+&;'\"", "back\\slash", " both ends ", "_x", ".", "..",
    "null", "1", "01", "1.50", "TRUE", "2024-01-01", "2024-01-01 00:00:00", "line\nbreak", "\t", "nb\u00a0sp", "~^`|<>",
    None,
)  # fmt: skip
#: What a plan has that does not read the values from the folders.
OTHER_WAYS = ("_metadata", "file_size", "element_at", "map(keys", "Join", "raise_error")


def rows_of(df) -> set[tuple[object, ...]]:
    rows = [tuple(row) for row in df.collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


def is_by_folders(df) -> bool:
    plan = df._explain_string(mode="extended")
    return not any(word in plan for word in OTHER_WAYS)


def numbers(first: int) -> pa.Table:
    return pa.table({"x": pa.array([first, first + 1], pa.int64())})


def write_texts(write_table, names: Sequence[str], texts: Sequence[str | None], root: Path) -> str:
    partitions: list[dict[str, str | None]] = [{"p": text} for text in texts]
    return str(write_table(names, [numbers(2 * n) for n in range(len(names))], partitions, root))


def test_texts_of_every_kind(connect, write_table, tmp_path: Path):
    names = [f"{format_partition_path(['p'], [text])}/f.parquet" for text in TEXTS]
    url = write_texts(write_table, names, TEXTS, tmp_path / "t %20 é{x}*[q]?#+&=ü😀")
    df = alluvium.read(connect, url)
    assert is_by_folders(df)
    assert rows_of(df) == {(2 * n + i, text) for n, text in enumerate(TEXTS) for i in (0, 1)}
    assert rows_of(df.groupBy("p").count()) == {(text, 2) for text in TEXTS}
    assert {row.x for row in df.where(sf.col("p").isin("01", "%41")).collect()} == {4, 5, 30, 31}


def test_types_that_have_one_spelling(connect, tmp_path: Path):
    wanted = {(n, n * 1000 - 7, n * 10**15, date(1 + 700 * n, 2, 28), None if n % 3 else f"v{n}") for n in range(14)}
    names = ("i", "l", "d", "s")
    columns = list(zip(*sorted(wanted, key=lambda row: row[0]), strict=True))
    types = (pa.int64(), pa.int32(), pa.int64(), pa.date32(), pa.string())
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    # Rows of a table in another order than its folders.
    url = str(tmp_path / "t")
    alluvium.write(pa.table(arrays, names=["x", *names]), url, partition_by=("s", "d", "i", "l"))
    df = alluvium.read(connect, url)
    assert is_by_folders(df)
    assert rows_of(df) == wanted
    assert [field.dataType.simpleString() for field in df.schema] == ["bigint", "int", "bigint", "date", "string"]
    assert {row.x for row in df.where("d > date'2000-01-01' and s is not null").collect()} == {3, 6, 9, 12}


def test_dates_of_all_years(connect, tmp_path: Path):
    """Before year 1 and after 9999 Spark, Arrow and Python spell and read them each in its own way."""
    days = [-800_000, -719_529, -719_528, -719_163, -719_162, -1, 0, 1, 2_932_896, 2_932_897, 20_000_000]
    table = pa.table({"x": days, "d": pa.array(days, pa.int32()).cast(pa.date32())})
    url = str(tmp_path / "t")
    alluvium.write(table, url, partition_by=("d",))
    assert rows_of(alluvium.read(connect, url).selectExpr("x", "unix_date(d)")) == {(day, day) for day in days}


@pytest.mark.parametrize("files", [40, 300])
def test_many_files(connect, write_table, tmp_path: Path, files: int):
    names = [f"p={n % 50}/{n}.parquet" for n in range(files)]
    url = write_texts(write_table, names, [str(n % 50) for n in range(files)], tmp_path / "t")
    df = alluvium.read(connect, url)
    assert is_by_folders(df)
    assert rows_of(df) == {(2 * n + i, str(n % 50)) for n in range(files) for i in (0, 1)}


#: Folders that tell something else than the log, by the value that the log has.
WRONG = {
    "of another value": lambda n: f"p={n + 1}/{n}.parquet",
    "not spelled so": lambda n: f"p=%3{n}/{n}.parquet",
    "of another column": lambda n: f"q={n}/{n}.parquet",
    "in other letters": lambda n: f"P={n}/{n}.parquet",
    "of one column more": lambda n: f"p={n}/q=1/{n}.parquet",
    "none": lambda n: f"{n}.parquet",
    "none of one file": lambda n: f"p={n}/{n}.parquet" if n else "0.parquet",
    "passed over by Spark": lambda n: f"p={n}/_temporary/{n}.parquet",
    "too far above": lambda n: f"p={n}/a/b/{n}.parquet",
    "of too many writes": lambda n: f"{n}/p={n}/{n}.parquet",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_log_is_believed(connect, write_table, tmp_path: Path, wrong: str):
    names = [WRONG[wrong](n) for n in range(10)]
    url = write_texts(write_table, names, [str(n) for n in range(10)], tmp_path / "t")
    df = alluvium.read(connect, url)
    assert not is_by_folders(df)
    assert rows_of(df) == {(2 * n + i, str(n)) for n in range(10) for i in (0, 1)}


#: Where the folders of a write begin, and what may stand below them.
ELSEWHERE = {
    "of some writes": lambda n: f"{n % 3}/p={n}/{n}.parquet",
    "of one write within another's": lambda n: f"p={n}/{n}.parquet" if n % 2 else f"p=1/p={n}/{n}.parquet",
    "with buckets": lambda n: f"p={n}/bucket-{n % 2}/{n}.parquet",
}


@pytest.mark.parametrize("where", ELSEWHERE)
def test_folders_that_begin_elsewhere(connect, write_table, tmp_path: Path, where: str):
    names = [ELSEWHERE[where](n) for n in range(100)]
    df = alluvium.read(connect, write_texts(write_table, names, [str(n) for n in range(100)], tmp_path / "t"))
    assert is_by_folders(df)
    assert rows_of(df) == {(2 * n + i, str(n)) for n in range(100) for i in (0, 1)}


def test_the_folder_of_null_may_be_a_text(connect, write_table, tmp_path: Path):
    texts = ["__HIVE_DEFAULT_PARTITION__", None, *map(str, range(8))]
    names = [f"p={text or texts[0]}/{n}.parquet" for n, text in enumerate(texts)]
    df = alluvium.read(connect, write_texts(write_table, names, texts, tmp_path / "t"))
    assert rows_of(df) == {(2 * n + i, text) for n, text in enumerate(texts) for i in (0, 1)}


def test_files_outside_of_the_table(connect, write_table, tmp_path: Path):
    names = [f"p={n}/f.parquet" for n in range(10)]
    url = write_texts(write_table, names, [str(n) for n in range(10)], tmp_path / "source")
    alluvium.DeltaTable.forPath(connect, url).clone(str(tmp_path / "clone"), isShallow=True)
    alluvium.write(pa.table({"x": [20], "p": ["10"]}), str(tmp_path / "clone"), mode="append")
    df = alluvium.read(connect, str(tmp_path / "clone"))
    assert is_by_folders(df)
    assert rows_of(df) == {(2 * n + i, str(n)) for n in range(10) for i in (0, 1)} | {(20, "10")}


def test_a_file_that_is_listed_twice(connect, write_table, tmp_path: Path):
    names = [f"p={n}/f.parquet" for n in range(10)]
    url = write_texts(write_table, names, [str(n) for n in range(10)], tmp_path / "t")
    plan = DeltaSource(open_snapshot(open_store(url))).plan_scan()
    part = plan.parts[0]
    twice = replace(part, files=pa.concat_tables([part.files, part.files.slice(0, 1)]))
    rows = sorted(map(tuple, read_plan(connect, replace(plan, parts=(twice,))).collect()))
    assert rows == sorted((n, str(n // 2)) for n in (*range(20), 0, 1))


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_paimon(connect, tmp_path: Path, file_format: str):
    """Its folders tell a date by its number, as a rule, and no more than texts by themselves."""
    wanted = {(n, f"a b/{n % 12}", n % 3, date(1970, 1, 8)) for n in range(40)}
    rows = connect.range(40).selectExpr(
        "id x", "concat('a b/', id % 12) p", "int(id % 3) i", "date_from_unix_date(7) d"
    )
    for number, parts in enumerate((("p", "i"), ("p", "d"))):
        url = str(tmp_path / str(number))
        alluvium.write(rows, url, format="paimon", partition_by=parts, **{"file.format": file_format})
        df = alluvium.read(connect, url)
        assert is_by_folders(df) == ("d" not in parts)
        assert rows_of(df) == wanted

"""Rows with ids that we changed: what became of each id is counted here by hand, and Java reads the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from reference_engine import NEEDS_PAIMON, paimon

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.schema import DataField, parse_type

pytestmark = NEEDS_PAIMON

TRACKED = {"row-tracking.enabled": "true", "compaction.min.file-num": "2"}
VECTORS = {**TRACKED, "deletion-vectors.enabled": "true"}
#: Partition keys and options.
TABLES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "anew": ((), TRACKED),
    "parted": (("p",), TRACKED),
    "vectors": (("p",), VECTORS),
    "wide": ((), {**VECTORS, "deletion-vectors.bitmap64": "true"}),
    "orc": (("p",), {**TRACKED, "file.format": "orc"}),
    "avro": ((), {**VECTORS, "file.format": "avro"}),
    "small-files": ((), {**TRACKED, "target-file-size": "1 kb"}),
}
COLUMNS = ["k", "s", "p", "_ROW_ID", "_SEQUENCE_NUMBER"]


@dataclass
class Model:
    """Rows by their ids: their values, and the snapshot that changed them last."""

    snapshot: int = 0
    next_id: int = 0
    rows: dict[int, list[Any]] = field(default_factory=dict)

    def begin(self) -> None:
        self.snapshot += 1

    def insert(self, *rows: tuple[int, str, str]) -> None:
        for row in rows:
            self.rows[self.next_id] = [*row, self.snapshot]
            self.next_id += 1

    def update(self, where: Callable[[list[Any]], bool], change: Callable[[list[Any]], str]) -> None:
        for row in self.rows.values():
            if where(row):
                row[1], row[3] = change(row), self.snapshot

    def delete(self, where: Callable[[list[Any]], bool]) -> None:
        self.rows = {number: row for number, row in self.rows.items() if not where(row)}

    @property
    def texts(self) -> list[str]:
        return self.of(COLUMNS)

    def of(self, columns: list[str]) -> list[str]:
        """The rows' texts, the first so many columns of them."""
        return sorted(repr([k, s, p, number, at][: len(columns)]) for number, (k, s, p, at) in self.rows.items())


def first_rows() -> list[tuple[int, str, str]]:
    # In the order of their partitions, in which ids are given.
    return sorted(((k, f"s{k}", "xy"[k % 2]) for k in range(20)), key=lambda row: row[2])


def change(spark: SparkSession, url: str, parted: tuple[str, ...], options: dict[str, str]) -> Model:
    """All verbs, one after the other, here and in the model."""
    fields = [DataField(0, name, parse_type(kind)) for name, kind in (("k", "INT"), ("s", "STRING"), ("p", "STRING"))]
    table, model = PaimonTable.create(url, fields, parted, (), options).alias("t"), Model()
    schema = "k int, s string, p string"
    model.begin()
    alluvium.write(spark.createDataFrame(first_rows(), schema).coalesce(1), url, mode="append", format="paimon")
    model.insert(*first_rows())
    model.begin()
    table.delete("k = 7 or k = 8")
    model.delete(lambda row: row[0] in (7, 8))
    model.begin()
    table.update("k > 15", {"s": "concat(t.s, '!')"})
    model.update(lambda row: row[0] > 15, lambda row: f"{row[1]}!")
    news = spark.createDataFrame([(3, "new", "y"), (4, "gone", "x"), (50, "fifty", "x")], schema).coalesce(1)
    merge = table.merge(news.alias("s"), "t.k = s.k").whenMatchedDelete("s.s = 'gone'").whenMatchedUpdateAll()
    merge = merge.whenNotMatchedInsertAll().whenNotMatchedBySourceUpdate("t.k = 19", {"s": "'alone'"})
    model.begin()
    merge.execute()
    model.delete(lambda row: row[0] == 4)
    model.update(lambda row: row[0] == 3, lambda row: "new")
    model.update(lambda row: row[0] == 19, lambda row: "alone")
    model.insert((50, "fifty", "x"))
    model.begin()
    # Rows that were changed before change again, and rows of files that store ids.
    table.update("k % 3 = 0", {"s": "concat(t.s, '?')"})
    model.update(lambda row: row[0] % 3 == 0, lambda row: f"{row[1]}?")
    return model


def ours(url: str) -> list[str]:
    rows = alluvium.open(url).system("row_tracking").select(COLUMNS).to_pylist()
    return sorted(repr(list(row.values())) for row in rows)


def java(path: Path) -> list[str]:
    return sorted(repr(list(row.values())) for row in pq.read_table(path).to_pylist())


@pytest.mark.parametrize("name", TABLES)
def test_java_reads_the_same_ids(spark, tmp_path: Path, name: str) -> None:
    parted, options = TABLES[name]
    url = str(tmp_path / "w.db" / name)
    model = change(spark, url, parted, options)
    assert ours(url) == model.texts
    # Java's reader of Avro fails over ids even of rows that only Java has written.
    asked = COLUMNS[:3] if name == "avro" else COLUMNS
    read = {"read": {"out": f"{url}.first", "columns": asked}}
    paimon(tmp_path, {"table": url, "steps": [read, {"write": {"rows": [[100, "java", "x"], [101, "java", "x"]]}}]})
    assert java(Path(f"{url}.first")) == model.of(asked)
    model.begin()
    model.insert((100, "java", "x"), (101, "java", "x"))
    assert ours(url) == model.texts
    # Rows in other files, and in another order, are the same rows.
    compacted = PaimonTable.forPath(url).compact().attempts
    # Files of the size that files shall have are left alone.
    assert compacted == (0 if name == "small-files" else 1) and ours(url) == model.texts
    model.snapshot += compacted
    assert PaimonTable.forPath(url).compact(order_strategy="zorder", order_by=["k", "s"]).attempts == 1
    model.begin()
    assert ours(url) == model.texts
    # And we go on with what Java made of it.
    table = PaimonTable.forPath(url).alias("t")
    table.delete("k = 101 or k = 50")
    model.begin()
    model.delete(lambda row: row[0] in (101, 50))
    table.update(None, {"s": "concat('all ', t.k)"})
    model.begin()
    model.update(lambda row: True, lambda row: f"all {row[0]}")
    assert ours(url) == model.texts
    paimon(tmp_path, {"table": url, "steps": [{"read": {"out": f"{url}.second", "columns": asked}}]})
    assert java(Path(f"{url}.second")) == model.of(asked) and len(model.texts) == 18

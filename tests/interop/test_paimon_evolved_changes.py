"""Changes of tables with data evolution: what Java tells of a range, and to those who follow the table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reference_engine import NEEDS_PAIMON, paimon

import alluvium

pytestmark = NEEDS_PAIMON

#: Java finds the partition of a row that has some columns by its place in whole ones: it stands first.
FIELDS = [{"name": n, "type": kind} for n, kind in (("p", "STRING"), ("id", "INT"), ("a", "STRING"), ("b", "STRING"))]
OPTIONS = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
STEPS: list[dict[str, Any]] = [
    {"create": {"fields": FIELDS, "partitionKeys": ["p"], "options": OPTIONS}},
    {"write": {"rows": [["x", k, f"a{k}", f"b{k}"] for k in range(3)]}},
    {"patch": {"columns": ["p", "a"], "rows": [["x", f"A{k}"] for k in range(3)], "first": 0}},
    {"write": {"rows": [["y", k, f"a{k}", f"b{k}"] for k in (3, 4)]}},
    {"patch": {"columns": ["p", "b"], "rows": [["y", "B3"], ["y", "B4"]], "first": 3}},
    {"alter": [{"action": "addColumn", "fieldNames": ["n"], "dataType": "INT", "comment": None, "move": None}]},
    {"patch": {"columns": ["p", "n", "a"], "rows": [["x", k, f"z{k}"] for k in range(3)], "first": 0}},
    {"write": {"rows": [["y", 9, "a9", "b9", 9]], "overwrite": {"p": "y"}}},
    {"write": {"rows": [["x", 10, "a10", "b10", 10]]}},
]
RANGES = [(first, last) for last in range(1, 8) for first in range(last)]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("evolved")
    path = root / "db.db" / "t"
    steps = list(STEPS)
    for first, last in RANGES:
        between = {"incremental-between": f"{first},{last}"}
        steps.append({"read": {"out": f"{root}/{first}-{last}", "options": between}})
    for first in (1, 2, 4):
        steps.append({"read": {"out": f"{root}/stream-{first}", "stream": [first, 7]}})
    paimon(root, {"table": str(path), "steps": steps})
    return path


def counted(rows: pa.Table) -> Counter[str]:
    """By their text: a range tells a row as often as it came."""
    return Counter(repr(list(row.values())) for row in rows.to_pylist())


def test_ranges(spark, table: Path) -> None:
    for first, last in RANGES:
        java = counted(pq.ParquetFile(table.parent.parent / f"{first}-{last}").read())
        assert java or last == 6, (first, last)
        assert counted(alluvium.open(str(table)).changes(first, last)) == java, (first, last)
        assert counted(alluvium.changes(spark, str(table), first, last).toArrow()) == java, (first, last)


@pytest.mark.parametrize("first", [1, 2, 4])
def test_a_stream_goes_snapshot_by_snapshot(spark, table: Path, tmp_path: Path, first: int) -> None:
    """Whatever a batch of ours takes at once."""
    java = counted(pq.ParquetFile(table.parent.parent / f"stream-{first}").read())
    options = {"scan.mode": "from-snapshot", "scan.snapshot-id": str(first), "read.changelog": "true"}
    alluvium.enable(spark)
    try:
        rows = spark.readStream.format("paimon").options(**options).load(str(table))
        query = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
        query.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    finally:
        alluvium.disable(spark)
    assert counted(spark.read.parquet(str(tmp_path / "out")).toArrow()) == java


def test_a_stream_begins_with_rows_of_which_several_files_hold_columns(spark, table: Path, tmp_path: Path) -> None:
    alluvium.enable(spark)
    try:
        rows = spark.readStream.format("paimon").load(str(table))
        query = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
        query.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    finally:
        alluvium.disable(spark)
    found = counted(spark.read.parquet(str(tmp_path / "out")).toArrow())
    assert found and found == counted(alluvium.open(str(table)).to_arrow())

"""Executors in processes of their own: nothing that they need may live in the driver's Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

_PROGRAM = """
import sys
from pathlib import Path

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import SparkSession

from alluvium.errors import InvalidRequest
from alluvium.plan.scan import SCAN_FILES, FileConstant, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.plan.write import Check, WritePlan
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.write import write_files

root = Path(sys.argv[1])
spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    .config("spark.executor.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    .config("spark.sql.shuffle.partitions", "4")
    .getOrCreate()
)
schema = Struct((Field("id", t.LONG), Field("k", t.LONG)))
rows = spark.range(0, 10000, 1, 4).selectExpr("id", "id % 3 as k")
plan = WritePlan(f"file:{root}", "job", schema, ("k",), (Check("low", "id < 10000", ("id",)),))
write_files(spark, rows, plan)
try:
    write_files(spark, rows.selectExpr("id + 1 as id", "k"), WritePlan(f"file:{root}", "bad", schema, (), plan.checks))
    print("refused", False)
except InvalidRequest as error:
    print("refused", error.code == "constraint-violated" and "id = 10000" in str(error))

found = sorted((root / "job").rglob("*.parquet"))
files = pa.Table.from_pylist(
    [
        {
            "path": str(f.relative_to(root)),
            "size": f.stat().st_size,
            "modification_time_ms": 1,
            "num_rows": None,
            "constants": {"k": int(f.parent.name[2:])},
            "mask": None,
        }
        for f in found
    ],
    SCAN_FILES.set(4, pa.field("constants", pa.struct([("k", pa.int64())]))),
)
output = (
    OutputColumn("id", t.LONG, True, Physical(("id",), t.LONG)),
    OutputColumn("k", t.LONG, True, FileConstant("k", t.LONG)),
)


class Source:
    identity = (str(root), "0")
    size_bytes = 1

    def plan_scan(self, where=None):
        part = ScanPart("all", files, "parquet", Struct((Field("id", t.LONG),)), output)
        return ScanPlan(f"file:{root}", (part,), schema, ("k",))


df = read_native(spark, Source())
print("rows", df.count())
print("pruned", df.where("k = 1").count())
print("joined", df.join(df.groupBy("k").count(), "k").where("id < 100").count())
files = files.set_column(5, "mask", pa.array([BitMap64([0, 1]).serialize()] * len(found), pa.binary()))
Source.identity = (str(root), "1")
print("masked", 10000 - read_native(spark, Source()).count() == 2 * len(found))
executors = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
print("executors", len(executors) > 1)
spark.stop()
"""


def test_reads_and_writes_on_a_cluster(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=280, check=False
    )
    lines = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    expected = {
        "refused": "True",
        "rows": "10000",
        "pruned": "3333",
        "joined": "100",
        "masked": "True",
        "executors": "True",
    }
    assert lines == expected, done.stderr[-3000:]

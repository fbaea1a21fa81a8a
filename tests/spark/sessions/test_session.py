"""What a session can do, and what survives its end."""

from __future__ import annotations

import subprocess
import sys
from typing import cast

import pytest
from pyspark.sql import SparkSession

from alluvium.errors import InvalidRequest
from alluvium.spark.sessions.session import capabilities, ensure_native, hadoop_access, time_zone

pytestmark = pytest.mark.spark

_RESTART = """
import pyarrow as pa, pyarrow.parquet as pq, sys
from pyspark.sql import SparkSession
from alluvium.plan.scan import OutputColumn, Physical, SCAN_FILES, ScanPart, ScanPlan
from alluvium.schema import types as t
from alluvium.spark.scan.native_lane.native import read_native

pq.write_table(pa.table({"id": list(range(10))}), sys.argv[1] + "/f.parquet")
column = t.Struct((t.Field("id", t.LONG),))
row = {"path": "f.parquet", "size": 1, "modification_time_ms": 1, "num_rows": 10, "constants": {}, "mask": None}
import os
row["size"] = os.path.getsize(sys.argv[1] + "/f.parquet")
part = ScanPart("all", pa.Table.from_pylist([row], SCAN_FILES), "parquet", column,
                (OutputColumn("id", t.LONG, True, Physical(("id",), t.LONG)),))

class Source:
    identity = ("x",)
    size_bytes = 1
    def plan_scan(self, where=None):
        return ScanPlan("file:" + sys.argv[1], (part,), column)

for _ in range(2):
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    stale = read_native(spark, Source())
    print("rows", stale.where("id > 3").count())
    spark.stop()
"""


class ConnectSession:
    """The shape of a Connect session: a version and no JVM."""

    version = "4.1.0"


def test_a_classic_session_has_a_gateway(spark: SparkSession) -> None:
    assert capabilities(spark).gateway
    assert capabilities(spark).version >= (4, 0)
    assert time_zone(spark) == "UTC"
    ensure_native(spark)


def test_a_session_without_jvm_is_refused_with_a_hint() -> None:
    session = cast(SparkSession, ConnectSession())
    assert not capabilities(session).gateway
    with pytest.raises(InvalidRequest) as raised:
        ensure_native(session)
    assert raised.value.code == "no-jvm"
    assert "hint:" in str(raised.value)


def test_hadoop_configuration_has_the_settings_of_the_session(spark: SparkSession) -> None:
    spark.conf.set("fs.alluvium.test", "7")
    access = hadoop_access(spark)
    assert access.conf.get("fs.alluvium.test") == "7"
    assert access.jvm.org.apache.hadoop.fs.Path("file:/t").getFileSystem(access.conf).getScheme() == "file"
    spark.conf.unset("fs.alluvium.test")


def test_a_session_stops_and_starts_again(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RESTART, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["rows", "6", "rows", "6"], done.stderr[-2000:]

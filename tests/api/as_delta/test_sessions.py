"""A program for delta-spark runs unchanged but for two lines: however its session was told of the JAR, there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).with_name("program.py")
JAR_SETTINGS = """
spark.sql.extensions io.delta.sql.DeltaSparkSessionExtension
spark.sql.catalog.spark_catalog org.apache.spark.sql.delta.catalog.DeltaCatalog
"""
EXPECTED = """
rows [(1, 9), (2, 0), (3, 1), (4, 0), (5, 1), (77, 0)]
named 2 1
tables 0
told ['settings of delta-spark that Alluvium does not read: spark.databricks.delta.snapshotPartitions'] 2
other 6 1
again 1 True 0
error True DELTA_MISSING_DELTA_TABLE
"""


@pytest.mark.parametrize(
    ("made", "submit_args"),
    [
        ("built", "--packages io.delta:delta-spark_2.13:4.0.0 pyspark-shell"),
        ("plain", "--conf spark.jars.packages=io.delta:delta-spark_2.13:4.0.0 pyspark-shell"),
        ("existing", None),
    ],
)
def test_a_program_for_delta_spark_runs(tmp_path, made, submit_args):
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    if submit_args is None:
        (tmp_path / "conf").mkdir()
        (tmp_path / "conf" / "spark-defaults.conf").write_text(JAR_SETTINGS)
        env["SPARK_CONF_DIR"] = str(tmp_path / "conf")
    else:
        env["PYSPARK_SUBMIT_ARGS"] = submit_args
    command = [sys.executable, str(PROGRAM), made, str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-5000:]
    assert done.stdout.split("\n") == EXPECTED.lstrip().split("\n"), done.stderr[-3000:]

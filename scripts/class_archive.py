"""Archives the classes that Spark loads, for the JVMs of the tests: class_archive.py FILE.

Runs in the environment whose Spark it is, and does nothing where the file is there. A third of what a new JVM does in
its first minute is to read, verify and link the same 20,000 classes; one that is given this file maps them
(`-XX:SharedArchiveFile`). A JVM that is another one, or has other JARs, passes over the file without a word; half a
file would kill it, so it takes its name when it is whole.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

import alluvium

#: How long the JVM may take to write.
PATIENCE_S = 120


def play(spark: SparkSession, root: Path) -> None:
    """What loads most of the classes that tests need: the verbs, over a table of a few rows."""
    path = str(root / "t")
    rows = spark.range(100).selectExpr("id", "cast(id as string) AS s", "id % 3 AS p")
    rows.write.format("delta").partitionBy("p").save(path)
    table = alluvium.DeltaTable.forPath(spark, path)
    table.delete("id = 5")
    table.update("id = 7", {"s": "'x'"})
    merge = table.alias("t").merge(rows.limit(9).alias("n"), "t.id = n.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    spark.sql(f"SELECT p, count(*), max(s) FROM delta.`{path}` GROUP BY p ORDER BY p").collect()
    spark.read.format("delta").load(path).join(rows, "id").where("id > 3").distinct().count()
    table.history().collect()


def write(archive: Path) -> bool:
    """Whether the JVM wrote its archive; not each of them can."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    half = archive.with_name(f"{archive.name}.{os.getpid()}")
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={half} -Xlog:cds=off -Xlog:cds+dynamic=off"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    with tempfile.TemporaryDirectory() as root:
        spark = builder.config("spark.sql.warehouse.dir", root).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        alluvium.enable(spark)
        play(spark, Path(root))
        spark.stop()
    jvm = SparkContext._gateway.proc  # it ends with its standard input, and writes then
    jvm.stdin.close()
    try:
        jvm.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        # Tests are played without it, too.
        jvm.kill()
        half.unlink(missing_ok=True)
    if half.exists():
        half.replace(archive)
    return archive.exists()


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if not target.exists() and not write(target):
        print("this JVM wrote no archive of classes, or not in time: the tests' JVMs start without one")

"""What a session holds on to, counted: threads, files, objects of the JVM, callbacks, views, memory."""

from __future__ import annotations

import gc
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from py4j.finalizer import ThreadSafeFinalizer
from pyspark import SparkContext
from pyspark.sql import SparkSession

import alluvium
from alluvium.spark.sessions.session import is_connect

#: What may not be more after many statements than after some, and by how much it moves by itself.
SLACK = {
    "threads": 4,
    "files": 8,
    "objects of the JVM that Python holds": 200,
    "objects of Python that the JVM holds": 20,
    "temporary views": 0,
    "settings": 0,
    "cached": 0,
    "files of the JVM": 12,
    "threads of the JVM": 12,
}
#: What is told, and moves too much for a bound of a few statements.
TOLD = ("objects of Python", "memory in MB", "heap of the JVM in MB")


def statements(spark: SparkSession, folder: Path) -> Iterator[Callable[[], Any]]:
    """Verbs and queries over a table that is made anew each time, so that its log stays short."""
    shutil.rmtree(folder, ignore_errors=True)
    rows = f"delta.`{folder}/rows`"

    def sql(text: str) -> Callable[[], Any]:
        return lambda: spark.sql(text).collect()

    if is_connect(spark):
        # Without a JVM at hand there is no SQL that makes tables or changes what they are.
        yield lambda: alluvium.write(spark.range(0).selectExpr("id", "'' p", "0D v"), f"{folder}/rows", "append")
    else:
        yield sql(f"CREATE TABLE {rows} (id BIGINT, p STRING, v DOUBLE) USING delta PARTITIONED BY (p)")
    yield sql(f"INSERT INTO {rows} SELECT id, concat('p', id % 3), id / 2 FROM range(100)")
    yield lambda: alluvium.write(spark.range(100, 120).selectExpr("id", "'p0' p", "0D v"), f"{folder}/rows", "append")
    yield sql(f"UPDATE {rows} SET v = v + 1 WHERE id % 7 = 0")
    yield lambda: alluvium.alter(f"{folder}/rows").set_properties({"delta.enableDeletionVectors": "true"})
    yield sql(f"DELETE FROM {rows} WHERE id % 11 = 0")
    yield sql(
        f"MERGE INTO {rows} t USING (SELECT id, 'p1' p, 9D v FROM range(90, 130)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    yield sql(f"SELECT p, sum(v) FROM {rows} WHERE id > 10 GROUP BY p")
    yield lambda: alluvium.read(spark, f"{folder}/rows", version=1).count()
    yield lambda: alluvium.read(spark, f"{folder}/rows", where="p = 'p1'").count()
    if not is_connect(spark):
        yield sql(f"SELECT count(*) FROM {rows} VERSION AS OF 1")
        yield sql(f"ALTER TABLE {rows} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 9 days')")
        yield sql(f"OPTIMIZE {rows}")
    yield sql(f"DESCRIBE HISTORY {rows}")
    yield sql(f"VACUUM {rows} DRY RUN")
    yield sql(f"RESTORE TABLE {rows} TO VERSION AS OF 1")
    yield lambda: alluvium.open(f"{folder}/rows").to_arrow(["id"])


def play(spark: SparkSession, folder: Path, count: int) -> None:
    """So many statements, one after the other."""
    done = 0
    while done < count:
        for act in statements(spark, folder):
            act()
            done += 1
            if done == count:
                return


def held(spark: SparkSession) -> dict[str, int]:
    """What is held once everything that nobody needs has been collected, here and in the JVM.

    The JVM is that of this process: for a session of Spark Connect, of its local server.
    """
    sc: Any = SparkContext._active_spark_context
    gateway = sc._gateway
    jvm = gateway.jvm
    for _ in range(3):
        gc.collect()
        jvm.java.lang.System.gc()
        # Finalizers of either side tell the other in threads of their own.
        time.sleep(0.3)
    runtime, beans = jvm.java.lang.Runtime.getRuntime(), jvm.java.lang.management.ManagementFactory
    jvm_id = jvm.java.lang.ProcessHandle.current().pid()
    return {
        "threads": threading.active_count(),
        "files": _entries("/proc/self/fd"),
        "objects of the JVM that Python holds": len(ThreadSafeFinalizer.finalizers),
        "objects of Python that the JVM holds": len(gateway.gateway_property.pool.dict),
        "temporary views": sum(table.isTemporary for table in spark.catalog.listTables()),
        "settings": len(spark.conf.getAll),
        "cached": sc._jsc.getPersistentRDDs().size(),
        "files of the JVM": _entries(f"/proc/{jvm_id}/fd"),
        "threads of the JVM": beans.getThreadMXBean().getThreadCount(),
        "objects of Python": len(gc.get_objects()),
        "memory in MB": _memory_mb(),
        "heap of the JVM in MB": (runtime.totalMemory() - runtime.freeMemory()) >> 20,
    }


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, str]:
    """What is more than it was, beyond what moves by itself."""
    return {
        name: f"{before[name]} to {after[name]}" for name, slack in SLACK.items() if after[name] > before[name] + slack
    }


def _entries(folder: str) -> int:
    return sum(1 for _ in Path(folder).iterdir())


def _memory_mb() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 >> 20

"""The driver that `stream_kills.py` kills: queries over tables that grow while they run.

Run by this project, or by delta-spark where `alluvium` is not installed, which plays the queries that change hands.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

try:
    import alluvium
    from alluvium import DeltaTable
except ImportError:
    from delta.tables import DeltaTable

#: Rows of an append.
ROWS = 5
#: Keys of the table that MERGE counts in.
KEYS = 40
#: Of a driver that lives for seconds: what starts soon counts for more than what runs long.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    # Killed while Spark writes its first offset down, a query leaves a temporary file, of which Spark 4.3 says that the
    # checkpoint is another query's.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
#: Between appends.
PAUSE_S = 2.0
_TXN = "spark.databricks.delta.write"


@dataclass(frozen=True)
class Query:
    """A query of the script.

    Attributes:
        rows: What it reads: from the session, the folder and options to rows.
        format: Of the sink; empty: MERGE in `foreachBatch`.
        mode: Of its output.
        changes_hands: Whether delta-spark goes on with its checkpoint now and then.
    """

    rows: Callable[[SparkSession, Path, dict[str, Any]], DataFrame]
    format: str = "delta"
    mode: str = "append"
    changes_hands: bool = False


def _read(spark: SparkSession, path: Path, options: dict[str, Any]) -> DataFrame:
    return spark.readStream.format("delta").options(**options).load(str(path))


def _plain(spark: SparkSession, folder: Path, options: dict[str, Any]) -> DataFrame:
    return _read(spark, folder / "source", options)


def _stateful(spark: SparkSession, folder: Path, options: dict[str, Any]) -> DataFrame:
    return _plain(spark, folder, options).dropDuplicates(["id"])


def _complete(spark: SparkSession, folder: Path, options: dict[str, Any]) -> DataFrame:
    return _plain(spark, folder, options).groupBy("id").count()


def _feed(spark: SparkSession, folder: Path, options: dict[str, Any]) -> DataFrame:
    rows = _read(spark, folder / "changes", {**options, "readChangeFeed": "true", "startingVersion": "0"})
    return rows.select("id", "v", sf.col("_change_type").alias("kind"), sf.col("_commit_version").alias("version"))


def _several(spark: SparkSession, folder: Path, options: dict[str, Any]) -> DataFrame:
    second = _read(spark, folder / "second", options).select((-1 - sf.col("id")).alias("id"))
    return _plain(spark, folder, options).union(second)


def _joined(spark: SparkSession, folder: Path, options: dict[str, Any]) -> DataFrame:
    return _plain(spark, folder, options).join(_read(spark, folder / "second", options), "id")


def _paimon(number: int) -> Callable[[SparkSession, Path, dict[str, Any]], DataFrame]:
    def rows(spark: SparkSession, folder: Path, options: dict[str, Any]) -> DataFrame:
        return _plain(spark, folder, options).withColumn("writer", sf.lit(number))

    return rows


#: Two of them write into one Paimon table, which keeps its newest snapshot alone.
QUERIES = {
    "plain": Query(_plain, changes_hands=True),
    "stateful": Query(_stateful),
    "complete": Query(_complete, mode="complete"),
    "feed": Query(_feed, changes_hands=True),
    "several": Query(_several, changes_hands=True),
    "joined": Query(_joined),
    "merge": Query(_plain, format="", changes_hands=True),
    "paimon-1": Query(_paimon(1), format="paimon"),
    "paimon-2": Query(_paimon(2), format="paimon"),
}
PAIMON = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1", "snapshot.time-retained": "1 ms"}


def target_of(folder: Path, name: str) -> Path:
    """Where a query writes."""
    return folder / name.split("-")[0]


def count_keys(table: str, app: str) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` calls: a batch that is merged twice counts its rows twice."""

    def merge(batch: DataFrame, number: int) -> None:
        spark = batch.sparkSession
        spark.conf.set(f"{_TXN}.txnAppId", app)
        spark.conf.set(f"{_TXN}.txnVersion", str(number))
        counts = batch.groupBy((sf.col("id") % KEYS).alias("k")).agg(sf.count("*").alias("n"))
        verb = DeltaTable.forPath(spark, table).alias("t").merge(counts.alias("s"), "t.k = s.k")
        verb.whenMatchedUpdate(set={"n": "t.n + s.n"}).whenNotMatchedInsertAll().execute()

    return merge


def start(spark: SparkSession, folder: Path, name: str, files: int | None) -> StreamingQuery:
    """Starts a query, or goes on with it; `files` in a batch, until it is killed; None: until all is read."""
    query = QUERIES[name]
    rows = query.rows(spark, folder, {"maxFilesPerTrigger": files or 1000})
    writer = rows.writeStream.outputMode(query.mode).queryName(name)
    writer = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint"))
    writer = writer.trigger(availableNow=True) if files is None else writer.trigger(processingTime="0 seconds")
    if not query.format:
        return writer.foreachBatch(count_keys(str(target_of(folder, name)), "merge")).start()
    if query.format == "paimon":
        writer = writer.options(**PAIMON)
    return writer.format(query.format).start(str(target_of(folder, name)))


class Writer:
    """Whoever lets the sources grow."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._count = {name: self._written(name) for name in ("source", "second", "changes")}
        if not (folder / "merge" / "_delta_log").exists():
            self._save(spark.sql("select 0L k, 0L n where false"), "merge")

    def append(self, names: Sequence[str] = ("source", "second", "changes")) -> None:
        """A few rows more of each source; of one of them, rows change, too."""
        for name in names:
            first = self._count[name]
            rows = self._spark.range(first, first + ROWS).coalesce(1)
            self._save(rows.withColumn("v", sf.lit(0)) if name == "changes" else rows, name)
            self._count[name] += ROWS
        if "changes" in names:
            changing = DeltaTable.forPath(self._spark, str(self._folder / "changes"))
            changing.update(f"id = {self._count['changes'] - ROWS}", {"v": "v + 1"})

    def _written(self, name: str) -> int:
        path = self._folder / name
        if not (path / "_delta_log").exists():
            return 0
        return self._spark.read.format("delta").load(str(path)).count()

    def _save(self, rows: DataFrame, name: str) -> None:
        writer = rows.write.format("delta").mode("append")
        if name == "changes":
            # By its own option, which makes the property of the table that this creates.
            writer = writer.option("delta.enableChangeDataFeed", "true")
        writer.save(str(self._folder / name))


def session() -> SparkSession:
    """Of this project where it is installed, else of delta-spark."""
    if "alluvium" in sys.modules:
        spark = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
        alluvium.enable(spark)
        return spark
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "shared" / "reference"))
    from engines import delta_session  # noqa: PLC0415 - it is there only beside delta-spark

    return delta_session(**{key.replace(".", "__"): value for key, value in SETTINGS.items()})


def drive(spark: SparkSession, folder: Path, names: Sequence[str]) -> None:
    """Starts the queries, and lets their sources grow until the process is killed."""
    sources = [
        name
        for name, readers in {"source": None, "second": {"several", "joined"}, "changes": {"feed"}}.items()
        if readers is None or readers & set(names)
    ]
    writer = Writer(spark, folder)
    writer.append(sources)
    queries = [start(spark, folder, name, 1) for name in names]
    while True:
        # The queries are what counts: whoever appends takes time from them.
        time.sleep(PAUSE_S)
        writer.append(sources)
        for query in queries:
            if not query.isActive:
                query.awaitTermination()
                raise SystemExit(f"the query {query.name} ended")


def finish(spark: SparkSession, folder: Path, names: Sequence[str]) -> None:
    """Goes on with the queries until all is read."""
    for query in [start(spark, folder, name, None) for name in names]:
        query.awaitTermination()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("queries")
    parser.add_argument("--to-the-end", action="store_true")
    given = parser.parse_args()
    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    with contextlib.suppress(KeyboardInterrupt):
        (finish if given.to_the_end else drive)(spark, given.folder, given.queries.split(","))


if __name__ == "__main__":
    main()

"""The queries of the Spark workers, the same for each engine: only how a table is read and written differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from protocol import Verb

Read = Callable[[str], DataFrame]
#: A table's change feed from its first version on.
Changes = Callable[[str], DataFrame]
Write = Callable[[DataFrame, str, str], None]


def session_builder() -> SparkSession.Builder:
    """With the settings of the reference's `delta_session`, less Delta."""
    return (
        SparkSession.Builder()
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
    )


def project_session() -> SparkSession:
    """A classic session."""
    spark = session_builder().master("local[2]").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _together(spark: SparkSession, read: Read, source: str) -> Verb:
    def together(request: Mapping[str, Any]) -> object:
        # The same tables in one query: by SQL, or by frames.
        paths = request["paths"]
        if request["frames"]:
            return reduce(DataFrame.unionAll, [read(path) for path in paths]).count()
        return spark.sql(" UNION ALL ".join(f"SELECT * FROM {source}.`{path}`" for path in paths)).count()

    return together


def verbs(
    spark: SparkSession, read: Read, write: Write, changes: Changes | None = None, source: str = "delta"
) -> dict[str, Verb]:
    """The verbs of a Spark worker, from the engine's way to read a path and to write to one in a mode.

    `source` is what SQL calls the format.
    """

    def scan(request: Mapping[str, Any]) -> object:
        df = read(request["path"])
        groups = (
            df.toDF(*request.get("names", df.columns))
            .where("quantity >= 20 and paid and country <> 'AT'")
            .groupBy("country")
            .agg(F.count("*").alias("n"), F.sum("quantity").alias("q"), F.avg("amount").alias("a"), F.max("name"))
        )
        return sorted([row["country"], row["n"], row["q"]] for row in groups.collect())

    def total(request: Mapping[str, Any]) -> object:
        return read(request["path"]).agg(F.sum("quantity")).collect()[0][0]

    def change_feed(request: Mapping[str, Any]) -> object:
        assert changes is not None
        groups = changes(request["path"]).groupBy("_change_type").agg(F.count("*").alias("n"), F.sum("quantity"))
        return sorted(list(row) for row in groups.collect())

    def point(request: Mapping[str, Any]) -> object:
        found = read(request["path"]).where(F.col("id") == request["id"]).collect()
        return [[row["id"], row["customer"]] for row in found]

    def count(request: Mapping[str, Any]) -> object:
        return read(request["path"]).count()

    def plan(request: Mapping[str, Any]) -> object:
        # The same question to both: the scan node of the physical plan, whose files are chosen when it is asked.
        df = read(request["path"]).where(F.col("id") == request["id"])
        scan = df._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
        return scan.selectedPartitions().totalNumberOfFiles()

    def copy(request: Mapping[str, Any]) -> object:
        write(spark.read.parquet(request["source"]), request["path"], "overwrite")
        return None

    def fill(request: Mapping[str, Any]) -> object:
        rows = spark.read.parquet(request["source"]).where(request["where"])
        write(rows.selectExpr(*request["columns"]), request["path"], "append")
        return None

    def append(request: Mapping[str, Any]) -> object:
        write(spark.range(100).withColumn("text", F.col("id").cast("string")).coalesce(1), request["path"], "append")
        return None

    def appends(request: Mapping[str, Any]) -> object:
        for _ in range(request["times"]):
            append(request)
        return None

    return {
        "scan": scan,
        "sum": total,
        "changes": change_feed,
        "point": point,
        "count": count,
        "plan": plan,
        "together": _together(spark, read, source),
        "copy": copy,
        "fill": fill,
        "append": append,
        "appends": appends,
    }

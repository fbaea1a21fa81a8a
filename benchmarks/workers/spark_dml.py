"""DELETE, UPDATE and MERGE of the Spark workers: `DeltaTable` is each engine's own, what is asked of it is the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from protocol import Verb

#: A cube of this size is left as it is: far less than the 100 GB of real tables.
LARGE_CUBE_BYTES, TARGET_CUBE_BYTES = str(8 << 20), str(32 << 20)


def _set_cubes(spark: SparkSession) -> None:
    """Else delta-spark takes each cube below 100 GB again. What is made comes to more than what is large."""
    for name, size in (("threshold", LARGE_CUBE_BYTES), ("targetCubeSize", TARGET_CUBE_BYTES)):
        spark.conf.set(f"spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.{name}", size)


def dml_verbs(spark: SparkSession, open_table: Callable[[str], Any]) -> dict[str, Verb]:
    """The verbs, from the way to open a table by its path (`delta.tables.DeltaTable`, or what takes its place)."""

    def delete(request: Mapping[str, Any]) -> object:
        open_table(request["path"]).delete(request["where"])
        return None

    def update(request: Mapping[str, Any]) -> object:
        open_table(request["path"]).update(request["where"], request["set"])
        return None

    def merge(request: Mapping[str, Any]) -> object:
        source = spark.read.parquet(request["source"]).alias("s")
        builder = open_table(request["path"]).alias("t").merge(source, "t.id = s.id")
        builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        return None

    def change(request: Mapping[str, Any]) -> object:
        """All of them, for what comes after; nothing where there is nothing to change."""
        for step in request["steps"]:
            {"delete": delete, "update": update, "merge": merge}[step["do"]](step)
        return None

    def optimize(request: Mapping[str, Any]) -> object:
        open_table(request["path"]).optimize().executeCompaction()
        return None

    def zorder(request: Mapping[str, Any]) -> object:
        open_table(request["path"]).optimize().executeZOrderBy("amount", "customer")
        return None

    def vacuum(request: Mapping[str, Any]) -> object:
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        open_table(request["path"]).vacuum(0)
        return None

    def clone(request: Mapping[str, Any]) -> object:
        spark.sql(f"CREATE TABLE delta.`{request['to']}` SHALLOW CLONE delta.`{request['path']}`")
        return None

    def cluster(request: Mapping[str, Any]) -> object:
        """A clustered table of the rows of another, then as many more as are to come after it was clustered."""
        _set_cubes(spark)
        rows = spark.read.format("delta").load(request["source"])
        columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema.fields)
        spark.sql(f"CREATE TABLE delta.`{request['path']}` ({columns}) USING delta CLUSTER BY (amount, customer)")
        rows.write.format("delta").mode("append").save(request["path"])
        if request["more"]:
            open_table(request["path"]).optimize().executeCompaction()
            rows.sample(request["more"], seed=1).write.format("delta").mode("append").save(request["path"])
        return None

    def digest(request: Mapping[str, Any]) -> object:
        """What the rows come to."""
        sums = "count(*)", "sum(id)", "sum(quantity)", "sum(length(name))", "count(discount)"
        return [int(value) for value in open_table(request["path"]).toDF().selectExpr(*sums).collect()[0]]

    return {
        "delete": delete,
        "update": update,
        "merge": merge,
        "change": change,
        "digest": digest,
        "optimize": optimize,
        "zorder": zorder,
        "clone": clone,
        "cluster": cluster,
        "vacuum": vacuum,
    }

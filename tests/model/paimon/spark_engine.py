"""Alluvium on classic Spark on Paimon tables: by DataFrames and `PaimonTable`, and by SQL."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import alluvium
from alluvium.paimon import PaimonTable
from model.engines.spark_engine import SparkEngine, frame, quoted, told
from model.paimon.python_engine import KNOWN, MOVES


class PaimonSpark(SparkEngine):
    """The verbs that move rows: all else needs no jobs, and is the engine `python`'s. It reads every state."""

    #: A writer of buckets compacts behind its commit.
    compacts_too = True
    passes_over_new = False
    streams = True

    def __init__(self, name: str, spark: SparkSession, by_sql: bool) -> None:
        super().__init__(name, spark, alluvium, by_sql, KNOWN)

    def can(self, call: dict[str, Any], constrained: bool) -> bool:
        return call["verb"] in MOVES or call["verb"] == "append_to_branch"

    def rows_at(
        self,
        url: str,
        version: int | None = None,
        tag: str | None = None,
        where: Any = None,
        between: tuple[int, int] | None = None,
        branch: str | None = None,
    ) -> Any:
        """As another engine's; with `where` exactly the rows that have the value."""
        if between is not None:
            return [told(row) for row in alluvium.changes(self._spark, url, *between).collect()]
        rows = alluvium.read(self._spark, url, version=version, tag=tag, branch=branch)
        if where is not None:
            rows = rows.where(F.col(quoted(where[0])) == F.lit(where[1]))
        return [told(row) for row in rows.collect()]

    def rows(self, url: str, version: int) -> Any:
        return self.rows_at(url)

    def streamed(self, url: str, start: int | None = None) -> Any:
        """What a stream of the table begins with: all rows."""
        return self._streamed(self._spark.readStream.format("paimon").load(url))

    def _table(self, url: str) -> PaimonTable:
        return PaimonTable.forPath(url)

    def _save(self, url: str, call: dict[str, Any], mode: str, **options: Any) -> None:
        alluvium.write(frame(self._spark, call), url, mode=mode, format="paimon", **options)

    def _append_to_branch(self, url: str, call: dict[str, Any]) -> None:
        self._save(url, call, "append", branch=call["branch"])

    def _sql(self, url: str, text: str) -> Any:
        return self._spark.sql(text.replace("{t}", f"paimon.`{url}`"))

    def _compact(self, url: str, call: dict[str, Any]) -> None:
        self._table(url).compact(compact_strategy="full" if call["full"] else "minor", spark=self._spark)

    def _sql_compact(self, url: str, call: dict[str, Any]) -> None:
        strategy = "full" if call["full"] else "minor"
        self._spark.sql(f"CALL sys.compact(table => 'paimon.`{url}`', compact_strategy => '{strategy}')")


def paimon_spark_engines(spark: SparkSession) -> dict[str, PaimonSpark]:
    """Both ways in one session, which the caller has enabled."""
    made = (PaimonSpark(name, spark, by_sql) for name, by_sql in (("spark", False), ("spark-sql", True)))
    return {engine.name: engine for engine in made}

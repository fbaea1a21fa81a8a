"""A classic Spark session that knows Delta tables, ours or delta-spark's: the same statements. It imports the project only where
the session is ours."""

from __future__ import annotations

import importlib
from typing import Any

from history.acts import ACCOUNTS, Act
from history.writers.loop import Idle, Lost

VERBS = frozenset({"append", "add", "move", "stamp", "drop", "collect", "count", "compact", "describe"})
#: What a commit says is a setting of the session, which both know.
_NOTE = "spark.databricks.delta.commitInfo.userMetadata"
#: A driver that lives for seconds, beside seven others.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class SparkWriter:
    """Carries acts out by SQL.

    Args:
        spark: The session.
        url: The table.
    """

    def __init__(self, spark: Any, url: str) -> None:
        self._spark, self._table = spark, f"delta.`{url}`"

    def __call__(self, act: Act) -> None:
        self._spark.conf.set(_NOTE, act.note)
        try:
            figures = self._spark.sql(getattr(self, "_" + act.verb)(act)).collect()
        except Exception as error:
            if is_lost(error):
                raise Lost from error
            raise
        if act.verb not in ("append", "count", "describe", "compact") and figures[0][0] == 0:
            raise Idle
        if act.verb == "compact" and not figures[0]["metrics"]["numFilesRemoved"]:
            raise Idle

    def _append(self, act: Act) -> str:
        rows = ", ".join(f"('e', {row}, 10, '{act.token}')" for row in act.ids)
        return f"INSERT INTO {self._table} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows} AS r(p, id, v, last)"

    def _count(self, act: Act) -> str:
        met = f"SELECT 'c', {act.ids[0]}L, count(*), '{act.token}' FROM {self._table} WHERE {act.condition}"
        return f"INSERT INTO {self._table} {met}"

    def _add(self, act: Act) -> str:
        return self._update(act, f"v + {act.amount}")

    _stamp = _add

    def _move(self, act: Act) -> str:
        return self._update(act, f"CASE WHEN id = {act.a} THEN v - {act.amount} ELSE v + {act.amount} END")

    def _update(self, act: Act, value: str) -> str:
        return f"UPDATE {self._table} SET v = {value}, last = '{act.token}' WHERE {act.condition}"

    def _drop(self, act: Act) -> str:
        return f"DELETE FROM {self._table} WHERE {act.condition}"

    def _collect(self, act: Act) -> str:
        """Nothing where no event is met: then the account is not named, either."""
        account = f"SELECT '{ACCOUNTS[act.a]}' AS p, {act.a}L AS id, sum(v) AS v FROM met HAVING count(*) > 0"
        return f"""
            WITH met AS (SELECT p, id, v FROM {self._table} WHERE {act.condition})
            MERGE INTO {self._table} t USING (SELECT p, id, v FROM met UNION ALL {account}) s ON t.p = s.p AND t.id = s.id
            WHEN MATCHED AND t.p = 'e' THEN DELETE
            WHEN MATCHED THEN UPDATE SET v = t.v + s.v, last = '{act.token}'"""

    def _compact(self, act: Act) -> str:
        return f"OPTIMIZE {self._table} WHERE p = 'e'"

    def _describe(self, act: Act) -> str:
        return f"ALTER TABLE {self._table} SET TBLPROPERTIES ('writer{act.writer}' = '{act.n}')"


def is_lost(error: Exception) -> bool:
    """Whether another writer was first."""
    name = type(error).__name__
    return (
        name.startswith("Concurrent")
        or name in ("CommitConflict", "MetadataChangedException")
        or any(f"DELTA_{what}" in str(error) for what in ("CONCURRENT", "METADATA_CHANGED", "PROTOCOL_CHANGED"))
    )


class AlluviumOnSpark(SparkWriter):
    """Ours."""

    def __init__(self, url: str) -> None:
        builder = importlib.import_module("pyspark.sql").SparkSession.builder.master("local[2]")
        spark = builder.config(map=SETTINGS).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        importlib.import_module("alluvium").enable(spark)
        super().__init__(spark, url)


class DeltaSpark(SparkWriter):
    """The reference."""

    def __init__(self, url: str) -> None:
        super().__init__(importlib.import_module("engines").delta_session(**SETTINGS), url)

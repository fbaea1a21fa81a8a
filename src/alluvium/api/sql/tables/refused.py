"""Statements that Spark would carry out on the catalog's entry, or on the folder of a table: ours are not kept so."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.sql.call import Call
from alluvium.errors import UnsupportedFeature

_HINTS = {
    "AddPartitions": "partitions come with their rows",
    "DropPartitions": "DELETE FROM t WHERE ... removes the rows of a partition",
    "RecoverPartitions": "the log knows the partitions; nothing needs to be recovered",
    "RepairTable": "the log knows the partitions; nothing needs to be repaired",
    "RenamePartitions": "UPDATE t SET ... changes the partition of rows",
    "SetTableSerDeProperties": "ALTER TABLE ... SET TBLPROPERTIES",
    "LoadData": "INSERT INTO t SELECT * FROM parquet.`path` takes rows over",
    "AnalyzeTable": "statistics are written with the rows; ANALYZE TABLE t COMPUTE DELTA STATISTICS takes them anew",
}


def run(call: Call) -> DataFrame | None:
    """Refuses the statement where it is about a table of ours.

    Raises:
        UnsupportedFeature: It is (`unsupported-statement`).
    """
    kind = str(call.plan.nodeName())
    access = call.table(call.plan.children().head())
    if access is None:
        return None
    raise UnsupportedFeature(
        f"{kind} does not go with a Delta table", code="unsupported-statement", url=access.url, hint=_HINTS.get(kind)
    )

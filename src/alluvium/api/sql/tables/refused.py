"""Statements that Spark would carry out on the catalog's entry, or on the folder of a table: ours are not kept so."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.sql.call import Call
from alluvium.errors import UnsupportedFeature

_STATISTICS = "statistics are written with the rows; ANALYZE TABLE t COMPUTE DELTA STATISTICS takes them anew"
#: By the node: how the statement reads, and what to do instead.
_REFUSED = {
    "AddPartitions": ("ALTER TABLE ... ADD PARTITION", "partitions come with their rows"),
    "DropPartitions": (
        "ALTER TABLE ... DROP PARTITION",
        "DELETE FROM t WHERE ... removes the rows of a partition",
    ),
    "RenamePartitions": ("ALTER TABLE ... RENAME PARTITION", "UPDATE t SET ... changes the partition of rows"),
    "RecoverPartitions": (
        "ALTER TABLE ... RECOVER PARTITIONS",
        "the log knows the partitions; nothing needs to be recovered",
    ),
    "RepairTable": ("MSCK REPAIR TABLE", "the log knows the partitions; nothing needs to be repaired"),
    "SetTableSerDeProperties": ("ALTER TABLE ... SET SERDEPROPERTIES", "ALTER TABLE ... SET TBLPROPERTIES"),
    "LoadData": ("LOAD DATA", "INSERT INTO t SELECT * FROM parquet.`path` takes rows over"),
    "AnalyzeColumn": ("ANALYZE TABLE", _STATISTICS),
    "AnalyzeTable": ("ANALYZE TABLE", _STATISTICS),
}
#: What would change entries of a metastore, which Paimon tables do not have here either.
_OF_PARTITIONS = frozenset(("AddPartitions", "RecoverPartitions", "RenamePartitions", "RepairTable"))


def run(call: Call) -> DataFrame | None:
    """Refuses the statement where it is about a table of ours.

    Raises:
        UnsupportedFeature: It is (`unsupported-statement`).
    """
    node, kind = call.plan.children().head(), str(call.plan.nodeName())
    words, hint = _REFUSED[kind]
    access = call.table(node)
    if access is not None:
        why = ", whose log has the partitions" if words.endswith(" PARTITION") else ""
        raise UnsupportedFeature(
            f"{words} is not for Delta tables{why}", code="unsupported-statement", url=access.url, hint=hint
        )
    paimon = call.paimon(node) if kind in _OF_PARTITIONS else None
    if paimon is None:
        return None
    raise UnsupportedFeature(
        f"{words} is not for Paimon tables: their snapshots have the partitions, and there is no metastore beside",
        code="unsupported-statement",
        url=paimon.url,
        hint=hint,
    )

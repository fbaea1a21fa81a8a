"""TRUNCATE TABLE."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.delta.optimize.auto import renewed
from alluvium.api.names.paimon_access import PaimonAccess
from alluvium.api.sql.call import Call
from alluvium.api.sql.tables import partitions
from alluvium.commands.truncate import truncate_table
from alluvium.errors import UnsupportedFeature
from alluvium.spark.naming.types import to_spark


def run(call: Call) -> DataFrame | None:
    """Carries out `TRUNCATE TABLE t [PARTITION (...)]`; the answer has no columns.

    Raises:
        UnsupportedFeature: `PARTITION (...)` of a Delta table, as in the reference.
        NotFound: There is no such partition (`partition-not-found`).
        InvalidRequest: As of `partitions.truncate`.
    """
    access = call.table(call.plan.table()) or call.paimon(call.plan.table())
    if access is None:
        return None
    is_partition = str(call.plan.nodeName()) == "TruncatePartition"
    if is_partition and isinstance(access, PaimonAccess):
        return partitions.truncate(call, access)
    if is_partition:
        raise UnsupportedFeature(
            "TRUNCATE TABLE ... PARTITION is not for Delta tables",
            code="unsupported-statement",
            url=access.url,
            hint="say DELETE FROM t WHERE with the partition's values",
        )
    if isinstance(access, PaimonAccess):
        # Spark would delete the folder's files, the table's own among them.
        access.insert(call.rows_of(to_spark(access.schema())), True, {"partitionOverwriteMode": "static"})
        return call.nothing()
    renewed(call.spark, access.url, truncate_table(call.spark, access.snapshot(), access.engine))
    return call.nothing()

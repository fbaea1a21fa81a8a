"""TRUNCATE TABLE."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.delta.optimize.auto import renewed
from alluvium.api.names.paimon_access import PaimonAccess
from alluvium.api.sql.call import Call
from alluvium.commands.truncate import truncate_table
from alluvium.errors import UnsupportedFeature
from alluvium.spark.naming.types import to_spark


def run(call: Call) -> DataFrame | None:
    """Carries out `TRUNCATE TABLE t`; the answer has no columns.

    Raises:
        UnsupportedFeature: `PARTITION (...)`, as in the reference.
    """
    access = call.table(call.plan.table()) or call.paimon(call.plan.table())
    if access is None:
        return None
    if str(call.plan.nodeName()) == "TruncatePartition":
        raise UnsupportedFeature(
            "TRUNCATE TABLE ... PARTITION is not for tables of ours",
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

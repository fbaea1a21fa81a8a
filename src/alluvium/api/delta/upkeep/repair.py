"""REPAIR of DeltaTable and of SQL, and statistics computed afterwards."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from alluvium.api.counterparts.raising import raises_counterparts
from alluvium.api.delta.delta_access import TableAccess
from alluvium.delta.upkeep.repair.missing import REPORT
from alluvium.delta.upkeep.repair.repair import Repaired, RepairRequest, repair
from alluvium.delta.upkeep.repair.statistics import compute_statistics
from alluvium.plan.changes import Committed
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy

#: `REPORT` as Spark has it: no rows alone would not tell.
_SHOWN = ", ".join(
    f"{f.name} {'boolean' if pa.types.is_boolean(f.type) else 'string'}{'' if f.nullable else ' not null'}"
    for f in REPORT
)


@raises_counterparts()
class RepairVerbs:
    """What mends a DeltaTable."""

    _access: TableAccess

    def repair(
        self, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY, *, log: bool = True, statistics: bool = True
    ) -> Repaired:
        """Mends the table as far as it can be mended; what cannot be is said, and left.

        Files that are gone, or whose deletion vector is gone, leave the log (operation FSCK); damaged checkpoints,
        checksums and compactions are written anew or taken away; missing statistics are computed. A file that cannot
        be looked at stays.

        Args:
            dry_run: Only tell.
            retry: How often a commit is tried.
            log: Whether checkpoints and their like are looked at.
            statistics: Whether statistics that are missing are computed.

        Raises:
                UnsupportedFeature: The table needs a writer that we are not.
        """
        return repair_in_session(self._access, RepairRequest(log, statistics), dry_run, retry)

    def compute_statistics(self, every: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> Committed:
        """Takes statistics from the footers of files that have none, or of all files; no row is touched."""
        return compute_statistics(self._access.snapshot(), self._access.engine, every, retry).committed


def repair_in_session(
    access: TableAccess, request: RepairRequest, dry_run: bool = False, retry: RetryPolicy = DEFAULT_RETRY
) -> Repaired:
    """REPAIR of a table in a session."""
    asked = RepairRequest(request.log, request.statistics, access.engine)
    return repair(access.store(), access.snapshot, asked, dry_run, retry)


def report_frame(spark: SparkSession, report: pa.Table) -> DataFrame:
    """What FSCK REPAIR TABLE answers."""
    return spark.createDataFrame(report.cast(REPORT), _SHOWN)

"""FSCK REPAIR TABLE and ANALYZE TABLE ... COMPUTE DELTA STATISTICS."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.upkeep.repair import repair_in_session, report_frame
from alluvium.api.sql.grammar.fsck import ComputeStatistics, FsckRepair
from alluvium.api.sql.upkeep.targets import table_access
from alluvium.delta.upkeep.repair.repair import RepairRequest
from alluvium.delta.upkeep.repair.statistics import compute_statistics


def run(spark: SparkSession, statement: FsckRepair | ComputeStatistics) -> DataFrame | None:
    """Carries out one of them; FSCK answers the files that leave the table."""
    with counterparts("repair"):
        access = table_access(spark, statement.target)
        if access is None:
            return None
        if isinstance(statement, ComputeStatistics):
            compute_statistics(access.snapshot(), access.engine, every=True)
            return spark.createDataFrame([], StructType())
        done = repair_in_session(access, RepairRequest(statistics=False), statement.dry_run)
        return report_frame(spark, done.missing)

"""What is measured: one record a workload, from the table of figures that the project wants to reach."""

from __future__ import annotations

from workloads import dml, logs, paimon, paimon_commits, paimon_keyed, reading, streams, upkeep, without_spark, writing
from workloads.bench import Bench, Workload

WORKLOADS = (
    *reading.WORKLOADS,
    *without_spark.WORKLOADS,
    *logs.WORKLOADS,
    *writing.WORKLOADS,
    *dml.WORKLOADS,
    *upkeep.WORKLOADS,
    *streams.WORKLOADS,
    *paimon.WORKLOADS,
    *paimon_commits.WORKLOADS,
    *paimon_keyed.WORKLOADS,
)

__all__ = ["WORKLOADS", "Bench", "Workload"]

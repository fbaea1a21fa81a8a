"""DESCRIBE TABLE of a partitioned table: Spark's answer, and by which columns the log says that it is partitioned."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row

from alluvium.api.sql.call import Call
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.sessions.catalog import quoted_name

_HEAD = "# Partition Information"
#: What Spark shows behind the columns.
_BEHIND = ("", "# Detailed Table Information", "# Metadata Columns")


def run(call: Call) -> DataFrame | None:
    """Carries out `DESCRIBE [TABLE] [EXTENDED] t`; None, too, for tables that are not partitioned."""
    plan = call.plan
    parts = call.parts(plan.relation())
    access = None if parts is None else call.table(plan.relation())
    if access is None or parts is None or _is_of_one_partition(plan):
        return None
    columns = access.snapshot().config.partition_columns
    if not columns:
        return None
    told = call.run(f"describe table {'extended ' if plan.isExtended() else ''}{quoted_name(parts)}")
    return call.rows_of(told.schema, _with_partitions(told.collect(), columns))


def _is_of_one_partition(plan: JavaObject) -> bool:
    """Whether `PARTITION (...)` was said, for which Spark 4.3 has another node."""
    names = str(plan.productElementNames().mkString(" ")).split(" ")
    return "partitionSpec" in names and not plan.partitionSpec().isEmpty()


def _with_partitions(rows: Sequence[Row], columns: Sequence[str]) -> list[tuple[object, ...]]:
    shown = [tuple(row) for row in rows]
    if any(row[0] == _HEAD for row in shown):
        return shown
    end = next((at for at, row in enumerate(shown) if row[0] in _BEHIND), len(shown))
    by_name = {row[0]: row for row in shown[:end]}
    told = [by_name[name] for name in columns if name in by_name]
    return [*shown[:end], (_HEAD, "", ""), ("# col_name", "data_type", "comment"), *told, *shown[end:]]

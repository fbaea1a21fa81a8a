"""Append tables put in order: rows of partitions in new files, sorted by columns or along a curve through several.

Specification: `org.apache.paimon.spark.procedure.CompactProcedure`, `order_strategy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.any_rows import read_any
from alluvium.commands.optimize.curves import HILBERT_CURVE, Z_CURVE, Curve
from alluvium.commands.paimon.compact_append import moved_rows, written_compacted
from alluvium.delta.upkeep.clustering.hilbert import MOST_COLUMNS
from alluvium.delta.upkeep.z_values import MAX_RANGES, divided, rank_bits
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest
from alluvium.expr.tree import Expression
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import written_schema
from alluvium.paimon.terms.options import DATA_EVOLUTION, TARGET_FILE_SIZE
from alluvium.paimon.upkeep.append_compact import ensure_append_compactable, partitions_where
from alluvium.paimon.write.write import plan_write
from alluvium.plan.changes import Committed
from alluvium.plan.retry import RetryPolicy
from alluvium.spark.naming.names import quote, unused_name
from alluvium.spark.values.ranks import RankKey, rank_key
from alluvium.storage.store import OpenStore

ORDER, Z_ORDER, HILBERT = "order", "zorder", "hilbert"
STRATEGIES = (ORDER, Z_ORDER, HILBERT)
_RANK, _PLACE = "__alluvium_rank", "__alluvium_place"
#: Rows of a sample: fifty for each range.
_SAMPLE, _SEED = 50 * MAX_RANGES, 1


@dataclass(frozen=True, slots=True)
class Ordering:
    """By what rows are put in order.

    Attributes:
        strategy: One of `STRATEGIES`.
        columns: In order.
    """

    strategy: str
    columns: tuple[str, ...]


def order_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    ordering: Ordering,
    where: Expression | None,
    open_store: OpenStore,
    retry: RetryPolicy,
) -> Committed:
    """Writes all rows of partitions anew, in order.

    Args:
        spark: The session.
        snapshot: The newest state.
        ordering: By what.
        where: Of partitions: only those for which it is true.
        open_store: The table's objects for Python workers.
        retry: How often a lost commit is tried again.

    Raises:
        InvalidRequest: Nothing is there to order by (`"invalid-order-by"`).
        UnsupportedFeature: `"unsupported-compaction"`: the table's rows have an order of their own; or as of
            `ensure_append_compactable`.
        CommitConflict: Somebody else changed or compacted the files.
    """
    _ensure_no_order(snapshot)
    ensure_append_compactable(snapshot)
    named = _keys(snapshot, ordering)
    names, keys = tuple(named), list(named.values())
    entries = partitions_where(snapshot, snapshot.entries, where)
    if not entries.num_rows:
        return Committed.nothing(snapshot.version or 0)
    candidates = moved_rows(snapshot, entries)
    rows = read_any(spark, candidates, open_store, is_even=True, reads_whole=True)
    plan = replace(plan_write(snapshot.schema, snapshot.store.url), checks=(), derived=(), rebalance=False)
    count = int(pc.sum(entries["row_count"]).as_py() or 0)
    tasks = _tasks(entries, TARGET_FILE_SIZE.get(snapshot.schema.options))
    if ordering.strategy == ORDER or len(keys) == 1:
        by = [sf.col(quote(name)) for name in names]
        plan = replace(plan, sort=names)
    else:
        rows, by = _along(spark, rows, keys, Z_CURVE if ordering.strategy == Z_ORDER else HILBERT_CURVE, count)
        # Else Spark's writer would sort by partitions, and leave out the sort before that.
        # Those of a task come one after the other.
        plan = replace(plan, is_arranged=True)
    own = [sf.col(quote(name)) for name in snapshot.schema.partition_keys]
    placed = rows.repartitionByRange(tasks, *own, *by)
    if not plan.sort:
        placed = placed.sortWithinPartitions(*own, *by)
    # "Use dynamic partition overwrite"
    return written_compacted(placed, snapshot, plan, candidates, open_store, retry, is_overwrite=True)


def _ensure_no_order(snapshot: Snapshot) -> None:
    """Refuses tables whose rows have an order of their own.

    "Spark compact with sort_type ... only support unaware-bucket append-only table yet".
    """
    own = "a primary key stand in the order of their keys" if snapshot.schema.primary_keys else None
    if DATA_EVOLUTION.get(snapshot.schema.options):
        own = "data evolution stand in the order of their ids"
    if own is not None:
        raise UnsupportedFeature(
            f"rows of a table with {own}",
            code="unsupported-compaction",
            features=("order_strategy",),
            hint="leave order_strategy out",
        )


def _keys(snapshot: Snapshot, ordering: Ordering) -> dict[str, RankKey]:
    """The columns in the table's spelling, and what stands for their values."""
    if ordering.strategy not in STRATEGIES:
        raise _invalid(f"there is no order {ordering.strategy!r}", None, f"one of {', '.join(STRATEGIES)}")
    schema = written_schema(snapshot.schema)
    keys = {}
    for name in ordering.columns:
        column = schema.find(name)
        if column is None:
            raise _invalid(f"there is no column {name!r} to order by", name, suggest(name, schema.names))
        if column.name in snapshot.schema.partition_keys:
            raise _invalid(f"{name!r} is a partition key", name, "partitions are apart already: name other columns")
        key = rank_key((column.name,), column.type)
        if key is None:
            raise _invalid(f"values of {name!r} have no order", name, "name columns of other types")
        keys[column.name] = key
    if not keys:
        raise _invalid("no column is named to order by", None, "order_by = 'a, b'")
    most = MOST_COLUMNS if ordering.strategy == HILBERT else len(keys)
    if len(keys) > most or not rank_bits(len(keys)):
        raise _invalid(f"rows cannot be ordered by {len(keys)} columns at once", None, "name the few that queries use")
    return keys


def _invalid(problem: str, column: str | None, hint: str | None) -> InvalidRequest:
    return InvalidRequest(problem, code="invalid-order-by", column=column, hint=hint)


def _tasks(entries: pa.Table, target: int) -> int:
    """How many files of the right size come of the rows: each of one partition."""
    sums = entries.group_by(["partition"]).aggregate([("file_size", "sum")])["file_size_sum"]
    sizes: list[int] = sums.to_pylist()
    return max(1, sum(-(-size // target) for size in sizes))


def _along(
    spark: SparkSession, rows: DataFrame, keys: Sequence[RankKey], curve: Curve, count: int
) -> tuple[DataFrame, list[Column]]:
    """The rows with their place on a curve, which goes by the ranks of a sample's values."""
    bits = rank_bits(len(keys))
    told = rows.select(*(key.sampled.alias(f"key{n}") for n, key in enumerate(keys)))
    sample = (told if count <= _SAMPLE else told.sample(fraction=_SAMPLE / count, seed=_SEED)).toArrow()
    ranges = [divided(sample.column(n).to_pylist(), 1 << bits) for n in range(len(keys))]
    found = curve.ranks(spark, keys, ranges, bits)
    ranks = {unused_name(f"{_RANK}{n}", rows.columns): rank for n, rank in enumerate(found)}
    place, name = curve.column(spark, [sf.col(name) for name in ranks], bits), unused_name(_PLACE, rows.columns)
    return rows.withColumns(ranks).withColumn(name, place), [sf.col(name)]

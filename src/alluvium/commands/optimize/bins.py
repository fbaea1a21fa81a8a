"""Bins of files written anew, by one job: each part of a bin is a task, and so a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.codecs.footers.parquet_footer import FileFooter
from alluvium.commands.optimize.rewriting import WrittenBins, rewrite_plan
from alluvium.commands.rows.row_identity import copied_ids
from alluvium.commands.write import write_here
from alluvium.commands.written import written_files
from alluvium.commit.clear import clear
from alluvium.delta.rows.candidates import Candidates, candidates_of
from alluvium.delta.terms.actions import total
from alluvium.delta.upkeep.look_ups import Sampled
from alluvium.delta.upkeep.optimize import Bins
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.write import WritePlan
from alluvium.spark.jvm.frames import select_texts
from alluvium.spark.naming.names import quote, unused_name
from alluvium.spark.placing import place_rows, task_keys
from alluvium.spark.scan.own_lane import read_own_lane
from alluvium.spark.values.derive import complete
from alluvium.spark.values.ranks import constant_array

#: So many bins are read apart, each by one task from its files to its file. For more of them, relations of their own
#: cost more than a shuffle does.
MOST_APART = 48
#: Rows of so many bytes, as files hold them, are sorted at a time by a task that has more of them: these stay in the
#: processor's cache, where to look each up in memory takes a quarter of the task's time, and nothing is spilled.
_SORTED_BYTES = 3 << 20
#: Above it Spark's shuffle would sort rows by their tasks, as well.
_MOST_PIECES = 128
_PLACE, _RANK = "__alluvium_place", "__alluvium_rank"
_PART = re.compile(r"part-(\d+)-")


@dataclass(frozen=True, slots=True)
class Order:
    """How rows stand in new files.

    Attributes:
        place: Along which numbers they are sorted.
        cuts: For each bin that becomes several files, the places where each but the first begins.
        ranks: Numbers of each row (`rank_name`) by which the place is told. They are columns of their own, so that
            each is computed once, however often it is named.
        samples: Some of the rows' values.
        within: By which columns they are sorted, if not by their place.
        bits: How many bits places have; 0: they are no numbers.
    """

    place: Column
    cuts: Mapping[int, Sequence[int | Column]]
    ranks: tuple[Column, ...] = ()
    samples: tuple[Sampled, ...] = ()
    within: tuple[Column, ...] = ()
    bits: int = 0


def rank_name(number: int, columns: Sequence[str]) -> str:
    """Of the column with the rank of this number, beside the table's own columns."""
    return unused_name(f"{_RANK}{number}", columns)


def write_bins(spark: SparkSession, target: DeltaTarget, bins: Bins, order: Order | None = None) -> WrittenBins:
    """Writes the rows of each bin into a file, or as many as it has parts; nothing is left where that fails.

    Args:
        spark: A session.
        target: The table, at the version of the bins.
        bins: What to write.
        order: How rows stand in the files; None: as they come.
    """
    snapshot = target.snapshot
    assert snapshot is not None, "bins are files of a version"
    candidates = candidates_of(snapshot, bins.files)
    plan = rewrite_plan(target, candidates)
    tasks = [number for number, count in enumerate(bins.counts) for _ in range(count)]
    if order is None and bins.count <= MOST_APART:
        rows = _apart(spark, candidates, bins)
    else:
        rows = _shuffled(spark, candidates, bins, order, len(tasks))
    try:
        table, footers = _write(rows, candidates, target, plan)
        return WrittenBins(
            plan.directory, table, footers, _bins_of(table, tasks), () if order is None else order.samples
        )
    except BaseException:
        clear(target.store, plan.directory)
        raise


def _apart(spark: SparkSession, candidates: Candidates, bins: Bins) -> DataFrame:
    """The rows of each bin in one task, in the order of its files."""
    numbered = replace(candidates, numbers=bins.numbers)
    frames = [
        read_own_lane(spark, numbered.only(pa.array([number], pa.int64()))).coalesce(1)
        for number in range(len(bins.counts))
    ]
    return reduce(DataFrame.union, frames)


def _shuffled(spark: SparkSession, candidates: Candidates, bins: Bins, order: Order | None, tasks: int) -> DataFrame:
    keys, first = task_keys(tasks), _first_tasks(bins.counts)
    numbers = pa.array([keys[number] for number in first], pa.int64()).take(bins.numbers)
    placed = replace(candidates, numbers=numbers)
    rows, own = read_own_lane(spark, placed), sf.col(quote(candidates.columns.file))
    if order is None:
        return place_rows(rows, own, tasks)
    taken = candidates.snapshot.config.schema.names
    ranks = {rank_name(number, taken): rank for number, rank in enumerate(order.ranks)}
    name = unused_name(_PLACE, taken)
    # Over Spark Connect there is no such call without a column.
    rows = (rows.withColumns(ranks) if ranks else rows).withColumn(name, order.place)
    place = sf.col(name)
    if tasks == 1 and order.bits and not order.within:
        return _in_pieces(spark, rows, place, order.bits, total(bins.files["size"]))
    apart = place_rows(rows, task_key(own, place, order, keys, first), tasks)
    return apart.sortWithinPartitions(*(order.within or (place,)))


def _in_pieces(spark: SparkSession, rows: DataFrame, place: Column, bits: int, size_bytes: int) -> DataFrame:
    """Rows in the order of their places, in one task: one piece of the curve after the other, each sorted by itself."""
    most = min(1 << bits, _MOST_PIECES)
    halvings = (max(1, min(most, -(-size_bytes // _SORTED_BYTES))) - 1).bit_length()
    pieces = 1 << halvings
    keys = constant_array(spark, task_keys(pieces))
    key = sf.get(keys, sf.shiftright(place, bits - halvings).cast("int")).cast("bigint")
    return place_rows(rows, key, pieces).sortWithinPartitions(place).coalesce(1)


def task_key(own: Column, place: Column, order: Order, keys: Sequence[int], first: Sequence[int]) -> Column:
    """The key of the part of its bin that a row belongs to.

    The cases stand beside each other: of as many within each other as there are bins Spark's analysis would overflow
    its stack.

    Args:
        own: The key of the first part of a row's bin.
        place: Where the row stands along the order.
        order: Where the other parts of bins begin.
        keys: Of all parts (`task_keys`).
        first: Of each bin the number of its first part.
    """
    case = sf.when(sf.lit(False), own)
    for number, cuts in order.cuts.items():
        begin = first[number]
        part = sf.when(sf.lit(False), own)
        # The last part begins furthest along.
        for cut, key in list(zip(cuts, keys[begin + 1 :], strict=False))[::-1]:
            part = part.when(place >= cut, key)
        case = case.when(own == keys[begin], part.otherwise(own))
    return case.otherwise(own).cast("bigint")


def _first_tasks(counts: Sequence[int]) -> list[int]:
    return [0, *accumulate(counts)][:-1]


def _write(
    rows: DataFrame, candidates: Candidates, target: DeltaTarget, plan: WritePlan
) -> tuple[pa.Table, tuple[FileFooter, ...]]:
    copied = select_texts(rows, [*map(quote, target.schema.names), *copied_ids(candidates)])
    completed = complete(copied, plan.schema, plan)
    write_here(completed.df, target.store, replace(completed.plan, checks=()))
    return written_files(target.store, plan)


def _bins_of(written: pa.Table, tasks: Sequence[int]) -> pa.Array:
    """The bin of each file, by the number of the task that Spark puts into its name."""
    found = [_PART.match(path.rpartition("/")[2]) for path in written["path"].to_pylist()]
    return pa.array([None if part is None else tasks[int(part[1])] for part in found], pa.int64())

"""The order of rows along a Z-curve: columns that may be ordered by, a sample of them, and each row's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.optimize.bins import Order, rank_name
from alluvium.commands.optimize.curves import Z_CURVE, Curve
from alluvium.delta.description.shown_columns import shown_path
from alluvium.delta.rows.candidates import candidates_of
from alluvium.delta.rows.row_edits import live_counts
from alluvium.delta.statistics.stats import stats_columns
from alluvium.delta.terms.actions import total
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.upkeep.look_ups import sampled
from alluvium.delta.upkeep.optimize import Bins
from alluvium.delta.upkeep.z_values import MAX_RANGES, cuts, divided, rank_bits
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest, suggest
from alluvium.schema.types import DataType, Field
from alluvium.schema.walk import fields_within
from alluvium.spark.naming.names import quote
from alluvium.spark.scan.own_lane import read_own_lane
from alluvium.spark.values.ranks import RankKey, has_ranks, rank_key

#: Rows of a sample: fifty for each range, so that a range holds what it should but for a seventh.
_SAMPLE = 50 * MAX_RANGES
_SEED = 1
#: So many times as many rows are asked as are taken, of at least so many files a bin.
_ASKED, _LEAST_FILES = 4, 64
#: What a row takes at least, where files do not say how many they have.
_ROW_BYTES = 8


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """A column that rows are ordered by: its name in the history, its path in the schema's spelling, and its type."""

    name: str
    path: tuple[str, ...]
    type: DataType

    @property
    def key(self) -> RankKey:
        """What stands for its values. Only rows that are put in order ask for it: it takes round trips to the JVM."""
        key = rank_key(self.path, self.type)
        assert key is not None, "values have an order, or the column is refused"
        return key


def order_columns(config: TableConfig, given: Sequence[tuple[str, ...]], needs_statistics: bool) -> list[OrderColumn]:
    """The columns to order by.

    Args:
        config: The table.
        given: Their paths, as the caller spells them.
        needs_statistics: Whether each must have statistics, without which no file is skipped by it.

    Raises:
        InvalidRequest: `"invalid-zorder-column"`.
    """
    # A column named twice, be it in another spelling, says no more.
    named: dict[tuple[str, ...], OrderColumn] = {}
    for path in given:
        column = _order_column(config, path)
        named.setdefault(column.path, column)
    found = list(named.values())
    if not rank_bits(max(1, len(found))):
        raise _invalid(f"rows cannot be ordered by {len(found)} columns at once", None, "name the few that queries use")
    if needs_statistics:
        _ensure_statistics(config, found)
    return found


def _order_column(config: TableConfig, given: tuple[str, ...]) -> OrderColumn:
    name = shown_path(given)
    exact: list[str] = []
    found: Field | None = None
    for part in given:
        found = config.schema.find_path((*exact, part))
        if found is None:
            known = (".".join(path) for path, _ in fields_within(config.schema))
            raise _invalid(f"there is no column {name!r} to order by", name, suggest(name, known))
        exact.append(found.name)
    assert found is not None, "a name has a part"
    if exact[0] in config.partition_columns:
        # In the words by which callers of the reference know it.
        problem = f"{name} is a partition column. Z-Ordering can only be performed on data columns"
        raise _invalid(problem, name, "its files are apart already: name data columns")
    if not has_ranks(found.type):
        raise _invalid(f"values of {name!r} have no order", name, "name columns of other types")
    return OrderColumn(name, tuple(exact), found.type)


def _ensure_statistics(config: TableConfig, columns: Sequence[OrderColumn]) -> None:
    properties = parse_properties(config.metadata.configuration)
    chosen = stats_columns(
        config.schema, config.partition_columns, properties.num_indexed_cols, properties.stats_columns
    )
    known = [leaf.path for leaf in chosen]
    without = [c.name for c in columns if not any(path[: len(c.path)] == c.path for path in known)]
    if without:
        raise _invalid(
            f"an order by {', '.join(without)} is of no use: there are no statistics of it by which files are skipped",
            without[0],
            "name it in delta.dataSkippingStatsColumns, or set "
            "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled to false",
        )


def _invalid(problem: str, column: str | None, hint: str | None) -> InvalidRequest:
    return InvalidRequest(problem, code="invalid-zorder-column", column=column, hint=hint)


def z_order(
    spark: SparkSession, snapshot: Snapshot, bins: Bins, columns: Sequence[OrderColumn], curve: Curve = Z_CURVE
) -> Order:
    """Where each row of some files stands on a curve, by what a sample of them tells of the columns' values."""
    sample, bits = sample_rows(spark, snapshot, bins, [c.key.sampled for c in columns]), rank_bits(len(columns))
    keys = [sample.column(n) for n in range(len(columns))]
    ranges = [divided(key.to_pylist(), 1 << bits) for key in keys]
    ranks = curve.ranks(spark, [c.key for c in columns], ranges, bits)
    taken = snapshot.config.schema.names
    place = curve.column(spark, [sf.col(rank_name(n, taken)) for n in range(len(ranks))], bits)
    samples = tuple(sampled(c.name, c.path, key.to_pylist()) for c, key in zip(columns, keys, strict=True))
    several = {number: count for number, count in enumerate(bins.counts) if count > 1}
    if not several:
        return Order(place, {}, ranks, samples, bits=bits * len(columns))
    ranked = [[r.rank(value) for value in key.to_pylist()] for key, r in zip(keys, ranges, strict=True)]
    places = curve.places(ranked, bits)
    owners = sample.column("bin").to_pylist()
    found = {number: [p for p, owner in zip(places, owners, strict=True) if owner == number] for number in several}
    parted = {number: tuple(cuts(found[number], count)) for number, count in several.items()}
    return Order(place, parted, ranks, samples, bits=bits * len(columns))


def sample_rows(spark: SparkSession, snapshot: Snapshot, bins: Bins, asked: Sequence[Column]) -> pa.Table:
    """Some rows: what is asked of each, then the bin."""
    bins = sampled_bins(bins, _rows(snapshot, bins.files))
    candidates, rows = replace(candidates_of(snapshot, bins.files), numbers=bins.numbers), _rows(snapshot, bins.files)
    keys = [column.alias(f"key{n}") for n, column in enumerate(asked)]
    found = read_own_lane(spark, candidates).select(*keys, sf.col(quote(candidates.columns.file)).alias("bin"))
    return (found if rows <= _SAMPLE else found.sample(fraction=_SAMPLE / rows, seed=_SEED)).toArrow()


def sampled_bins(bins: Bins, rows: int) -> Bins:
    """The files that are asked for a sample: where each bin becomes one file, and so no look-up depends on where it is
    cut, some tell enough, for to open many small ones takes as long as to read them.

    Args:
        bins: What is written anew.
        rows: How many rows that are.
    """
    step = min(rows // (_ASKED * _SAMPLE), bins.files.num_rows // (_LEAST_FILES * max(1, bins.count)))
    if step < 2 or max(bins.counts) > 1:
        return bins
    places = pa.array(range(0, bins.files.num_rows, step), pa.int64())
    return replace(bins, files=bins.files.take(places), numbers=bins.numbers.take(places))


def _rows(snapshot: Snapshot, files: pa.Table) -> int:
    live = live_counts(snapshot, files)
    known = int(pc.sum(live).as_py() or 0)
    return known if live.null_count == 0 else max(known, total(files["size"]) // _ROW_BYTES)

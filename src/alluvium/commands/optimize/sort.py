"""Rows in the order of some columns, from file to file: for tables that are read in order."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.optimize.bins import Order
from alluvium.commands.optimize.cluster import Ordering
from alluvium.commands.optimize.z_order import OrderColumn, order_columns, sample_rows
from alluvium.delta.terms.sort_order import ensure_sortable, sort_columns
from alluvium.delta.upkeep.look_ups import Key, sampled
from alluvium.delta.upkeep.optimize import Bins
from alluvium.delta.upkeep.z_values import cuts
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest
from alluvium.schema.types import BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, Decimal
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.types import to_spark

#: What a sample tells of a row's value: a key (`spark.values.ranks.RankKey`), or a decimal.
Value: TypeAlias = Key | decimal.Decimal


def sorting_of(snapshot: Snapshot, ordering: Ordering, sort_by: Sequence[str]) -> Ordering:
    """The order that the caller asks for, else the one that the table wants to stay in; `ordering`, if it has one.

    Raises:
        InvalidRequest: `invalid-sort-column`, or the table is clustered, and the caller wants another order
            (`contradicting-options`).
    """
    config = snapshot.config
    if ordering.columns and sort_by:
        raise InvalidRequest(
            "the table is clustered, and so in no other order",
            code="contradicting-options",
            hint="ALTER TABLE ... CLUSTER BY NONE first",
        )
    names = ensure_sortable(config.schema, sort_by) or sort_columns(config.metadata.configuration, config.schema)
    # Rows of a partition are alike in its columns.
    data = [(name,) for name in names if name not in config.partition_columns]
    if ordering.columns or not data:
        return ordering
    return replace(ordering, columns=tuple(order_columns(config, data, needs_statistics=False)), sorts=True)


def sort_order(spark: SparkSession, snapshot: Snapshot, bins: Bins, columns: Sequence[OrderColumn]) -> Order:
    """Where each row of some files stands; of bins that become several files a sample tells which rows go where."""
    within = tuple(_column(c) for c in columns)
    several = {number: count for number, count in enumerate(bins.counts) if count > 1}
    if not several:
        return Order(sf.lit(0), {}, within=within)
    sample = sample_rows(spark, snapshot, bins, [_sampled(c) for c in columns])
    keys = [sample.column(n).to_pylist() for n in range(len(columns))]
    rows, owners = list(zip(*keys, strict=True)), sample.column("bin").to_pylist()
    parted = {}
    for number, count in several.items():
        own = [row for row, owner in zip(rows, owners, strict=True) if owner == number]
        ranked = {row: rank for rank, row in enumerate(sorted(set(own), key=_as_spark_sorts))}
        back = list(ranked)
        parted[number] = tuple(_bound(columns, back[cut]) for cut in cuts(map(ranked.__getitem__, own), count))
    # By whole values, as within files: some of them a sample does not tell apart.
    place = sf.struct(*(column.alias(f"k{n}") for n, column in enumerate(within)))
    samples = tuple(sampled(c.name, c.path, [_counted(v) for v in key]) for c, key in zip(columns, keys, strict=True))
    return Order(place, parted, samples=samples, within=within)


def _sampled(column: OrderColumn) -> Column:
    """What is asked of a sample's rows: a decimal, to which a double comes near, itself."""
    return _column(column) if isinstance(column.type, Decimal) else column.key.sampled


def _column(column: OrderColumn) -> Column:
    """One of the table's own, which stands in no struct; its name is not what it is shown as, if it has a dot."""
    return sf.col(quote(column.path[0]))


def _counted(value: Value | None) -> Key | None:
    return float(value) if isinstance(value, decimal.Decimal) else value


def _as_spark_sorts(row: tuple[Value | None, ...]) -> tuple[tuple[bool, bool, Value], ...]:
    """Null before all others, NaN behind them."""
    return tuple((v is not None, v != v, 0 if v is None or v != v else v) for v in row)


def _bound(columns: Sequence[OrderColumn], row: tuple[Value | None, ...]) -> Column:
    """A place between rows: any does, for whatever is less than it stands before whatever is not."""
    return sf.struct(*(_value(c, v).alias(f"k{n}") for n, (c, v) in enumerate(zip(columns, row, strict=True))))


def _value(column: OrderColumn, key: Value | None) -> Column:
    """The value that a sample's row has, or one near it."""
    if key is not None and column.type == DATE:
        return sf.date_from_unix_date(sf.lit(key).cast("int"))
    if key is not None and column.type in (TIMESTAMP, TIMESTAMP_NTZ):
        return sf.timestamp_micros(sf.lit(key)).cast(to_spark(column.type))
    if key is not None and column.type == BINARY:
        return sf.unhex(sf.lit(key).cast("string"))
    return sf.lit(key).cast(to_spark(column.type))

"""Rows of keys that may be in any partition: a join tells where their keys are, and so where they go.

No row passes through the driver; it is told how many new keys each partition gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.plan.crossing import DELETES, SKIPS, STAYS, Crossing
from alluvium.plan.ports import ScanSource
from alluvium.plan.write import BUCKET_COLUMN, FIRST_COLUMN, WritePlan
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import DataType, Field, Struct
from alluvium.spark.keyed import with_kinds
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.naming.types import to_spark
from alluvium.spark.write import data_error

#: Where a key was before all rows of a job, before one of them, and where a row comes to; and its rank among new keys.
_WAS, _BEFORE, _HOME, _RANK = "__alluvium_was", "__alluvium_before", "__alluvium_home", "__alluvium_rank"
_GONE, _LAST = "__alluvium_gone", "__alluvium_last"
_LO, _HI, _AT = "__alluvium_lo", "__alluvium_hi", "__alluvium_at"
_DELETED = 3


def across_partitions(
    rows: DataFrame, plan: WritePlan, crossing: Crossing, read: Callable[[ScanSource], DataFrame]
) -> tuple[DataFrame, WritePlan]:
    """The rows in the partitions and buckets where their keys are or will be, beside those that take keys back
    elsewhere; and the plan that knows it.

    Args:
        rows: They have the plan's columns.
        plan: Of a table of keys.
        crossing: Where keys are.
        read: Gives the rows of a source.

    Raises:
        InvalidRequest: `"invalid-data"`: Spark fails on the data.
    """
    placed = _Placed(plan, crossing, read)
    moved = placed.moved(rows)
    try:
        given = placed.given(moved)
    except (PySparkException, Py4JJavaError) as error:
        raise data_error(error, plan.root) from error
    names = [*plan.brought(BUCKET_COLUMN).schema.names, placed.kind, placed.number, BUCKET_COLUMN]
    return given.select(*map(quote, names)), plan.brought(BUCKET_COLUMN)


class _Placed:
    """One job.

    Args:
        plan: As of `across_partitions`.
        crossing: As of `across_partitions`.
        read: As of `across_partitions`.
    """

    def __init__(self, plan: WritePlan, crossing: Crossing, read: Callable[[ScanSource], DataFrame]) -> None:
        assert plan.keyed is not None, "rows of keys find their places"
        self._keyed, self._crossing, self._read = plan.keyed, crossing, read
        self._parts = plan.partition_by
        self._types: Mapping[str, DataType] = {f.name: f.type for f in plan.schema.fields}
        self.number, self.kind = plan.keyed.number, plan.keyed.merge.kind or ""

    def moved(self, rows: DataFrame) -> DataFrame:
        """All rows to write, with their bucket where their key is in one; null where it is new in its partition."""
        numbered = with_kinds(rows, self._keyed).withColumn(self.number, sf.monotonically_increasing_id())
        keys = [quote(name) for name in self._crossing.keys]
        known = self._known(numbered.select(*keys).distinct())
        if known is None:
            joined = numbered.withColumn(_WAS, sf.lit(None).cast(self._place_type))
        else:
            joined = numbered.join(known, list(self._crossing.keys), "left")
        # Each row's predecessor of the same key says where the key is.
        window = f"(partition by {', '.join(keys)} order by {quote(self.number)})"
        own, was = self._struct(self._parts), f"{_WAS}.place"
        if self._crossing.follows in (STAYS, SKIPS):
            first = f"coalesce({was}, first_value({own}) over {window})"
            joined = joined.withColumn(_HOME, sql_column(first))
            if self._crossing.follows == SKIPS:
                joined = joined.where(sql_column(f"{_HOME} <=> {own}"))
            return self._in_buckets(self._at(joined, _HOME))
        if self._crossing.follows != DELETES:
            return self._in_buckets(joined)
        before = f"coalesce(lag({own}) over {window}, {was})"
        joined = joined.withColumn(_BEFORE, sql_column(before))
        leaves = f"{_BEFORE} is not null and not ({_BEFORE} <=> {own})"
        joined = joined.withColumn(_GONE, sql_column(f"explode(if({leaves}, array(true, false), array(false)))"))
        joined = joined.withColumn(_HOME, sql_column(f"if({_GONE}, {_BEFORE}, {own})"))
        kind = sf.when(sf.col(_GONE), sf.lit(_DELETED)).otherwise(sf.col(self.kind)).cast("tinyint")
        return self._in_buckets(self._at(joined.withColumn(self.kind, kind), _HOME))

    def _struct(self, names: Sequence[str]) -> str:
        """Members are named by their places: names of columns may be those of Spark's."""
        members = (f"'p{n}', {quote(name)}" for n, name in enumerate(names))
        return f"named_struct({', '.join(members)})"

    @property
    def _place_type(self) -> str:
        members = (f"p{n}: {to_spark(self._types[name]).simpleString()}" for n, name in enumerate(self._parts))
        return f"struct<place: struct<{', '.join(members)}>, bucket: int>"

    def _at(self, rows: DataFrame, place: str) -> DataFrame:
        """The rows in the partition of a place."""
        return rows.withColumns({name: sf.col(f"{place}.p{n}") for n, name in enumerate(self._parts)})

    def _in_buckets(self, rows: DataFrame) -> DataFrame:
        was = f"if({_WAS}.place <=> {self._struct(self._parts)}, {_WAS}.bucket, null)"
        return rows.withColumn(BUCKET_COLUMN, sql_column(was)).drop(_WAS, _BEFORE, _HOME, _GONE)

    def _known(self, wanted: DataFrame | None) -> DataFrame | None:
        """Where keys are (`_WAS`), of those that are wanted or (None) of all; None: there are none."""
        crossing = self._crossing
        if crossing.there is None:
            return None
        rows = self._read(crossing.there)
        if crossing.ignored:
            rows = rows.where(~sf.col(self.kind).isin(*crossing.ignored))
        if wanted is not None:
            rows = rows.join(wanted, list(crossing.keys), "left_semi")
        keys, order = [quote(name) for name in crossing.keys], self._order
        groups = [*keys, *(quote(name) for name in self._parts if name not in crossing.keys), quote(crossing.bucket)]
        last = rows.groupBy(*groups).agg(
            sql_column(f"max_by({quote(self.kind)}, {order})").alias(_LAST), sql_column(f"max({order})").alias(_AT)
        )
        there = last.where(~sf.col(_LAST).isin(*crossing.ends)) if crossing.ends else last
        place = f"named_struct('place', {self._struct(self._parts)}, 'bucket', {quote(crossing.bucket)})"
        # One place a key: where several writers have left more, the newest counts.
        return there.groupBy(*keys).agg(sql_column(f"max_by({place}, {_AT})").alias(_WAS))

    @property
    def _order(self) -> str:
        return f"struct({', '.join(map(quote, self._crossing.order))})"

    def given(self, moved: DataFrame) -> DataFrame:
        """The rows with buckets for keys that are new in their partition."""
        keys, parts = self._crossing.keys, list(self._parts)
        names = [*parts, *(name for name in keys if name not in parts)]
        fresh = moved.where(sf.col(BUCKET_COLUMN).isNull()).select(*map(quote, names)).distinct()
        found = fresh.groupBy(*map(quote, parts)).agg(sf.count(sf.lit(1)).alias(FIRST_COLUMN)).toArrow()
        if not found.num_rows:
            return moved
        wanted = self._by_partition(found, None)
        known = self._by_partition(self._crossing.counts, BUCKET_COLUMN)
        most = self._crossing.rows_most
        if any(counts[0] > most - _least(known.get(part, {})) for part, counts in wanted.items()):
            # Files have more rows than there are keys.
            known = self._by_partition(self._counted(), BUCKET_COLUMN)
        ranges = {part: filled(counts[0], known.get(part, {}), most) for part, counts in wanted.items()}
        return self._ranked(moved, ranges)

    def _ranked(self, moved: DataFrame, ranges: Mapping[tuple[object, ...], list[tuple[int, int, int]]]) -> DataFrame:
        """The rows, new keys of a partition in the buckets that their ranks are given."""
        parts = list(self._parts)
        named = [f"__alluvium_part_{n}" for n in range(len(parts))]
        numbers = tuple(Field(name, t.LONG) for name in (_LO, _HI, _AT))
        schema = Struct((*(Field(new, self._types[old]) for new, old in zip(named, parts, strict=True)), *numbers))
        rows = [(*part, *one) for part, found in ranges.items() for one in found]
        columns = list(zip(*rows, strict=True))
        arrow = schema_to_arrow(schema)
        told = pa.table([pa.array(c, f.type) for c, f in zip(columns, arrow, strict=True)], schema=arrow)
        table = sf.broadcast(moved.sparkSession.createDataFrame(told, to_spark(schema)))
        conditions = [f"{quote(old)} <=> {new}" for old, new in zip(parts, named, strict=True)]
        if len(rows) > len(ranges):
            by = ", ".join([*map(quote, parts), f"{BUCKET_COLUMN} is null"])
            order = ", ".join(map(quote, self._crossing.keys))
            moved = moved.withColumn(
                _RANK, sql_column(f"dense_rank() over (partition by {by} order by {order}) - 1").cast("bigint")
            )
            conditions += [f"{_RANK} >= {_LO}", f"{_RANK} < {_HI}"]
        joined = moved.join(table, sql_column(" and ".join([*conditions, f"{BUCKET_COLUMN} is null"])), "left")
        lost = sf.raise_error(sf.lit("the rows are others each time that they are computed")).cast("int")
        bucket = sf.coalesce(sf.col(BUCKET_COLUMN), sf.col(_AT).cast("int"), lost)
        return joined.withColumn(BUCKET_COLUMN, bucket).drop(_RANK, _LO, _HI, _AT, *named)

    def _counted(self) -> pa.Table | None:
        """How many keys there are in each bucket."""
        known = self._known(None)
        if known is None:
            return None
        parts = [sf.col(f"{_WAS}.place.p{n}").alias(name) for n, name in enumerate(self._parts)]
        rows = known.select(*parts, sf.col(f"{_WAS}.bucket").alias(BUCKET_COLUMN))
        return rows.groupBy(*map(quote, rows.columns)).agg(sf.count(sf.lit(1)).alias(FIRST_COLUMN)).toArrow()

    def _by_partition(self, table: pa.Table | None, bucket: str | None) -> dict[tuple[object, ...], dict[int, int]]:
        """Counts by partition and bucket (0 where there is none)."""
        found: dict[tuple[object, ...], dict[int, int]] = {}
        if table is None:
            return found
        schema = schema_to_arrow(Struct(tuple(Field(name, self._types[name]) for name in self._parts)))
        values = table.select(list(self._parts)).cast(schema, safe=False).columns
        buckets = [0] * table.num_rows if bucket is None else table[bucket].to_pylist()
        rows = zip(*(v.to_pylist() for v in values), buckets, table[FIRST_COLUMN].to_pylist(), strict=True)
        for *part, number, count in rows:
            found.setdefault(tuple(part), {})[number] = count
        return found


def _least(counts: Mapping[int, int]) -> int:
    """The keys of the bucket that is filled first."""
    return counts[min(counts)] if counts else 0


def filled(count: int, counts: Mapping[int, int], most: int) -> list[tuple[int, int, int]]:
    """Buckets of so many new keys, as ranges of their ranks: from, to, bucket.

    Specification: `BucketAssigner.assignBucket`: buckets that are not full in their order, then the first numbers that
    are free.
    """
    given, done, most = [], 0, max(most, 1)
    for bucket in sorted(counts):
        room = min(most - counts[bucket], count - done)
        if room > 0:
            given.append((done, done + room, bucket))
            done += room
    bucket = 0
    while done < count:
        if bucket not in counts:
            given.append((done, min(done + most, count), bucket))
            done = given[-1][1]
        bucket += 1
    return given

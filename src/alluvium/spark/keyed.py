"""Rows that merge by key before they are written: one exchange brings a bucket's rows together, one sort puts them in
the order of keys. Both spill, so that neither a bucket nor the rows of a key have to fit into memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from alluvium.plan.scan import FIELD_ID, KeyMerge
from alluvium.plan.write import BUCKET_COLUMN, FIRST_COLUMN, LOG_COLUMN, KeyedRows, WritePlan
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import DataType, Field, Struct
from alluvium.spark.naming.names import quote, unused_name
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan.merged import KEEP_ONE, aggregated, merge_problem

#: As texts have them, by their numbers.
KINDS = ("+I", "-U", "+U", "-D")
#: Of rows whose numbers are found later.
_NO_NUMBER = -1
_PLACE, _TURN = "__alluvium_place", "__alluvium_turn"


def merged_by_key(
    rows: DataFrame, directories: Sequence[str], plan: WritePlan, keyed: KeyedRows
) -> tuple[DataFrame, list[str]]:
    """One row a key of each directory, with its kind and its number; and the columns that name directories.

    Where Spark has no operator for a merge, rows stay as they are, and each row of a key goes to another file: whoever
    reads merges files. The column that tells these apart is the first of the directories.

    Args:
        rows: The plan's columns, and those that name directories, the last of them the bucket.
        directories: These.
        plan: How they are written.
        keyed: How they merge.
    """
    merge = keyed.merge
    types = _types(plan, keyed, directories)
    rows = _together(with_kinds(rows, keyed), directories, keyed)
    folders = list(directories)
    if merge.engine in KEEP_ONE:
        merged = kept_rows(rows, directories, merge, keyed.logs)
    elif merge_problem(types, merge) is None:
        merged = _made(rows, directories, types, merge, keyed.logs)
    else:
        turn = unused_name(_TURN, rows.columns)
        merged, folders = _in_turns(rows, directories, merge, turn), [turn, *folders]
        if keyed.logs:
            merged = merged.select("*", sql_column("explode(array(0, 1))").alias(LOG_COLUMN))
            merged = merged.withColumn(turn, sql_column(f"if({LOG_COLUMN} = 0, {quote(turn)}, 1)"))
    if keyed.logs:
        folders = [LOG_COLUMN, *folders]
    return _numbered(merged, directories, plan, keyed), folders


def as_they_come(rows: DataFrame, directories: Sequence[str], keyed: KeyedRows) -> DataFrame:
    """All rows, each with its kind and without a number; those of a task in their order within each directory."""
    rows = with_kinds(rows, keyed)
    if directories:
        rows = rows.withColumn(keyed.number, sf.monotonically_increasing_id())
        order = [*directories, keyed.number]
        # Spark's writer would sort by directories alone, and rows would come out of their order.
        rows = rows.select(*placed_columns(rows, order)).sortWithinPartitions(*(sf.col(quote(n)) for n in order))
    return rows.withColumn(keyed.number, sf.lit(_NO_NUMBER).cast("bigint"))


def key_columns(keyed: KeyedRows) -> list[Column]:
    """The columns that files have before those of the rows."""
    made = []
    sources = dict(zip(keyed.stored_keys, keyed.merge.keys, strict=True))
    for f in keyed.stored.fields:
        metadata = {FIELD_ID: f.metadata[FIELD_ID]} if FIELD_ID in f.metadata else {}
        made.append(sf.col(quote(sources.get(f.name, f.name))).alias(f.name, metadata=metadata))
    return made


def _types(plan: WritePlan, keyed: KeyedRows, directories: Sequence[str]) -> dict[str, DataType]:
    """Of all columns while rows merge."""
    types = {f.name: f.type for f in plan.schema.fields}
    assert keyed.merge.kind is not None, "rows of keys have kinds"
    own = {c.name: t.LONG for c in keyed.merge.order if c.name not in types}
    hidden = {**own, keyed.merge.kind: t.BYTE}
    return {**types, **hidden, **dict.fromkeys(directories[:-1], t.STRING), directories[-1]: t.INTEGER}


def with_kinds(rows: DataFrame, keyed: KeyedRows) -> DataFrame:
    """The rows that are written, with the numbers of their kinds."""
    if keyed.is_numbered:
        return rows
    kind = keyed.merge.kind or ""
    if keyed.kind_column is not None:
        return rows.withColumn(kind, sf.col(quote(keyed.kind_column)).cast("tinyint")).drop(keyed.kind_column)
    if keyed.kind_text is None:
        return rows.withColumn(kind, sf.lit(keyed.kind).cast("tinyint"))
    text = quote(keyed.kind_text)
    cases = " ".join(f"when '{name}' then {number}" for number, name in enumerate(KINDS))
    rows = rows.withColumn(kind, sql_column(f"cast(coalesce(case {text} {cases} end, 0) as tinyint)"))
    if not keyed.skipped_kinds:
        return rows
    return rows.where(sql_column(f"{quote(kind)} not in ({', '.join(map(str, keyed.skipped_kinds))})"))


def _together(rows: DataFrame, directories: Sequence[str], keyed: KeyedRows) -> DataFrame:
    """The rows of a bucket in one task, with numbers in the order in which they came."""
    placed = rows.select(*placed_columns(rows, directories))
    if not keyed.is_numbered and not keyed.is_ordered:
        placed = placed.select("*", sf.monotonically_increasing_id().alias(keyed.number))
    return placed.repartition(*(sf.col(quote(name)) for name in directories))


def placed_columns(rows: DataFrame, directories: Sequence[str]) -> list[Column]:
    """All columns; directories are never null: Spark's writer would make new columns of those that may be, and sort by
    these once more.
    """
    columns = [sf.col(quote(name)) for name in rows.columns if name not in directories[:-1]]
    return columns + [sf.coalesce(sf.col(quote(name)), sf.lit("")).alias(name) for name in directories[:-1]]


def kept_rows(rows: DataFrame, within: Sequence[str], merge: KeyMerge, logs: bool = False) -> DataFrame:
    """One of the rows of each key, and its place among those of its directory; beside it all rows, if they are told."""
    last = KEEP_ONE[merge.engine]
    keys = [quote(name) for name in merge.keys]
    window = _window(within, merge)
    key = f"struct({', '.join(keys)})"
    beside = unused_name("__alluvium_beside", rows.columns)
    placed = rows.select(
        "*",
        sql_column(f"row_number() over {window}").alias(_PLACE),
        sql_column(f"{'lead' if last else 'lag'}({key}) over {window}").alias(beside),
    )
    stays = f"not ({quote(beside)} <=> {key})"
    if not logs:
        return placed.where(sql_column(stays)).drop(beside)
    return placed.select("*", sql_column(f"explode(if({stays}, array(0, 1), array(1)))").alias(LOG_COLUMN)).drop(beside)


def _in_turns(rows: DataFrame, directories: Sequence[str], merge: KeyMerge, turn: str) -> DataFrame:
    """All rows, with their place among those of their directory, and the turn of each among the rows of its key."""
    window = _window(directories, merge)
    within = ", ".join(map(quote, (*directories, *merge.keys)))
    turns = ", ".join(ages(merge))
    return rows.select(
        "*",
        sql_column(f"row_number() over {window}").alias(_PLACE),
        sql_column(f"row_number() over (partition by {within} order by {turns})").alias(turn),
    )


def _window(directories: Sequence[str], merge: KeyMerge) -> str:
    """Rows of a directory by key, the oldest of each first."""
    order = [*map(quote, merge.keys), *ages(merge)]
    return f"(partition by {', '.join(map(quote, directories))} order by {', '.join(order)})"


def ages(merge: KeyMerge) -> list[str]:
    """ "null is smallest in both directions" """
    return [f"{quote(c.name)} {'desc' if c.descending else 'asc'} nulls first" for c in merge.order]


def _made(
    rows: DataFrame, directories: Sequence[str], types: dict[str, DataType], merge: KeyMerge, logs: bool
) -> DataFrame:
    """One row of the rows of each key, and the place of the newest of them among all rows of its directory; beside it
    all rows, if they are told.
    """
    placed = rows.select("*", sql_column(f"row_number() over {_window(directories, merge)}").alias(_PLACE))
    within = [*map(quote, directories), *map(quote, merge.keys)]
    merged = aggregated(placed, {**types, _PLACE: t.INTEGER}, merge, within)
    if not logs:
        return merged
    told = placed.select(*(sf.col(quote(name)) for name in merged.columns))
    return merged.withColumn(LOG_COLUMN, sf.lit(0)).unionByName(told.withColumn(LOG_COLUMN, sf.lit(1)))


def _numbered(rows: DataFrame, directories: Sequence[str], plan: WritePlan, keyed: KeyedRows) -> DataFrame:
    """The rows numbered on from those that their bucket has."""
    place = sf.col(_PLACE).cast("bigint") - 1
    if keyed.first_numbers is None or not keyed.first_numbers.num_rows:
        return rows.withColumn(keyed.number, place).drop(_PLACE)
    names = [*plan.partition_by, BUCKET_COLUMN, FIRST_COLUMN]
    types = {f.name: f.type for f in plan.schema.fields}
    kinds = [*(types[name] for name in plan.partition_by), t.INTEGER, t.LONG]
    schema = Struct(tuple(Field(name, kind) for name, kind in zip(names, kinds, strict=True)))
    table = keyed.first_numbers.select(names).cast(schema_to_arrow(schema), safe=False)
    first = rows.sparkSession.createDataFrame(table, to_spark(schema))
    renamed = [unused_name(f"__alluvium_first_{n}", rows.columns) for n in range(len(names))]
    known = sf.broadcast(first.toDF(*renamed))
    sides = [*plan.partition_by, directories[-1]]
    condition = sql_column(" and ".join(f"{quote(a)} <=> {quote(b)}" for a, b in zip(sides, renamed, strict=False)))
    joined = rows.join(known, condition, "left")
    return joined.withColumn(keyed.number, place + sf.coalesce(sf.col(renamed[-1]), sf.lit(0).cast("bigint"))).drop(
        _PLACE, *renamed
    )

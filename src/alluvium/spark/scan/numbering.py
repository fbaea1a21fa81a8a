"""Rows numbered by the tasks themselves, where each reads one whole file.

Spark's reader can say where in its file a row is, but makes a boxed number for each (`ParquetRowIndexUtil`). A task
that reads a file from its beginning to its end only has to count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.expr import tree
from alluvium.expr.tree import Expression
from alluvium.plan.scan import Coalesce, ColumnValue, Converted, Physical, RowPosition, ScanPart, Sum
from alluvium.schema import types as t
from alluvium.spark.naming.names import leaves, quote, unused_name

#: Of the cores' turns, to the files: with more of them a third and more of the cores would idle at the end.
_MAX_IDLE = 1.5
#: `monotonically_increasing_id`: "the lower 33 bits the record number within each partition".
_RECORD_NUMBER = (1 << 33) - 1
_MANY = str((1 << 31) - 1)


def skips_within_files(where: Expression | None, partition_columns: Iterable[str]) -> bool:
    """Whether Spark's reader may leave out parts of files by a predicate: a task that counts must read them all.

    Args:
        where: As far as it is understood; None: no predicate.
        partition_columns: Columns by which files are chosen, not parts of them.
    """
    apart = {(name,) for name in partition_columns}
    return where is not None and any(
        isinstance(side, tree.Column) and side.path not in apart
        for node in tree.walk(where)
        for side in map(_without_cast, _compared_with_constants(node))
    )


def _without_cast(node: Expression) -> Expression:
    return node.child if isinstance(node, tree.Cast) else node


def _compared_with_constants(node: Expression) -> tuple[Expression, ...]:
    """What a node compares, in a way that Parquet's filters know."""
    if isinstance(node, tree.Compare):
        sides = (node.left, node.right)
        return sides if any(isinstance(side, tree.Literal) for side in sides) else ()
    return (node.child,) if isinstance(node, (tree.In, tree.StartsWith, tree.Like)) else ()


def one_file_a_task(spark: SparkSession, parts: Sequence[ScanPart]) -> Mapping[str, str] | None:
    """Settings of a session in which each task reads one whole file; None where that would not pay.

    Args:
        spark: The user's session.
        parts: What is to be read by one relation.
    """
    sizes = pa.chunked_array([chunk for part in parts for chunk in part.files["size"].chunks], pa.int64())
    if not len(sizes):
        return None
    conf, cores = spark._jsparkSession.sessionState().conf(), spark.sparkContext.defaultParallelism
    largest, rounds = int(pc.max(sizes).as_py()), -(-len(sizes) // cores)
    is_busy = rounds * cores <= _MAX_IDLE * len(sizes)
    # Several small files are better read by one task, and a large one by several.
    is_one_each = pc.mean(sizes).as_py() >= int(conf.filesOpenCostInBytes()) and largest <= int(
        conf.filesMaxPartitionBytes()
    )
    if not (is_busy and is_one_each):
        return None
    return {
        # `FilePartition`: a task's files and what it costs to open each stay below a bound, which one file exhausts.
        "spark.sql.files.maxPartitionBytes": f"{largest}b",
        "spark.sql.files.openCostInBytes": f"{largest}b",
        "spark.sql.files.minPartitionNum": "1",
        # Where a plan has more tasks than this, Spark puts files together after all.
        "spark.sql.files.maxPartitionNum": _MANY,
    }


def asks_for_numbers(parts: Iterable[ScanPart]) -> bool:
    """Whether the rows of some parts must know their place in the file."""
    return any(
        part.is_masked or any(isinstance(leaf, RowPosition) for column in part.output for leaf in leaves(column.value))
        for part in parts
    )


def number_rows(frame: DataFrame, part: ScanPart, number: Column) -> tuple[DataFrame, ScanPart, Column]:
    """Rows of a relation with their places in their files as a column of their own.

    Args:
        frame: The relation itself.
        part: What to make of it.
        number: The place of a row: `record_number` where each task reads one whole file, or what Spark's reader says.

    Returns:
        The relation with the numbers, the part with its positions taken from there, and the numbers.
    """
    name = unused_name("__row_index", frame.columns)
    numbered = frame.withColumn(name, number)
    output = tuple(replace(c, value=_positioned(c.value, Physical((name,), t.LONG))) for c in part.output)
    return numbered, replace(part, output=output), sf.col(quote(name))


def record_number() -> Column:
    """The place of a row among those that its task has read."""
    return sf.monotonically_increasing_id().bitwiseAND(sf.lit(_RECORD_NUMBER))


def _positioned(value: ColumnValue, position: Physical) -> ColumnValue:
    if isinstance(value, RowPosition):
        return position
    if isinstance(value, (Coalesce, Sum)):
        return replace(value, values=tuple(_positioned(v, position) for v in value.values))
    return replace(value, value=_positioned(value.value, position)) if isinstance(value, Converted) else value

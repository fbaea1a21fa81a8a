"""Per-file constants as Spark's internal rows, and files in groups of equal constants."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import Struct
from alluvium.spark.jvm.gateway import Java, JavaObject
from alluvium.spark.naming.types import to_spark


@dataclass(frozen=True, slots=True)
class FileGroups:
    """Files in runs of equal constants.

    Attributes:
        files: The files, so ordered that a group is a run; within a group in the order of the plan.
        starts: First row of each group in `files`.
        ends: One past its last row.
        constants: One row a group.
    """

    files: pa.Table
    starts: list[int]
    ends: list[int]
    constants: pa.Table

    def __len__(self) -> int:
        return len(self.starts)


def group_files(files: pa.Table, schema: Struct) -> FileGroups:
    """Groups files by the constants that `schema` names."""
    columns = [pc.struct_field(files["constants"], f.name) for f in schema.fields]
    constants = pa.table(columns, names=list(schema.names)).cast(schema_to_arrow(_nullable(schema)))
    if not columns:
        many = [files.num_rows] if files.num_rows else []
        return FileGroups(files, [0] * len(many), many, constants)
    keys = _group_keys(constants)
    order = pc.sort_indices(keys)
    runs = pc.run_end_encode(keys.take(order), run_end_type=pa.int64())
    ends = runs.run_ends.to_pylist()
    starts = [0, *ends[:-1]] if ends else []
    return FileGroups(files.take(order), starts, ends, constants.take(order.take(pa.array(starts, pa.int64()))))


def _nullable(schema: Struct) -> Struct:
    return Struct(tuple(type(f)(f.name, f.type) for f in schema.fields))


def _group_keys(constants: pa.Table) -> pa.Array:
    """A number for each row, equal where all constants are."""
    keys = pa.repeat(pa.scalar(0, pa.int64()), constants.num_rows)
    for column in constants.columns:
        codes = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        encoded = codes.dictionary_encode(null_encoding="encode")
        # Numbered anew after each column, so that the product stays below rows x values and cannot overflow.
        product = pc.add(pc.multiply(keys, len(encoded.dictionary) + 1), encoded.indices.cast(pa.int64()))
        keys = product.dictionary_encode().indices.cast(pa.int64())
    return keys


def make_rows(spark: SparkSession, java: Java, groups: FileGroups, schema: Struct) -> JavaObject:
    """The constants of the groups as a Java `InternalRow[]`.

    Spark itself converts them, from Arrow, into the rows of a `LocalRelation`: what it makes of a small local table.
    """
    count = len(groups)
    if count == 1 and not schema.fields:
        return java.one_empty_row
    rows = java.gateway.new_array(java.internal_row, count)
    if not schema.fields:
        for index in range(count):
            rows[index] = java.empty_row
        return rows
    frame = spark.createDataFrame(groups.constants, schema=to_spark(_nullable(schema)))
    execution = frame._jdf.queryExecution()
    # `executeCollect` of the physical plan gives the rows as an array, be the table local or (when large) an RDD.
    collected = execution.executedPlan().executeCollect()
    java.system.arraycopy(collected, 0, rows, 0, count)
    return rows

"""Rows in the buckets that their hashes are assigned to: the hashes are collected, four bytes a key, and no rows."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.plan.write import BUCKET_COLUMN, HASH_COLUMN, AssignedBuckets, WritePlan
from alluvium.schema import types as t
from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import Field, Struct
from alluvium.spark.buckets import hash_of
from alluvium.spark.naming.names import quote, unused_name
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.naming.types import to_spark
from alluvium.spark.write import data_error

#: Hashes that every task is told; more are brought to the rows by an exchange.
_BROADCAST = 1 << 20


def in_buckets(rows: DataFrame, plan: WritePlan, assigned: AssignedBuckets) -> tuple[DataFrame, WritePlan, pa.Table]:
    """The rows with their buckets and numbers as columns, the plan that knows it, and which hash is in which bucket.

    Args:
        rows: They have the plan's columns.
        plan: Of a table of keys.
        assigned: Who assigns buckets.

    Raises:
        InvalidRequest: `"invalid-data"`: Spark fails on the data.
    """
    assert plan.keyed is not None, "rows of keys are assigned to buckets"
    spark, parts = rows.sparkSession, list(plan.partition_by)
    number = unused_name(HASH_COLUMN, rows.columns)
    # Behind the join nobody knows any more which row of a key came last: an exchange leaves them in any order, and the
    # optimizer takes away sorts below one.
    ordered = rows.withColumn(plan.keyed.number, sf.monotonically_increasing_id())
    hashed = ordered.withColumn(number, hash_of(spark, assigned.columns))
    types = {f.name: f.type for f in plan.schema.fields}
    schema = Struct((*(Field(name, types[name]) for name in parts), Field(HASH_COLUMN, t.INTEGER)))
    wanted = hashed.select(*map(quote, parts), sf.col(number).alias(HASH_COLUMN)).distinct()
    try:
        found = wanted.toArrow()
    except (PySparkException, Py4JJavaError) as error:
        raise data_error(error, plan.root) from error
    told = assigned.assign(found.cast(schema_to_arrow(schema), safe=False))
    table = Struct((*schema.fields, Field(BUCKET_COLUMN, t.INTEGER)))
    names = [unused_name(f"__alluvium_at_{n}", hashed.columns) for n in range(len(table.fields))]
    known = spark.createDataFrame(told.cast(schema_to_arrow(table)), to_spark(table)).toDF(*names)
    known = sf.broadcast(known) if told.num_rows <= _BROADCAST else known
    sides = zip([*parts, number], names, strict=False)
    condition = " and ".join(f"{quote(a)} <=> {quote(b)}" for a, b in sides)
    bucket = unused_name(BUCKET_COLUMN, hashed.columns)
    lost = sf.raise_error(sf.lit("the rows are others each time that they are computed")).cast("int")
    placed = hashed.join(known, sql_column(condition), "left").withColumn(bucket, sf.coalesce(sf.col(names[-1]), lost))
    keyed = replace(plan.keyed, bucket=bucket, is_ordered=True)
    return placed.drop(number, *names), replace(plan, keyed=keyed, assigned=None), told

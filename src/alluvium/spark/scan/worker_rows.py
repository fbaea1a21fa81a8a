"""Rows of scan plans that Spark's own readers do not read, by Python workers: for verbs, and for streams.

What a query may later filter or leave out does not reach the workers; whoever asks here wants all of the rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructField, StructType

from alluvium.spark.jvm import failures
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan.source import FileGroup, OpenedScan, groups_of, result_schema, spark_batches

#: The rows of a scan; it is pickled, and called in the workers.
ReadScan: TypeAlias = Callable[[OpenedScan], Iterator[pa.RecordBatch]]
_TASK = StructType([StructField("task", BinaryType(), False)])


def read_by_tasks(spark: SparkSession, scan: OpenedScan, read: ReadScan) -> DataFrame:
    """The rows of a scan, a group of its files a task.

    Args:
        spark: A classic session.
        scan: What to read.
        read: How.
    """
    failures.expect_workers()
    tasks = [(pickle.dumps(group),) for group in groups_of(scan)]
    schema = to_spark(result_schema(scan))
    frame = spark.createDataFrame(spark.sparkContext.parallelize(tasks, len(tasks)), _TASK)
    return frame.mapInArrow(_Task(schema, read), schema)


@dataclass(frozen=True, slots=True)
class _Task:
    schema: StructType
    read: ReadScan

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                # What this driver has pickled itself.
                group = pickle.loads(task)
                assert isinstance(group, FileGroup)
                yield from spark_batches(self.read(group.scan), self.schema)

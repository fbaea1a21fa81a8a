"""The native lane: Spark's own Parquet reader over files that a scan plan names."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from alluvium.plan.ports import ScanSource
from alluvium.plan.scan import ScanPart, ScanPlan
from alluvium.schema.types import Struct
from alluvium.spark import failures
from alluvium.spark.gateway import java_of
from alluvium.spark.scan.index import PlannedFiles, ensure_constants, ensure_readable
from alluvium.spark.scan.names import constant_schema, data_schema, nullable_schema, select_list
from alluvium.spark.session import ensure_native, java_schema
from alluvium.spark.types import to_spark


def read_native(spark: SparkSession, source: ScanSource) -> DataFrame:
    """The rows of a table version as a DataFrame that plans its files lazily, with the filters of each query.

    Columns are those of the plan's schema, in order, all nullable as for any Parquet source. Errors of planning
    reach the caller of an action as they were raised (see `spark.failures` for the limits).

    Raises:
        InvalidRequest: `"no-jvm"`: a Spark Connect session.
        UnsupportedFeature: The plan has what this lane cannot do.
    """
    ensure_native(spark)
    failures.install()
    plan = source.plan_scan(None)
    failures.watch(plan.root)
    if not plan.parts:
        return _empty(spark, plan.schema)
    return reduce(DataFrame.union, [_read_part(spark, source, plan, part) for part in plan.parts])


def _empty(spark: SparkSession, schema: Struct) -> DataFrame:
    no_rows = java_of(spark).array_list()
    return DataFrame(
        spark._jsparkSession.createDataFrame(no_rows, java_schema(spark, to_spark(nullable_schema(schema)))), spark
    )


def _read_part(spark: SparkSession, source: ScanSource, plan: ScanPlan, part: ScanPart) -> DataFrame:
    ensure_readable(part)
    data, constants = data_schema(part, plan.schema), constant_schema(part, plan.schema)
    ensure_constants(part, constants)
    java = java_of(spark)
    session = spark._jsparkSession
    relation = java.hadoop_relation(
        PlannedFiles(spark, source, plan.root, part, data, constants),
        java_schema(spark, to_spark(constants)),
        java_schema(spark, to_spark(data)),
        java.option.empty(),
        java.parquet_format(),
        java.python_utils.toScalaMap({}),
        session,
    )
    frame = DataFrame(session.baseRelationToDataFrame(relation), spark)
    columns = select_list(part, Struct((*data.fields, *constants.fields)))
    return frame if columns is None else frame.selectExpr(*columns)

"""The native lane: Spark's own readers of Parquet and ORC over files that a scan plan names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import cast

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from alluvium.errors import UnsupportedFeature
from alluvium.plan.ports import FollowedSource, ScanSource
from alluvium.plan.scan import FIELD_ID, LABEL, ScanPart, ScanPlan
from alluvium.schema import types as t
from alluvium.schema.types import Struct
from alluvium.schema.walk import fields_within
from alluvium.spark.jvm import failures
from alluvium.spark.jvm.gateway import JavaObject, java_of
from alluvium.spark.naming.names import constant_schema, data_schema, nullable_schema, quote, select_list
from alluvium.spark.naming.types import to_spark
from alluvium.spark.scan import orc
from alluvium.spark.scan.deleted_rows import deleted_rows_field
from alluvium.spark.scan.merge_tasks import task_ranges
from alluvium.spark.scan.merged import ensure_mergeable, merge_frame, merging_parts, unmergeable
from alluvium.spark.scan.native_lane import whole_calls
from alluvium.spark.scan.native_lane.followed import Followed
from alluvium.spark.scan.native_lane.index import PlannedFiles
from alluvium.spark.scan.native_lane.masks import apply_masks
from alluvium.spark.scan.numbering import asks_for_numbers, number_rows, one_file_a_task, record_number
from alluvium.spark.scan.readable import ensure_constants, ensure_readable, exact_options, read_alike
from alluvium.spark.scan.select import select_columns
from alluvium.spark.sessions.clone import PrivateSession
from alluvium.spark.sessions.session import ensure_native, java_schema

#: A relation's options reach the readers on top of the session's settings, which stay as they are.
_BY_ID = {"spark.sql.parquet.fieldId.read.enabled": "true"}
_SPLIT = "spark.sql.files.maxPartitionBytes"
#: What Spark's reader tells of a row beside its columns.
_METADATA = "_metadata"
#: The reader of batches, whatever the session prefers.
_BATCHES = {
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "true",
}


@dataclass(frozen=True, slots=True)
class _How:
    """How a plan is read; as the arguments of `read_native`."""

    is_even: bool = False
    reads_whole: bool = False
    is_streaming: bool = False


def read_native(
    spark: SparkSession,
    source: ScanSource,
    *,
    is_even: bool = False,
    reads_whole: bool = False,
    is_streaming: bool = False,
    follows: bool = False,
) -> DataFrame:
    """The rows of a table version as a DataFrame that plans its files lazily, with the filters of each query.

    Columns are those of the plan's schema, in order, all nullable as for any Parquet source. Errors of planning reach
    the caller of an action as they were raised (see `spark.jvm.failures` for the limits).

    Args:
        spark: The session.
        source: The table version.
        is_even: Whether tasks are cut so that no core is idle while others read their last: for rows that are written
            as they are read, where each task costs much.
        reads_whole: Whether every row of the files will be looked at, whatever filters say: tasks may then number the
            rows themselves, where somebody asks for numbers.
        is_streaming: Whether the rows are a batch of a stream, which no part of may merge with another: what
            aggregates would keep state.
        follows: Whether each query reads the newest version, as far as it can be read as this one; the source is a
            `FollowedSource` then, and its rows do not merge.

    Raises:
        InvalidRequest: `"no-jvm"`: a Spark Connect session.
        UnsupportedFeature: The plan has what this lane cannot do.
    """
    ensure_native(spark)
    failures.install()
    if follows:
        whole_calls.install()
    plan = source.plan_scan(None)
    failures.watch(plan.root)
    if not plan.parts:
        return _empty(spark, nullable_schema(plan.schema), is_streaming)
    ensure_mergeable(plan)
    apart = read_alike(part for part in plan.parts if part.merge is None)
    how = _How(is_even, reads_whole, is_streaming)
    kinds = tuple(_masked_first(parts) for parts in apart)
    followed = Followed(spark, cast(FollowedSource, source), kinds) if follows else None
    frames = [
        _read_parts(spark, source, plan, parts, how, None if followed is None else (followed, kind))
        for kind, parts in enumerate(apart)
    ]
    for parts in merging_parts(plan):
        frames += _read_merged(spark, source, plan, parts, _How(is_even))
    return reduce(DataFrame.union, frames)


def _read_merged(
    spark: SparkSession, source: ScanSource, plan: ScanPlan, parts: Sequence[ScanPart], how: _How
) -> list[DataFrame]:
    """The rows of parts that merge with each other: in tasks that need no exchange, where there are such."""
    merge = parts[0].merge
    assert merge is not None
    rows = reduce(DataFrame.union, [_read_parts(spark, source, plan, (part,), how) for part in parts])
    group = quote(merge.group)
    ranges = task_ranges(parts, merge, spark.sparkContext.defaultParallelism)
    # One partition is distributed by every key: Spark plans no exchange above it.
    inputs = [rows.where(f"{group} >= {low} and {group} <= {high}").coalesce(1) for low, high in ranges] or [rows]
    return [merge_frame(frame, parts[0], merge, plan.schema, plan.partition_columns) for frame in inputs]


def unreadable(plan: ScanPlan) -> str | None:
    """Why Spark's own readers cannot read a plan; None: they can."""
    if (problem := unmergeable(plan)) is not None:
        return f"Spark cannot merge {problem}"
    for part in plan.parts:
        try:
            ensure_readable(part)
            data, constants = data_schema(part, plan.schema), constant_schema(part, plan.schema)
            select_list(part, Struct((*data.fields, *constants.fields)))
        except UnsupportedFeature as error:
            return error.message
    return None


def _empty(spark: SparkSession, schema: Struct, is_streaming: bool) -> DataFrame:
    if is_streaming:
        return empty_stream(spark, java_schema(spark, to_spark(schema)))
    no_rows = java_of(spark).array_list()
    return DataFrame(spark._jsparkSession.createDataFrame(no_rows, java_schema(spark, to_spark(schema))), spark)


def empty_stream(spark: SparkSession, schema: JavaObject) -> DataFrame:
    """A batch of a stream without rows; `schema`: the JVM's."""
    nothing = spark.sparkContext._jsc.emptyRDD().rdd()
    return DataFrame(spark._jsparkSession.internalCreateDataFrame(nothing, schema, True), spark)


def _masked_first(parts: tuple[ScanPart, ...]) -> ScanPart:
    """One of some parts that are read alike, by which a relation knows what it can read."""
    return next((part for part in parts if part.is_masked), parts[0])


def _read_parts(
    spark: SparkSession,
    source: ScanSource,
    plan: ScanPlan,
    parts: tuple[ScanPart, ...],
    how: _How,
    followed: tuple[Followed, int] | None = None,
) -> DataFrame:
    """The rows of parts that are read alike."""
    part = parts[0]
    for each in parts:
        ensure_readable(each)
    data = data_schema(part, plan.schema)
    constants = constant_schema(part, plan.schema)
    ensure_constants(part, constants)
    java = java_of(spark)
    has_labels = any(LABEL in f.metadata for f in data.fields)
    counting = one_file_a_task(spark, parts) if how.reads_whole and asks_for_numbers(parts) else None
    cut = counting or (_even_settings(spark, parts) if how.is_even else {})
    is_orc = part.file_format == "orc"
    settings = {**(_labels_settings(data) if has_labels else {}), **cut, **(orc.SETTINGS if is_orc else {})}
    session = PrivateSession(spark, settings).java if settings else spark._jsparkSession
    deleted_rows = deleted_rows_field((*data.names, *constants.names)) if any(p.is_masked for p in parts) else None
    all_constants = Struct((*constants.fields, deleted_rows)) if deleted_rows else constants
    own = orc.OPTIONS if is_orc else _BY_ID if any(FIELD_ID in f.metadata for f in data.fields) else {}
    options = {**own, **exact_options(part)}
    relation = java.hadoop_relation(
        PlannedFiles(spark, source, plan.root, parts, data, constants, deleted_rows, followed).for_spark(),
        java_schema(spark, to_spark(all_constants)),
        java_schema(spark, to_spark(data)),
        java.none,
        java.orc_format() if is_orc else java.parquet_format(),
        java.python_utils.toScalaMap(options) if options else java.no_options,
        session,
    )
    frame = DataFrame(_relation_frame(spark, relation, how.is_streaming), spark)
    row_index = None
    if counting is not None:
        frame, part, row_index = number_rows(frame, part, record_number())
    elif asks_for_numbers(parts) and _METADATA in {name.lower() for name in frame.columns}:
        # A column of the table that is called like the reader's own, which no text can name then.
        frame, part, row_index = number_rows(frame, part, frame.metadataColumn(_METADATA)["row_index"])
    if deleted_rows is not None:
        frame = apply_masks(spark, frame, deleted_rows.name, part.keeps_masked, row_index)
    return select_columns(frame, part, Struct((*data.fields, *all_constants.fields)), plan.schema)


def _relation_frame(spark: SparkSession, relation: JavaObject, is_streaming: bool) -> JavaObject:
    """The rows of a relation, as a Dataset of the JVM."""
    if not is_streaming:
        return spark._jsparkSession.baseRelationToDataFrame(relation)
    java = java_of(spark)
    return java.dataset.ofRows(spark._jsparkSession, java.logical_relation.apply(relation, True))


def _labels_settings(data: Struct) -> Mapping[str, str]:
    """The session's settings for a relation whose columns can be found by number alone.

    Spark's reader of single rows goes by number only where the session of the query says so
    (`ParquetRowConverter`: `SQLConf.get`), which is the user's; the reader of batches asks the relation's options.

    Raises:
        UnsupportedFeature: A column of a type that Spark reads row by row.
    """
    types = [(path, f.type) for path, f in fields_within(data)]
    alone = next((path for path, kind in types if kind in (t.VOID, t.VARIANT)), None)
    if alone is not None:
        raise UnsupportedFeature(
            "Spark cannot read this type in files whose columns are found by id under names of other columns",
            code="unsupported-scan",
            column=alone[0],
            hint="read the table without Spark: alluvium.open(url)",
        )
    return _BATCHES


def _even_settings(spark: SparkSession, parts: Sequence[ScanPart]) -> Mapping[str, str]:
    conf = spark._jsparkSession.sessionState().conf()
    largest, opening = int(conf.filesMaxPartitionBytes()), int(conf.filesOpenCostInBytes())
    weight = sum(int(pc.sum(part.files["size"]).as_py() or 0) + part.files.num_rows * opening for part in parts)
    return {_SPLIT: f"{even_split(weight, spark.sparkContext.defaultParallelism, largest)}b"}


def even_split(weight: int, cores: int, largest: int) -> int:
    """The size of a task, at most the largest, with which the number of tasks is a multiple of the cores.

    Args:
        weight: Bytes of all files, with what Spark adds for opening each.
        cores: How many tasks run at once.
        largest: What a task may have at most.
    """
    rounds = -(-weight // (largest * cores))
    return min(largest, max(1, -(-weight // max(1, rounds * cores))))

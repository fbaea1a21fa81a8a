"""Write plans on Spark: its own writers, with settings that the format needs and the session never sees."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import overload

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.codecs.footers.parquet_footer import FileFooter
from alluvium.errors import AlluviumError, InvalidRequest, UnsupportedFeature
from alluvium.plan.checks import violation
from alluvium.plan.completion import numbers_exhausted
from alluvium.plan.write import LOG_COLUMN, STAGED_MARK, Bucketing, KeyedRows, WritePlan
from alluvium.schema.types import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    Array,
    DataType,
    Field,
    Map,
    Struct,
)
from alluvium.schema.walk import holds
from alluvium.spark.buckets import bucket_of
from alluvium.spark.jvm import failures
from alluvium.spark.keyed import as_they_come, key_columns, merged_by_key
from alluvium.spark.naming.names import quote, unused_name
from alluvium.spark.naming.sql_text import sql_column
from alluvium.spark.naming.types import to_spark
from alluvium.spark.regrouped import merged_groups
from alluvium.spark.sessions.clone import is_observed, runs_in_copy, with_settings
from alluvium.spark.sessions.session import ensure_native, is_connect
from alluvium.spark.values.checks import examples, find_violation, with_checks
from alluvium.spark.values.derive import find_exhausted
from alluvium.spark.workers.worker_errors import carried_error
from alluvium.spark.workers.worker_files import write_in_workers
from alluvium.storage.store import OpenStore

_SETTINGS: Mapping[str, str] = {
    # INT96, the default, has no statistics.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # Typed columns in the place of variants are for readers who know that they may be there.
    "spark.sql.variant.writeShredding.enabled": "false",
    "spark.sql.orc.impl": "native",
}
_OPTIONS: Mapping[str, str] = {
    # Timestamps in directory names are in UTC, whatever the session's zone; expressions keep that zone.
    "timeZone": "UTC",
    # Version 2 moves files as tasks end, so that a failed job leaves some.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
}
#: For rows that stand in their tasks as files shall have them: otherwise Spark would sort by partition columns, and
#: join the tasks of a union whose sides have one each.
_ARRANGED: Mapping[str, str] = {
    "spark.sql.maxConcurrentOutputFileWriters": "2",
    "spark.sql.unionOutputPartitioning": "false",
}
_FIELD_ID = "parquet.field.id"
_FIRST_TASKS = "spark.sql.adaptive.coalescePartitions.initialPartitionNum"
#: The formats that Spark has a writer for.
_OF_SPARK = ("parquet", "orc")
_NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"


def write_files(
    spark: SparkSession, df: DataFrame, plan: WritePlan, open_store: OpenStore | None = None
) -> Mapping[str, FileFooter | None] | None:
    """Writes rows as files below `plan.root/plan.directory`, which must not exist yet.

    After an error files may be left there: the caller deletes the directory.

    Args:
        spark: The session that runs the job.
        df: Rows that have the plan's columns and types, in order (see `derive.complete`).
        plan: What to write.
        open_store: The table's objects for Python workers; needed where the plan says how `files` are.

    Returns:
        Paths of the files that count, and the statistics of those that tell none themselves; None: all that are there.

    Raises:
        InvalidRequest: The check's own code (`"constraint-violated"`, ...): rows fail a check, with the values of up to
            five of them; `"invalid-constraint"`: Spark cannot evaluate a check; `"numbers-exhausted"`;
            `"invalid-data"`: Spark refuses the data or fails on a value; `"no-jvm"`.
        UnsupportedFeature: The plan has columns to derive, or files of a format that nobody here writes.
        AlluviumError: What a Python worker fails on.
    """
    if not is_connect(spark):
        ensure_native(spark)
        failures.install()
    if plan.derived or plan.numbered or (plan.file_format not in _OF_SPARK and plan.files is None):
        raise UnsupportedFeature("Spark writes complete rows here (see `derive.complete`), Parquet and ORC by itself")
    if plan.spark_writes_where is not None and not is_observed(df):
        # Nothing counts of what a job that failed may have left.
        with contextlib.suppress(_OtherFormError):
            return _written(df, natively(plan), open_store)
    return _written(df, plan, open_store)


class _OtherFormError(Exception):
    """Spark's own writer has no form for one of the rows."""


def natively(plan: WritePlan) -> WritePlan:
    """The plan for Spark's own writer; its job fails where that has no form for a row."""
    return replace(plan, files=None, checks=(*(plan.spark_writes_where or ()), *plan.checks))


def _written(df: DataFrame, plan: WritePlan, open_store: OpenStore | None) -> Mapping[str, FileFooter | None] | None:
    try:
        return _run(df, plan, open_store)
    except AnalysisException as error:
        raise _invalid(error, plan.root) from error
    except (PySparkException, Py4JJavaError) as error:
        raise _translated(error, plan, df) from error
    except AlluviumError as error:
        # Workers do not know the table's address.
        error.url = error.url or plan.root
        raise


def _run(df: DataFrame, plan: WritePlan, open_store: OpenStore | None) -> Mapping[str, FileFooter | None] | None:
    settings = {**_SETTINGS, **_rebalance_settings(df.sparkSession, plan), **(_ARRANGED if plan.is_arranged else {})}
    try:
        with with_settings(df, settings) as rows:
            return _write(rows, plan, open_store)
    except (AnalysisException, InvalidRequest) as error:
        cause = error if isinstance(error, AnalysisException) else error.__cause__
        if not (isinstance(cause, AnalysisException) and runs_in_copy(df)):
            raise
    # Nothing has been run. In the session itself a name may be one of its variables.
    with with_settings(df, settings, in_place=True) as rows:
        return _write(rows, plan, open_store)


def _write(rows: DataFrame, plan: WritePlan, open_store: OpenStore | None) -> Mapping[str, FileFooter | None] | None:
    # Checks are about what will be there: a text that comes back as null is null to them.
    rows = with_checks(rows if plan.is_staged else _with_one_null(rows, plan), plan.checks)
    rows, directories = _arranged(rows, plan) if plan.keyed is None else _merged_by_key(rows, plan, plan.keyed)
    if plan.files is not None:
        assert open_store is not None, "whoever plans files that Spark cannot write says where workers put them"
        return write_in_workers(rows, directories, plan, open_store)
    # A Connect server may not write where this client reads: the marker tells.
    marked = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": str(is_connect(rows.sparkSession)).lower()}
    writer = rows.write.mode("error").options(**{**_OPTIONS, **marked, **dict(plan.options)})
    if directories:
        writer = writer.partitionBy(*directories)
    writer.format(plan.file_format).save(f"{plan.root.rstrip('/')}/{plan.directory}")
    return None


def _arranged(rows: DataFrame, plan: WritePlan) -> tuple[DataFrame, list[str]]:
    """The rows as the files have them, and the columns that name their directories."""
    stored = replace(plan, schema=_storable(plan.schema), stored=_storable(plan.stored))
    rows = _as_stored(_without_nulls(rows, plan.schema), stored)
    directories = [plan.stored_name(name) for name in plan.partition_by]
    if plan.materialize_partitions:
        rows, directories = _materialized(rows, directories, plan)
    if plan.bucket is not None:
        rows, directories = _bucketed(rows, directories, plan.bucket)
    return _sorted(_rebalanced(rows, directories, plan), directories, plan), directories


def _merged_by_key(rows: DataFrame, plan: WritePlan, keyed: KeyedRows) -> tuple[DataFrame, list[str]]:
    """The same for rows that merge by key: one row a key, in the order of keys within each directory."""
    if keyed.kind_column is not None:
        # A column of the rows' alone, which no file has.
        plan = replace(plan, schema=Struct(tuple(f for f in plan.schema.fields if f.name != keyed.kind_column)))
    rows, directories = _materialized(rows, plan.partition_by, plan)
    if keyed.waits:
        return as_they_come(rows, directories, keyed).select(*_keyed_columns(plan, keyed, directories)), directories
    if keyed.bucket is not None:
        directories = [*directories, keyed.bucket]
    else:
        assert plan.bucket is not None, "rows merge within a bucket"
        rows, directories = _bucketed(rows, directories, plan.bucket)
    merge = merged_by_key if keyed.regrouped is None else merged_groups
    rows, directories = merge(rows, directories, plan, keyed)
    columns = _keyed_columns(plan, keyed, directories)
    # The order of directories is that which Spark's writer would make: it finds it, and sorts no more.
    order = [*directories, *keyed.stored_keys]
    if LOG_COLUMN in directories:
        # What was there before what is.
        order.append(keyed.number if keyed.regrouped is None else keyed.merge.kind or "")
    return rows.select(*columns).sortWithinPartitions(*(sf.col(quote(name)) for name in order)), directories


def _keyed_columns(plan: WritePlan, keyed: KeyedRows, directories: Sequence[str]) -> list[Column]:
    return [*key_columns(keyed), *_stored_columns(plan), *(sf.col(quote(name)) for name in directories)]


def _rebalance_settings(spark: SparkSession, plan: WritePlan) -> dict[str, str]:
    """What makes Spark join small shuffle blocks and split large ones; the user's session may have turned it off."""
    if not plan.rebalance:
        return {}
    fewer = {}
    if plan.most_tasks is not None:
        usual = spark.conf.get(_FIRST_TASKS, None) or spark.conf.get("spark.sql.shuffle.partitions")
        fewer = {_FIRST_TASKS: str(min(plan.most_tasks, int(str(usual))))}
    return {
        **fewer,
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.coalescePartitions.enabled": "true",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": f"{plan.target_file_bytes}b",
    }


def _rebalanced(rows: DataFrame, directories: Sequence[str], plan: WritePlan) -> DataFrame:
    """The rows, shuffled so that each task has as many rows of one directory as make a file of the right size."""
    return rows.hint("rebalance", *(sf.col(quote(name)) for name in directories)) if plan.rebalance else rows


def _sorted(rows: DataFrame, directories: Sequence[str], plan: WritePlan) -> DataFrame:
    """The rows, those of a task in the order of its files: by directory, as Spark wants them, then as planned."""
    names = [*directories, *(plan.stored_name(name) for name in plan.sort)]
    return rows.sortWithinPartitions(*(sf.col(quote(name)) for name in names)) if plan.sort else rows


def _materialized(rows: DataFrame, partition_by: Sequence[str], plan: WritePlan) -> tuple[DataFrame, list[str]]:
    """The rows with the partition columns last, and a copy of each: Spark drops from the files what it makes
    directories of.
    """
    copies: list[str] = []
    for name in partition_by:
        copies.append(unused_name(f"{name}_", (*rows.columns, *copies)))
    columns = [quote(name) for name in rows.columns if name not in partition_by] + [quote(n) for n in partition_by]
    types = {plan.stored_name(f.name): f.type for f in plan.schema.fields}
    copied = []
    for name, copy in zip(partition_by, copies, strict=True):
        value = _staged_text(quote(name), types[name]) if plan.is_staged else sf.col(quote(name))
        copied.append(value.alias(copy))
    return rows.select(*columns, *copied), copies


def _staged_text(column: str, data_type: DataType) -> Column:
    """A partition value as text, exactly, and different from that of every other value; null stays."""
    exact = column
    if data_type == DATE:
        exact = f"unix_date({column})"
    elif data_type == TIMESTAMP:
        exact = f"unix_micros({column})"
    elif data_type == TIMESTAMP_NTZ:
        # Its calendar fields, as if they were UTC's: the date and the time of the day are the same in every zone.
        minutes = f"date_part('HOUR', {column}) * 60 + date_part('MINUTE', {column})"
        exact = (
            f"unix_date(cast({column} as date)) * 86400000000L + cast({minutes} as bigint) * 60000000L"
            f" + cast(date_part('SECOND', {column}) * 1000000 as bigint)"
        )
    return sql_column(f"concat('{STAGED_MARK}', cast({exact} as string))")


def _bucketed(rows: DataFrame, directories: Sequence[str], bucketing: Bucketing) -> tuple[DataFrame, list[str]]:
    """The rows with the number of their bucket as one more directory."""
    name = unused_name("bucket_", rows.columns)
    return rows.select("*", bucket_of(rows.sparkSession, bucketing).alias(name)), [*directories, name]


def _with_one_null(df: DataFrame, plan: WritePlan) -> DataFrame:
    """Texts that share a directory with null become null ("The empty string [...] translates to null"): Spark's writer
    takes them for other partitions, and fails over the files that are there already.
    """
    texts = {f.name for f in plan.schema.fields if f.type in (STRING, BINARY) and f.name in plan.partition_by}
    if not texts:
        return df
    columns = {name: sf.col(quote(name)) for name in plan.schema.names}
    for name in texts:
        column = columns[name]
        columns[name] = sf.when(~column.cast("string").isin("", _NULL_DIRECTORY), column).alias(name)
    return df.select(*columns.values())


@overload
def _storable(schema: Struct) -> Struct: ...
@overload
def _storable(schema: None) -> None: ...
def _storable(schema: Struct | None) -> Struct | None:
    """The schema without columns of type void: Parquet has no such type, and readers know them from the table."""
    if schema is None or not holds(schema, VOID):
        return schema
    kept = (f for f in schema.fields if f.type != VOID)
    return Struct(tuple(replace(f, type=_storable(f.type)) if isinstance(f.type, Struct) else f for f in kept))


def _without_nulls(df: DataFrame, schema: Struct) -> DataFrame:
    """The rows as `_storable` has them."""
    if not holds(schema, VOID):
        return df
    kept = [f for f in schema.fields if f.type != VOID]
    if not kept:
        raise InvalidRequest(
            "rows of void columns alone cannot be stored", code="unsupported-type", hint="cast a column to a type"
        )
    return df.select(*(_stored_members(sf.col(quote(f.name)), f.type).alias(f.name) for f in kept))


def _stored_members(column: Column, data_type: DataType) -> Column:
    if not isinstance(data_type, Struct) or not holds(data_type, VOID):
        return column
    made = column
    for f in data_type.fields:
        if isinstance(f.type, Struct) and holds(f.type, VOID):
            made = made.withField(quote(f.name), _stored_members(column.getField(f.name), f.type))
    return made.dropFields(*(quote(f.name) for f in data_type.fields if f.type == VOID))


def _as_stored(df: DataFrame, plan: WritePlan) -> DataFrame:
    """The rows under the names of the files, with the field ids as metadata, from where Spark's writer takes them."""
    stored = plan.stored or plan.schema
    if plan.stored is None and not any(_has_ids(f) for f in stored.fields):
        return df
    return df.select(*_stored_columns(plan))


def _stored_columns(plan: WritePlan) -> list[Column]:
    stored = plan.stored or plan.schema
    columns = []
    for f, kept in zip(plan.schema.fields, stored.fields, strict=True):
        column = sf.col(quote(f.name))
        if plan.stored is not None or _has_ids(Field(kept.name, kept.type)):
            column = column.cast(to_spark(_ids_only(kept.type)))
        columns.append(column.alias(kept.name, metadata=_ids(kept)))
    return columns


def _ids(f: Field) -> dict[str, object]:
    return {_FIELD_ID: f.metadata[_FIELD_ID]} if _FIELD_ID in f.metadata else {}


def _has_ids(f: Field) -> bool:
    return _FIELD_ID in f.metadata or any(_has_ids(inner) for inner in _inner_fields(f.type))


def _inner_fields(data_type: DataType) -> tuple[Field, ...]:
    if isinstance(data_type, Struct):
        return data_type.fields
    if isinstance(data_type, Array):
        return _inner_fields(data_type.element)
    return (*_inner_fields(data_type.key), *_inner_fields(data_type.value)) if isinstance(data_type, Map) else ()


def _ids_only(data_type: DataType) -> DataType:
    if isinstance(data_type, Struct):
        return Struct(
            tuple(
                Field(f.name, _ids_only(f.type), True, {k: v for k, v in f.metadata.items() if k == _FIELD_ID})
                for f in data_type.fields
            )
        )
    if isinstance(data_type, Array):
        return Array(_ids_only(data_type.element))
    return Map(_ids_only(data_type.key), _ids_only(data_type.value)) if isinstance(data_type, Map) else data_type


def _translated(error: Exception, plan: WritePlan, df: DataFrame) -> Exception:
    texts = failures.texts_of(error)
    for text in texts:
        if (found := find_violation(text, plan.checks)) is not None:
            check, row = found
            if plan.files is None and check in (plan.spark_writes_where or ()):
                return _OtherFormError()
            return violation(check, examples(df, check, row), plan.root)
    if (carried := next(filter(None, map(carried_error, texts)), None)) is not None:
        carried.url = carried.url or plan.root
        return carried
    if plan.files is not None and (lost := _lost_worker(texts, plan.root)) is not None:
        return lost
    of_table = [check.name for check in plan.checks if check.table_sql is not None]
    if (of_table or plan.computed) and any("java.lang.OutOfMemoryError" in text for text in texts):
        made = {"constraints": ", ".join(of_table), "computed columns": ", ".join(plan.computed)}
        shown = " and ".join(f"{what} ({names})" for what, names in made.items() if names)
        return InvalidRequest(
            f"Spark ran out of memory, perhaps for the values that the table makes itself: {shown}",
            code="out-of-memory",
            url=plan.root,
            hint="nothing was written; look at the table's expressions, or give Spark more memory",
        )
    return data_error(error, plan.root)


def _lost_worker(texts: Sequence[str], url: str) -> InvalidRequest | None:
    """What the caller is told where a Python worker of ours could say nothing itself."""
    if any("No module named 'alluvium'" in text for text in texts):
        return InvalidRequest(
            "Alluvium is not installed where Spark's Python workers run, and the table's files are written there",
            code="no-alluvium-on-workers",
            url=url,
            hint='install it there, or give the table\'s option "file.format" = "parquet"',
        )
    if any("Python worker exited unexpectedly" in text for text in texts):
        return InvalidRequest(
            "a Python worker ended while it wrote, perhaps for want of memory: it holds a file until it is whole",
            code="out-of-memory",
            url=url,
            hint="nothing was written; give the workers more memory, or the table a smaller target-file-size",
        )
    return None


def data_error(error: Exception, url: str) -> Exception:
    """What the caller is told where a job fails on the data, or on the query that gives them; other errors as they are.

    Args:
        error: Of Spark.
        url: The table.
    """
    texts = failures.texts_of(error)
    exhausted = next(filter(None, map(find_exhausted, texts)), None)
    if exhausted is not None:
        return numbers_exhausted(exhausted, url)
    if any("No module named 'alluvium'" in text for text in texts):
        return InvalidRequest(
            "Alluvium is not installed where Spark's Python workers run, and the query of the data needs it there",
            code="no-alluvium-on-workers",
            url=url,
            hint="nothing was written; install it there: alluvium.explain(df) says why workers read rows",
        )
    if isinstance(error, PySparkException) and error.getCondition():
        return _invalid(error, url)
    cause = next((text for text in reversed(texts) if _CONDITION.search(text)), None)
    return _invalid_text(cause, url) if cause and _is_data_error(cause) else error


_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ")
#: The class of SQL's data exceptions.
_DATA_EXCEPTION = "SQLSTATE: 22"
_DATA_ERRORS = ("CAST_", "ARITHMETIC_", "NUMERIC_", "DIVIDE_BY_ZERO", "INVALID_ARRAY", "USER_RAISED", "DATETIME")


#: What a Python worker raised stands behind the lines of its code, in which any bracket may be.
_RAISED = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)$", re.MULTILINE)


def _sentence(text: str) -> str:
    """The line of an error's text that says what is wrong."""
    if raised := _RAISED.findall(text):
        return str(raised[-1])
    condition = _CONDITION.search(text)
    start = text.find("[") if condition is None else condition.start()
    return text[max(start, 0) :].split("\n")[0]


def _is_data_error(text: str) -> bool:
    match = _CONDITION.search(text)
    return match is not None and (match[1].startswith(_DATA_ERRORS) or _DATA_EXCEPTION in text)


def _invalid(error: PySparkException, url: str) -> InvalidRequest:
    return _invalid_text(str(error), url)


def _invalid_text(text: str, url: str) -> InvalidRequest:
    return InvalidRequest(
        f"Spark cannot write the data: {_sentence(text).split('SQLSTATE')[0].strip().rstrip('.')}",
        code="invalid-data",
        url=url,
        hint="nothing was written; the query of the data fails, see the error that caused this one",
    )

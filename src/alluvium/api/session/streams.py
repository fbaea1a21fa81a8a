"""`readStream` and `writeStream` of an enabled session: what PySpark's reader and writer say to tables of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter
from pyspark.sql.types import StructType

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.delta_access import PROVIDER, known_access
from alluvium.api.delta.streams.reader import read_delta_stream
from alluvium.api.delta.streams.writer import start_into, start_into_named
from alluvium.api.engine import session_opener
from alluvium.api.names.paimon_access import PaimonAccess, known_paimon
from alluvium.api.paimon.paimon_sink import start_into_paimon
from alluvium.api.paimon.paimon_stream import read_paimon_stream
from alluvium.api.session.table_paths import table_path
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.spark.streams.queries import ensure_unnamed, said_of_reader, said_of_writer, wants_names

FORMATS = (PROVIDER, "paimon")


def load_stream(
    original: Callable[..., DataFrame],
    self: DataStreamReader,
    path: str | None = None,
    format: str | None = None,
    schema: StructType | str | None = None,
    **options: Any,
) -> DataFrame:
    """`DataStreamReader.load`."""
    if format is not None:
        self.format(format)
    if schema is not None:
        self.schema(schema)
    self.options(**options)
    said = said_of_reader(self)
    if said.format.lower() not in FORMATS:
        return original(self, path)
    with counterparts("readStream", said.format):
        spark = self._spark
        ensure_unnamed(said.name, wants_names(spark))
        read = read_delta_stream if said.format.lower() == PROVIDER else read_paimon_stream
        rows = read(spark, table_path(spark, path, said.options, "load"), said.options, session_opener(spark, None))
        if said.schema is not None and said.schema.simpleString() != rows.schema.simpleString():
            raise InvalidRequest(
                f"the table has other columns than the schema that is given: {rows.schema.simpleString()}, not "
                f"{said.schema.simpleString()}",
                code="schema-given",
                hint="leave .schema(...) out: it comes from the table",
            )
        return rows


def stream_table(original: Callable[..., DataFrame], self: DataStreamReader, tableName: str) -> DataFrame:
    """`DataStreamReader.table`."""
    spark = self._spark
    access = known_access(spark, tableName)
    if access is not None:
        with counterparts("readStream"):
            said = said_of_reader(self)
            ensure_unnamed(said.name, wants_names(spark))
            return read_delta_stream(spark, access.url, said.options, session_opener(spark, None))
    paimon = known_paimon(spark, tableName)
    if paimon is None:
        return original(self, tableName)
    said = said_of_reader(self)
    ensure_unnamed(said.name, wants_names(spark))
    options = {**said.options, **_branch(paimon)}
    return read_paimon_stream(spark, paimon.url, options, session_opener(spark, None))


def start_stream(
    original: Callable[..., StreamingQuery],
    self: DataStreamWriter,
    path: str | None = None,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: str | list[str] | None = None,
    queryName: str | None = None,
    **options: Any,
) -> StreamingQuery:
    """`DataStreamWriter.start`."""
    tell_writer(self, format, outputMode, partitionBy, queryName, options)
    said = said_of_writer(self)
    if said.format.lower() not in FORMATS:
        return original(self, path)
    start = start_into if said.format.lower() == PROVIDER else start_into_paimon
    with counterparts("writeStream", said.format):
        return start(self, table_path(self._spark, path, said.options, "start"), session_opener(self._spark, None))


def stream_to_table(
    original: Callable[..., StreamingQuery],
    self: DataStreamWriter,
    tableName: str,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: str | list[str] | None = None,
    queryName: str | None = None,
    **options: Any,
) -> StreamingQuery:
    """`DataStreamWriter.toTable`."""
    tell_writer(self, format, outputMode, partitionBy, queryName, options)
    spark, said = self._spark, said_of_writer(self)
    paimon = known_paimon(spark, tableName)
    if paimon is not None:
        self.options(**_branch(paimon))
        return start_into_paimon(self, paimon.url, session_opener(spark, None))
    is_ours = known_access(spark, tableName) is not None
    if not is_ours and not (said.format.lower() in FORMATS and not spark.catalog.tableExists(tableName)):
        return original(self, tableName)
    with counterparts("writeStream", said.format):
        if not is_ours:
            _ensure_delta(said.format)
        return start_into_named(self, tableName, session_opener(spark, None), self._df.schema)


def _branch(access: PaimonAccess) -> dict[str, str]:
    return {} if access.branch is None else {"branch": access.branch}


def tell_writer(
    writer: DataStreamWriter,
    format: str | None,
    mode: str | None,
    partitions: str | list[str] | None,
    name: str | None,
    options: dict[str, Any],
) -> None:
    """As PySpark's own methods do with what they are given."""
    writer.options(**options)
    if mode is not None:
        writer.outputMode(mode)
    if partitions is not None:
        writer.partitionBy(partitions)
    if format is not None:
        writer.format(format)
    if name is not None:
        writer.queryName(name)


def _ensure_delta(name: str) -> None:
    if name.lower() != PROVIDER:
        raise UnsupportedFeature(
            f"a stream makes no {name} table by its name",
            code="unsupported-stream",
            features=("streams",),
            hint='make it first, by CREATE TABLE; or name the path: .start("/data/table")',
        )

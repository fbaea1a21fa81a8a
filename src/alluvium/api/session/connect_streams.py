"""`readStream` and `writeStream` over Spark Connect: what the client can run; all else is refused, with what works.

Loaded by name, for its packages are not there without Connect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.types import StructType

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.delta_access import PROVIDER
from alluvium.api.delta.streams.reader import read_delta_stream
from alluvium.api.delta.streams.writer import delta_sink
from alluvium.api.engine import session_opener
from alluvium.api.paimon.paimon_sink import paimon_sink
from alluvium.api.paimon.paimon_stream import read_paimon_stream
from alluvium.api.session.streams import FORMATS, tell_writer
from alluvium.api.session.table_paths import table_path
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.plan.ports import ScanSource
from alluvium.spark.streams.client.checkpoint import open_checkpoint
from alluvium.spark.streams.client.frame import StreamedScan, batch_frame, ensure_stateless, scans_of
from alluvium.spark.streams.client.query import ClientQuery, Trigger
from alluvium.spark.streams.queries import SaidOfWriter, ensure_unnamed
from alluvium.spark.streams.sink import Batch, WriteBatch
from alluvium.storage.store import Store

_FUNCTION = "_alluvium_foreach_batch"
_SPAN = re.compile(r"\s*(?:interval\s+)?(\d+(?:\.\d+)?)\s*(\w+)\s*", re.IGNORECASE)
_SECONDS = {"millisecond": 0.001, "ms": 0.001, "second": 1.0, "s": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


def load_stream(
    original: Callable[..., DataFrame],
    self: Any,
    path: str | None = None,
    format: str | None = None,
    schema: object = None,
    **options: Any,
) -> DataFrame:
    """`DataStreamReader.load` of a Connect session."""
    if format is not None:
        self.format(format)
    if schema is not None:
        self.schema(schema)
    self.options(**options)
    named = str(self._format).lower()
    if named not in FORMATS:
        return original(self, path)
    spark: SparkSession = self._client
    with counterparts("readStream", named):
        if self._schema:
            raise InvalidRequest(
                "the schema of a table comes from the table", code="schema-given", hint="leave .schema(...) out"
            )
        # Of Spark 4.2 and later.
        ensure_unnamed(getattr(self, "_source_name", None))
        read = read_delta_stream if named == PROVIDER else read_paimon_stream
        return read(spark, table_path(spark, path, self._options, "load"), self._options, session_opener(spark, None))


def stream_table(original: Callable[..., DataFrame], self: Any, tableName: str) -> DataFrame:
    """`DataStreamReader.table` of a Connect session."""
    if tableName.strip().lower().startswith(tuple(f"{name}.`" for name in FORMATS)):
        _refuse("a stream of a table by its name", 'name its path: .format(...).load("s3://bucket/table")')
    return original(self, tableName)


def foreach_batch(original: Callable[..., Any], self: Any, func: Callable[[DataFrame, int], None]) -> Any:
    """`DataStreamWriter.foreachBatch` of a Connect session: of a stream of ours, the client calls the function."""
    if not _scans(self):
        return original(self, func)
    setattr(self, _FUNCTION, func)
    return self


def start_stream(
    original: Callable[..., Any],
    self: Any,
    path: str | None = None,
    format: str | None = None,
    outputMode: str | None = None,
    partitionBy: str | list[str] | None = None,
    queryName: str | None = None,
    **options: Any,
) -> Any:
    """`DataStreamWriter.start` of a Connect session."""
    tell_writer(self, format, outputMode, partitionBy, queryName, options)
    scans, said = _scans(self), _said(self)
    if scans:
        with counterparts("writeStream", said.format):
            return _start(self, scans, said, path)
    write = self._write_proto
    if said.format.lower() in FORMATS and not (write.HasField("foreach_batch") or write.HasField("foreach_writer")):
        if not ConnectFrame(self._write_stream._child, self._session).isStreaming:
            # A text of SQL and a view are the server's, which sees of a stream of ours only that it has no rows.
            _refuse(
                "a stream within a text of SQL or a view, if there is one (to the server, this query is none),",
                "put the query together by methods of DataFrame, such as selectExpr, on what readStream gives",
            )
        _refuse(
            f"a stream of the server's into {said.format} tables",
            "write it in foreachBatch by alluvium.write(batch, url, mode='append', txnAppId=..., txnVersion=number), "
            "where Alluvium is installed on the server",
        )
    return original(self, path)


def stream_to_table(original: Callable[..., Any], self: Any, tableName: str, *args: Any, **kwargs: Any) -> Any:
    """`DataStreamWriter.toTable` of a Connect session."""
    named = kwargs.get("format") or (args[0] if args else None) or self._write_proto.format
    if _scans(self) or str(named).lower() in FORMATS:
        _refuse("a stream into a table by its name", 'name its path: .start("s3://bucket/table")')
    return original(self, tableName, *args, **kwargs)


def _refuse(what: str, instead: str) -> NoReturn:
    raise UnsupportedFeature(
        f"{what} needs the driver's JVM, which a session of Spark Connect has not",
        code="no-jvm-for-streams",
        features=("streams",),
        hint=f"run the query on a classic session; or {instead}",
    )


def _scans(writer: Any) -> list[StreamedScan]:
    return scans_of(writer._write_stream._child)


def _said(writer: Any) -> SaidOfWriter:
    write = writer._write_proto
    trigger = write.WhichOneof("trigger") or ""
    is_live = trigger in ("continuous_checkpoint_interval", "real_time_batch_duration")
    return SaidOfWriter(
        format=str(write.format),
        options=dict(write.options),
        mode=str(write.output_mode or "append").capitalize(),
        trigger="Continuous" if is_live else trigger,
        partition_by=tuple(write.partitioning_column_names),
        cluster_by=tuple(write.clustering_column_names),
    )


def _start(writer: Any, scans: Sequence[StreamedScan], said: SaidOfWriter, path: str | None) -> ClientQuery:
    spark, plan, scan = writer._session, writer._write_stream._child, scans[0]
    if len(scans) > 1:
        _refuse("a query of several streams", "run one for each")
    function = getattr(writer, _FUNCTION, None)
    open_any, name = session_opener(spark, None), str(writer._write_proto.query_name) or None
    trigger = _trigger(writer, said)
    if said.mode != "Append" and not (function is not None and said.mode == "Update"):
        _refuse(f"the output mode {said.mode.lower()}, which needs state,", 'take outputMode("append")')
    ensure_stateless(spark, plan, scan)
    if function is None:
        target = _target(spark, ConnectFrame(plan, spark).schema, said, path, open_any)
    checkpoint = open_checkpoint(open_any(_checkpoint(spark, said, name)))

    def run(sources: Sequence[ScanSource], number: int) -> None:
        rows = batch_frame(spark, plan, scan, sources)
        if function is not None:
            function(rows, number)
        else:
            target.write(Batch(rows, number, checkpoint.query, rows))

    sink = "ForeachBatchSink" if function is not None else target.name
    return ClientQuery(name, scan.stream, checkpoint, trigger, run, sink)


def _target(
    spark: SparkSession, schema: StructType, said: SaidOfWriter, path: str | None, open_any: Callable[[str], Store]
) -> WriteBatch:
    named = said.format.lower()
    if named == PROVIDER:
        return delta_sink(schema, said, table_path(spark, path, said.options, "start"), open_any)
    if named == "paimon":
        return paimon_sink(spark, said, table_path(spark, path, said.options, "start"), open_any)
    _refuse(
        f"a stream of a table of ours into {said.format or 'what foreach takes'}",
        "write it in foreachBatch, which the client calls",
    )


def _trigger(writer: Any, said: SaidOfWriter) -> Trigger:
    if said.trigger == "Continuous":
        raise InvalidRequest(
            "a continuous trigger is not known here",
            code="unsupported-trigger",
            hint='trigger(processingTime="1 second"), or trigger(availableNow=True)',
        )
    if said.trigger in ("once", "available_now"):
        return Trigger(ends=True, at_once=said.trigger == "once")
    text = writer._write_proto.processing_time_interval if said.trigger else ""
    if not text:
        return Trigger()
    match = _SPAN.fullmatch(text)
    unit = None if match is None else _SECONDS.get(match[2].lower()) or _SECONDS.get(match[2].lower().rstrip("s"))
    if match is None or unit is None:
        raise InvalidRequest(
            f"{text!r} is no time between batches", code="invalid-option", hint='processingTime="10 seconds"'
        )
    return Trigger(every_s=float(match[1]) * unit or None)


def _checkpoint(spark: SparkSession, said: SaidOfWriter, name: str | None) -> str:
    given = next((v for k, v in said.options.items() if k.lower() == "checkpointlocation"), None)
    if given:
        return given
    below = spark.conf.get("spark.sql.streaming.checkpointLocation", None)
    if below and name:
        return f"{below.rstrip('/')}/{name}"
    raise InvalidRequest(
        "a stream that the client runs needs a checkpointLocation",
        code="no-checkpoint",
        hint='.option("checkpointLocation", "s3://bucket/checkpoint")',
    )

"""`writeStream` into Delta tables: what can be known before the first batch is refused before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.creation.create import create
from alluvium.api.delta.creation.request import Mode, Wanted
from alluvium.api.delta.delta_access import TableAccess, table_access
from alluvium.api.delta.delta_columns import fields_of
from alluvium.api.delta.frames.writer import write_parsed
from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.delta.written.options import engine_options, parse_clusters, parse_rebalance
from alluvium.api.delta.written.target import ensure_clustered_alike
from alluvium.api.engine import engine_of
from alluvium.api.options import PARQUET_WRITE, Options, parse_options
from alluvium.delta.description.create import (
    as_nullable,
    clustered_by,
    kept_by_new,
    new_config,
    resolve_partition_columns,
)
from alluvium.delta.features.rows.append_only import ensure_removable
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.write.target import STREAMING
from alluvium.errors import InvalidRequest, NotFound
from alluvium.plan.changes import Operation
from alluvium.schema.types import VOID, Struct
from alluvium.schema.walk import fields_within
from alluvium.spark.naming.types import from_spark
from alluvium.spark.streams.queries import SaidOfWriter, said_of_writer, start_query
from alluvium.spark.streams.sink import Batch
from alluvium.spark.values.columns import Assignment
from alluvium.storage.locating import locating
from alluvium.storage.store import Store

WRITE_STREAM = (
    "path", "checkpointLocation", "queryName", "mergeSchema", "overwriteSchema", "userMetadata", "optimizeWrite",
    "clusterBy", *PARQUET_WRITE,
)  # fmt: skip
#: As the history has them, by Spark's.
_SAVE_MODES = {"Append": "Append", "Complete": "Overwrite"}


@dataclass(frozen=True, slots=True)
class DeltaSink:
    """Implements `spark.streams.sink.WriteBatch`: a batch is a commit, its transaction the query's id and its number.

    Attributes:
        open_any: From a URL to its store.
        url: Of the table.
        said: What the writer was told.
        options: The same, understood.
    """

    open_any: Callable[[str], Store]
    url: str
    said: SaidOfWriter
    options: Options

    @property
    def name(self) -> str:
        return f"DeltaSink[{self.url}]"

    def write(self, batch: Batch) -> bool:
        # Said, so that the session's settings say nothing: a complete output replaces all rows.
        txn = {"txnAppId": batch.query, "txnVersion": str(batch.number), "partitionOverwriteMode": "static"}
        with counterparts("stream"):
            committed = write_parsed(
                batch.rows,
                self.open_any(self.url),
                _SAVE_MODES[self.said.mode],
                self.said.partition_by,
                replace(self.options, known={**self.options.known, **txn}),
                assignment=Assignment.STREAM,
                operation_of=lambda config: self._operation(batch),
                open_elsewhere=self.open_any,
                asked=batch.seen,
            )
        return committed.attempts > 0

    def _operation(self, batch: Batch) -> Operation:
        parameters = {"outputMode": self.said.mode, "queryId": batch.query, "epochId": str(batch.number)}
        engine = engine_of(batch.rows.sparkSession)
        return Operation(STREAMING, parameters, {}, engine, self.options.get("userMetadata"))


def start_into(writer: DataStreamWriter, url: str, open_any: Callable[[str], Store]) -> StreamingQuery:
    """Starts a query into the table at a URL, which its first batch creates where there is none.

    Raises:
        InvalidRequest: An output that the sink cannot do, rows that fit no table, a wrong option.
        PySparkException: Spark refuses the query.
    """
    said = said_of_writer(writer)
    options = _understood(said)
    return start_query(writer, _sink(writer._df.schema, said, options, url, open_any))


def delta_sink(schema: StructType, said: SaidOfWriter, url: str, open_any: Callable[[str], Store]) -> DeltaSink:
    """What writes the batches of a query into the table at a URL; errors as of `start_into`, but for Spark's."""
    return _sink(schema, said, _understood(said), url, open_any)


def start_into_named(
    writer: DataStreamWriter, name: str, open_any: Callable[[str], Store], schema: StructType
) -> StreamingQuery:
    """The same into a table by name, which is created at once where there is none.

    Args:
        writer: PySpark's writer.
        name: Of the table, or delta.`/path`.
        open_any: From a URL to its store.
        schema: The rows' columns.
    """
    said = said_of_writer(writer)
    options = _understood(said)
    access = table_access(writer._spark, name)
    if access is None or access.newest() is None:
        access = _created(writer._spark, name, said, options, schema)
    return start_query(writer, _sink(writer._df.schema, said, options, access.url, open_any))


def _created(spark: SparkSession, name: str, said: SaidOfWriter, options: Options, schema: StructType) -> TableAccess:
    columns = as_nullable(kept_by_new(Struct(fields_of(schema)), options.properties))
    assert isinstance(columns, Struct)
    made, _ = create(
        spark,
        Wanted(
            Mode.CREATE,
            name,
            location=options.get("path"),
            columns=columns.fields,
            partition_by=said.partition_by,
            cluster_by=parse_clusters(options),
            properties=options.properties,
        ),
    )
    return made


def _understood(said: SaidOfWriter) -> Options:
    """The options, where this sink can do what is asked."""
    if said.mode not in _SAVE_MODES:
        raise InvalidRequest(
            f"a Delta table cannot take the output mode {said.mode}",
            code="unsupported-output-mode",
            hint='outputMode("append") or ("complete"); to update rows use foreachBatch with DeltaTable.merge',
        )
    if "Continuous" in said.trigger:
        raise InvalidRequest(
            "a Delta table cannot take the output of a continuous trigger",
            code="unsupported-trigger",
            hint='trigger(processingTime="1 second"), or trigger(availableNow=True)',
        )
    options = parse_options(said.options, WRITE_STREAM, ())
    options.flag("mergeSchema"), options.flag("overwriteSchema"), parse_rebalance(options), engine_options(options)
    if not said.cluster_by:
        return options
    return replace(options, known={**options.known, "clusterBy": ", ".join(said.cluster_by)})


def _sink(
    rows: StructType, said: SaidOfWriter, options: Options, url: str, open_any: Callable[[str], Store]
) -> DeltaSink:
    schema = from_spark(rows)
    assert isinstance(schema, Struct)
    void = next((".".join(path) for path, f in fields_within(schema) if f.type == VOID), None)
    if void is not None:
        raise InvalidRequest(
            "a stream cannot write a column that has only nulls and no type",
            code="void-column",
            column=void,
            hint='cast it: lit(None).cast("string")',
        )
    snapshot = _snapshot(open_any(url), open_any)
    if snapshot is not None and said.mode == "Complete":
        # Each batch replaces the one before: the first would be taken, the next one refused.
        with locating(snapshot.store, snapshot.version):
            ensure_removable(snapshot.config)
    _ensure_layout(schema, said, snapshot, options)
    return DeltaSink(open_any, url, said, options)


def _snapshot(store: Store, open_any: Callable[[str], Store]) -> Snapshot | None:
    try:
        return open_snapshot(store, open_elsewhere=open_any)
    except NotFound as error:
        if error.code != "not-a-table":
            raise
        return None


def _ensure_layout(schema: Struct, said: SaidOfWriter, snapshot: Snapshot | None, options: Options) -> None:
    """Refuses partition and clustering columns that the table does not have, or could not get."""
    clusters = parse_clusters(options)
    if snapshot is not None:
        ensure_clustered_alike(snapshot, clusters)
    elif clusters:
        clustered_by(new_config(schema, said.partition_by, {}, clusters), clusters)
    if not said.partition_by:
        return
    named = resolve_partition_columns(schema, said.partition_by)
    if snapshot is None or (said.mode == "Complete" and options.flag("overwriteSchema")):
        return
    config = snapshot.config
    if resolve_partition_columns(config.schema, named) != config.partition_columns:
        raise InvalidRequest(
            f"the table is partitioned by {', '.join(config.partition_columns) or 'nothing'}, not by "
            f"{', '.join(named)}",
            code="partition-mismatch",
            hint="leave partitionBy out",
        )

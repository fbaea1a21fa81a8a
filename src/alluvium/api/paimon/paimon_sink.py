"""`writeStream` into Paimon tables: a batch is a commit, of the query's id and its number.

Of tables with a primary key the rows of a batch take the place of those with their keys, as any rows that are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from alluvium.api.paimon.paimon_writer import parse_paimon_options, write_paimon
from alluvium.errors import InvalidRequest, NotFound, UnsupportedFeature
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.plan.retry import DEFAULT_RETRY
from alluvium.spark.kept import unpersist_rows
from alluvium.spark.sessions.session import time_zone
from alluvium.spark.streams.queries import SaidOfWriter, said_of_writer, start_query
from alluvium.spark.streams.sink import Batch
from alluvium.storage.store import Store

_SAVE_MODES = {"Append": "Append", "Complete": "Overwrite"}
#: Of Spark's, not of tables.
_OF_QUERIES = ("checkpointlocation", "queryname", "path")


@dataclass(frozen=True, slots=True)
class PaimonSink:
    """Implements `spark.streams.sink.WriteBatch`.

    Attributes:
        open_any: From a URL to its store.
        url: Of the table.
        said: What the writer was told.
        options: Of it those that are the table's.
        is_keyed: Whether the table has a primary key.
    """

    open_any: Callable[[str], Store]
    url: str
    said: SaidOfWriter
    options: Mapping[str, str]
    is_keyed: bool

    @property
    def name(self) -> str:
        return f"PaimonSink[{self.url}]"

    def write(self, batch: Batch) -> bool:
        options = {**self.options, "txnAppId": batch.query, "txnVersion": str(batch.number)}
        store, mode = self.open_any(self.url), _SAVE_MODES[self.said.mode]
        names, seen = self.said.partition_by, batch.seen
        if not self.is_keyed:
            return write_paimon(batch.rows, store, mode, names, options, DEFAULT_RETRY, asked=seen).attempts > 0
        # Keys are assigned to buckets by a job of its own, and a batch's rows are to be computed once.
        rows = batch.rows.persist()
        try:
            return write_paimon(rows, store, mode, names, options, DEFAULT_RETRY, asked=seen).attempts > 0
        finally:
            unpersist_rows(rows)


def start_into_paimon(writer: DataStreamWriter, url: str, open_any: Callable[[str], Store]) -> StreamingQuery:
    """Starts a query into the table at a URL, which its first batch creates where there is none.

    Raises:
        InvalidRequest: An output that the sink cannot do, or a wrong option.
        UnsupportedFeature: The table is to be clustered (`unsupported-stream`).
        PySparkException: Spark refuses the query.
    """
    return start_query(writer, paimon_sink(writer._spark, said_of_writer(writer), url, open_any))


def paimon_sink(spark: SparkSession, said: SaidOfWriter, url: str, open_any: Callable[[str], Store]) -> PaimonSink:
    """What writes the batches of a query into the table at a URL; errors as of `start_into_paimon`, but for Spark's."""
    if said.mode not in _SAVE_MODES:
        raise InvalidRequest(
            f"a Paimon table cannot take the output mode {said.mode}",
            code="unsupported-output-mode",
            hint='outputMode("append") or ("complete")',
        )
    if "Continuous" in said.trigger:
        raise InvalidRequest(
            "a Paimon table cannot take the output of a continuous trigger",
            code="unsupported-trigger",
            hint='trigger(processingTime="1 second"), or trigger(availableNow=True)',
        )
    options = {key: value for key, value in said.options.items() if key.lower() not in _OF_QUERIES}
    if said.cluster_by:
        raise UnsupportedFeature(
            "a stream does not cluster Paimon tables",
            code="unsupported-stream",
            features=("clusterBy",),
            hint="leave clusterBy out",
        )
    table = parse_paimon_options(options).table
    return PaimonSink(open_any, url, said, options, _has_key(spark, open_any(url), "primary-key" in table))


def _has_key(spark: SparkSession, store: Store, makes_key: bool) -> bool:
    try:
        return bool(load_snapshot(store, At(), time_zone=time_zone(spark)).schema.primary_keys)
    except NotFound as error:
        if error.code != "not-a-table":
            raise
        return makes_key

"""Paimon's door with Spark, as `api.doors` asks for it."""

from __future__ import annotations

from pyspark.sql import DataFrame

from alluvium.api.calls import Reading, Writing, tell_partitions
from alluvium.api.doors import PAIMON, ensure_follows
from alluvium.api.options import asks_for_changes, parse_flag
from alluvium.api.paimon.door import dynamic_options, option_texts, paimon_point
from alluvium.api.paimon.paimon_frame import read_changes, read_view
from alluvium.api.paimon.paimon_writer import write_paimon
from alluvium.api.server_scan import WorkerRequest
from alluvium.errors import InvalidRequest
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.view.source import PaimonSource
from alluvium.plan.changes import Committed
from alluvium.spark.sessions.session import LaneChoice


def read(reading: Reading) -> DataFrame:
    """The rows of a state, or a system table.

    Raises:
        InvalidRequest: The options ask for a change feed, which is Delta's.
    """
    if asks_for_changes(reading.options):
        raise InvalidRequest(
            "readChangeFeed is Delta's, and there is a Paimon table",
            code="unknown-option",
            url=reading.store.url,
            hint="alluvium.changes(spark, url, start, end)",
        )
    asked = reading.asked
    ensure_follows(asked, "it is one of Paimon", reading.store.url)
    request, choice = _request(reading, paimon_point(asked.version, asked.timestamp_ms, asked.tag))
    row_ids = parse_flag(reading.options.get("rowIds"), "rowIds")
    frame = read_view(reading.spark, request, choice, reading.where, reading.columns, asked.system, row_ids)
    assert isinstance(request.source, PaimonSource)
    return tell_partitions(frame, request.source.snapshot.schema.partition_keys)


def changes(reading: Reading, start: object, end: object) -> DataFrame:
    """What came after a snapshot, up to another."""
    request, choice = _request(reading, At())
    return read_changes(reading.spark, request, choice, start, end, reading.asked.mode)


def write(writing: Writing) -> Committed:
    """Rows into a table, which may have to be made."""
    w = writing
    return write_paimon(w.df, w.store, w.save_mode, w.partition_by, w.options, w.retry, w.storage_options)


def _request(reading: Reading, at: At | None) -> tuple[WorkerRequest, LaneChoice]:
    """What workers would be told, and the lane, now that the files are known."""
    asked, zone = reading.asked, reading.time_zone
    # In Spark's spelling, too: `.option("scan.snapshot-id", 1)` is no less said than `options={...}`.
    texts = {**dynamic_options(reading.options.engine), **option_texts(asked.options)}
    branch = asked.branch or MAIN_BRANCH
    source = PaimonSource(load_snapshot(reading.store, at, branch, texts, zone, reading.open_any))
    choice = reading.choice_for(source)
    url, zone = source.snapshot.store.url, source.snapshot.time_zone
    return WorkerRequest(PAIMON, source, url, zone, reading.storage_options, choice.why, source.is_pinned), choice

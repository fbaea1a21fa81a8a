"""Delta's door with Spark, as `api.doors` asks for it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from alluvium.api.calls import Reading, Writing
from alluvium.api.delta.frames.reader import load_asked, read_changes, read_rows
from alluvium.api.delta.frames.writer import write_parsed
from alluvium.api.delta.snapshots import ensure_asks_of_delta, open_snapshot
from alluvium.api.options import WRITE, WRITE_LATER, parse_bound, parse_options
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.plan.changes import Committed
from alluvium.schema.text_lengths import char_paths
from alluvium.spark.naming.text_lengths import pads_when_reading


def read(reading: Reading) -> DataFrame:
    """The rows of a version, or the changes that the options ask for."""
    ensure_asks_of_delta(reading.store, reading.asked)
    snapshot = load_asked(reading)
    if reading.kept is not None and not snapshot.state.deferred:
        # The frame goes on to look for newer versions by the store that it was made with.
        settings = (snapshot.time_zone, snapshot.store.url, snapshot.store.access, _pads(reading.spark, snapshot))
        return reading.kept.once(snapshot.state, settings, lambda: _rows(reading, snapshot))
    return _rows(reading, snapshot)


def _pads(spark: SparkSession, snapshot: Snapshot) -> bool | None:
    """Whether Spark pads texts of type char(n) when they are read, as it does in the frame; None: there are none."""
    has_chars = snapshot.once("chars", lambda: bool(char_paths(snapshot.config.schema)))
    return pads_when_reading(spark) if has_chars else None


def _rows(reading: Reading, snapshot: Snapshot) -> DataFrame:
    return read_rows(reading, snapshot, reading.choice_for(DeltaSource(snapshot)))


def changes(reading: Reading, start: object, end: object) -> DataFrame:
    """The change feed of a range of versions."""
    ensure_asks_of_delta(reading.store, reading.asked)
    zone = reading.time_zone
    bounds = parse_bound(start, "start", zone), None if end is None else parse_bound(end, "end", zone)
    snapshot = open_snapshot(reading.store, None, None, zone, reading.open_any)
    return read_changes(reading.spark, snapshot, *bounds, reading.choice)


def write(writing: Writing) -> Committed:
    """Rows into a table, which may have to be made."""
    w, parsed = writing, parse_options(writing.options, WRITE, WRITE_LATER)
    return write_parsed(w.df, w.store, w.save_mode, w.partition_by, parsed, w.retry, open_elsewhere=w.open_any)

"""Reading with Spark."""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession

from alluvium.api.delta.snapshots import open_snapshot
from alluvium.api.doors import ensure_no_paimon, is_paimon
from alluvium.api.engine import session_opener
from alluvium.api.options import (
    READ,
    READ_LATER,
    Options,
    as_of,
    asks_for_changes,
    change_bounds,
    has_point,
    parse_bound,
    parse_flag,
    parse_options,
    point_in_path,
)
from alluvium.api.paimon.door import option_texts, paimon_point
from alluvium.api.paimon.paimon_frame import narrowed, read_changes, read_view
from alluvium.api.server_scan import WorkerRequest, read_by_workers, resolve_columns
from alluvium.commands.large_log import LargeSource, checkpoint_limit
from alluvium.delta.changes.bounds import Bound
from alluvium.delta.changes.schema import SchemaMode
from alluvium.delta.changes.source import load_changes
from alluvium.delta.features.rows.row_tracking import (
    ensure_enabled,
    with_metadata_columns,
)
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.parse import parse_predicate
from alluvium.paimon.log.schema_log import MAIN_BRANCH
from alluvium.paimon.log.snapshot import load_snapshot as load_paimon
from alluvium.paimon.log.travel import At
from alluvium.paimon.view.source import PaimonSource
from alluvium.plan.ports import ScanSource
from alluvium.schema.types import Struct
from alluvium.spark.naming.types import show_not_null
from alluvium.spark.scan.native_lane.native import read_native
from alluvium.spark.sessions.session import LaneChoice, choose_lane, time_zone
from alluvium.storage.paths import is_near
from alluvium.storage.store import Store

_SCHEMA_MODE = "spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable"
#: Whether `path@v2` is version 2 of the table at `path`.
_AT_IN_PATH = "spark.databricks.delta.timeTravel.resolveOnIdentifier.enabled"
_OUT_OF_RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
#: `legacy` lets time travel choose the schema, which a change feed refuses: what is left of it is the latest.
_SCHEMA_MODES: Mapping[str, SchemaMode] = {"endversion": "endVersion", "latest": "latest", "legacy": "latest"}


def read(
    spark: SparkSession,
    url: str,
    version: int | None = None,
    timestamp: dt.datetime | dt.date | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    where: str | Column | None = None,
    columns: Sequence[str] | None = None,
    lane: str | None = None,
    *,
    tag: str | None = None,
    branch: str | None = None,
    table_options: Mapping[str, object] | None = None,
    system: str | None = None,
    **options: object,
) -> DataFrame:
    """A table as a DataFrame on Spark's own Parquet reader.

    Any later `where`, join or SQL on it skips files by partition values and statistics (over Spark Connect: `where`
    and `filter` that follow at once). The version is pinned: the DataFrame gives the same rows however often it is
    evaluated. A log larger than `spark.alluvium.log.maxCheckpointBytes` is read by Spark: see `docs/scale.md`.

    Args:
        spark: A session, classic or of Spark Connect.
        url: A local path or URL; `path@v2` and `path@yyyyMMddHHmmssSSS` name a point in time, as in delta-spark.
        version: This version instead of the newest.
        timestamp: The newest version committed at or before this time: a `datetime` (naive: UTC), or text, which is in
            the session's time zone unless it names its own, as in delta-spark.
        storage_options: Credentials for reading the log; the data files are read by Spark's file systems.
        where: Only rows for which this is true.
        columns: Only these.
        lane: `"native"`, `"connect"` or `"python"` instead of the one that `explain` would name.
        tag: Of Paimon: the snapshot that has this tag.
        branch: Of Paimon: the table as this branch has it.
        table_options: Of Paimon: dynamic table options, or `options={...}`.
        system: Of Paimon: a system table instead of the rows, as `PaimonView.system` has it.
        **options: Spark's spelling: `versionAsOf`, `timestampAsOf`; `readChangeFeed` with `startingVersion` and the
            like (see `changes`); `rowIds=True`, for two columns more: `_row_id` and `_row_commit_version`, or of Paimon
            `_ROW_ID` and `_SEQUENCE_NUMBER`, which `columns` may name, too.

    Raises:
        NotFound: There is no table, or not that version.
        UnsupportedFeature: The table or an option needs something that is not implemented.
        InvalidRequest: An unknown option or column, no predicate, storage unseen by the server, a stopped session.

    Example:
        >>> alluvium.read(spark, "/data/flights").where("month = 1").count()
    """
    table_options = _dynamic(options.pop("options", table_options))
    parsed = parse_options(options, READ, READ_LATER)
    # A lane that is impossible, or a session that was stopped, is said before anything is read.
    choice = choose_lane(spark, lane)
    zone = time_zone(spark)
    at_version, at_ms = _point(parsed, version, timestamp, zone)
    open_any = session_opener(spark, storage_options)
    store, at_version, at_ms = _travelled(spark, url, open_any, at_version, at_ms, zone)
    _ensure_changes(parsed, store, url, at_version, at_ms)
    if is_paimon(store):
        at, texts = paimon_point(at_version, at_ms, tag), option_texts(table_options)
        source = PaimonSource(load_paimon(store, at, branch or MAIN_BRANCH, texts, zone, open_any))
        request, choice = _paimon_request(spark, source, lane, choice, storage_options)
        row_ids = parse_flag(parsed.get("rowIds"), "rowIds")
        return read_view(spark, request, choice, _read_source, where, columns, system, row_ids)
    ensure_no_paimon(store, tag, branch, table_options, system)
    snapshot = open_snapshot(store, at_version, at_ms, zone, open_any, _log_limit(spark, parsed, choice))
    if choice.lane == "connect":
        choice = choose_lane(spark, lane, lambda: _unreachable(spark, DeltaSource(snapshot), store.url))
    return _read_delta(
        spark, snapshot, (at_version, at_ms) != (None, None), parsed, choice, storage_options, where, columns
    )


def _point(parsed: Options, version: object, timestamp: object, zone: str) -> tuple[int | None, int | None]:
    """The one point in time that arguments and options name."""
    point = as_of(
        version if version is not None else parsed.get("versionAsOf"),
        timestamp if timestamp is not None else parsed.get("timestampAsOf"),
        zone,
    )
    _ensure_no_properties(parsed)
    return point


def _travelled(
    spark: SparkSession,
    url: str,
    open_any: Callable[[str], Store],
    at_version: int | None,
    at_ms: int | None,
    zone: str,
) -> tuple[Store, int | None, int | None]:
    """The table's store, and the point in time that is asked for, be it by `path@v2`.

    A table whose own path ends like that is read as it is.

    Raises:
        InvalidRequest: The path names a point in time, and so does something else.
    """
    store = open_any(url)
    if not has_point(str(url)) or str(spark.conf.get(_AT_IN_PATH, "true")).casefold() != "true":
        return store, at_version, at_ms
    if is_paimon(store) or store.list_from("_delta_log"):
        return store, at_version, at_ms
    path, path_version, path_ms = point_in_path(str(url), zone)
    if (at_version, at_ms) != (None, None):
        raise InvalidRequest(
            f"{url!r} names a point in time, and so do the options", code="version-and-timestamp", url=path
        )
    return open_any(path), path_version, path_ms


def _read_delta(
    spark: SparkSession,
    snapshot: Snapshot,
    is_pinned: bool,
    parsed: Options,
    choice: LaneChoice,
    storage_options: Mapping[str, str] | None,
    where: str | Column | None,
    columns: Sequence[str] | None,
) -> DataFrame:
    if asks_for_changes(parsed):
        return narrowed(_changes(spark, snapshot, *change_bounds(parsed, snapshot.time_zone), choice), where, columns)
    zone = snapshot.time_zone
    schema = _ensure_row_ids(snapshot, choice) if parse_flag(parsed.get("rowIds"), "rowIds") else snapshot.config.schema
    predicate = parse_predicate(where, schema, zone) if isinstance(where, str) else None
    names = None if columns is None else resolve_columns(columns, schema.names)
    if choice.lane == "python":
        request = WorkerRequest(DeltaSource(snapshot, (), is_pinned), zone, dict(storage_options or {}), choice.why)
        return read_by_workers(spark, request, names, where, predicate)
    if snapshot.state.deferred:
        return narrowed(_read_source(spark, LargeSource(spark, snapshot, is_pinned), choice), where, names)
    extra = tuple(name for name in schema.names if snapshot.config.schema.find(name) is None)
    frame = narrowed(_read_source(spark, DeltaSource(snapshot, extra, is_pinned), choice), where, names)
    return show_not_null(frame, snapshot.config.schema) if choice.lane == "native" else frame


def _ensure_row_ids(snapshot: Snapshot, choice: LaneChoice) -> Struct:
    """The columns of a result that has row ids.

    Raises:
        InvalidRequest: `"row-tracking-disabled"`.
        UnsupportedFeature: The lane cannot give them.
    """
    if choice.lane == "python" or snapshot.state.deferred:
        why = "its log is read by Spark" if choice.lane == "native" else choice.why
        raise UnsupportedFeature(
            f"row ids cannot be read this way: {why}",
            code="unsupported-option",
            features=("rowIds",),
            hint="read them without Spark: alluvium.open(url).to_arrow(columns=['*', '_row_id'])",
        )
    ensure_enabled(snapshot.config)
    return with_metadata_columns(snapshot.config)


def _ensure_no_properties(options: Options) -> None:
    if options.properties:
        name = next(iter(options.properties))
        raise InvalidRequest(f"table property {name!r} is no option for reading", code="unknown-option")


def _paimon_request(
    spark: SparkSession,
    source: PaimonSource,
    lane: str | None,
    choice: LaneChoice,
    storage_options: Mapping[str, str] | None,
) -> tuple[WorkerRequest, LaneChoice]:
    """What workers would be told, and the lane, now that the files are known."""
    if choice.lane == "connect":
        choice = choose_lane(spark, lane, lambda: _unreachable(spark, source, source.snapshot.store.url))
    return WorkerRequest(source, source.snapshot.time_zone, dict(storage_options or {}), choice.why), choice


def _log_limit(spark: SparkSession, parsed: Options, choice: LaneChoice) -> int | None:
    """The size from which on a log is left for Spark to read; None: only a JVM reads such, and no change feed."""
    return None if asks_for_changes(parsed) or choice.lane != "native" else checkpoint_limit(spark)


def _ensure_changes(parsed: Options, store: Store, url: str, at_version: int | None, at_ms: int | None) -> None:
    """Refuses a change feed as of a point in time, and of a Paimon table."""
    if not asks_for_changes(parsed):
        return
    if (at_version, at_ms) != (None, None):
        raise InvalidRequest(
            "a change feed is read from a range, not as of a version",
            code="changes-as-of",
            hint="give startingVersion and endingVersion",
        )
    if is_paimon(store):
        raise InvalidRequest(
            "readChangeFeed is Delta's, and there is a Paimon table",
            code="unknown-option",
            url=url,
            hint="alluvium.changes(spark, url, start, end)",
        )


def _dynamic(options: object) -> Mapping[str, object] | None:
    if options is not None and not isinstance(options, Mapping):
        raise InvalidRequest("options must be a mapping of names to values", code="invalid-option")
    return options


def _read_source(spark: SparkSession, source: ScanSource, choice: LaneChoice) -> DataFrame:
    """A source on one of the lanes of Spark's own Parquet reader."""
    if choice.lane == "native":
        return read_native(spark, source)
    # Spark Connect needs packages that a classic session does without.
    connect = importlib.import_module("alluvium.spark.scan.connect_lane.connect_frame")
    is_pinned = isinstance(source, DeltaSource) and source.is_pinned
    frame: DataFrame = connect.read_connect(spark, source, choice.why, is_pinned=is_pinned)
    return frame


def _unreachable(spark: SparkSession, source: ScanSource, url: str) -> str | None:
    """Why the server cannot read the files itself, though its Python workers may.

    Raises:
        InvalidRequest: `"unreachable-storage"`: the storage is this machine's alone, so that the workers cannot either.
    """
    connect = importlib.import_module("alluvium.spark.scan.connect_lane.connect")
    problem: str | None = connect.unreachable(spark, source.plan_scan(None))
    if problem is not None and is_near(url):
        raise connect.cannot_be_seen(url, problem)
    return problem


def changes(
    spark: SparkSession,
    url: str,
    start: int | dt.datetime | dt.date | str,
    end: int | dt.datetime | dt.date | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    mode: str = "auto",
    branch: str | None = None,
    options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Which rows versions of a table inserted, updated and deleted: of Delta its change data feed, of Paimon what came
    after the snapshot `start` up to `end`.

    Any later `where` on it skips files by version, time, partition values and statistics.

    Args:
        spark: A session, classic or of Spark Connect.
        url: A local path or URL.
        start: The first version, or the first one committed at or after a time: a `datetime` (naive: UTC), or text in
            the session's time zone.
        end: The last version (cut at the latest), or the last one committed at or before a time; None: the latest.
        storage_options: Credentials for reading the log; the data files are read by Spark's file systems.
        mode: Of Paimon: `"auto"`, `"delta"`, `"changelog"` or `"diff"`, see `PaimonView.changes`; `start` and `end`
            are snapshots, tags or times there, and `start` itself is left out.
        branch: Of Paimon: the table as this branch has it.
        options: Of Paimon: dynamic table options.

    Returns:
        Of Paimon `_row_kind` (`+I`, `-U`, `+U`, `-D`), then the columns. Of Delta the table's columns, then
        `_change_type` (`insert`, `update_preimage`, `update_postimage`, `delete`),
        `_commit_version` and `_commit_timestamp`. Specification: "Add CDC File".

    Raises:
        NotFound: There is no table, or the range is not in its log (`missing-version`).
        InvalidRequest: The range ends before it starts (`invalid-range`), changes were not recorded in all of it
            (`change-feed-disabled`), or it has no common schema (`incompatible-schema`).
        UnsupportedFeature: The table needs something that is not implemented.

    Example:
        >>> alluvium.changes(spark, "/data/flights", 3, 7).where("_change_type = 'delete'").count()
    """
    choice = choose_lane(spark)
    zone, open_any = time_zone(spark), session_opener(spark, storage_options)
    store = open_any(url)
    if is_paimon(store):
        state = load_paimon(store, At(), branch or MAIN_BRANCH, option_texts(options), zone, open_any)
        request, choice = _paimon_request(spark, PaimonSource(state), None, choice, storage_options)
        return read_changes(spark, request, choice, _read_source, start, end, mode)
    ensure_no_paimon(store, None, branch, options, None if mode == "auto" else mode)
    bounds = parse_bound(start, "start", zone), None if end is None else parse_bound(end, "end", zone)
    return _changes(spark, open_snapshot(store, None, None, zone, open_any), *bounds, choice)


def _changes(spark: SparkSession, snapshot: Snapshot, start: Bound, end: Bound | None, choice: LaneChoice) -> DataFrame:
    """Settings of the session that delta-spark has for change feeds hold here, too."""
    if choice.lane == "python":
        raise InvalidRequest(
            "Python workers cannot read a change feed", code="lane-impossible", hint="alluvium.open(url).changes(...)"
        )
    asked = str(spark.conf.get(_SCHEMA_MODE, "endVersion")).casefold()
    if asked not in _SCHEMA_MODES:
        raise InvalidRequest(
            f"{_SCHEMA_MODE} is {asked!r}", code="invalid-option", hint="set it to endVersion, latest or legacy"
        )
    lenient = str(spark.conf.get(_OUT_OF_RANGE, "false")).casefold() == "true"
    source = load_changes(snapshot, start, end, schema_mode=_SCHEMA_MODES[asked], allow_out_of_range=lenient)
    return _read_source(spark, source, choice)

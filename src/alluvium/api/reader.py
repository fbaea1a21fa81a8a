"""Reading with Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession

from alluvium.api.calls import KeptRows, Reading
from alluvium.api.doors import Asked, format_at, has_table
from alluvium.api.engine import session_opener
from alluvium.api.options import (
    READ,
    READ_LATER,
    Options,
    as_of,
    asks_for_changes,
    has_point,
    parse_flag,
    parse_options,
    point_in_path,
)
from alluvium.errors import InvalidRequest
from alluvium.spark.sessions.session import choose_lane, time_zone
from alluvium.spark.sessions.settings import read_flag
from alluvium.storage.open import access_of
from alluvium.storage.store import Store

#: Whether `path@v2` is version 2 of the table at `path`.
AT_IN_PATH = "spark.databricks.delta.timeTravel.resolveOnIdentifier.enabled"

#: Of `follow`: as delta-spark's frames do, but where they cannot.
WHERE_POSSIBLE = "where-possible"


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
    follow: bool | str = False,
    **options: object,
) -> DataFrame:
    """A table as a DataFrame on Spark's own Parquet reader.

    Any later `where`, join or SQL on it skips files by partition values and statistics (over Spark Connect: `where`
    and `filter` that follow at once). The version is pinned: the DataFrame gives the same rows however often it is
    evaluated, unless it is to `follow` the table. A log larger than `spark.alluvium.log.maxCheckpointBytes` is read by
    Spark: see `docs/scale.md`.

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
        follow: Of Delta, in a classic session: whether each query shows the newest version, as far as its columns are
            as they were (`"table-changed"`); so delta-spark's frames do, and those of `spark.read` and of names. Where
            it is asked for and cannot be had, that is an error; of `"where-possible"` none.
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
    _ensure_changes_of_a_range(parsed, at_version, at_ms)
    must_follow = follow != WHERE_POSSIBLE and parse_flag(str(follow), "follow")
    follows = must_follow or follow == WHERE_POSSIBLE
    asked = Asked(at_version, at_ms, tag, branch, table_options, system, follows=follows, must_follow=must_follow)
    access = access_of(storage_options)
    return format_at(store).frame_door.read(
        Reading(spark, store, open_any, zone, asked, lane, choice, access, parsed, where, columns)
    )


def read_again(
    spark: SparkSession,
    url: str,
    kept: KeptRows,
    version: int | None = None,
    timestamp: dt.datetime | None = None,
    tag: str | None = None,
) -> DataFrame:
    """As `read` in a classic session, but the same frame as before where the table's log says the same as then.

    Args:
        spark: The session.
        url: A local path or URL.
        kept: What was read before of that table at that point in time.
        version: This version instead of the newest.
        timestamp: The newest version committed at or before this time.
        tag: Of Paimon: the snapshot that has this tag.

    Raises:
        NotFound: There is no table, or not that version.
        UnsupportedFeature: The table needs something that is not implemented.
    """
    choice, zone = choose_lane(spark), time_zone(spark)
    open_any = session_opener(spark, None)
    store, at_version, at_ms = _travelled(spark, url, open_any, *as_of(version, timestamp, zone), zone)
    asked, nothing = Asked(at_version, at_ms, tag, follows=True), parse_options({}, READ, READ_LATER)
    return format_at(store).frame_door.read(
        Reading(spark, store, open_any, zone, asked, None, choice, {}, nothing, kept=kept)
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
    if not has_point(str(url)) or not read_flag(spark, AT_IN_PATH, True):
        return store, at_version, at_ms
    if has_table(store):
        return store, at_version, at_ms
    path, path_version, path_ms = point_in_path(str(url), zone)
    if (at_version, at_ms) != (None, None):
        raise InvalidRequest(
            f"{url!r} names a point in time, and so do the options", code="version-and-timestamp", url=path
        )
    return open_any(path), path_version, path_ms


def _ensure_no_properties(options: Options) -> None:
    if options.properties:
        name = next(iter(options.properties))
        raise InvalidRequest(f"table property {name!r} is no option for reading", code="unknown-option")


def _ensure_changes_of_a_range(parsed: Options, at_version: int | None, at_ms: int | None) -> None:
    """Refuses a change feed as of a point in time."""
    if asks_for_changes(parsed) and (at_version, at_ms) != (None, None):
        raise InvalidRequest(
            "a change feed is read from a range, not as of a version",
            code="changes-as-of",
            hint="give startingVersion and endingVersion",
        )


def _dynamic(options: object) -> Mapping[str, object] | None:
    if options is not None and not isinstance(options, Mapping):
        raise InvalidRequest("options must be a mapping of names to values", code="invalid-option")
    return options


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
        mode: Of Paimon: `"auto"`, `"delta"`, `"changelog"`, `"diff"` or `"binlog"`, see `PaimonView.changes`; `start`
            and `end` are snapshots, tags or times there, and `start` itself is left out.
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
    asked, access = Asked(branch=branch, options=options, mode=mode), access_of(storage_options)
    reading = Reading(spark, store, open_any, zone, asked, None, choice, access, parse_options({}, READ, READ_LATER))
    return format_at(store).frame_door.changes(reading, start, end)

"""Reader and writer options by name: case ignored as in Spark, unknown ones refused with the nearest known."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral

from alluvium.api.arguments import plain
from alluvium.codecs.temporal_text import parse_zone
from alluvium.delta.changes.bounds import Bound
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest
from alluvium.expr.literals import parse_timestamp

#: Options of Spark's Parquet source that pass through to its reader or writer.
PARQUET_WRITE = ("compression", "maxRecordsPerFile")

READ_CHANGES = ("readChangeFeed", "readChangeData", "startingVersion", "endingVersion", "startingTimestamp",
                "endingTimestamp")  # fmt: skip
READ = ("versionAsOf", "timestampAsOf", "rowIds", "path", *READ_CHANGES)
READ_LATER = ("ignoreDeletes", "ignoreChanges", "skipChangeCommits")

WRITE = ("replaceWhere", "replaceUsing", "replaceOn", "targetAlias", "partitionOverwriteMode", "mergeSchema",
         "overwriteSchema", "userMetadata", "txnAppId", "txnVersion", "path", "description", "comment", "dataChange",
         "optimizeWrite", "sort_by", "clusterBy", *PARQUET_WRITE)  # fmt: skip
WRITE_LATER: tuple[str, ...] = ()


#: What delta-spark takes behind a path: a version, or a time to the millisecond.
_AT_VERSION = re.compile(r"(.+)@[vV](\d+)/*", re.ASCII | re.DOTALL)
_AT_TIME = re.compile(r"(.+)@(\d{14})(\d{3})/*", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Options:
    """Options under their canonical names.

    Attributes:
        known: Options that Alluvium acts on.
        engine: Options with a dot in the name (`parquet.block.size`, `fs.s3a...`): the engine's or Hadoop's.
        properties: Options `delta.*`: properties of a table to create.
    """

    known: Mapping[str, str]
    engine: Mapping[str, str]
    properties: Mapping[str, str]

    def get(self, name: str) -> str | None:
        return self.known.get(name)

    def flag(self, name: str, default: str = "false") -> bool:
        """Whether an option says true; `default` is what silence says.

        Raises:
            InvalidRequest: It says neither true nor false.
        """
        text = self.known.get(name, default).strip().lower()
        if text not in ("true", "false"):
            raise InvalidRequest(f"the option {name!r} must be true or false, not {text!r}", code="invalid-option")
        return text == "true"


def parse_options(given: Mapping[str, object], supported: tuple[str, ...], later: tuple[str, ...]) -> Options:
    """Sorts options.

    Raises:
        InvalidRequest: An option that nobody knows, or one given twice in different case.
        UnsupportedFeature: An option of Delta's that is not implemented yet.
    """
    names = {name.lower(): name for name in (*supported, *later)}
    known: dict[str, str] = {}
    engine: dict[str, str] = {}
    properties: dict[str, str] = {}
    for key, value in given.items():
        if value is None:
            continue
        text = str(value).lower() if isinstance(value, bool) else _text(value)
        canonical = names.get(key.lower())
        if canonical in later:
            # Saying no to something is the same as not asking for it.
            if text.lower() != "false":
                raise UnsupportedFeature(
                    f"the option {canonical!r} is not implemented yet", code="unsupported-option", features=(canonical,)
                )
        elif canonical is not None:
            known[canonical] = text
        elif key.lower().startswith("delta."):
            properties[key] = text
        elif "." in key:
            engine[key] = text
        else:
            raise InvalidRequest(f"unknown option {key!r}", code="unknown-option", hint=suggest(key, names.values()))
    return Options(known, engine, properties)


def _text(value: object) -> str:
    """Names of a list with commas between."""
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return plain(value) if isinstance(value, str) else str(value)


def parse_flag(text: str | None, name: str) -> bool:
    """An option that is `true` or `false` (the default).

    Raises:
        InvalidRequest: It is neither.
    """
    if text is None or text.lower() in ("true", "false"):
        return text is not None and text.lower() == "true"
    raise InvalidRequest(f"{name} must be true or false, not {text!r}", code="invalid-option")


def parse_version(value: object, name: str = "version") -> int:
    """A table version given as a whole number (NumPy's, too) or as text."""
    try:
        if isinstance(value, bool) or not isinstance(value, (Integral, str)):
            raise ValueError
        version = int(value)
    except ValueError:
        raise InvalidRequest(f"{name} must be a whole number, not {value!r}", code="invalid-version") from None
    if version < 0:
        raise InvalidRequest(f"{name} must not be negative: {version}", code="invalid-version")
    return version


def parse_timestamp_ms(value: object, name: str = "timestamp", zone: str = "UTC") -> int:
    """Milliseconds since 1970 UTC of a `datetime` (naive: UTC), a `date` (midnight UTC), or text.

    Args:
        value: The time. Text is an ISO time, or what Spark casts to a timestamp.
        name: What it is called, for errors.
        zone: In which text without a zone of its own is read: the session's where there is one, as in delta-spark.

    Raises:
        InvalidRequest: It is none of these (`invalid-timestamp`).
    """
    if isinstance(value, str):
        moment = _parse_moment(value, name, zone)
    elif isinstance(value, dt.datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
    elif isinstance(value, dt.date):
        moment = dt.datetime(value.year, value.month, value.day, tzinfo=dt.timezone.utc)
    else:
        raise InvalidRequest(f"{name} must be a datetime or ISO text, not {value!r}", code="invalid-timestamp")
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    return since // dt.timedelta(milliseconds=1)


def _parse_moment(text: str, name: str, zone: str) -> dt.datetime:
    own = parse_zone(zone)
    try:
        return parse_timestamp(text, own)
    except InvalidRequest:
        # Spark's cast knows neither 20240131T120000 nor weeks, which are ISO times all the same.
        try:
            moment = dt.datetime.fromisoformat(text.strip())
        except ValueError:
            raise InvalidRequest(
                f"{name} {text!r} is not an ISO time",
                code="invalid-timestamp",
                hint="write it as 2024-01-31 or 2024-01-31T12:00:00Z",
            ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=own)


def as_of(version: object, timestamp: object, zone: str = "UTC") -> tuple[int | None, int | None]:
    """The one point in time that was asked for: a version, a time (ms since 1970 UTC), or neither.

    Args:
        version: A number or text of digits; None: not asked for.
        timestamp: As `parse_timestamp_ms` takes it; None: not asked for.
        zone: Of text without a zone.

    Raises:
        InvalidRequest: Both were given.
    """
    if version is not None and timestamp is not None:
        raise InvalidRequest("give a version or a timestamp, not both", code="version-and-timestamp")
    return (
        None if version is None else parse_version(version),
        None if timestamp is None else parse_timestamp_ms(timestamp, zone=zone),
    )


def has_point(path: str) -> bool:
    """Whether a path ends as `path@v12` or `path@yyyyMMddHHmmssSSS` do."""
    return (_AT_VERSION.fullmatch(path) or _AT_TIME.fullmatch(path)) is not None


def point_in_path(path: str, zone: str) -> tuple[str, int | None, int | None]:
    """The path and the point in time of `path@v12` or `path@yyyyMMddHHmmssSSS`.

    Args:
        path: Or URL, as it was given, for which `has_point` is true.
        zone: In which the time is.

    Returns:
        The path before it; the version; the time, milliseconds since 1970 UTC.

    Raises:
        InvalidRequest: There is no such time (`invalid-timestamp`).
    """
    if match := _AT_VERSION.fullmatch(path):
        return match[1], int(match[2]), None
    match = _AT_TIME.fullmatch(path)
    assert match is not None
    try:
        moment = dt.datetime.strptime(match[2], "%Y%m%d%H%M%S").replace(microsecond=int(match[3]) * 1000)
    except ValueError:
        raise InvalidRequest(
            f"there is no time {match[2]}{match[3]}", code="invalid-timestamp", hint="path@yyyyMMddHHmmssSSS"
        ) from None
    return match[1], None, parse_timestamp_ms(str(moment), zone=zone)


def parse_bound(value: object, name: str, zone: str = "UTC") -> Bound:
    """One end of a range of changes: a version, also as text of digits, or a time as in `parse_timestamp_ms`.

    Raises:
        InvalidRequest: It is neither.
    """
    if isinstance(value, str) and not value.strip().lstrip("+-").isdigit():
        return Bound(timestamp_ms=parse_timestamp_ms(value, name, zone))
    if isinstance(value, dt.date):
        return Bound(timestamp_ms=parse_timestamp_ms(value, name, zone))
    return Bound(version=parse_version(value, name))


def asks_for_changes(options: Options) -> bool:
    """Whether a reader is to give changes instead of rows.

    Raises:
        InvalidRequest: `readChangeFeed` is neither true nor false.
    """
    asked = False
    for name in ("readChangeFeed", "readChangeData"):
        text = (options.get(name) or "false").strip().lower()
        if text not in ("true", "false"):
            raise InvalidRequest(f"{name} must be true or false, not {text!r}", code="invalid-option")
        asked = asked or text == "true"
    return asked


def change_bounds(options: Options, zone: str = "UTC") -> tuple[Bound, Bound | None]:
    """The range of changes that a reader is told; of a version and a time the version counts, as in delta-spark.

    Args:
        options: Of the reader.
        zone: Of times without a zone.

    Raises:
        InvalidRequest: There is no start (`no-start-of-changes`).
    """

    def bound(side: str) -> Bound | None:
        version, timestamp = options.get(f"{side}Version"), options.get(f"{side}Timestamp")
        if version is not None:
            return Bound(version=parse_version(version, f"{side}Version"))
        if timestamp is None:
            return None
        return Bound(timestamp_ms=parse_timestamp_ms(timestamp, f"{side}Timestamp", zone))

    start = bound("starting")
    if start is None:
        raise InvalidRequest(
            "reading the change feed needs a start",
            code="no-start-of-changes",
            hint='.option("startingVersion", 0) or .option("startingTimestamp", ...)',
        )
    return start, bound("ending")


def parse_session_timestamp(text: str, zone: str) -> dt.datetime:
    """A time as text in a session's zone, unless it names its own.

    Raises:
        InvalidRequest: It is no time.
    """
    try:
        return _parse_moment(text, "timestamp", zone)
    except InvalidRequest:
        raise InvalidRequest(
            f"The provided timestamp ({text!r}) cannot be converted to a valid timestamp",
            code="invalid-timestamp",
            hint="yyyy-MM-dd or yyyy-MM-dd HH:mm:ss",
        ) from None

"""Reader and writer options by name: case ignored as in Spark, unknown ones refused with the nearest known."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from alluvium.delta.changes.bounds import Bound
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest

#: Options of Spark's Parquet source that pass through to its reader or writer.
PARQUET_WRITE = ("compression", "maxRecordsPerFile")

READ_CHANGES = ("readChangeFeed", "readChangeData", "startingVersion", "endingVersion", "startingTimestamp",
                "endingTimestamp")  # fmt: skip
READ = ("versionAsOf", "timestampAsOf", "rowIds", "path", *READ_CHANGES)
READ_LATER = ("ignoreDeletes", "ignoreChanges", "skipChangeCommits")

WRITE = ("replaceWhere", "partitionOverwriteMode", "mergeSchema", "overwriteSchema", "userMetadata", "txnAppId",
         "txnVersion", "path", "dataChange", "optimizeWrite", *PARQUET_WRITE)  # fmt: skip
WRITE_LATER = ("clusterBy",)


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
        text = self.known.get(name, default).strip().casefold()
        if text not in ("true", "false"):
            raise InvalidRequest(f"the option {name!r} must be true or false, not {text!r}", code="invalid-option")
        return text == "true"


def parse_options(given: Mapping[str, object], supported: tuple[str, ...], later: tuple[str, ...]) -> Options:
    """Sorts options.

    Raises:
        InvalidRequest: An option that nobody knows, or one given twice in different case.
        UnsupportedFeature: An option of Delta's that is not implemented yet.
    """
    names = {name.casefold(): name for name in (*supported, *later)}
    known: dict[str, str] = {}
    engine: dict[str, str] = {}
    properties: dict[str, str] = {}
    for key, value in given.items():
        if value is None:
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        canonical = names.get(key.casefold())
        if canonical in later:
            # Saying no to something is the same as not asking for it.
            if text.casefold() != "false":
                raise UnsupportedFeature(
                    f"the option {canonical!r} is not implemented yet", code="unsupported-option", features=(canonical,)
                )
        elif canonical is not None:
            known[canonical] = text
        elif key.casefold().startswith("delta."):
            properties[key] = text
        elif "." in key:
            engine[key] = text
        else:
            raise InvalidRequest(f"unknown option {key!r}", code="unknown-option", hint=suggest(key, names.values()))
    return Options(known, engine, properties)


def parse_flag(text: str | None, name: str) -> bool:
    """An option that is `true` or `false` (the default).

    Raises:
        InvalidRequest: It is neither.
    """
    if text is None or text.casefold() in ("true", "false"):
        return text is not None and text.casefold() == "true"
    raise InvalidRequest(f"{name} must be true or false, not {text!r}", code="invalid-option")


def parse_version(value: object, name: str = "version") -> int:
    """A table version given as a number or as text."""
    try:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError
        version = int(value)
    except ValueError:
        raise InvalidRequest(f"{name} must be a whole number, not {value!r}", code="invalid-version") from None
    if version < 0:
        raise InvalidRequest(f"{name} must not be negative: {version}", code="invalid-version")
    return version


def parse_timestamp_ms(value: object, name: str = "timestamp") -> int:
    """Milliseconds since 1970 UTC of a `datetime` (naive: UTC), a `date`, or ISO text.

    Raises:
        InvalidRequest: It is none of these.
    """
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        except ValueError:
            raise InvalidRequest(
                f"{name} {value!r} is not an ISO time",
                code="invalid-timestamp",
                hint="write it as 2024-01-31 or 2024-01-31T12:00:00Z",
            ) from None
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
    elif isinstance(value, dt.date):
        moment = dt.datetime(value.year, value.month, value.day, tzinfo=dt.timezone.utc)
    else:
        raise InvalidRequest(f"{name} must be a datetime or ISO text, not {value!r}", code="invalid-timestamp")
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    return since // dt.timedelta(milliseconds=1)


def as_of(version: object, timestamp: object) -> tuple[int | None, int | None]:
    """The one point in time that was asked for: a version, a time (ms since 1970 UTC), or neither.

    Raises:
        InvalidRequest: Both were given.
    """
    if version is not None and timestamp is not None:
        raise InvalidRequest("give a version or a timestamp, not both", code="version-and-timestamp")
    return (
        None if version is None else parse_version(version),
        None if timestamp is None else parse_timestamp_ms(timestamp),
    )


def parse_bound(value: object, name: str) -> Bound:
    """One end of a range of changes: a version, also as text of digits, or a time as in `parse_timestamp_ms`.

    Raises:
        InvalidRequest: It is neither.
    """
    if isinstance(value, str) and not value.strip().lstrip("+-").isdigit():
        return Bound(timestamp_ms=parse_timestamp_ms(value, name))
    if isinstance(value, dt.date):
        return Bound(timestamp_ms=parse_timestamp_ms(value, name))
    return Bound(version=parse_version(value, name))


def asks_for_changes(options: Options) -> bool:
    """Whether a reader is to give changes instead of rows.

    Raises:
        InvalidRequest: `readChangeFeed` is neither true nor false.
    """
    asked = False
    for name in ("readChangeFeed", "readChangeData"):
        text = (options.get(name) or "false").strip().casefold()
        if text not in ("true", "false"):
            raise InvalidRequest(f"{name} must be true or false, not {text!r}", code="invalid-option")
        asked = asked or text == "true"
    return asked


def change_bounds(options: Options) -> tuple[Bound, Bound | None]:
    """The range of changes that a reader is told; of a version and a time the version counts, as in delta-spark.

    Raises:
        InvalidRequest: There is no start (`no-start-of-changes`).
    """

    def bound(side: str) -> Bound | None:
        version, timestamp = options.get(f"{side}Version"), options.get(f"{side}Timestamp")
        if version is not None:
            return Bound(version=parse_version(version, f"{side}Version"))
        return None if timestamp is None else Bound(timestamp_ms=parse_timestamp_ms(timestamp, f"{side}Timestamp"))

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
        moment = dt.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))
    except (ValueError, ZoneInfoNotFoundError):
        raise InvalidRequest(
            f"The provided timestamp ({text!r}) cannot be converted to a valid timestamp",
            code="invalid-timestamp",
            hint="yyyy-MM-dd or yyyy-MM-dd HH:mm:ss",
        ) from None

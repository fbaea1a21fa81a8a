"""Options about the life of a table: how long snapshots, changelogs, partitions and tags are kept, and who says so."""

from __future__ import annotations

from collections.abc import Mapping

from alluvium.paimon.terms.durations import parse_duration
from alluvium.paimon.terms.options import (
    CHANGELOG_NUM_RETAINED_MAX,
    CHANGELOG_NUM_RETAINED_MIN,
    SNAPSHOT_NUM_RETAINED_MAX,
    SNAPSHOT_NUM_RETAINED_MIN,
    Option,
    integer,
    one_of,
    parse_boolean,
    parse_names,
)

_HOUR_MS = 3_600_000

SNAPSHOT_TIME_RETAINED_MS = Option("snapshot.time-retained", _HOUR_MS, parse_duration)
SNAPSHOT_EXPIRE_LIMIT = Option("snapshot.expire.limit", 50, integer())
CHANGELOG_TIME_RETAINED_MS: Option[int | None] = Option("changelog.time-retained", None, parse_duration)
CLEAN_EMPTY_DIRECTORIES = Option(
    "snapshot.clean-empty-directories", False, parse_boolean, ("snapshot.expire.clean-empty-directories",)
)
CONSUMER_EXPIRATION_MS: Option[int | None] = Option("consumer.expiration-time", None, parse_duration)
PARTITION_EXPIRATION_MS: Option[int | None] = Option("partition.expiration-time", None, parse_duration)
PARTITION_EXPIRATION_STRATEGY = Option(
    "partition.expiration-strategy", "values-time", one_of("values-time", "update-time")
)
PARTITION_EXPIRATION_MAX = Option("partition.expiration-max-num", 100, integer())
PARTITION_TIMESTAMP_PATTERN: Option[str | None] = Option("partition.timestamp-pattern", None, str)
PARTITION_TIMESTAMP_FORMATTER: Option[str | None] = Option("partition.timestamp-formatter", None, str)
MARK_DONE_ACTIONS: Option[tuple[str, ...]] = Option("partition.mark-done-action", ("success-file",), parse_names)
TAG_AUTOMATIC_CREATION = Option("tag.automatic-creation", "none", one_of("none", "process-time", "watermark", "batch"))
TAG_PERIOD = Option("tag.creation-period", "daily", one_of("daily", "hourly", "two-hours"))
TAG_PERIOD_MS: Option[int | None] = Option("tag.creation-period-duration", None, parse_duration)
TAG_DELAY_MS = Option("tag.creation-delay", 0, parse_duration)
TAG_FORMATTER = Option(
    "tag.period-formatter", "with_dashes", one_of("with_dashes", "without_dashes", "without_dashes_and_spaces")
)
TAG_NUM_RETAINED_MAX: Option[int | None] = Option("tag.num-retained-max", None, integer())
TAG_TIME_RETAINED_MS: Option[int | None] = Option("tag.default-time-retained", None, parse_duration)
TAG_TIME_EXPIRE_ENABLED = Option("tag.time-expire-enabled", True, parse_boolean)
TAG_AUTOMATIC_COMPLETION = Option("tag.automatic-completion", False, parse_boolean)
WATERMARK_TIME_ZONE = Option("sink.watermark-time-zone", "UTC", str)


def keeps_changelogs(options: Mapping[str, str]) -> bool:
    """Whether changelogs outlive their snapshots: `CoreOptions.changelogLifecycleDecoupled`."""
    pairs = (
        (CHANGELOG_NUM_RETAINED_MIN.get(options), SNAPSHOT_NUM_RETAINED_MIN.get(options)),
        (CHANGELOG_NUM_RETAINED_MAX.get(options), SNAPSHOT_NUM_RETAINED_MAX.get(options)),
        (CHANGELOG_TIME_RETAINED_MS.get(options), SNAPSHOT_TIME_RETAINED_MS.get(options)),
    )
    return any(own is not None and own > snapshots for own, snapshots in pairs)

"""Options about the compaction of tables with a primary key, and the changelogs that it makes."""

from __future__ import annotations

from collections.abc import Mapping

from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.durations import parse_duration
from alluvium.paimon.terms.options import Option, integer, parse_boolean, parse_names, parse_size

TRIGGER = o.NUM_SORTED_RUN_COMPACTION_TRIGGER
MAX_AMPLIFICATION = Option("compaction.max-size-amplification-percent", 200, integer())
SIZE_RATIO = Option("compaction.size-ratio", 1, integer())
INTERVAL_MS: Option[int | None] = Option("compaction.optimization-interval", None, parse_duration)
TOTAL_SIZE: Option[int | None] = Option("compaction.total-size-threshold", None, parse_size)
INCREMENTAL_SIZE: Option[int | None] = Option("compaction.incremental-size-threshold", None, parse_size)
#: Whoever writes ends so many commits with a full compaction of the buckets that were written to.
FULL_EVERY: Option[int | None] = Option("full-compaction.delta-commits", None, integer())
FORCE_UP = Option("compaction.force-up-level-0", False, parse_boolean)
FORCE_REWRITE = Option("compaction.force-rewrite-all-files", False, parse_boolean)
#: "128 MB for tables with a primary key".
_TARGET_FILE_SIZE = Option("target-file-size", 128 << 20, parse_size)
#: Whether a row that became what it was is no change.
ROW_DEDUPLICATE = Option("changelog-producer.row-deduplicate", False, parse_boolean)
ROW_DEDUPLICATE_IGNORED: Option[tuple[str, ...]] = Option(
    "changelog-producer.row-deduplicate-ignore-fields", (), parse_names
)
CHANGELOG_PREFIX = Option("changelog-file.prefix", "changelog-", str)


def num_levels(options: Mapping[str, str]) -> int:
    """How many levels a table has: `num-levels`, or one more than the trigger."""
    levels = o.NUM_LEVELS.get(options)
    return TRIGGER.get(options) + 1 if levels is None else levels


def target_size(options: Mapping[str, str]) -> int:
    """Bytes that a file of keyed rows should have."""
    return _TARGET_FILE_SIZE.get(options)


def large_size(options: Mapping[str, str]) -> int:
    """ "compactionFileSize: (fileSize / 10) * 7": files of so many bytes move up as they are."""
    return target_size(options) // 10 * 7


def is_full_due(options: Mapping[str, str], number: int | None) -> bool:
    """Whether a writer's commit ends with a full compaction (`full-compaction.delta-commits`).

    Args:
        options: The table's.
        number: Which batch of a stream the commit is, from 0 on; None: of none, where each counts for itself and is
            due always (as Paimon's writer in Spark has it).
    """
    every = FULL_EVERY.get(options)
    return every is not None and every > 0 and (number is None or (number + 1) % every == 0)


def needs_lookup(options: Mapping[str, str]) -> bool:
    """Whether a compaction asks, of each new key, what the levels above say of it (`LookupStrategy.needLookup`)."""
    return (
        makes_changelog_of_lookups(options)
        or o.DELETION_VECTORS.get(options)
        or o.MERGE_ENGINE.get(options) == "first-row"
        or o.FORCE_LOOKUP.get(options)
    )


def makes_changelog_of_lookups(options: Mapping[str, str]) -> bool:
    """Whether what was looked up tells how rows changed."""
    return o.CHANGELOG_PRODUCER.get(options) == "lookup"

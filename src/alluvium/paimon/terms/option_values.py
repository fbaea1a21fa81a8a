"""Texts of options that are none of their values: refused where a table is made or altered, before anybody meets them.

Java parses an option when it needs it, and a table with a wrong one is then read by nobody. Options that no reader or
writer here asks for are checked by their kind; who is not known at all is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from alluvium.errors import InvalidRequest
from alluvium.paimon.terms import compaction_options, life_options
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.durations import parse_duration

#: So that none is forgotten: whatever the modules name.
_KNOWN = tuple(
    found
    for module in (o, life_options, compaction_options)
    for found in vars(module).values()
    if isinstance(found, o.Option)
)
_CODECS = o.one_of(
    "none", "null", "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "lz4_hadoop", "zstd",
    "zstandard", "zlib", "deflate", "bzip2", "xz",
)  # fmt: skip
_MODES = re.compile(r"none|counts|full|truncate\(0*[1-9][0-9]{0,8}\)")


def _stats_mode(text: str) -> str:
    if not _MODES.fullmatch(text.strip().lower()):
        raise ValueError("expected none, counts, full or truncate(16)")
    return text


def _any_or_some(text: str) -> int:
    number = o.integer(-1)(text)
    if not number:
        raise ValueError("expected a whole number from 1, or -1")
    return number


_Parser = Callable[[str], object]
#: What more is asked of options whose text is looked at by readers, too, who take what is there.
_STRICTER: Mapping[str, _Parser] = {
    o.FILE_COMPRESSION.key: _CODECS,
    "changelog-file.compression": _CODECS,
    o.MANIFEST_COMPRESSION.key: _CODECS,
    o.MANIFEST_FORMAT.key: o.one_of("avro", "parquet", "orc"),
    o.STATS_MODE.key: _stats_mode,
    "changelog-file.stats-mode": _stats_mode,
    "manifest.compression.zstd-level": o.integer(),
    o.NUM_LEVELS.key: o.integer(2),
    o.NUM_SORTED_RUN_COMPACTION_TRIGGER.key: o.integer(1),
    o.DYNAMIC_BUCKET_ROWS.key: o.integer(1, o.MOST_LONG),
    o.DYNAMIC_BUCKET_MOST.key: _any_or_some,
    o.POSTPONE_DEFAULT_BUCKETS.key: o.integer(1),
    o.POSTPONE_TARGET_ROWS.key: o.integer(1, o.MOST_LONG),
    o.ZSTD_LEVEL.key: o.integer(-(1 << 17), 22),
}
#: Options of other engines' writers and readers.
_OTHERS: Mapping[str, _Parser] = {
    **dict.fromkeys(
        ("source.split.target-size", "write-buffer-size", "page-size", "cache-page-size", "local-merge-buffer-size",
         "deletion-vector.index-file.target-size", "lookup.cache-max-memory-size", "lookup.cache-max-disk-size",
         "sort-spill-buffer-size", "write-buffer-spill.max-disk-size", "file-reader-async-threshold"),
        o.parse_size,
    ),
    **dict.fromkeys(
        ("num-sorted-run.stop-trigger", "sort-spill-threshold", "read.batch-size", "write.batch-size",
         "commit.max-retries"),
        o.integer(),
    ),
    **dict.fromkeys(
        ("partition.expiration-check-interval", "partition.idle-time-to-done", "continuous.discovery-interval",
         "lookup.cache-file-retention", "commit.timeout"),
        parse_duration,
    ),
    **dict.fromkeys(
        ("lookup-wait", "commit.force-compact", "commit.force-create-snapshot", "metastore.partitioned-table",
         "end-input.check-partition-expire", "write-buffer-spillable", "async-file-write", "tag.create-success-file",
         "write-buffer-for-append"),
        o.parse_boolean,
    ),
    "snapshot.expire.execution-mode": o.one_of("sync", "async"),
    "incremental-between-scan-mode": o.one_of("auto", "delta", "changelog", "diff"),
}  # fmt: skip
#: Options of one column, by how they end.
_OF_COLUMNS: Mapping[str, _Parser] = {".ignore-retract": o.parse_boolean, ".stats-mode": _stats_mode}


def ensure_may_be_given(options: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Refuses options of a single call that its files must not be written by: other readers and writers know what the
    schema says alone.

    Args:
        options: Of the table.
        given: On top of them.

    Raises:
        InvalidRequest: `"invalid-table-option"`: a text is none of its option's values; `"bucket-change"`, or as of
            `ensure_option_may_change`.
    """
    for key, message in wrong_values(given):
        raise InvalidRequest(message, code="invalid-table-option", column=key)
    for key, value in given.items():
        o.ensure_option_may_change(options, key, value)
        if key == "bucket" and options.get(key, "-1") != value:
            raise InvalidRequest(
                f"the table has {options.get(key, '-1')} buckets, not {value}",
                code="bucket-change",
                hint='PaimonTable.forPath(url).alter([SchemaChange.set_option("bucket", ...)]), then overwrite it',
            )


def wrong_values(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Options with texts that are none of their values: names, and sentences that say what is allowed."""
    parsers: dict[str, list[_Parser]] = {}
    for option in _KNOWN:
        for key in (option.key, *option.fallback_keys):
            parsers.setdefault(key, []).append(option.parse)
    for known in (_STRICTER, _OTHERS):
        for key, parse in known.items():
            parsers.setdefault(key, []).append(parse)
    for key, text in options.items():
        if key.startswith(f"{o.FIELDS_PREFIX}."):
            found = [parse for ending, parse in _OF_COLUMNS.items() if key.endswith(ending)]
        else:
            found = parsers.get(key, [])
        for parse in found:
            try:
                parse(text)
            except ValueError as error:
                yield key, o.wrong_value(key, text, error)
                break

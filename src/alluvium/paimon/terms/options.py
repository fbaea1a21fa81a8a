"""Table options (`options` of a schema file) by name, default and form, and which may change when.

Names and defaults are those of Paimon's `CoreOptions`. Options are text; each is parsed where it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from alluvium.errors import InvalidRequest
from alluvium.paimon.terms.durations import parse_duration

T = TypeVar("T")


def parse_boolean(text: str) -> bool:
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise ValueError("expected true or false")
    return folded == "true"


def parse_names(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_MOST_INT, MOST_LONG = (1 << 31) - 1, (1 << 63) - 1


def integer(least: int = -_MOST_INT - 1, most: int = _MOST_INT) -> Callable[[str], int]:
    """A parser of whole numbers within bounds, in digits as Java takes them."""

    def parse(text: str) -> int:
        number = int(text) if _INTEGER.fullmatch(text) else None
        if number is None or not least <= number <= most:
            raise ValueError(f"expected a whole number from {least} to {most}")
        return number

    return parse


def wrong_value(key: str, text: str, error: ValueError) -> str:
    """The sentence for an option's text that is none of its values."""
    return f"table option {key} = {text!r} is not valid: {error}"


def one_of(*known: str) -> Callable[[str], str]:
    """A parser of words; case, `-` and `_` do not matter, as in Java's enumerations."""
    by_folded = {word.replace("-", "_").lower(): word for word in known}

    def parse(text: str) -> str:
        word = by_folded.get(text.strip().replace("-", "_").lower())
        if word is None:
            raise ValueError(f"expected one of {', '.join(known)}")
        return word

    return parse


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One option.

    Attributes:
        key: Its name.
        default: Its value where it is not set.
        parse: From text; `ValueError` where the text is none of its values.
        fallback_keys: Older names, read where `key` is not set.
    """

    key: str
    default: T
    parse: Callable[[str], T]
    fallback_keys: tuple[str, ...] = ()

    def get(self, options: Mapping[str, str]) -> T:
        """The option's value.

        Raises:
            InvalidRequest: `"invalid-table-option"`: the text is none of its values.
        """
        for key in (self.key, *self.fallback_keys):
            text = options.get(key)
            if text is None:
                continue
            try:
                return self.parse(text)
            except ValueError as error:
                raise InvalidRequest(wrong_value(key, text, error), code="invalid-table-option") from None
        return self.default

    def is_set(self, options: Mapping[str, str]) -> bool:
        return any(key in options for key in (self.key, *self.fallback_keys))


_SIZE = re.compile(r"(\d+)\s*([a-z]*)")
_UNITS = {
    **dict.fromkeys(("", "b", "bytes"), 0),
    **dict.fromkeys(("k", "kb", "kibibytes"), 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 40),
}


def parse_size(text: str) -> int:
    """Bytes of a memory size: `"128 mb"`, `"8mb"`, `"1024"`."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError("expected a size such as 128 mb")
    return int(match[1]) << _UNITS[match[2]]


def _flag(key: str, *fallback_keys: str) -> Option[bool]:
    return Option(key, False, parse_boolean, fallback_keys)


def _names(key: str, *fallback_keys: str) -> Option[tuple[str, ...]]:
    return Option(key, (), parse_names, fallback_keys)


BUCKET_KEY = "bucket-key"
FIELDS_PREFIX = "fields"
PRIMARY_KEY = "primary-key"
PARTITION = "partition"
#: Values of `bucket`: by a dynamic index (or none for append tables), and decided at compaction.
DYNAMIC_BUCKET = -1
POSTPONE_BUCKET = -2

BUCKET = Option("bucket", DYNAMIC_BUCKET, integer())
FILE_FORMAT = Option("file.format", "parquet", str.lower)
MERGE_ENGINE = Option(
    "merge-engine", "deduplicate", one_of("deduplicate", "partial-update", "aggregation", "first-row")
)
CHANGELOG_PRODUCER = Option("changelog-producer", "none", one_of("none", "input", "full-compaction", "lookup"))
# An empty name stays: it is no column, and Paimon refuses it.
SEQUENCE_FIELD: Option[tuple[str, ...]] = Option(
    "sequence.field", (), lambda text: tuple(map(str.strip, text.split(",")))
)
SEQUENCE_FIELD_SORT_ORDER = Option("sequence.field.sort-order", "ascending", one_of("ascending", "descending"))
CHAIN_TABLE = _flag("chain-table.enabled")
ROWKIND_FIELD = Option("rowkind.field", "", str)
UPSERT_KEY = _names("upsert-key")
DELETION_VECTORS = _flag("deletion-vectors.enabled")
DELETION_VECTORS_MODIFIABLE = _flag("deletion-vectors.modifiable")
DELETION_VECTORS_BITMAP64 = _flag("deletion-vectors.bitmap64")
DELETION_VECTORS_MERGE_ON_READ = _flag("deletion-vectors.merge-on-read")
ROW_TRACKING = _flag("row-tracking.enabled")
DATA_EVOLUTION = _flag("data-evolution.enabled")
IGNORE_DELETE = _flag(
    "ignore-delete", "first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"
)
IGNORE_UPDATE_BEFORE = _flag("ignore-update-before")
REMOVE_RECORD_ON_DELETE = _flag("partial-update.remove-record-on-delete")
AGGREGATION_REMOVE_RECORD_ON_DELETE = _flag("aggregation.remove-record-on-delete")
REMOVE_RECORD_ON_SEQUENCE_GROUP = _names("partial-update.remove-record-on-sequence-group")
STREAMING_READ_OVERWRITE = _flag("streaming-read-overwrite")
STREAMING_READ_APPEND_OVERWRITE = _flag("streaming-read-append-overwrite")
SNAPSHOT_NUM_RETAINED_MIN = Option("snapshot.num-retained.min", 10, integer())
SNAPSHOT_NUM_RETAINED_MAX = Option("snapshot.num-retained.max", 2**31 - 1, integer())
CHANGELOG_NUM_RETAINED_MIN: Option[int | None] = Option("changelog.num-retained.min", None, integer())
CHANGELOG_NUM_RETAINED_MAX: Option[int | None] = Option("changelog.num-retained.max", None, integer())
#: Milliseconds; None: rows stay.
RECORD_LEVEL_EXPIRE_TIME: Option[int | None] = Option("record-level.expire-time", None, parse_duration)
RECORD_LEVEL_TIME_FIELD = Option("record-level.time-field", "", str)
BLOB_DESCRIPTOR_FIELD = _names("blob-descriptor-field", "blob.stored-descriptor-fields")
BLOB_EXTERNAL_STORAGE_FIELD = _names("blob-external-storage-field")
BLOB_VIEW_FIELD = _names("blob-view-field")
VECTOR_FIELD = _names("vector-field")
CLUSTERING_COLUMNS = _names("clustering.columns", "sink.clustering.by-columns")
CLUSTERING_INCREMENTAL = _flag("clustering.incremental")
BUCKET_APPEND_ORDERED = Option("bucket-append-ordered", True, parse_boolean)
PK_CLUSTERING_OVERRIDE = _flag("pk-clustering-override")
TABLE_READ_SEQUENCE_NUMBER = _flag("table-read.sequence-number.enabled")
NULL_TO_NOT_NULL_DISABLED = Option("alter-column-null-to-not-null.disabled", True, parse_boolean)
EXPLICIT_TYPE_CASTING_DISABLED = _flag("disable-explicit-type-casting")
ADD_COLUMN_BEFORE_PARTITION = _flag("add-column-before-partition")
SCAN_MODE = Option(
    "scan.mode",
    "default",
    one_of(
        "default", "latest-full", "full", "latest", "compacted-full", "from-timestamp", "from-creation-timestamp",
        "from-file-creation-time", "from-snapshot", "from-snapshot-full", "incremental",
    ),
    ("log.scan",),
)  # fmt: skip
FALLBACK_BRANCH = Option("scan.fallback-branch", "", str.strip)
NUM_SORTED_RUN_COMPACTION_TRIGGER = Option("num-sorted-run.compaction-trigger", 5, integer())
#: None: one more than the trigger.
NUM_LEVELS: Option[int | None] = Option("num-levels", None, integer())
FILE_COMPRESSION = Option("file.compression", "zstd", str.lower)
#: None: each format has its own.
FILE_BLOCK_SIZE: Option[int | None] = Option("file.block-size", None, parse_size)
#: Whether Java has instants in ORC go by the clock of its own zone, when it writes and when it reads.
ORC_LOCAL_INSTANTS = Option("orc.timestamp-ltz.legacy.type", True, parse_boolean)
ZSTD_LEVEL = Option("file.compression.zstd-level", 1, integer())
#: 256 MB is the default of append tables, 128 MB that of others.
TARGET_FILE_SIZE = Option("target-file-size", 256 << 20, parse_size)
SPLIT_OPEN_COST = Option("source.split.open-file-cost", 4 << 20, parse_size)
COMPACTION_MIN_FILES = Option("compaction.min.file-num", 5, integer())
COMPACTION_DELETE_RATIO = Option("compaction.delete-ratio-threshold", 0.2, float)
#: In front of the directories of partitions and buckets, within the table.
DATA_FILE_DIRECTORY = Option("data-file.path-directory", "", lambda text: text.strip("/"))
INDEX_FILE_IN_DATA_FILE_DIR = _flag("index-file-in-data-file-dir")
#: Null and blank values in the name of a partition's directory.
PARTITION_DEFAULT_NAME = Option("partition.default-name", "__DEFAULT_PARTITION__", str)
#: Whether values of partitions are named as Java prints what it keeps inside (a date: its number of days).
PARTITION_LEGACY_NAME = Option("partition.legacy-name", True, parse_boolean)
#: Whether files of keyed rows do without columns for their keys, which are among the others.
THIN_MODE = _flag("data-file.thin-mode")
#: How many keys a bucket is filled with, and how many buckets there may be (-1: any number).
DYNAMIC_BUCKET_ROWS = Option("dynamic-bucket.target-row-num", 2_000_000, integer(most=MOST_LONG))
DYNAMIC_BUCKET_MOST = Option("dynamic-bucket.max-buckets", -1, integer())
#: Into how many buckets a partition's first waiting rows are divided: so that each has so many rows, or else so many.
POSTPONE_TARGET_ROWS: Option[int | None] = Option("postpone.target-row-num-per-bucket", None, integer(most=MOST_LONG))
POSTPONE_DEFAULT_BUCKETS = Option("postpone.default-bucket-num", 1, integer())
#: Whether writers leave compaction to a job of its own.
WRITE_ONLY = _flag("write-only", "write.compaction-skip")
SNAPSHOT_ORDERING = _flag("sequence.snapshot-ordering")
FORCE_LOOKUP = _flag("force-lookup")
DATA_FILE_PREFIX = Option("data-file.prefix", "data-", str)
NULLABLE_KEY = Option("primary-key.nullable", False, parse_boolean)
EXTERNAL_PATHS = Option("data-file.external-paths", "", str)
BUCKET_FUNCTION = Option("bucket-function.type", "default", one_of("default", "mod", "hive"))
MANIFEST_FORMAT = Option("manifest.format", "avro", str.lower)
MANIFEST_COMPRESSION = Option("manifest.compression", "zstd", str.lower)
MANIFEST_TARGET_SIZE = Option("manifest.target-file-size", 8 << 20, parse_size)
MANIFEST_MERGE_MIN_COUNT = Option("manifest.merge-min-count", 30, integer())
STATS_MODE = Option("metadata.stats-mode", "truncate(16)", str.lower)
STATS_DENSE = Option("metadata.stats-dense-store", True, parse_boolean)
STATS_FIRST_COLUMNS = Option("metadata.stats-keep-first-n-columns", -1, integer())
DEFAULT_AGGREGATE_FUNCTION = "fields.default-aggregate-function"


def aggregate_function(column: str) -> Option[str | None]:
    """By which function a column's values become one; None: by the engine's own."""
    return Option(f"fields.{column}.aggregate-function", None, str)


def ignore_retract(column: str) -> Option[bool]:
    """Whether rows that are taken back leave the column alone."""
    return _flag(f"fields.{column}.ignore-retract")


def tracks_rows(options: Mapping[str, str]) -> bool:
    """Whether rows have ids: a table with data evolution has them, too."""
    return ROW_TRACKING.get(options) or DATA_EVOLUTION.get(options)


#: Once the table holds data, these stay as they are: files were written by them.
IMMUTABLE_OPTIONS = frozenset({
    "aggregation.remove-record-on-delete", "blob-descriptor-field", "blob-external-storage-field",
    "blob-external-storage-path", "bucket-function.type", "bucket-key", "data-evolution.enabled",
    "data-file.path-directory", "force-lookup", "index-file-in-data-file-dir", "merge-engine",
    "partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group", "partition",
    "pk-clustering-override", "primary-key", "primary-key.nullable", "row-tracking.enabled", "rowkind.field",
})  # fmt: skip


def ensure_option_may_change(options: Mapping[str, str], key: str, value: str | None) -> None:
    """Refuses a change of an option that files of a table with data depend on.

    Args:
        options: The options as they were.
        key: The option.
        value: Its new text, or None where it is to be removed.

    Raises:
        InvalidRequest: `"immutable-option"`, `"bucket-change"`, `"deletion-vectors-change"`, `"ignore-delete-change"`.
    """
    problem = None
    if value is not None and options.get(key) == value:
        return
    if key in IMMUTABLE_OPTIONS:
        problem = ("immutable-option", f"option {key} cannot change once the table holds data")
    elif key == BUCKET.key:
        problem = _bucket_problem(BUCKET.get(options), value)
    elif key == DELETION_VECTORS.key and not DELETION_VECTORS_MODIFIABLE.get(options):
        # Removed it is false: rows that are gone would be back.
        old, new = DELETION_VECTORS.get(options), (value or "").strip().lower() == "true"
        if old != new:
            problem = (
                "deletion-vectors-change",
                f"deletion vectors cannot go from {str(old).lower()} to {str(new).lower()}: rows could come twice",
            )
    elif key in (IGNORE_DELETE.key, IGNORE_UPDATE_BEFORE.key) and value is not None:
        was = options.get(key, "").strip().lower() == "true"
        if was and value.strip().lower() != "true":
            problem = ("ignore-delete-change", f"{key} cannot go back to false: what it ignored is gone")
    elif key == CLUSTERING_COLUMNS.key and PK_CLUSTERING_OVERRIDE.key in options:
        problem = ("immutable-option", f"{key} cannot change while {PK_CLUSTERING_OVERRIDE.key} is set")
    if problem:
        code, message = problem
        hint = "set it before the first write"
        if code == "deletion-vectors-change":
            hint = f"compact the table fully, set {DELETION_VECTORS_MODIFIABLE.key} = true, and then this"
        raise InvalidRequest(message, code=code, hint=hint)


def _bucket_problem(old: int, value: str | None) -> tuple[str, str] | None:
    code = "bucket-change"
    if value is None:
        return code, "the option bucket cannot be removed once the table holds data"
    new = BUCKET.get({BUCKET.key: value})
    if old == DYNAMIC_BUCKET:
        return code, "the number of buckets cannot change when it is -1"
    return (code, "the number of buckets cannot become -1") if new == DYNAMIC_BUCKET else None

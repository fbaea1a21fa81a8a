"""The rules of tables that a schema must keep before it is published: keys, buckets, names, options that go together.

Each check looks at one rule and returns problems; none touches storage. The rules are those of Paimon's own validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema.merge_checks import CheckedSchema, check_aggregators, check_sequence_groups
from alluvium.paimon.schema.types import DataType, duplicates
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.option_values import wrong_values

#: Columns that Paimon adds itself.
SYSTEM_FIELDS = frozenset({"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"})
KEY_FIELD_PREFIX = "_KEY_"
_NESTED = frozenset({"ARRAY", "MAP", "MULTISET", "ROW", "VECTOR"})
_FORMATS = frozenset({"parquet", "orc", "avro", "csv", "json", "text", "blob", "lance", "row", "mosaic"})
#: Types that a format's writer refuses, and the finest precision that it takes.
_NOT_IN_FILES = frozenset({("orc", "VARIANT"), ("avro", "VARIANT"), ("orc", "VECTOR")})
_FINEST = {
    ("avro", "TIME_WITHOUT_TIME_ZONE"): 3,
    ("avro", "TIMESTAMP_WITHOUT_TIME_ZONE"): 6,
    ("avro", "TIMESTAMP_WITH_LOCAL_TIME_ZONE"): 6,
}
#: Options of reads that say which version is meant, and the modes that need one of them.
_SCAN_OPTIONS = (
    "scan.timestamp-millis", "scan.timestamp", "scan.file-creation-time-millis", "scan.snapshot-id", "scan.tag-name",
    "incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag",
)  # fmt: skip
_INCREMENTAL = ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag")
_SCAN_MODES = {
    "from-timestamp": ("scan.timestamp-millis", "scan.timestamp"),
    "from-snapshot": ("scan.snapshot-id", "scan.tag-name", "scan.watermark"),
    "from-snapshot-full": ("scan.snapshot-id",),
    "from-file-creation-time": ("scan.file-creation-time-millis",),
    "incremental": _INCREMENTAL,
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that is broken: its code, the sentence, and the column or option concerned."""

    code: str
    message: str
    column: str | None = None


def check_schema(schema: CheckedSchema) -> Iterator[Problem]:
    """Every broken rule, in the order in which Paimon looks.

    Raises:
        InvalidRequest: `"invalid-table-option"`: an option that a rule needs does not parse.
    """
    for check in _CHECKS:
        yield from check(schema)


def ensure_valid(schema: CheckedSchema, before: CheckedSchema | None = None) -> None:
    """Refuses a schema that breaks a rule.

    Args:
        schema: The new one.
        before: What it was. A rule that it broke already is one that a later Paimon, which made it, does not have any
            more (deletion vectors of tables with data evolution): no change is to blame for it.

    Raises:
        InvalidRequest: The first broken rule, `.code` and `.column` included.
    """
    problems = tuple(check_schema(schema))
    known = _problems_of(before) if problems and before is not None else ()
    problem = next((problem for problem in problems if problem not in known), None)
    if problem is not None:
        raise InvalidRequest(problem.message, code=problem.code, column=problem.column)


def _problems_of(schema: CheckedSchema) -> tuple[Problem, ...]:
    try:
        return tuple(check_schema(schema))
    except InvalidRequest:
        return ()


def _option(message: str, column: str | None = None) -> Problem:
    return Problem("invalid-table-option", message, column)


def check_option_values(schema: CheckedSchema) -> Iterator[Problem]:
    """Each text is a value of its option."""
    for key, message in wrong_values(schema.options):
        yield _option(message, key)


def check_key_types(schema: CheckedSchema) -> Iterator[Problem]:
    """Keys are plain values."""
    upsert = o.UPSERT_KEY.get(schema.options)
    for what, names in (("primary key", schema.primary_keys), ("partition", schema.partition_keys), ("upsert", upsert)):
        for name in names:
            column = schema.find(name)
            if column is None:
                yield Problem("invalid-key", f"the {what} column {name!r} does not exist", name)
            elif column.type.root in _NESTED:
                yield Problem("invalid-key", f"the {what} column {name!r} cannot be {column.type}", name)
    if upsert and schema.primary_keys:
        yield Problem("invalid-key", f"{o.UPSERT_KEY.key} is for tables without a primary key")


def check_bucket(schema: CheckedSchema) -> Iterator[Problem]:
    """The number of buckets, and what it is taken from."""
    bucket = o.BUCKET.get(schema.options)
    if bucket == o.DYNAMIC_BUCKET:
        if o.BUCKET_KEY in schema.options:
            yield Problem("invalid-bucket", "a bucket-key needs a number of buckets: bucket is -1")
        elif not schema.primary_keys and "full-compaction.delta-commits" in schema.options:
            yield _option("an append table without buckets has no full-compaction.delta-commits")
        return
    if bucket < 1 and not (bucket == o.POSTPONE_BUCKET and schema.primary_keys):
        yield Problem("invalid-bucket", f"the number of buckets must be greater than 0, not {bucket}")
    elif not schema.primary_keys and not schema.bucket_keys and (schema.version > 1 or bucket != 1):
        yield Problem("invalid-bucket", "an append table with buckets needs a bucket-key")
    for name in schema.bucket_keys:
        column = schema.find(name)
        if column is not None and column.type.root in _NESTED - {"VECTOR"}:
            yield Problem("invalid-bucket", f"the bucket key {name!r} cannot be {column.type}", name)


def check_scan_options(schema: CheckedSchema) -> Iterator[Problem]:
    """A table may carry options of reads; they must say one version, in the mode that it belongs to."""
    mode = o.SCAN_MODE.get(schema.options)
    present = [key for key in (*_SCAN_OPTIONS, "scan.watermark") if key in schema.options]
    if mode == "default" and present:
        mode = next(m for m, keys in _SCAN_MODES.items() if m != "from-snapshot-full" and set(present) & set(keys))
    wanted = _SCAN_MODES.get(mode, ())
    if wanted and len(set(present) & set(wanted)) != 1:
        yield _option(f"scan.mode {mode} needs exactly one of {', '.join(wanted)}")
    for key in present:
        if key not in wanted and key != "scan.watermark":
            yield _option(f"{key} does not go with scan.mode {mode}")


def check_field_options(schema: CheckedSchema) -> Iterator[Problem]:
    """`fields.<column>.<...>` must name columns."""
    for key in schema.options:
        parts = key.split(".")
        if parts[0] != o.FIELDS_PREFIX or len(parts) < 2:
            continue
        for name in parts[1].split(","):
            if name != "default-aggregate-function" and schema.find(name) is None:
                yield _option(f"option {key} names {name!r}, which is no column", name)


def check_sequence_fields(schema: CheckedSchema) -> Iterator[Problem]:
    """`sequence.field`: which of two rows of a key is the later."""
    sequence = o.SEQUENCE_FIELD.get(schema.options)
    for name in sequence:
        if schema.find(name) is None:
            yield _option(f"the sequence field {name!r} is no column", name)
        elif f"{o.FIELDS_PREFIX}.{name}.aggregate-function" in schema.options:
            yield _option(f"the sequence field {name!r} cannot have an aggregate function", name)
    for name in duplicates(sequence):
        yield _option(f"the sequence field {name!r} stands twice", name)
    if sequence and o.MERGE_ENGINE.get(schema.options) == "first-row":
        yield _option("merge-engine first-row takes no sequence.field")
    if sequence and schema.crosses_partitions:
        yield _option("sequence.field needs every partition key in the primary key")


def check_changelog(schema: CheckedSchema) -> Iterator[Problem]:
    """Who writes changelogs, and of what."""
    options = schema.options
    producer = o.CHANGELOG_PRODUCER.get(options)
    if not schema.primary_keys and producer != "none":
        yield _option(f"changelog-producer {producer} needs a primary key")
    yield from check_overwrites(schema)
    if o.MERGE_ENGINE.get(options) == "first-row" and producer not in ("none", "lookup"):
        yield _option(f"merge-engine first-row does not go with changelog-producer {producer}")
    if o.TABLE_READ_SEQUENCE_NUMBER.get(options) and not schema.primary_keys:
        yield _option(f"{o.TABLE_READ_SEQUENCE_NUMBER.key} needs a primary key")


def check_overwrites(schema: CheckedSchema) -> Iterator[Problem]:
    """Whether streams may be told what overwrites removed."""
    if not o.STREAMING_READ_OVERWRITE.get(schema.options):
        return
    producer = o.CHANGELOG_PRODUCER.get(schema.options)
    if producer in ("full-compaction", "lookup"):
        yield _option(f"streaming-read-overwrite does not go with changelog-producer {producer}: changes come twice")
    if not schema.primary_keys:
        yield _option("streaming-read-overwrite needs a primary key")


def check_retention(schema: CheckedSchema) -> Iterator[Problem]:
    """How many snapshots and changelogs stay."""
    least = o.SNAPSHOT_NUM_RETAINED_MIN.get(schema.options)
    most = o.SNAPSHOT_NUM_RETAINED_MAX.get(schema.options)
    least_log, most_log = (
        option.get(schema.options) for option in (o.CHANGELOG_NUM_RETAINED_MIN, o.CHANGELOG_NUM_RETAINED_MAX)
    )
    for kind, low, high in (
        ("snapshot", least, most),
        ("changelog", least if least_log is None else least_log, most if most_log is None else most_log),
    ):
        if low < 1:
            yield _option(f"{kind}.num-retained.min must be at least 1, not {low}")
        elif low > high:
            yield _option(f"{kind}.num-retained.min ({low}) is larger than {kind}.num-retained.max ({high})")
    if "partition.expiration-time" in schema.options and not schema.partition_keys:
        yield _option("partition.expiration-time needs partitions")


def check_names_and_types(schema: CheckedSchema) -> Iterator[Problem]:
    """Names that Paimon needs for itself, and types that the data files cannot hold."""
    file_format = o.FILE_FORMAT.get(schema.options)
    if file_format not in _FORMATS:
        yield _option(f"file.format {file_format!r} is unknown: {', '.join(sorted(_FORMATS))}")
    for f in schema.fields:
        if f.name in SYSTEM_FIELDS or f.name.startswith(KEY_FIELD_PREFIX):
            yield Problem("invalid-column-name", f"{f.name!r} is a name of Paimon's own columns", f.name)
        if not f.name.strip():
            yield Problem("invalid-column-name", "a column has no name", f.name)
        yield from _check_format(file_format, f.name, f.type)


def _check_format(file_format: str, name: str, t: DataType) -> Iterator[Problem]:
    most = _FINEST.get((file_format, t.root))
    if (file_format, t.root) in _NOT_IN_FILES or (most is not None and t.precision > most):
        yield Problem("unsupported-by-format", f"{file_format} files cannot hold column {name!r} of type {t}", name)
    for inner in t.children():
        yield from _check_format(file_format, name, inner)


def check_time_field(schema: CheckedSchema) -> Iterator[Problem]:
    """Rows may expire by a column of theirs, and say their kind in another."""
    name = o.RECORD_LEVEL_TIME_FIELD.get(schema.options)
    if name:
        column = schema.find(name)
        if column is None:
            yield _option(f"{o.RECORD_LEVEL_TIME_FIELD.key} names {name!r}, which is no column", name)
        elif column.type.root not in ("INTEGER", "BIGINT") and not column.type.root.startswith("TIMESTAMP"):
            yield _option(f"rows cannot expire by {name!r} of type {column.type}: INT, BIGINT or TIMESTAMP", name)
    kind = o.ROWKIND_FIELD.get(schema.options)
    if kind and schema.find(kind) is None:
        yield _option(f"rowkind.field names {kind!r}, which is no column", kind)


def check_deletion_vectors(schema: CheckedSchema) -> Iterator[Problem]:
    """Deletion vectors with the changelog producers and merge engines that know them."""
    if not o.DELETION_VECTORS.get(schema.options):
        return
    producer = o.CHANGELOG_PRODUCER.get(schema.options)
    if producer == "full-compaction":
        yield _option("deletion-vectors.enabled does not go with changelog-producer full-compaction")
    first_row = o.MERGE_ENGINE.get(schema.options) == "first-row"
    if first_row and not o.PK_CLUSTERING_OVERRIDE.get(schema.options):
        yield _option("merge-engine first-row deletes nothing: it takes no deletion vectors")


def check_row_tracking(schema: CheckedSchema) -> Iterator[Problem]:
    """Row ids, files of some columns, and blobs in files of their own."""
    options = schema.options
    tracks, evolves = o.ROW_TRACKING.get(options), o.DATA_EVOLUTION.get(options)
    if tracks and o.BUCKET.get(options) != o.DYNAMIC_BUCKET:
        yield _option("row-tracking.enabled needs bucket = -1")
    if tracks and schema.primary_keys:
        yield _option("row-tracking.enabled is for tables without a primary key")
    if evolves and not tracks:
        yield _option("data-evolution.enabled needs row-tracking.enabled")
    if evolves and o.DELETION_VECTORS.get(options):
        yield _option("data-evolution.enabled does not go with deletion-vectors.enabled")
    if evolves and o.CLUSTERING_INCREMENTAL.get(options):
        yield _option("data-evolution.enabled does not go with clustering.incremental")
    blobs = [f.name for f in schema.fields if f.type.root == "BLOB"]
    if blobs and not evolves:
        yield _option("a table with a BLOB column needs data-evolution.enabled", blobs[0])
    if blobs and len(blobs) == len(schema.fields):
        yield _option("a table with a BLOB column needs another column, too", blobs[0])
    for blob in sorted(set(blobs) & set(schema.partition_keys)):
        yield Problem("invalid-key", f"the partition column {blob!r} cannot be BLOB", blob)
    for name in o.BLOB_DESCRIPTOR_FIELD.get(options):
        if name not in blobs:
            yield _option(f"{o.BLOB_DESCRIPTOR_FIELD.key} names {name!r}, which is no BLOB column", name)


def check_vectors(schema: CheckedSchema) -> Iterator[Problem]:
    for name in o.VECTOR_FIELD.get(schema.options):
        column = schema.find(name)
        if column is None or column.type.root != "VECTOR":
            yield _option(f"{o.VECTOR_FIELD.key} names {name!r}, which is no VECTOR column", name)


def check_clustering(schema: CheckedSchema) -> Iterator[Problem]:
    options = schema.options
    if not o.CLUSTERING_INCREMENTAL.get(options):
        return
    if schema.primary_keys:
        yield _option("clustering.incremental is for tables without a primary key")
    if o.BUCKET.get(options) != o.DYNAMIC_BUCKET:
        if o.BUCKET_APPEND_ORDERED.get(options):
            yield _option("clustering.incremental with buckets needs bucket-append-ordered = false")
        if o.DELETION_VECTORS.get(options):
            yield _option("clustering.incremental with buckets does not go with deletion-vectors.enabled")


def check_clustered_keys(schema: CheckedSchema) -> Iterator[Problem]:
    """`pk-clustering-override`: files of a primary-key table sorted by other columns."""
    options = schema.options
    if not o.PK_CLUSTERING_OVERRIDE.get(options):
        return
    mode = o.PK_CLUSTERING_OVERRIDE.key
    if not o.CLUSTERING_COLUMNS.get(options):
        yield _option(f"{mode} needs clustering.columns")
    if not o.DELETION_VECTORS.get(options):
        yield _option(f"{mode} needs deletion-vectors.enabled")
    if o.MERGE_ENGINE.get(options) not in ("deduplicate", "first-row"):
        yield _option(f"{mode} does not go with merge-engine {o.MERGE_ENGINE.get(options)}")
    if o.CHANGELOG_PRODUCER.get(options) not in ("none", "input"):
        yield _option(f"{mode} does not go with changelog-producer {o.CHANGELOG_PRODUCER.get(options)}")
    for key in (o.SEQUENCE_FIELD.key, "record-level.expire-time"):
        if key in options:
            yield _option(f"{mode} does not go with {key}")


def check_chain_table(schema: CheckedSchema) -> Iterator[Problem]:
    """Tables whose partitions build on each other."""
    options = schema.options
    if not o.CHAIN_TABLE.get(options):
        return
    if not schema.primary_keys or not schema.partition_keys:
        yield _option("chain-table.enabled needs a primary key and partitions")
    if o.BUCKET.get(options) < 1:
        yield _option("chain-table.enabled needs a number of buckets")
    for key in (o.SEQUENCE_FIELD.key, "partition.timestamp-pattern", "partition.timestamp-formatter"):
        if key not in options:
            yield _option(f"chain-table.enabled needs {key}")
    if o.CHANGELOG_PRODUCER.get(options) not in ("none", "input"):
        yield _option(f"chain-table.enabled does not go with changelog-producer {o.CHANGELOG_PRODUCER.get(options)}")
    if o.DELETION_VECTORS.get(options):
        yield _option("chain-table.enabled does not go with deletion-vectors.enabled")


def check_file_indexes(schema: CheckedSchema) -> Iterator[Problem]:
    """`file-index.<kind>.columns` must name columns; `map[key]` is one of a map."""
    for key, text in schema.options.items():
        if key.startswith("file-index.") and key.endswith(".columns"):
            for name in o.parse_names(text):
                if schema.find(name) is None and schema.find(name.partition("[")[0]) is None:
                    yield _option(f"option {key} names {name!r}, which is no column", name)


_CHECKS: tuple[Callable[[CheckedSchema], Iterator[Problem]], ...] = (
    check_option_values,
    check_key_types,
    check_bucket,
    check_scan_options,
    check_field_options,
    check_sequence_fields,
    lambda schema: (_option(m, c) for m, c in check_sequence_groups(schema)),
    check_changelog,
    check_retention,
    check_names_and_types,
    check_time_field,
    check_deletion_vectors,
    check_vectors,
    lambda schema: (_option(m, c) for m, c in check_aggregators(schema)),
    check_row_tracking,
    check_clustering,
    check_clustered_keys,
    check_chain_table,
    check_file_indexes,
)

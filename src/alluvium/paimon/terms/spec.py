"""Wire documents of Paimon tables: snapshots and tags (JSON), and the columns of manifests as Arrow schemas.

Specification: `org.apache.paimon.Snapshot`, `org.apache.paimon.manifest.ManifestEntry`, `DataFileMeta`.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
import pyarrow as pa

from alluvium.errors import DECODE_ERRORS, CorruptTable

#: Java's `long`; JSON's numbers have no bounds.
Long: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
#: Milliseconds since 1970 UTC of the years 1 to 9999: those of which a calendar can be asked.
Millis: TypeAlias = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000, le=253_402_300_799_999)]
#: The column of files that stores the ids of rows that were in others before.
ROW_ID = "_ROW_ID"


class SnapshotDocument(msgspec.Struct, frozen=True, rename="camel"):
    """`snapshot-N`, a tag (with `tag_create_time`), or a long-lived changelog.

    "No version" means 1; fields that a newer writer adds are ignored.
    """

    id: Long
    schema_id: Long
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: Long
    commit_kind: str
    time_millis: Millis
    version: Long | None = None
    base_manifest_list_size: Long | None = None
    delta_manifest_list_size: Long | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: Long | None = None
    index_manifest: str | None = None
    log_offsets: dict[str, Long] | None = None
    total_record_count: Long | None = None
    delta_record_count: Long | None = None
    changelog_record_count: Long | None = None
    watermark: Long | None = None
    statistics: str | None = None
    properties: dict[str, str] | None = None
    next_row_id: Long | None = None
    tag_create_time: object = None
    tag_time_retained: object = None


def parse_snapshot(data: bytes, path: str) -> SnapshotDocument:
    """Parses a snapshot file.

    Raises:
        CorruptTable: A field that every snapshot has is missing or of another type.
    """
    try:
        return msgspec.json.decode(data, type=SnapshotDocument)
    except DECODE_ERRORS as error:
        raise CorruptTable(f"the snapshot cannot be parsed: {error}", code="invalid-snapshot", path=path) from None


def format_snapshot(document: SnapshotDocument) -> bytes:
    """A snapshot file; fields without a value are left out, as Java does."""
    said = msgspec.to_builtins(document)
    return msgspec.json.format(msgspec.json.encode({k: v for k, v in said.items() if v is not None}), indent=2)


_STRINGS = pa.list_(pa.field("element", pa.string()))
_LONGS = pa.list_(pa.field("element", pa.int64()))

#: What a record says that has no column here (see `unknown_fields`): whoever writes it anew carries it on.
_OTHERS = (pa.field("others", pa.binary()), pa.field("others_type", pa.string()))

#: What scans look at, of each data file of a manifest. Rows of bytes are BinaryRows; statistics go by the file's own
#: schema. For reading alone: an entry that is written again says all of `ENTRIES`.
SCANNED_ENTRIES = pa.schema(
    [
        pa.field("kind", pa.int8()),
        pa.field("partition", pa.binary()),
        pa.field("bucket", pa.int32()),
        pa.field("total_buckets", pa.int32()),
        pa.field("file_name", pa.string()),
        pa.field("file_size", pa.int64()),
        pa.field("row_count", pa.int64()),
        pa.field("min_key", pa.binary()),
        pa.field("max_key", pa.binary()),
        pa.field("stats_min", pa.binary()),
        pa.field("stats_max", pa.binary()),
        pa.field("stats_nulls", _LONGS),
        pa.field("min_sequence_number", pa.int64()),
        pa.field("max_sequence_number", pa.int64()),
        pa.field("schema_id", pa.int64()),
        pa.field("level", pa.int32()),
        pa.field("extra_files", _STRINGS),
        pa.field("creation_time", pa.timestamp("ms")),
        pa.field("delete_row_count", pa.int64()),
        pa.field("file_source", pa.int8()),
        pa.field("value_stats_cols", _STRINGS),
        pa.field("external_path", pa.string()),
        pa.field("first_row_id", pa.int64()),
        pa.field("write_cols", _STRINGS),
    ]
)

#: One row a data file of a manifest, with all that the manifest says of it.
ENTRIES = pa.schema(
    [
        *SCANNED_ENTRIES,
        pa.field("key_stats_min", pa.binary()),
        pa.field("key_stats_max", pa.binary()),
        pa.field("key_stats_nulls", _LONGS),
        pa.field("embedded_file_index", pa.binary()),
        *_OTHERS,
    ]
)

#: One row a manifest of a manifest list.
MANIFESTS = pa.schema(
    [
        pa.field("file_name", pa.string()),
        pa.field("file_size", pa.int64()),
        pa.field("num_added_files", pa.int64()),
        pa.field("num_deleted_files", pa.int64()),
        pa.field("schema_id", pa.int64()),
        pa.field("partition_min", pa.binary()),
        pa.field("partition_max", pa.binary()),
        pa.field("partition_nulls", _LONGS),
        pa.field("min_bucket", pa.int32()),
        pa.field("max_bucket", pa.int32()),
        pa.field("min_level", pa.int32()),
        pa.field("max_level", pa.int32()),
        pa.field("min_row_id", pa.int64()),
        pa.field("max_row_id", pa.int64()),
        *_OTHERS,
    ]
)

#: One row an index file of an index manifest.
INDEX_ENTRIES = pa.schema(
    [
        pa.field("kind", pa.int8()),
        pa.field("partition", pa.binary()),
        pa.field("bucket", pa.int32()),
        pa.field("index_type", pa.string()),
        pa.field("file_name", pa.string()),
        pa.field("file_size", pa.int64()),
        pa.field("row_count", pa.int64()),
        pa.field(
            "ranges",
            pa.list_(
                pa.struct(
                    [
                        pa.field("f0", pa.string()),
                        pa.field("f1", pa.int32()),
                        pa.field("f2", pa.int32()),
                        pa.field("_CARDINALITY", pa.int64()),
                    ]
                )
            ),
        ),
        pa.field("external_path", pa.string()),
        *_OTHERS,
    ]
)

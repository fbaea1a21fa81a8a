"""Manifests, manifest lists and index manifests to bytes: Avro records, one under another's name, as Java writes them.

Specification: `org.apache.paimon.manifest`; "always write Avro manifests of shape (1)".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.avro.avro_container import WriterSchema, format_avro, joined_avro
from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.paimon.files.unknown_fields import extended, unpack_into
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import MANIFEST_COMPRESSION
from alluvium.paimon.terms.spec import MANIFESTS
from alluvium.schema.types import DataType

#: The row without fields: no partition, no key.
EMPTY_ROW = bytes(12)
_VERSION, _INDEX_VERSION = 2, 1
_OTHERS = ("others", "others_type")
#: The names of the codecs as Avro has them.
_CODECS = {"zstd": "zstandard", "none": "null", "null": "null", "snappy": "snappy", "deflate": "deflate"}
_Node = dict[str, Any]


def _record(name: str, fields: Mapping[str, Any]) -> _Node:
    members = [
        {"name": key, "type": kind, **({"default": None} if isinstance(kind, list) else {})}
        for key, kind in fields.items()
    ]
    return {"type": "record", "name": name, "fields": members}


def _maybe(kind: Any) -> list[Any]:
    return ["null", kind]


def _named(root: _Node) -> Mapping[str, Any]:
    return {"type": "record", "name": "record", "namespace": "org.apache.paimon.avro.generated", **root}


def _stats(name: str) -> _Node:
    nulls = _maybe({"type": "array", "items": ["null", "long"]})
    return _record(name, {"_MIN_VALUES": "bytes", "_MAX_VALUES": "bytes", "_NULL_COUNTS": nulls})


_TEXTS = {"type": "array", "items": "string"}
_LIST = _named(
    {"fields": _record("", {
        "_VERSION": "int", "_FILE_NAME": "string", "_FILE_SIZE": "long", "_NUM_ADDED_FILES": "long",
        "_NUM_DELETED_FILES": "long", "_PARTITION_STATS": _stats("record__PARTITION_STATS"), "_SCHEMA_ID": "long",
        "_MIN_BUCKET": _maybe("int"), "_MAX_BUCKET": _maybe("int"), "_MIN_LEVEL": _maybe("int"),
        "_MAX_LEVEL": _maybe("int"), "_MIN_ROW_ID": _maybe("long"), "_MAX_ROW_ID": _maybe("long"),
    })["fields"]}
)  # fmt: skip
_FILE = _record(
    "record__FILE",
    {
        "_FILE_NAME": "string", "_FILE_SIZE": "long", "_ROW_COUNT": "long", "_MIN_KEY": "bytes", "_MAX_KEY": "bytes",
        "_KEY_STATS": _stats("record__FILE__KEY_STATS"), "_VALUE_STATS": _stats("record__FILE__VALUE_STATS"),
        "_MIN_SEQUENCE_NUMBER": "long", "_MAX_SEQUENCE_NUMBER": "long", "_SCHEMA_ID": "long", "_LEVEL": "int",
        "_EXTRA_FILES": _TEXTS, "_CREATION_TIME": _maybe({"type": "long", "logicalType": "timestamp-millis"}),
        "_DELETE_ROW_COUNT": _maybe("long"), "_EMBEDDED_FILE_INDEX": _maybe("bytes"), "_FILE_SOURCE": _maybe("int"),
        "_VALUE_STATS_COLS": _maybe(_TEXTS), "_EXTERNAL_PATH": _maybe("string"), "_FIRST_ROW_ID": _maybe("long"),
        "_WRITE_COLS": _maybe(_TEXTS),
    },
)  # fmt: skip
_ENTRY = _named(
    {"fields": _record("", {
        "_VERSION": "int", "_KIND": "int", "_PARTITION": "bytes", "_BUCKET": "int", "_TOTAL_BUCKETS": "int",
        "_FILE": _FILE,
    })["fields"]}
)  # fmt: skip
_RANGES = {
    "type": "array",
    "items": ["null", _record(
        "record__DELETIONS_VECTORS_RANGES",
        {"f0": "string", "f1": "int", "f2": "int", "_CARDINALITY": _maybe("long")},
    )],
}  # fmt: skip
_INDEX = _named(
    {"fields": _record("", {
        "_VERSION": "int", "_KIND": "int", "_PARTITION": "bytes", "_BUCKET": "int", "_INDEX_TYPE": "string",
        "_FILE_NAME": "string", "_FILE_SIZE": "long", "_ROW_COUNT": "long",
        "_DELETIONS_VECTORS_RANGES": _maybe(_RANGES), "_EXTERNAL_PATH": _maybe("string"),
    })["fields"]}
)  # fmt: skip

_ENTRY_SCHEMA, _LIST_SCHEMA, _INDEX_SCHEMA = map(WriterSchema.of, (_ENTRY, _LIST, _INDEX))


def codec_of(options: Mapping[str, str]) -> str:
    """How manifests are compressed (`manifest.compression`), as Avro calls it."""
    return _CODECS.get(MANIFEST_COMPRESSION.get(options), "zstandard")


def format_manifest(entries: pa.Table, codec: str) -> bytes:
    """A manifest of entries (`ENTRIES`)."""
    columns = [entries[name].to_pylist() for name in _WHAT_ENTRIES_SAY]
    times = entries["creation_time"].cast(pa.int64()).to_pylist()
    records = [_entry_record(values, time) for *values, time in zip(*columns, times, strict=True)]
    return format_avro(_with_others(_ENTRY, records, entries) or _ENTRY_SCHEMA, records, codec)


def _with_others(schema: Mapping[str, Any], records: Sequence[_Node], rows: pa.Table) -> Mapping[str, Any] | None:
    """The schema with the fields that we do not know, added to the records that have them; None: no record has any."""
    if rows["others_type"].null_count == rows.num_rows:
        return None
    kinds = rows["others_type"].to_pylist()
    for record, data, kind in zip(records, rows["others"].to_pylist(), kinds, strict=True):
        unpack_into(record, data, kind)
    return extended(schema, [kind for kind in kinds if kind is not None])


_WHAT_ENTRIES_SAY = (
    "kind", "partition", "bucket", "total_buckets", "file_name", "file_size", "row_count", "min_key", "max_key",
    "key_stats_min", "key_stats_max", "key_stats_nulls", "stats_min", "stats_max", "stats_nulls",
    "min_sequence_number", "max_sequence_number", "schema_id", "level", "extra_files", "delete_row_count",
    "embedded_file_index", "file_source", "value_stats_cols", "external_path", "first_row_id", "write_cols",
)  # fmt: skip


def _entry_record(values: Sequence[Any], time: int | None) -> _Node:
    (kind, partition, bucket, total, name, size, rows, min_key, max_key, key_min, key_max, key_nulls, low, high,
     nulls, first, last, schema_id, level, extra, deleted, index, source, stats_cols, external, row_id,
     write_cols) = values  # fmt: skip
    file = {
        "_FILE_NAME": name, "_FILE_SIZE": size, "_ROW_COUNT": rows, "_MIN_KEY": min_key, "_MAX_KEY": max_key,
        "_KEY_STATS": {"_MIN_VALUES": key_min, "_MAX_VALUES": key_max, "_NULL_COUNTS": key_nulls},
        "_VALUE_STATS": {"_MIN_VALUES": low, "_MAX_VALUES": high, "_NULL_COUNTS": nulls},
        "_MIN_SEQUENCE_NUMBER": first, "_MAX_SEQUENCE_NUMBER": last, "_SCHEMA_ID": schema_id, "_LEVEL": level,
        "_EXTRA_FILES": extra or [], "_CREATION_TIME": time, "_DELETE_ROW_COUNT": deleted,
        "_EMBEDDED_FILE_INDEX": index, "_FILE_SOURCE": source, "_VALUE_STATS_COLS": stats_cols,
        "_EXTERNAL_PATH": external, "_FIRST_ROW_ID": row_id, "_WRITE_COLS": write_cols,
    }  # fmt: skip
    return {"_VERSION": _VERSION, "_KIND": kind, "_PARTITION": partition, "_BUCKET": bucket, "_TOTAL_BUCKETS": total,
            "_FILE": file}  # fmt: skip


def format_manifest_list(manifests: pa.Table, codec: str) -> bytes:
    """A list of manifests (`MANIFESTS`)."""
    columns = [manifests[name].to_pylist() for name in (*_PARTITION_STATS, *_WHAT_LISTS_SAY)]
    records = []
    for low, high, nulls, *values in zip(*columns, strict=True):
        stats = {"_MIN_VALUES": low or EMPTY_ROW, "_MAX_VALUES": high or EMPTY_ROW, "_NULL_COUNTS": nulls}
        said = zip(_LIST_NAMES, values, strict=True)
        records.append({"_VERSION": _VERSION, "_PARTITION_STATS": stats, **dict(said)})
    return format_avro(_with_others(_LIST, records, manifests) or _LIST_SCHEMA, records, codec)


_LINE = pa.struct(list(MANIFESTS))
_PARTITION_STATS = ("partition_min", "partition_max", "partition_nulls")
_WHAT_LISTS_SAY = tuple(name for name in MANIFESTS.names if name not in (*_PARTITION_STATS, *_OTHERS))
_LIST_NAMES = tuple(f"_{name.upper()}" for name in _WHAT_LISTS_SAY)


def format_index_manifest(entries: pa.Table, codec: str) -> bytes:
    """An index manifest of entries (`INDEX_ENTRIES`)."""
    records = [
        {"_VERSION": _INDEX_VERSION, **{_INDEX_NAMES.get(n, f"_{n.upper()}"): value for n, value in row.items()}}
        for row in entries.drop_columns(list(_OTHERS)).to_pylist()
    ]
    return format_avro(_with_others(_INDEX, records, entries) or _INDEX_SCHEMA, records, codec)


_INDEX_NAMES = {"ranges": "_DELETIONS_VECTORS_RANGES"}


def describe_manifest(name: str, size: int, entries: pa.Table, schema: TableSchema) -> pa.Table:
    """The line (`MANIFESTS`) of a manifest of entries in its list."""
    deleted = pc.sum(pc.equal(entries["kind"], 1)).as_py() or 0
    low, high, nulls = _partition_stats(entries, schema)
    row = {
        "file_name": name, "file_size": size, "num_added_files": entries.num_rows - deleted,
        "num_deleted_files": deleted, "schema_id": schema.id, "partition_min": low, "partition_max": high,
        "partition_nulls": nulls,
    }  # fmt: skip
    for column in ("bucket", "level"):
        ends = pc.min_max(entries[column]).as_py()
        row |= {f"min_{column}": ends["min"], f"max_{column}": ends["max"]}
    if entries["first_row_id"].null_count == 0:
        last = pc.subtract(pc.add(entries["first_row_id"], entries["row_count"]), 1)
        row |= {"min_row_id": pc.min(entries["first_row_id"]).as_py(), "max_row_id": pc.max(last).as_py()}
    return _line(row)


def joined_manifests(manifests: Sequence[tuple[str, bytes]], codec: str) -> bytes | None:
    """A manifest with the entries of several (path and bytes), in order; None: not all of them are as we write them."""
    return joined_avro(_ENTRY_SCHEMA, manifests, codec)


def joined_manifest_lists(lists: Sequence[tuple[str, bytes]], codec: str) -> bytes | None:
    """A list of the manifests of several lists, likewise."""
    return joined_avro(_LIST_SCHEMA, lists, codec)


def describe_joined(name: str, size: int, manifests: pa.Table, schema: TableSchema) -> pa.Table | None:
    """The line (`MANIFESTS`) of a manifest that holds the entries of several (`MANIFESTS`); None: their lines do not
    tell all that it says.
    """
    told = manifests.select(["min_bucket", "max_bucket", "min_level", "max_level"])
    if any(column.null_count for column in told.columns):
        return None
    ends = {column: _end(manifests, column) for column in told.column_names}
    if not manifests["min_row_id"].null_count and not manifests["max_row_id"].null_count:
        ends |= {column: _end(manifests, column) for column in ("min_row_id", "max_row_id")}
    low, high = EMPTY_ROW, EMPTY_ROW
    if schema.partition_keys:
        ends_of = pa.concat_arrays([manifests[f"partition_{end}"].combine_chunks() for end in ("min", "max")])
        low, high = _bounds(decode_rows(ends_of, _partition_types(schema)), schema)
    nulls = manifests["partition_nulls"].to_pylist()
    row = {
        "file_name": name, "file_size": size, "num_added_files": pc.sum(manifests["num_added_files"]).as_py(),
        "num_deleted_files": pc.sum(manifests["num_deleted_files"]).as_py(), "schema_id": schema.id,
        "partition_min": low, "partition_max": high,
        "partition_nulls": [sum(column) for column in zip(*nulls, strict=True)], **ends,
    }  # fmt: skip
    return _line(row)


def _line(row: _Node) -> pa.Table:
    # As one value of a struct: an array a column takes several times as long.
    return pa.Table.from_struct_array(pa.array([row], _LINE))


def _end(manifests: pa.Table, column: str) -> int:
    end = pc.min(manifests[column]) if column.startswith("min_") else pc.max(manifests[column])
    return int(end.as_py())


def _partition_stats(entries: pa.Table, schema: TableSchema) -> tuple[bytes, bytes, list[int]]:
    """Bounds of the partitions' values, each column by itself, and how many entries have none."""
    if not schema.partition_keys:
        return EMPTY_ROW, EMPTY_ROW, []
    encoded = entries["partition"].combine_chunks().dictionary_encode()
    columns = decode_rows(encoded.dictionary, _partition_types(schema))
    nulls = [values.is_null().take(encoded.indices).true_count for values in columns]
    return *_bounds(columns, schema), nulls


def _partition_types(schema: TableSchema) -> list[tuple[DataType, int]]:
    fields = [f for name in schema.partition_keys if (f := schema.find(name)) is not None]
    return [(to_logical(f.type), f.type.precision) for f in fields]


def _bounds(columns: Sequence[pa.Array], schema: TableSchema) -> tuple[bytes, bytes]:
    """The least and the greatest of the values of each partition key, as rows."""
    types, ends = _partition_types(schema), [_ends(values) for values in columns]
    low, high = (encode_rows([pa.repeat(pair[place], 1) for pair in ends], types)[0].as_py() for place in (0, 1))
    return low, high


def _ends(values: pa.Array) -> tuple[pa.Scalar, pa.Scalar]:
    """The least and the greatest value in Java's order, by which its readers skip: NaN is the greatest, and zero has
    two signs.
    """
    ends = pc.min_max(values)
    low, high = ends["min"], ends["max"]
    if not pa.types.is_floating(values.type) or not low.is_valid:
        return low, high
    kind = values.type
    if pc.any(pc.is_nan(values)).as_py():
        high = pa.scalar(math.nan, kind)
    return pa.scalar(-0.0, kind) if low.as_py() == 0 else low, pa.scalar(0.0, kind) if high.as_py() == 0 else high

"""System tables about the files of a table: of data, manifests and indexes.

Specification: `org.apache.paimon.table.system`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.expr.tree import Expression
from alluvium.paimon.files.manifest import read_manifest_list, scan_index_manifest
from alluvium.paimon.files.partitions import (
    Partitions,
    data_paths,
    iso_text,
    partition_text,
    partitions_of,
    to_nanoseconds,
)
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms.options import PARTITION_DEFAULT_NAME, POSTPONE_BUCKET
from alluvium.paimon.terms.spec import INDEX_ENTRIES, MANIFESTS
from alluvium.paimon.view.selection import select_files, visible_entries

_STRING_MAP = pa.map_(pa.string(), pa.string())
_MS = pa.timestamp("ms")


def live_files(snapshot: Snapshot, where: Expression | None) -> pa.Table:
    """The files that batch readers see, for users."""
    selection = select_files(snapshot, where)
    entries = selection.entries
    return pa.table(
        {
            "path": data_paths(entries, selection.partitions, snapshot.schema),
            "size": entries["file_size"],
            "num_rows": entries["row_count"],
            "partition": partition_maps(snapshot.schema, selection.partitions),
            "modification_time": entries["creation_time"].cast(pa.timestamp("ms", tz="UTC")),
            "bucket": entries["bucket"],
            "level": entries["level"],
            "schema_id": entries["schema_id"],
        }
    )


def partition_maps(schema: TableSchema, partitions: Partitions) -> pa.Array:
    keys = schema.partition_keys
    fields = [schema.find(name) for name in keys]
    texts = [
        partition_text(partitions.values[f.name].combine_chunks(), f, legacy=False).to_pylist()
        for f in fields
        if f is not None
    ]
    rows = [list(zip(keys, row, strict=True)) for row in zip(*texts, strict=True)]
    return pa.array(rows or [[]] * len(partitions.directories), _STRING_MAP).take(partitions.indices)


def _partition_texts(schema: TableSchema, partitions: Partitions, brackets: str) -> pa.Array:
    """`{a, b}`, or `a=1/b=2` where no brackets are given."""
    fields = [f for name in schema.partition_keys if (f := schema.find(name)) is not None]
    columns = [partition_text(partitions.values[f.name].combine_chunks(), f, legacy=False).to_pylist() for f in fields]
    default = PARTITION_DEFAULT_NAME.get(schema.options)
    lines = []
    for row in zip(*columns, strict=True):
        if brackets:
            lines.append(brackets[0] + ", ".join("null" if v is None else v for v in row) + brackets[1])
        else:
            texts = (default if v is None or not v.strip() else v for v in row)
            lines.append("/".join(f"{f.name}={text}" for f, text in zip(fields, texts, strict=True)))
    if not fields:
        lines = [brackets] * len(partitions.directories)
    return pa.array(lines, pa.string())


def files(snapshot: Snapshot) -> pa.Table:
    entries, schema = snapshot.entries, snapshot.schema
    # Java shows files of buckets alone.
    entries = entries.filter(pc.not_equal(entries["bucket"], POSTPONE_BUCKET))
    partitions = partitions_of(entries, schema)
    names = entries["file_name"].combine_chunks()
    statistics = [_stats_texts(snapshot, entries, side) for side in ("null", "stats_min", "stats_max")]
    source = pc.if_else(pc.equal(entries["file_source"], 1), "COMPACT", "APPEND")
    columns: Mapping[str, object] = {
        "partition": _partition_texts(schema, partitions, "{}").take(partitions.indices),
        "bucket": entries["bucket"],
        "file_path": data_paths(entries, partitions, schema),
        "file_format": pc.replace_substring_regex(names, r"^.*\.", ""),
        "schema_id": entries["schema_id"],
        "level": entries["level"],
        "record_count": entries["row_count"],
        "file_size_in_bytes": entries["file_size"],
        "min_key": _key_texts(schema, entries["min_key"].combine_chunks()),
        "max_key": _key_texts(schema, entries["max_key"].combine_chunks()),
        "null_value_counts": statistics[0],
        "min_value_stats": statistics[1],
        "max_value_stats": statistics[2],
        "min_sequence_number": entries["min_sequence_number"],
        "max_sequence_number": entries["max_sequence_number"],
        "creation_time": entries["creation_time"],
        "deleteRowCount": entries["delete_row_count"],
        "file_source": pc.if_else(pc.is_null(entries["file_source"]), None, source),
        "first_row_id": entries["first_row_id"],
        "write_cols": entries["write_cols"],
    }
    return pa.table(columns)


_KEY_RANGES = (
    "partition", "bucket", "file_path", "file_format", "schema_id", "level", "record_count", "file_size_in_bytes",
    "min_key", "max_key", "first_row_id",
)  # fmt: skip


def file_key_ranges(snapshot: Snapshot) -> pa.Table:
    """Between which keys the rows of each file lie: what tells which files overlap."""
    return files(snapshot).select(_KEY_RANGES)


def _key_texts(schema: TableSchema, rows: pa.Array) -> pa.Array:
    fields = [f for name in schema.trimmed_primary_keys if (f := schema.find(name)) is not None]
    if not fields:
        return pa.nulls(len(rows), pa.string())
    columns = decode_rows(rows, [(to_logical(f.type), f.type.precision) for f in fields])
    texts = [_texts(values) for values in columns]
    lines = [f"[{', '.join(row)}]" for row in zip(*texts, strict=True)]
    return pa.array(lines, pa.string())


def _texts(values: pa.Array) -> list[str]:
    """Values as Java prints them: dates and times as numbers, timestamps in ISO form; nested ones have no text."""
    kind = values.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return ["null"] * len(values)
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        return ["null" if v is None else iso_text(v) for v in to_nanoseconds(values)]
    elif pa.types.is_binary(kind):
        return ["null" if value is None else repr(value) for value in values.to_pylist()]
    return ["null" if value is None else value for value in values.cast(pa.string()).to_pylist()]


def _stats_texts(snapshot: Snapshot, entries: pa.Table, side: str) -> list[str]:
    """`{a=1, b=null}` of each file, the table's columns by name in alphabetic order."""
    lines = []
    nulls = entries["stats_nulls"].to_pylist()
    data = None if side == "null" else entries[side].combine_chunks()
    described = zip(entries["schema_id"].to_pylist(), entries["value_stats_cols"].to_pylist(), strict=True)
    for place, (schema_id, names) in enumerate(described):
        held = [f for f in snapshot.schema_of(schema_id).fields if names is None or f.name in names]
        if data is None:
            values = ["null" if count is None else str(count) for count in nulls[place] or ()]
        else:
            values = _row_texts(data.slice(place, 1), held)
        known = dict(zip((f.id for f in held), values, strict=False))
        columns = sorted(snapshot.schema.fields, key=lambda f: f.name)
        lines.append("{" + ", ".join(f"{f.name}={known.get(f.id, 'null')}" for f in columns) + "}")
    return lines


def _row_texts(row: pa.Array, fields: list[DataField]) -> list[str]:
    types = [(to_logical(f.type), f.type.precision) for f in fields]
    length = pc.binary_length(row)[0].as_py() or 0
    if length < 12 + 8 * len(types):
        return []
    return [_texts(values)[0] for values in decode_rows(row, types)]


_MANIFESTS = pa.schema(
    [
        pa.field("file_name", pa.string(), False),
        pa.field("file_size", pa.int64(), False),
        pa.field("num_added_files", pa.int64(), False),
        pa.field("num_deleted_files", pa.int64(), False),
        pa.field("schema_id", pa.int64(), False),
        pa.field("min_partition_stats", pa.string()),
        pa.field("max_partition_stats", pa.string()),
        pa.field("min_row_id", pa.int64()),
        pa.field("max_row_id", pa.int64()),
    ]
)


def manifests(snapshot: Snapshot) -> pa.Table:
    """The manifests of the state, those of its changelog too."""
    document = snapshot.document
    lists = [] if document is None else [document.base_manifest_list, document.delta_manifest_list]
    if document is not None and document.changelog_manifest_list is not None:
        lists.append(document.changelog_manifest_list)
    found = pa.concat_tables([MANIFESTS.empty_table(), *(read_manifest_list(snapshot.store, name) for name in lists)])
    for side in ("min", "max"):
        texts = _row_lines(found[f"partition_{side}"].combine_chunks(), snapshot.schema)
        found = found.append_column(f"{side}_partition_stats", texts)
    return found.select(_MANIFESTS.names).cast(_MANIFESTS)


def _grouped(snapshot: Snapshot, by_bucket: bool) -> pa.Table:
    entries = visible_entries(snapshot) if not by_bucket else snapshot.entries
    partitions = partitions_of(entries, snapshot.schema)
    texts = _partition_texts(snapshot.schema, partitions, "{}" if by_bucket else "")
    buckets = entries["bucket"].to_numpy() if by_bucket else np.zeros(entries.num_rows, np.int32)
    table = pa.table(
        {
            "partition": texts.take(partitions.indices),
            "bucket": pa.array(buckets, pa.int32()),
            "record_count": entries["row_count"],
            "file_size_in_bytes": entries["file_size"],
            "last_update_time": entries["creation_time"],
        }
    )
    keys = ["partition", "bucket"] if by_bucket else ["partition"]
    grouped = table.group_by(keys, use_threads=False).aggregate(
        [
            ("record_count", "sum"),
            ("file_size_in_bytes", "sum"),
            ("record_count", "count"),
            ("last_update_time", "max"),
        ]
    )
    names = {
        "record_count_sum": "record_count",
        "file_size_in_bytes_sum": "file_size_in_bytes",
        "record_count_count": "file_count",
        "last_update_time_max": "last_update_time",
    }
    grouped = grouped.rename_columns([names.get(name, name) for name in grouped.column_names])
    return grouped.sort_by([(key, "ascending") for key in keys])


_PARTITIONS = pa.schema(
    [
        pa.field("partition", pa.string()),
        pa.field("record_count", pa.int64(), False),
        pa.field("file_size_in_bytes", pa.int64(), False),
        pa.field("file_count", pa.int64(), False),
        pa.field("last_update_time", _MS),
        pa.field("created_at", _MS),
        pa.field("created_by", pa.string()),
        pa.field("updated_by", pa.string()),
        pa.field("options", pa.string()),
    ]
)


def partitions(snapshot: Snapshot) -> pa.Table:
    """The partitions that readers see. Who made them when, and their options, a metastore would know."""
    found = _grouped(snapshot, False)
    for name in _PARTITIONS.names[found.num_columns :]:
        found = found.append_column(name, pa.nulls(found.num_rows, _PARTITIONS.field(name).type))
    return found.cast(_PARTITIONS)


def buckets(snapshot: Snapshot) -> pa.Table:
    return _grouped(snapshot, True)


_TABLE_INDEXES = pa.schema(
    [
        pa.field("partition", pa.string()),
        pa.field("bucket", pa.int32(), False),
        pa.field("index_type", pa.string(), False),
        pa.field("file_name", pa.string(), False),
        pa.field("file_size", pa.int64(), False),
        pa.field("row_count", pa.int64(), False),
        pa.field("dv_ranges", INDEX_ENTRIES.field("ranges").type),
    ]
)


def table_indexes(snapshot: Snapshot) -> pa.Table:
    """The index files of the state, and of deletion vectors where those of each data file lie in them."""
    document = snapshot.document
    if document is None or document.index_manifest is None:
        return _TABLE_INDEXES.empty_table()
    found = scan_index_manifest(snapshot.store, document.index_manifest)
    texts = _row_lines(found["partition"].combine_chunks(), snapshot.schema)
    named = found.drop_columns(["partition"]).rename_columns({"ranges": "dv_ranges"})
    return named.append_column("partition", texts).select(_TABLE_INDEXES.names).cast(_TABLE_INDEXES)


def _row_lines(rows: pa.Array, schema: TableSchema) -> pa.Array:
    """Rows of bytes of partition keys as `{a, b}`."""
    fields = [f for name in schema.partition_keys if (f := schema.find(name)) is not None]
    if not fields:
        return pa.array(["{}"] * len(rows), pa.string())
    values = decode_rows(rows, [(to_logical(f.type), f.type.precision) for f in fields])
    texts = [partition_text(column, f, legacy=False).to_pylist() for column, f in zip(values, fields, strict=True)]
    lines = ["{" + ", ".join("null" if v is None else v for v in row) + "}" for row in zip(*texts, strict=True)]
    return pa.array(lines, pa.string())

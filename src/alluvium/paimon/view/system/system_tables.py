"""System tables that come out of metadata alone, as Paimon's `t$name` show them.

Specification: `org.apache.paimon.table.system`.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.errors import InvalidRequest, NotFound, suggest
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
from alluvium.paimon.log.names import directory, list_branches, list_names
from alluvium.paimon.log.schema_log import list_schema_ids, load_schema
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import list_tags, read_snapshots, read_tag
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms.options import PARTITION_DEFAULT_NAME, POSTPONE_BUCKET
from alluvium.paimon.terms.spec import MANIFESTS, SnapshotDocument
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


def read_system_table(snapshot: Snapshot, name: str) -> pa.Table:
    """One of the tables in `SYSTEM_TABLES`.

    Raises:
        InvalidRequest: There is no such table (`"unknown-system-table"`).
    """
    if name not in SYSTEM_TABLES:
        known = (*SYSTEM_TABLES, "audit_log", "ro", "row_tracking")
        raise InvalidRequest(
            f"there is no system table {name!r}", code="unknown-system-table", hint=suggest(name, known)
        )
    return SYSTEM_TABLES[name](snapshot)


def _field(name: str, kind: pa.DataType, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable)


_SNAPSHOTS = pa.schema(
    [
        _field("snapshot_id", pa.int64(), False),
        _field("schema_id", pa.int64(), False),
        _field("commit_user", pa.string(), False),
        _field("commit_identifier", pa.int64(), False),
        _field("commit_kind", pa.string(), False),
        _field("commit_time", _MS, False),
        _field("base_manifest_list", pa.string(), False),
        _field("delta_manifest_list", pa.string(), False),
        _field("changelog_manifest_list", pa.string()),
        _field("total_record_count", pa.int64()),
        _field("delta_record_count", pa.int64()),
        _field("changelog_record_count", pa.int64()),
        _field("watermark", pa.int64()),
        _field("next_row_id", pa.int64()),
    ]
)


def _snapshots(snapshot: Snapshot) -> pa.Table:
    documents = read_snapshots(snapshot.store, snapshot.branch)
    return pa.Table.from_pylist([_snapshot_row(d) for d in documents], _SNAPSHOTS)


def _snapshot_row(document: SnapshotDocument) -> dict[str, object]:
    row = {name: getattr(document, name, None) for name in _SNAPSHOTS.names}
    return {**row, "snapshot_id": document.id, "commit_time": document.time_millis}


_SCHEMAS = pa.schema(
    [
        _field("schema_id", pa.int64(), False),
        _field("fields", pa.string(), False),
        _field("partition_keys", pa.string(), False),
        _field("primary_keys", pa.string(), False),
        _field("options", pa.string(), False),
        _field("comment", pa.string()),
        _field("update_time", _MS, False),
    ]
)


def _schemas(snapshot: Snapshot) -> pa.Table:
    rows = []
    for number in list_schema_ids(snapshot.store, snapshot.branch):
        data = snapshot.store.get(f"{directory(snapshot.branch, 'schema')}/schema-{number}")
        document = msgspec.json.decode(data)
        schema = load_schema(snapshot.store, number, snapshot.branch)
        rows.append(
            {
                "schema_id": schema.id,
                "fields": _json(document["fields"]),
                "partition_keys": _json(list(schema.partition_keys)),
                "primary_keys": _json(list(schema.primary_keys)),
                "options": _json(document.get("options") or {}),
                "comment": schema.comment,
                "update_time": schema.time_millis,
            }
        )
    return pa.Table.from_pylist(rows, _SCHEMAS)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_OPTIONS = pa.schema([_field("key", pa.string(), False), _field("value", pa.string(), False)])


def _options(snapshot: Snapshot) -> pa.Table:
    options = {k: v for k, v in snapshot.schema.options.items() if k not in snapshot.asked}
    return pa.Table.from_pylist([{"key": k, "value": v} for k, v in options.items()], _OPTIONS)


_TAGS = pa.schema(
    [
        _field("tag_name", pa.string(), False),
        _field("snapshot_id", pa.int64(), False),
        _field("schema_id", pa.int64(), False),
        _field("commit_time", _MS, False),
        _field("record_count", pa.int64()),
        _field("create_time", _MS),
        _field("time_retained", pa.string()),
    ]
)


def _tags(snapshot: Snapshot) -> pa.Table:
    rows = []
    for name in sorted(list_tags(snapshot.store, snapshot.branch)):
        document = read_tag(snapshot.store, name, snapshot.branch)
        retained = document.tag_time_retained
        rows.append(
            {
                "tag_name": name,
                "snapshot_id": document.id,
                "schema_id": document.schema_id,
                "commit_time": document.time_millis,
                "record_count": document.total_record_count,
                "create_time": _moment(document.tag_create_time),
                "time_retained": None if retained is None else str(retained),
            }
        )
    return pa.Table.from_pylist(rows, _TAGS)


def _moment(value: object) -> dt.datetime | None:
    """A `LocalDateTime` in JSON: text, or a list of its parts."""
    if isinstance(value, str):
        return dt.datetime.fromisoformat(value[:23])
    if isinstance(value, list) and len(value) >= 5:
        year, month, day, hour, minute, second, nanos = [*value, 0, 0][:7]
        return dt.datetime(year, month, day, hour, minute, second, nanos // 1000)
    return None


_BRANCHES = pa.schema([_field("branch_name", pa.string(), False), _field("create_time", _MS)])


def _branches(snapshot: Snapshot) -> pa.Table:
    rows = []
    for name in list_branches(snapshot.store):
        found = snapshot.store.list_from(directory(name, "schema"), "schema-")
        rows.append({"branch_name": name, "create_time": min((info.modified_ms for info in found), default=None)})
    return pa.Table.from_pylist(rows, _BRANCHES)


_CONSUMERS = pa.schema([_field("consumer_id", pa.string(), False), _field("next_snapshot_id", pa.int64(), False)])


def _consumers(snapshot: Snapshot) -> pa.Table:
    rows = []
    for name in sorted(list_names(snapshot.store, "consumer", "consumer-")):
        document = msgspec.json.decode(snapshot.store.get(f"consumer/consumer-{name}"))
        rows.append({"consumer_id": name, "next_snapshot_id": document["nextSnapshot"]})
    return pa.Table.from_pylist(rows, _CONSUMERS)


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


def _files(snapshot: Snapshot) -> pa.Table:
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


def _file_key_ranges(snapshot: Snapshot) -> pa.Table:
    """Between which keys the rows of each file lie: what tells which files overlap."""
    return _files(snapshot).select(_KEY_RANGES)


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


def _manifests(snapshot: Snapshot) -> pa.Table:
    document = snapshot.document
    lists = [] if document is None else [document.base_manifest_list, document.delta_manifest_list]
    if document is not None and document.changelog_manifest_list is not None:
        lists.append(document.changelog_manifest_list)
    found = pa.concat_tables([MANIFESTS.empty_table(), *(read_manifest_list(snapshot.store, name) for name in lists)])
    kept = ["file_name", "file_size", "num_added_files", "num_deleted_files", "schema_id"]
    fields = [f for name in snapshot.schema.partition_keys if (f := snapshot.schema.find(name)) is not None]
    table = found.select(kept)
    for side in ("min", "max"):
        rows = found[f"partition_{side}"].combine_chunks()
        texts = [_texts(v) for v in decode_rows(rows, [(to_logical(f.type), f.type.precision) for f in fields])]
        lines = ["{" + ", ".join(row) + "}" for row in zip(*texts, strict=True)] if fields else ["{}"] * len(rows)
        table = table.append_column(f"{side}_partition_stats", pa.array(lines, pa.string()))
    return table


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
    return grouped.rename_columns([names.get(name, name) for name in grouped.column_names])


def _partitions(snapshot: Snapshot) -> pa.Table:
    return _grouped(snapshot, False)


def _buckets(snapshot: Snapshot) -> pa.Table:
    return _grouped(snapshot, True)


_STATISTICS = pa.schema(
    [
        _field("snapshot_id", pa.int64(), False),
        _field("schema_id", pa.int64(), False),
        _field("mergedRecordCount", pa.int64()),
        _field("mergedRecordSize", pa.int64()),
        _field("colstat", pa.string()),
    ]
)


def _statistics(snapshot: Snapshot) -> pa.Table:
    document = snapshot.document
    if document is None or document.statistics is None:
        return _STATISTICS.empty_table()
    try:
        found = msgspec.json.decode(snapshot.store.get(f"statistics/{document.statistics}"))
    except NotFound:
        return _STATISTICS.empty_table()
    row = {
        "snapshot_id": found.get("snapshotId"),
        "schema_id": found.get("schemaId"),
        "mergedRecordCount": found.get("mergedRecordCount"),
        "mergedRecordSize": found.get("mergedRecordSize"),
        "colstat": _json(found.get("colStats", {})),
    }
    return pa.Table.from_pylist([row], _STATISTICS)


_AGGREGATION = pa.schema(
    [
        _field("field_name", pa.string(), False),
        _field("field_type", pa.string(), False),
        _field("function", pa.string()),
        _field("function_options", _STRING_MAP),
    ]
)


def _aggregation_fields(snapshot: Snapshot) -> pa.Table:
    rows = []
    for f in snapshot.schema.fields:
        prefix = f"fields.{f.name}."
        options = {k: v for k, v in snapshot.schema.options.items() if k.startswith(prefix)}
        function = options.pop(f"{prefix}aggregate-function", None)
        rows.append(
            {
                "field_name": f.name,
                "field_type": f.type.root,
                "function": function,
                "function_options": list(options.items()),
            }
        )
    return pa.Table.from_pylist(rows, _AGGREGATION)


def _table_indexes(snapshot: Snapshot) -> pa.Table:
    document = snapshot.document
    kept = ["bucket", "index_type", "file_name", "file_size", "row_count"]
    if document is None or document.index_manifest is None:
        return pa.table({name: [] for name in kept})
    return scan_index_manifest(snapshot.store, document.index_manifest).select(kept)


#: By Paimon's names.
SYSTEM_TABLES: Mapping[str, Callable[[Snapshot], pa.Table]] = {
    "snapshots": _snapshots,
    "schemas": _schemas,
    "options": _options,
    "tags": _tags,
    "branches": _branches,
    "consumers": _consumers,
    "files": _files,
    "manifests": _manifests,
    "partitions": _partitions,
    "buckets": _buckets,
    "statistics": _statistics,
    "aggregation_fields": _aggregation_fields,
    "table_indexes": _table_indexes,
    "file_key_ranges": _file_key_ranges,
}

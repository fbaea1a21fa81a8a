"""System tables that come out of metadata alone, as Paimon's `t$name` show them.

Specification: `org.apache.paimon.table.system`.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
import pyarrow as pa

from alluvium.errors import DECODE_ERRORS, CorruptTable, InvalidRequest, NotFound, suggest
from alluvium.paimon.log.consumers import list_consumers
from alluvium.paimon.log.names import directory, list_branches
from alluvium.paimon.log.schema_log import list_schema_ids, load_schema
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import list_tags, read_snapshots, read_tag
from alluvium.paimon.terms.spec import Long, SnapshotDocument
from alluvium.paimon.view.system import file_tables

_MS = pa.timestamp("ms")
_T = TypeVar("_T")


def read_system_table(snapshot: Snapshot, name: str) -> pa.Table:
    """One of the tables in `SYSTEM_TABLES`.

    Raises:
        InvalidRequest: There is no such table (`"unknown-system-table"`).
    """
    if name not in SYSTEM_TABLES:
        known = (*SYSTEM_TABLES, "audit_log", "binlog", "ro", "row_tracking")
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
        schema = load_schema(snapshot.store, number, snapshot.branch)
        document = _parsed(data, dict[str, object], f"schema-{number}")
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
    rows = [{"consumer_id": c.name, "next_snapshot_id": c.next_snapshot} for c in list_consumers(snapshot.store)]
    return pa.Table.from_pylist(rows, _CONSUMERS)


_STATISTICS = pa.schema(
    [
        _field("snapshot_id", pa.int64(), False),
        _field("schema_id", pa.int64(), False),
        _field("mergedRecordCount", pa.int64()),
        _field("mergedRecordSize", pa.int64()),
        _field("colstat", pa.string()),
    ]
)


class _Statistics(msgspec.Struct, rename="camel"):
    snapshot_id: Long | None = None
    schema_id: Long | None = None
    merged_record_count: Long | None = None
    merged_record_size: Long | None = None
    col_stats: object = msgspec.field(default_factory=dict)


def _parsed(data: bytes, kind: type[_T], path: str) -> _T:
    try:
        return msgspec.json.decode(data, type=kind)
    except DECODE_ERRORS as error:
        raise CorruptTable(f"the file is damaged: {error}", code="damaged-file", path=path) from None


def _statistics(snapshot: Snapshot) -> pa.Table:
    document = snapshot.document
    if document is None or document.statistics is None:
        return _STATISTICS.empty_table()
    path = f"statistics/{document.statistics}"
    try:
        found = _parsed(snapshot.store.get(path), _Statistics, path)
    except NotFound:
        return _STATISTICS.empty_table()
    row = {
        "snapshot_id": found.snapshot_id,
        "schema_id": found.schema_id,
        "mergedRecordCount": found.merged_record_count,
        "mergedRecordSize": found.merged_record_size,
        "colstat": _json(found.col_stats),
    }
    return pa.Table.from_pylist([row], _STATISTICS)


_AGGREGATION = pa.schema(
    [
        _field("field_name", pa.string(), False),
        _field("field_type", pa.string(), False),
        _field("function", pa.string()),
        _field("function_options", pa.string()),
        _field("comment", pa.string()),
    ]
)


def _aggregation_fields(snapshot: Snapshot) -> pa.Table:
    """Java lists the values of all options of a column, and their names: `AggregationFieldsTable`."""
    rows = []
    for f in snapshot.schema.fields:
        own = {key: value for key, value in snapshot.schema.options.items() if _is_about(key, f.name)}
        rows.append(
            {
                "field_name": f.name,
                "field_type": str(f.type),
                "function": f"[{', '.join(own.values())}]",
                "function_options": f"[{', '.join(own)}]",
                "comment": f.description,
            }
        )
    return pa.Table.from_pylist(rows, _AGGREGATION)


def _is_about(key: str, column: str) -> bool:
    """Whether an option is one of a column's; its name ends at the first dot, be there more in that of a column."""
    parts = key.rstrip(".").split(".")
    return len(parts) > 2 and parts[:2] == ["fields", column]


#: By Paimon's names.
SYSTEM_TABLES: Mapping[str, Callable[[Snapshot], pa.Table]] = {
    "snapshots": _snapshots,
    "schemas": _schemas,
    "options": _options,
    "tags": _tags,
    "branches": _branches,
    "consumers": _consumers,
    "files": file_tables.files,
    "manifests": file_tables.manifests,
    "partitions": file_tables.partitions,
    "buckets": file_tables.buckets,
    "statistics": _statistics,
    "aggregation_fields": _aggregation_fields,
    "table_indexes": file_tables.table_indexes,
    "file_key_ranges": file_tables.file_key_ranges,
}

"""What a version says of itself, as tables: its files, partitions, columns, features and transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.feature import is_supported_for_writers, never
from alluvium.delta.features.registry import BY_NAME, FEATURES
from alluvium.delta.features.rows.deletion_vectors import live_row_counts
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import STRING_MAP
from alluvium.delta.view.history import read_history
from alluvium.delta.view.scan import data_paths, select_files
from alluvium.delta.view.snapshot import Snapshot
from alluvium.expr.tree import Expression

_TIME = pa.timestamp("ms", tz="UTC")


def live_files(snapshot: Snapshot, where: Expression | None = None) -> pa.Table:
    """The files that may hold a row for which a condition is true, for users."""
    kept = select_files(snapshot, where).files
    return pa.table(
        {
            "path": data_paths(kept),
            "size": kept.column("size"),
            "num_rows": live_row_counts(kept, snapshot.statistics(kept).num_rows()),
            "partition": _logical_keys(kept.column("partitionValues"), snapshot.config),
            "modification_time": kept.column("modificationTime").cast(_TIME),
        }
    )


def _logical_keys(values: pa.ChunkedArray, config: TableConfig) -> pa.ChunkedArray:
    """Partition values under the columns' names: the log has them under those of the files."""
    if config.mapping_mode == "none" or not config.partition_columns:
        return values
    names = config.physical_names
    logical = pa.array(config.partition_columns)
    physical = pa.array([names[name] for name in config.partition_columns])
    chunks = []
    for chunk in values.chunks:
        keys = logical.take(pc.index_in(chunk.keys, value_set=physical))
        known = pc.coalesce(keys, chunk.keys)
        # `keys` and `items` are those of the whole buffers, of which the chunk may be a slice: so are the offsets.
        chunks.append(pa.MapArray.from_arrays(chunk.offsets, known, chunk.items))
    return pa.chunked_array(chunks, values.type)


def _files(snapshot: Snapshot) -> pa.Table:
    kept = select_files(snapshot, None).files
    deleted = pc.struct_field(kept.column("deletionVector"), "cardinality")
    more = {
        "deleted_rows": pc.fill_null(deleted, 0),
        "base_row_id": kept.column("baseRowId"),
        "default_row_commit_version": kept.column("defaultRowCommitVersion"),
        "clustering_provider": kept.column("clusteringProvider"),
        "tags": kept.column("tags"),
    }
    found = live_files(snapshot)
    for name, values in more.items():
        found = found.append_column(name, values)
    return found


_PARTITIONS = pa.schema(
    [
        pa.field("partition", STRING_MAP, nullable=False),
        pa.field("files", pa.int64(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("num_rows", pa.int64()),
        pa.field("deleted_rows", pa.int64(), nullable=False),
        pa.field("modification_time", _TIME, nullable=False),
    ]
)


def _partitions(snapshot: Snapshot) -> pa.Table:
    """A row a partition; `num_rows` is null where a file does not say how many it has."""
    files = _files(snapshot)
    keys = snapshot.config.partition_columns
    # As columns of texts: maps cannot be grouped by.
    values = {f"key{n}": pc.map_lookup(files["partition"], name, "first") for n, name in enumerate(keys)}
    flat = pa.table(
        {**values, **{name: files[name] for name in ("size", "num_rows", "deleted_rows", "modification_time")}}
    )
    unknown = pc.ScalarAggregateOptions(skip_nulls=False, min_count=0)
    grouped = flat.group_by(list(values), use_threads=False).aggregate(
        [
            ([], "count_all"),
            ("size", "sum"),
            ("num_rows", "sum", unknown),
            ("deleted_rows", "sum"),
            ("modification_time", "max"),
        ]
    )
    texts = [grouped[name].to_pylist() for name in values]
    maps = [list(zip(keys, row, strict=True)) for row in zip(*texts, strict=True)] or [[]] * grouped.num_rows
    columns = [
        pa.array(maps, STRING_MAP),
        *(
            grouped[name]
            for name in ("count_all", "size_sum", "num_rows_sum", "deleted_rows_sum", "modification_time_max")
        ),
    ]
    return pa.table(columns, schema=_PARTITIONS) if files.num_rows else _PARTITIONS.empty_table()


_COLUMNS = pa.schema(
    [
        pa.field("column", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("nullable", pa.bool_(), nullable=False),
        pa.field("partition_index", pa.int32()),
        pa.field("comment", pa.string()),
        pa.field("physical_name", pa.string(), nullable=False),
        pa.field("metadata", STRING_MAP, nullable=False),
    ]
)


def _columns(snapshot: Snapshot) -> pa.Table:
    config = snapshot.config
    places = {name: place for place, name in enumerate(config.partition_columns)}
    rows = [
        {
            "column": f.name,
            "type": str(f.type),
            "nullable": f.nullable,
            "partition_index": places.get(f.name),
            "comment": f.metadata.get("comment"),
            "physical_name": physical.name,
            "metadata": [(key, _text(value)) for key, value in f.metadata.items() if key != "comment"],
        }
        for f, physical in zip(config.schema.fields, config.physical_schema.fields, strict=True)
    ]
    return pa.Table.from_pylist(rows, _COLUMNS)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_FEATURES = pa.schema(
    [
        pa.field("feature", pa.string(), nullable=False),
        pa.field("for_readers", pa.bool_(), nullable=False),
        pa.field("listed", pa.bool_(), nullable=False),
        pa.field("used", pa.bool_()),
        pa.field("readable", pa.bool_(), nullable=False),
        pa.field("writable", pa.bool_(), nullable=False),
    ]
)


def _features(snapshot: Snapshot) -> pa.Table:
    """What the protocol supports.

    Whether readers must know it, whether it is listed by name or implied by a legacy version, whether schema and
    properties make use of it (null: they do not tell), and whether Alluvium can read and write such a table.
    """
    config = snapshot.config
    protocol = config.protocol
    for_readers = frozenset(protocol.reader_features or ())
    listed = for_readers | frozenset(protocol.writer_features or ())
    implied = {f.name for f in FEATURES if is_supported_for_writers(f, protocol)} - {
        BY_NAME[name].name for name in listed if name in BY_NAME
    }
    rows = []
    for name in sorted(listed | implied):
        known = BY_NAME.get(name)
        rows.append(
            {
                "feature": name,
                "for_readers": name in for_readers if name in listed else known is not None and known.reader,
                "listed": name in listed,
                "used": None if known is None or known.is_used is never else known.is_used(config),
                "readable": (known is not None and known.readable) or name not in for_readers,
                "writable": known is not None and known.writable,
            }
        )
    return pa.Table.from_pylist(rows, _FEATURES)


_TRANSACTIONS = pa.schema(
    [
        pa.field("app_id", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("last_updated", _TIME),
    ]
)


def _transactions(snapshot: Snapshot) -> pa.Table:
    rows = [
        {"app_id": app_id, "version": txn.version, "last_updated": txn.last_updated}
        for app_id, txn in sorted(snapshot.state.txns.items())
    ]
    return pa.Table.from_pylist(rows, _TRANSACTIONS)


METADATA_TABLES: Mapping[str, Callable[[Snapshot], pa.Table]] = {
    "files": _files,
    "commits": read_history,
    "partitions": _partitions,
    "columns": _columns,
    "features": _features,
    "transactions": _transactions,
}

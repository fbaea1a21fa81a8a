"""What a state says of itself, as tables under the names that they have of Delta tables, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from alluvium.paimon.log.history import read_history
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.view.system.file_tables import live_files
from alluvium.paimon.view.system.system_tables import SYSTEM_TABLES

_COLUMNS = pa.schema(
    [
        pa.field("column", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("nullable", pa.bool_(), nullable=False),
        pa.field("partition_index", pa.int32()),
        pa.field("comment", pa.string()),
        pa.field("id", pa.int32(), nullable=False),
        pa.field("key_index", pa.int32()),
        pa.field("default", pa.string()),
    ]
)


def _columns(snapshot: Snapshot) -> pa.Table:
    schema = snapshot.schema
    partitions = {name: place for place, name in enumerate(schema.partition_keys)}
    keys = {name: place for place, name in enumerate(schema.primary_keys)}
    rows = [
        {
            "column": f.name,
            "type": str(f.type),
            "nullable": f.type.nullable,
            "partition_index": partitions.get(f.name),
            "comment": f.description,
            "id": f.id,
            "key_index": keys.get(f.name),
            "default": f.default,
        }
        for f in schema.fields
    ]
    return pa.Table.from_pylist(rows, _COLUMNS)


METADATA_TABLES: Mapping[str, Callable[[Snapshot], pa.Table]] = {
    "files": lambda snapshot: live_files(snapshot, None),
    "commits": read_history,
    "partitions": SYSTEM_TABLES["partitions"],
    "columns": _columns,
}

"""Delta tables without files, made by writing their first log entry: with any schema, properties and protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from delta_values import make_metadata

from alluvium.delta.terms.actions import Actions, format_entry
from alluvium.delta.terms.spec import Protocol
from alluvium.schema.types import Struct

#: What tables of this module list, unless told otherwise.
FEATURES = (
    "appendOnly", "invariants", "checkConstraints", "generatedColumns", "identityColumns", "allowColumnDefaults",
)  # fmt: skip


def make_table(
    root: Path,
    schema: Struct,
    properties: Mapping[str, str] | None = None,
    partition_by: Sequence[str] = (),
    writer: int = 7,
    features: tuple[str, ...] = FEATURES,
) -> str:
    """The path of a table of version 0 that only says what it is."""
    protocol = Protocol(
        min_reader_version=1, min_writer_version=writer, writer_features=features if writer == 7 else None
    )
    actions = Actions(protocol=protocol, metadata=make_metadata(schema, partition_by, properties))
    (root / "_delta_log").mkdir(parents=True)
    entry = format_entry({"timestamp": 0, "operation": "CREATE TABLE", "operationParameters": {}}, actions)
    (root / "_delta_log" / f"{0:020}.json").write_bytes(entry)
    return str(root)


def last_entry(table: str | Path) -> list[dict[str, Any]]:
    """The actions of the newest log entry."""
    path = max((Path(table) / "_delta_log").glob("*.json"))
    return [json.loads(line) for line in path.read_text().splitlines()]


def field_metadata(table: str | Path, column: str) -> dict[str, Any]:
    """The metadata of a column in the newest log entry, which must have a metaData action."""
    (metadata,) = (action["metaData"] for action in last_entry(table) if "metaData" in action)
    fields = json.loads(metadata["schemaString"])["fields"]
    found: dict[str, Any] = next(f["metadata"] for f in fields if f["name"] == column)
    return found

"""A Delta table with column mapping or widened types from literals: Parquet by pyarrow, the log by hand."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from alluvium.delta.terms.mapping import COLUMN_ID, MODE, PHYSICAL_NAME
from alluvium.delta.terms.spec import Protocol
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import Array, DataType, Field, Map, Struct
from alluvium.storage.store import Store

MAPPED = Protocol(min_reader_version=2, min_writer_version=5)


def features(*names: str) -> Protocol:
    """Reader version 3 with these features."""
    return Protocol(min_reader_version=3, min_writer_version=7, reader_features=names, writer_features=names)


def mapped(name: str, data_type: DataType, physical: str, number: int, **metadata: object) -> Field:
    """A column with a physical name and a number."""
    return Field(name, data_type, True, {PHYSICAL_NAME: physical, COLUMN_ID: number, **metadata})  # type: ignore[dict-item]


def numbered(rows: pa.Table, numbers: Mapping[str, int]) -> pa.Table:
    """The table with `field_id` at the fields that are named, at any depth, by name."""
    return rows.cast(pa.schema([_numbered(f, numbers) for f in rows.schema]))


def _numbered(f: pa.Field, numbers: Mapping[str, int]) -> pa.Field:
    kind = f.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_numbered(member, numbers) for member in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(_numbered(kind.value_field, numbers))
    elif pa.types.is_map(kind):
        kind = pa.map_(_numbered(kind.key_field, numbers), _numbered(kind.item_field, numbers))
    found = numbers.get(f.name)
    return pa.field(f.name, kind, f.nullable, None if found is None else {"PARQUET:field_id": str(found)})


class Log:
    """Commits to a table by hand; `parquet` are options of pyarrow's writer."""

    def __init__(self, store: Store, **parquet: object) -> None:
        self.store = store
        self.parquet = parquet
        self.version = 0

    def commit(
        self,
        schema: Struct | None = None,
        protocol: Protocol | None = None,
        properties: Mapping[str, str] | None = None,
        partition_by: Sequence[str] = (),
        files: Sequence[tuple[pa.Table, Mapping[str, str], Mapping[str, object] | None]] = (),
    ) -> None:
        """One version; a file is its rows, its partition values and its statistics."""
        actions: list[object] = []
        if protocol is not None:
            actions.append({"protocol": _without_nulls(msgspec.to_builtins(protocol))})
        if schema is not None:
            actions.append({"metaData": {
                "id": "0", "format": {"provider": "parquet", "options": {}}, "schemaString": format_schema(schema),
                "partitionColumns": list(partition_by), "configuration": dict(properties or {}),
            }})  # fmt: skip
        for number, (rows, partition, stats) in enumerate(files):
            path = f"{self.version}-{number}.parquet"
            sink = io.BytesIO()
            pq.write_table(rows, sink, **self.parquet)
            self.store.put(path, sink.getvalue())
            add = {"path": path, "partitionValues": dict(partition), "size": len(sink.getvalue()),
                   "modificationTime": 0, "dataChange": True}  # fmt: skip
            actions.append({"add": add if stats is None else {**add, "stats": json.dumps(stats)}})
        body = "".join(json.dumps(action) + "\n" for action in actions)
        self.store.put(f"_delta_log/{self.version:020}.json", body.encode())
        self.version += 1


def _without_nulls(document: object) -> object:
    assert isinstance(document, dict)
    return {key: value for key, value in document.items() if value is not None}


def by(mode: str) -> dict[str, str]:
    """The table property."""
    return {MODE: mode}


def renamed(schema: Struct, names: Mapping[str, str]) -> Struct:
    """The schema with display names changed, at any depth."""
    return Struct(
        tuple(replace(f, name=names.get(f.name, f.name), type=_renamed(f.type, names)) for f in schema.fields)
    )


def _renamed(data_type: DataType, names: Mapping[str, str]) -> DataType:
    if isinstance(data_type, Struct):
        return renamed(data_type, names)
    if isinstance(data_type, Array):
        return replace(data_type, element=_renamed(data_type.element, names))
    if isinstance(data_type, Map):
        return replace(data_type, key=_renamed(data_type.key, names), value=_renamed(data_type.value, names))
    return data_type

"""Names and numbers that columns have in the files: given to new columns, kept by old ones.

Specification: "Writer Requirements for Column Mapping".
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

import msgspec

from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.mapping import COLUMN_ID, MODE, PHYSICAL_NAME
from alluvium.delta.terms.spec import Metadata
from alluvium.errors import InvalidRequest
from alluvium.plan.scan import FIELD_ID
from alluvium.schema.spark_json import format_schema, parse_schema
from alluvium.schema.types import Array, DataType, Field, JsonValue, Map, Struct
from alluvium.schema.walk import fields_within

MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
_MODES = ("none", "name", "id")


def map_columns(metadata: Metadata, before: TableConfig | None) -> Metadata:
    """Completes the schema of a table that maps its columns.

    "Assign a globally unique identifier as the physical name for each new column that is added to the schema. [...] In
    addition, column identifiers need to be assigned to each column. The maximum id that is assigned to a column is
    tracked as the table property `delta.columnMapping.maxColumnId`. [...] This value must increase monotonically".

    Args:
        metadata: As it is about to be committed.
        before: The table until now; None for a new one.

    Raises:
        InvalidRequest: A change of the mode that would make files unreadable (`mapping-mode-change`).
    """
    mode = metadata.configuration.get(MODE, "none").strip().lower()
    # A table that replaces another has files of its own only.
    kept = before if before is not None and before.metadata.id == metadata.id else None
    if kept is not None:
        _ensure_mode_change(kept, mode)
    if mode not in _MODES[1:]:
        return metadata
    schema = parse_schema(metadata.schema_string)
    numbers = _Numbers(
        _highest_id(schema, metadata, before), is_upgrade=kept is not None and kept.mapping_mode == "none"
    )
    mapped = numbers.struct(schema, None if kept is None else kept.schema)
    return msgspec.structs.replace(
        metadata,
        schema_string=format_schema(mapped),
        configuration={**metadata.configuration, MODE: mode, MAX_COLUMN_ID: str(numbers.highest)},
    )


def stored_schema(schema: Struct) -> Struct:
    """A mapped schema as the files have it: physical names, and the ids for the Parquet schema.

    "Write data files by using the _physical name_ that is chosen for each column." "Write the 32 bit integer column
    identifier as part of the `field_id` field of the `SchemaElement` struct".
    """
    return Struct(tuple(_stored(f) for f in schema.fields))


def _stored(f: Field) -> Field:
    name, number = f.metadata[PHYSICAL_NAME], f.metadata[COLUMN_ID]
    assert isinstance(name, str), "a TableConfig that maps its columns has their names"
    return replace(f, name=name, type=_stored_type(f.type), metadata={FIELD_ID: number})


def _stored_type(data_type: DataType) -> DataType:
    if isinstance(data_type, Struct):
        return stored_schema(data_type)
    if isinstance(data_type, Array):
        return replace(data_type, element=_stored_type(data_type.element))
    if isinstance(data_type, Map):
        return replace(data_type, key=_stored_type(data_type.key), value=_stored_type(data_type.value))
    return data_type


def _ensure_mode_change(before: TableConfig, mode: str) -> None:
    """Files that are there have names but no ids, and nobody could find columns by those names any more."""
    if mode == before.mapping_mode or (before.mapping_mode, mode) == ("none", "name"):
        return
    raise InvalidRequest(
        f"{MODE} cannot be changed from {before.mapping_mode} to {mode}",
        code="mapping-mode-change",
        hint="an existing table can go from none to name; for another mode, write a new table",
    )


def _highest_id(schema: Struct, metadata: Metadata, before: TableConfig | None) -> int:
    """Ids of columns that were dropped stand in the files still, in those of a copy, too."""
    numbers = [f.metadata.get(COLUMN_ID) for _, f in fields_within(schema)]
    said = [m.configuration.get(MAX_COLUMN_ID, "") for m in (metadata, *([before.metadata] if before else []))]
    return max([0, *(int(text) for text in said if text.isdecimal()), *(n for n in numbers if isinstance(n, int))])


@dataclass(slots=True)
class _Numbers:
    """Hands out ids and names.

    Attributes:
        highest: The highest id so far, never given twice.
        is_upgrade: Columns that exist keep their names, for their files have them.
    """

    highest: int
    is_upgrade: bool

    def struct(self, schema: Struct, before: Struct | None) -> Struct:
        return Struct(tuple(self._field(f, None if before is None else before.find(f.name)) for f in schema.fields))

    def _field(self, f: Field, before: Field | None) -> Field:
        metadata: dict[str, JsonValue] = dict(f.metadata)
        old = before if before is not None and _same_kind(before.type, f.type) else None
        if PHYSICAL_NAME not in metadata or COLUMN_ID not in metadata:
            metadata.update(self._mapping(old))
        return replace(f, type=self._type(f.type, None if old is None else old.type), metadata=metadata)

    def _mapping(self, old: Field | None) -> dict[str, JsonValue]:
        if old is not None and PHYSICAL_NAME in old.metadata and COLUMN_ID in old.metadata:
            # The same column, described anew.
            return {key: old.metadata[key] for key in (COLUMN_ID, PHYSICAL_NAME)}
        self.highest += 1
        name = old.name if old is not None and self.is_upgrade else f"col-{uuid.uuid4()}"
        return {COLUMN_ID: self.highest, PHYSICAL_NAME: name}

    def _type(self, data_type: DataType, before: DataType | None) -> DataType:
        if isinstance(data_type, Struct):
            return self.struct(data_type, before if isinstance(before, Struct) else None)
        if isinstance(data_type, Array):
            inner = before.element if isinstance(before, Array) else None
            return replace(data_type, element=self._type(data_type.element, inner))
        if isinstance(data_type, Map):
            key, value = (before.key, before.value) if isinstance(before, Map) else (None, None)
            return replace(data_type, key=self._type(data_type.key, key), value=self._type(data_type.value, value))
        return data_type


def _same_kind(before: DataType, now: DataType) -> bool:
    """Whether values of the older column may be read as the newer one: nested types by their shape."""
    if isinstance(before, (Struct, Array, Map)) or isinstance(now, (Struct, Array, Map)):
        return type(before) is type(now)
    return before == now

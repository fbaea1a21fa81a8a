"""Column mapping as the schema carries it: which name or id each column has in the data files and in the log.

Specification: Delta protocol, "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from alluvium.delta.terms.spec import Metadata, Protocol
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.plan.scan import BEFORE, FIELD_ID
from alluvium.schema.types import Array, DataType, Field, JsonValue, Map, Struct
from alluvium.schema.walk import fields_within

MappingMode: TypeAlias = Literal["none", "name", "id"]
Path: TypeAlias = tuple[str, ...]

FEATURE_NAME = "columnMapping"
MODE = "delta.columnMapping.mode"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
COLUMN_ID = "delta.columnMapping.id"

_FIRST_READER = 2
_FEATURES_READER = 3
_MODES: Mapping[str, MappingMode] = {"none": "none", "name": "name", "id": "id"}
_INT32 = range(-(1 << 31), 1 << 31)


def mapping_mode(protocol: Protocol, metadata: Metadata) -> MappingMode:
    """How columns are found in files: by display name (`none`), physical name or id.

    "The table property should only be honored if the table's protocol has reader and writer versions and/or table
    features that support the `columnMapping` table feature."

    Raises:
        UnsupportedFeature: A mode that the specification does not know.
    """
    text = metadata.configuration.get(MODE, "none")
    if not _is_supported(protocol):
        return "none"
    mode = _MODES.get(text.lower())
    if mode is None:
        raise UnsupportedFeature(
            f"columns are mapped by {text!r}; the specification knows none, name and id",
            code="unsupported-mapping-mode",
            features=(FEATURE_NAME,),
        )
    return mode


def _is_supported(protocol: Protocol) -> bool:
    """ "For readers this is Reader Version 2, or Reader Version 3 with the `columnMapping` table feature listed as
    supported."
    """
    if protocol.min_reader_version == _FIRST_READER:
        return True
    if protocol.min_reader_version < _FEATURES_READER:
        return False
    # "A feature is supported by a table when its name is in the `protocol` action's `readerFeatures` and/or
    # `writerFeatures`": listed for writers alone it breaks the protocol, but the files were written with it.
    return FEATURE_NAME in {*(protocol.reader_features or ()), *(protocol.writer_features or ())}


def physical_schema(schema: Struct, mode: MappingMode) -> Struct:
    """The schema under the names that the data files have, of the same shape; the schema itself in mode `none`.

    Fields carry no metadata but what reading files takes: `BEFORE` and, in mode `id`, the `FIELD_ID` to search them by.

    Raises:
        CorruptTable: A column without a physical name (or id, in mode `id`), or two columns with the same.
    """
    if mode == "none":
        return schema
    physical = _physical_struct(schema, mode, ())
    if mode == "id":
        _ensure_unique_ids(physical)
    return physical


def _physical_struct(schema: Struct, mode: MappingMode, path: Path) -> Struct:
    fields = tuple(_physical_field(f, mode, (*path, f.name)) for f in schema.fields)
    seen: set[str] = set()
    for f, logical in zip(fields, schema.fields, strict=True):
        if f.name.lower() in seen:
            raise _corrupt(f"two columns have the physical name {f.name!r}", (*path, logical.name))
        seen.add(f.name.lower())
    return Struct(fields)


def _physical_field(f: Field, mode: MappingMode, path: Path) -> Field:
    name = f.metadata.get(PHYSICAL_NAME)
    if not isinstance(name, str) or not name:
        raise _corrupt(f"the column has no {PHYSICAL_NAME}", path)
    metadata: dict[str, JsonValue] = {BEFORE: f.metadata[BEFORE]} if BEFORE in f.metadata else {}
    if mode == "id":
        column_id = f.metadata.get(COLUMN_ID)
        # "every column - nested or leaf - is assigned [...] a unique 32-bit integer as an id"
        if isinstance(column_id, bool) or not isinstance(column_id, int) or column_id not in _INT32:
            raise _corrupt(f"the column has no {COLUMN_ID}", path)
        metadata[FIELD_ID] = column_id
    return replace(f, name=name, type=_physical_type(f.type, mode, path), metadata=metadata)


def _physical_type(data_type: DataType, mode: MappingMode, path: Path) -> DataType:
    if isinstance(data_type, Struct):
        return _physical_struct(data_type, mode, path)
    if isinstance(data_type, Array):
        return replace(data_type, element=_physical_type(data_type.element, mode, (*path, "element")))
    if isinstance(data_type, Map):
        key = _physical_type(data_type.key, mode, (*path, "key"))
        return replace(data_type, key=key, value=_physical_type(data_type.value, mode, (*path, "value")))
    return data_type


def _ensure_unique_ids(physical: Struct) -> None:
    seen: set[JsonValue] = set()
    for path, f in fields_within(physical):
        column_id = f.metadata[FIELD_ID]
        if column_id in seen:
            raise _corrupt(f"two columns have the id {column_id}", path)
        seen.add(column_id)


def physical_paths(schema: Struct, physical: Struct) -> dict[Path, Path]:
    """The physical path of each logical path through structs: what statistics are kept under."""
    return dict(_paths(schema, physical, (), ()))


def _paths(schema: Struct, physical: Struct, path: Path, physical_path: Path) -> Iterator[tuple[Path, Path]]:
    for f, other in zip(schema.fields, physical.fields, strict=True):
        here, there = (*path, f.name), (*physical_path, other.name)
        yield here, there
        if isinstance(f.type, Struct) and isinstance(other.type, Struct):
            yield from _paths(f.type, other.type, here, there)


def _corrupt(problem: str, path: Path) -> CorruptTable:
    return CorruptTable(
        f"column mapping is broken: {problem}",
        code="invalid-column-mapping",
        column=".".join(path),
        hint="the table's metaData action is damaged; restore an earlier version of the log",
    )

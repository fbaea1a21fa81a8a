"""The first protocol and metadata of a table: no more than its schema and properties need."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence

from alluvium.delta.config import TableConfig, parse_config
from alluvium.delta.features import timestamp_ntz
from alluvium.delta.properties import OTHER_PROPERTIES, canonical_property, parse_properties
from alluvium.delta.spec import Format, Metadata, Protocol
from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import BINARY, VARIANT, VOID, Array, DataType, Field, JsonValue, Map, Struct

# Parquet and Hive give these characters a meaning of their own; only column mapping lifts the ban.
_FORBIDDEN_IN_NAMES = re.compile(r"[ ,;{}()\n\t=]")

# A DataFrame that was read from a table of these features carries them along; the new table does not have them.
_KEYS_OF_ANOTHER_TABLE = ("delta.generationExpression", "delta.identity.", "delta.columnMapping.")


def new_config(schema: Struct, partition_by: Sequence[str], properties: Mapping[str, str]) -> TableConfig:
    """The configuration of a table to create.

    Args:
        schema: Columns of the first rows. All become nullable, as the reference makes them.
        partition_by: Partition columns, in any case.
        properties: `delta.*` and other table properties.

    Raises:
        InvalidRequest: Names, partition columns or properties that no table may have.
        UnsupportedFeature: Types or properties that need features which we do not implement.
    """
    nullable = as_nullable(schema)
    assert isinstance(nullable, Struct)
    _ensure_names(nullable)
    _ensure_types(nullable)
    partition_columns = resolve_partition_columns(nullable, partition_by)
    configuration = _configuration(properties)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        format=Format(provider="parquet"),
        schema_string=format_schema(nullable),
        partition_columns=partition_columns,
        configuration=configuration,
        created_time=int(time.time() * 1000),
    )
    return parse_config(_protocol(nullable), metadata)


def as_nullable(data_type: DataType) -> DataType:
    """The type with every field, element and value nullable, without what fields bring from the table they were of."""
    if isinstance(data_type, Struct):
        fields = (Field(f.name, as_nullable(f.type), True, _own_metadata(f)) for f in data_type.fields)
        return Struct(tuple(fields))
    if isinstance(data_type, Array):
        return Array(as_nullable(data_type.element), True)
    if isinstance(data_type, Map):
        return Map(as_nullable(data_type.key), as_nullable(data_type.value), True)
    return data_type


def _own_metadata(f: Field) -> dict[str, JsonValue]:
    return {key: value for key, value in f.metadata.items() if not key.startswith(_KEYS_OF_ANOTHER_TABLE)}


def resolve_partition_columns(schema: Struct, partition_by: Iterable[str]) -> tuple[str, ...]:
    """The names as the schema spells them.

    Raises:
        InvalidRequest: Unknown, repeated or unsuitable columns, or all of them.
    """
    resolved: list[str] = []
    for name in partition_by:
        found = schema.find(name)
        if found is None:
            raise InvalidRequest(
                f"partition column {name!r} is not in the data",
                code="unknown-column",
                column=name,
                hint=suggest(name, schema.names),
            )
        if isinstance(found.type, (Struct, Array, Map)) or found.type in (VOID, VARIANT, BINARY):
            raise InvalidRequest(
                f"a table cannot be partitioned by {name!r}: its type is {found.type}",
                code="invalid-partition-column",
                column=name,
            )
        if found.name in resolved:
            raise InvalidRequest(f"partition column {name!r} is named twice", code="invalid-partition-column")
        resolved.append(found.name)
    if resolved and len(resolved) == len(schema.fields):
        raise InvalidRequest(
            "a table cannot be partitioned by all of its columns",
            code="invalid-partition-column",
            hint="leave at least one column for the data files",
        )
    return tuple(resolved)


def _configuration(properties: Mapping[str, str]) -> dict[str, str]:
    configuration = {canonical_property(name): value for name, value in properties.items()}
    # A constraint would not bind anybody either: writer version 2 does not imply the feature.
    unsupported = sorted(n for n in configuration if n in OTHER_PROPERTIES or n.startswith("delta.constraints."))
    if unsupported:
        raise UnsupportedFeature(
            f"table properties of features that are not implemented yet: {', '.join(unsupported)}",
            features=unsupported,
            code="unsupported-property",
        )
    parse_properties(configuration)
    return configuration


def _protocol(schema: Struct) -> Protocol:
    """Reader 1 and writer 2, unless a type asks for table features; then with those that writer 2 implies."""
    if not timestamp_ntz.contains_timestamp_ntz(schema):
        return Protocol(min_reader_version=1, min_writer_version=2)
    name = timestamp_ntz.FEATURE.name
    return Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=(name,),
        writer_features=(name, "appendOnly", "invariants"),
    )


def _ensure_names(schema: Struct) -> None:
    seen: set[str] = set()
    for f in schema.fields:
        if _FORBIDDEN_IN_NAMES.search(f.name):
            raise InvalidRequest(
                f"column {f.name!r} has a character that only column mapping allows: one of ' ,;{{}}()\\n\\t='",
                code="invalid-column-name",
                column=f.name,
                hint=f"rename it, e.g. df.withColumnRenamed({f.name!r}, {_FORBIDDEN_IN_NAMES.sub('_', f.name)!r})",
            )
        if f.name.casefold() in seen:
            raise InvalidRequest(
                f"column {f.name!r} stands twice (case is ignored)", code="duplicate-column", column=f.name
            )
        seen.add(f.name.casefold())
        for inner in _structs_in(f.type):
            _ensure_names(inner)


def _structs_in(data_type: DataType) -> tuple[Struct, ...]:
    if isinstance(data_type, Struct):
        return (data_type,)
    if isinstance(data_type, Array):
        return _structs_in(data_type.element)
    if isinstance(data_type, Map):
        return (*_structs_in(data_type.key), *_structs_in(data_type.value))
    return ()


def _ensure_types(schema: Struct) -> None:
    for path, f in schema.leaves():
        for data_type in _leaf_types(f.type):
            if data_type in (VOID, VARIANT):
                raise UnsupportedFeature(
                    f"creating a column of type {data_type} is not implemented yet",
                    code="unsupported-type",
                    column=".".join(path),
                    hint="cast the column to a type, e.g. string",
                )


def _leaf_types(data_type: DataType) -> tuple[DataType, ...]:
    if isinstance(data_type, Array):
        return _leaf_types(data_type.element)
    if isinstance(data_type, Map):
        return (*_leaf_types(data_type.key), *_leaf_types(data_type.value))
    if isinstance(data_type, Struct):
        return tuple(t for f in data_type.fields for t in _leaf_types(f.type))
    return (data_type,)

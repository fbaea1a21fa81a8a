"""Walks through schemas of any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from alluvium.schema.types import Array, DataType, Field, Map, Struct


def fields_within(data_type: DataType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Every field in a type at any depth, parents first, with its path.

    Elements of arrays, keys and values of maps are no fields; they stand in paths as `element`, `key` and `value`.
    """
    if isinstance(data_type, Struct):
        for f in data_type.fields:
            yield (*path, f.name), f
            yield from fields_within(f.type, (*path, f.name))
    elif isinstance(data_type, Array):
        yield from fields_within(data_type.element, (*path, "element"))
    elif isinstance(data_type, Map):
        yield from fields_within(data_type.key, (*path, "key"))
        yield from fields_within(data_type.value, (*path, "value"))


def holds(data_type: DataType, wanted: DataType) -> bool:
    """Whether a type is, or has anywhere in it, the type wanted."""
    if isinstance(data_type, Struct):
        return any(holds(f.type, wanted) for f in data_type.fields)
    if isinstance(data_type, Array):
        return holds(data_type.element, wanted)
    if isinstance(data_type, Map):
        return holds(data_type.key, wanted) or holds(data_type.value, wanted)
    return data_type == wanted


def drop_metadata(schema: Struct, is_dropped: Callable[[str], bool]) -> Struct:
    """The schema without the metadata of those keys, at any depth."""
    return Struct(tuple(_without(f, is_dropped) for f in schema.fields))


def _without(f: Field, is_dropped: Callable[[str], bool]) -> Field:
    kept = {key: value for key, value in f.metadata.items() if not is_dropped(key)}
    return replace(f, type=_drop(f.type, is_dropped), metadata=kept)


def _drop(data_type: DataType, is_dropped: Callable[[str], bool]) -> DataType:
    if isinstance(data_type, Struct):
        return drop_metadata(data_type, is_dropped)
    if isinstance(data_type, Array):
        return replace(data_type, element=_drop(data_type.element, is_dropped))
    if isinstance(data_type, Map):
        return replace(data_type, key=_drop(data_type.key, is_dropped), value=_drop(data_type.value, is_dropped))
    return data_type


def as_nullable(data_type: DataType) -> DataType:
    """The type with everything in it nullable: Spark trusts no file to keep a promise of NOT NULL."""
    if isinstance(data_type, Struct):
        return Struct(tuple(replace(f, type=as_nullable(f.type), nullable=True) for f in data_type.fields))
    if isinstance(data_type, Array):
        return Array(as_nullable(data_type.element))
    return Map(as_nullable(data_type.key), as_nullable(data_type.value)) if isinstance(data_type, Map) else data_type

"""Spark's JSON form of a schema, the dialect of Delta's `metaData.schemaString`.

Specification: Delta protocol, "Schema Serialization Format".
"""

from __future__ import annotations

import re

import msgspec

from alluvium.errors import DECODE_ERRORS, CorruptTable
from alluvium.schema.types import (
    PRIMITIVES,
    Array,
    DataType,
    Decimal,
    Field,
    JsonValue,
    Map,
    Primitive,
    Struct,
)

# Deeper schemas are refused: nobody writes them, and recursion must stay bounded on untrusted input.
MAX_DEPTH = 100

#: Characters of a problem or a name that errors show.
_SHOWN = 300

_DECIMAL = re.compile(r"decimal(?:\(\s*(\d{1,3})\s*,\s*(-?\d{1,3})\s*\))?$")
# Spark writes char(n) and varchar(n) as string with metadata; old or foreign logs name them directly.
_CHARACTER = re.compile(r"(?:var)?char\(\s*\d+\s*\)$")
# A string with a collation; Spark puts the collation itself into the field's metadata.
_COLLATED = re.compile(r"string collate \w+$", re.IGNORECASE)
# `null` is how Spark 2 spelled `void`.
_ALIASES = {"null": "void"}


def parse_schema(text: str | bytes) -> Struct:
    """Parses a schema string.

    Raises:
        CorruptTable: The text is not JSON, not a struct, or names an unknown type.
    """
    try:
        document = msgspec.json.decode(text)
    except DECODE_ERRORS as error:
        raise CorruptTable(
            f"the schema is not JSON: {error}",
            code="invalid-schema",
            hint="the table's metaData action is damaged; restore an earlier version of the log",
        ) from None
    parsed = _parse_type(document, ())
    if not isinstance(parsed, Struct):
        raise _invalid("a table's schema must be a struct", ())
    return parsed


def parse_type(document: JsonValue, column: str) -> DataType:
    """A type out of a field's metadata, e.g. `"decimal(6, 2)"`.

    Raises:
        CorruptTable: It is no type.
    """
    return _parse_type(document, (column,))


def format_schema(schema: Struct) -> str:
    """The compact JSON that Spark writes."""
    return msgspec.json.encode(_format_type(schema)).decode()


def _clipped(text: str) -> str:
    """What a table says may be megabytes long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _invalid(problem: str, path: tuple[str, ...]) -> CorruptTable:
    return CorruptTable(
        f"the schema cannot be parsed: {_clipped(problem)}",
        code="invalid-schema",
        column=_clipped(".".join(path)) or None,
    )


def _parse_type(node: object, path: tuple[str, ...]) -> DataType:
    if len(path) > MAX_DEPTH:
        raise _invalid(f"more than {MAX_DEPTH} levels of nesting", path[:3])
    if isinstance(node, str):
        return _parse_primitive(node, path)
    if not isinstance(node, dict):
        raise _invalid(f"expected a type, found {type(node).__name__}", path)
    kind = node.get("type")
    if kind == "struct":
        return _parse_struct(node, path)
    if kind == "array":
        element = _parse_type(node.get("elementType"), (*path, "element"))
        return Array(element, _flag(node, "containsNull", path))
    if kind == "map":
        key = _parse_type(node.get("keyType"), (*path, "key"))
        value = _parse_type(node.get("valueType"), (*path, "value"))
        return Map(key, value, _flag(node, "valueContainsNull", path))
    if kind == "udt":
        return _parse_type(node.get("sqlType"), path)
    raise _invalid(f"unknown type {kind!r}", path)


def _parse_struct(node: dict[str, object], path: tuple[str, ...]) -> Struct:
    fields = node.get("fields")
    if not isinstance(fields, list):
        raise _invalid("a struct without a list of fields", path)
    parsed = Struct(tuple(_parse_field(f, path) for f in fields))
    seen: set[str] = set()
    for name in parsed.names:
        # Spark compares names in lower case (`ß` is no `ss`), so two such columns could not be told apart.
        if name.lower() in seen:
            raise _invalid(f"column {name!r} stands twice", (*path, name))
        seen.add(name.lower())
    return parsed


def _parse_field(node: object, path: tuple[str, ...]) -> Field:
    if not isinstance(node, dict) or not isinstance(node.get("name"), str):
        raise _invalid("a field without a name", path)
    here = (*path, node["name"])
    metadata = node.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise _invalid("a field's metadata must be an object", here)
    return Field(node["name"], _parse_type(node.get("type"), here), _flag(node, "nullable", here), metadata)


def _flag(node: dict[str, object], key: str, path: tuple[str, ...]) -> bool:
    value = node.get(key, True)
    if not isinstance(value, bool):
        raise _invalid(f"{key} must be true or false", path)
    return value


def _parse_primitive(name: str, path: tuple[str, ...]) -> DataType:
    known = PRIMITIVES.get(_ALIASES.get(name, name))
    if known is not None:
        return known
    if match := _DECIMAL.match(name):
        precision, scale = int(match[1] or 10), int(match[2] or 0)
        if not 0 < precision <= 38 or not 0 <= scale <= precision:
            raise _invalid(f"{name} is out of range: at most 38 digits", path)
        return Decimal(precision, scale)
    if _CHARACTER.match(name) or _COLLATED.match(name):
        return PRIMITIVES["string"]
    raise _invalid(f"unknown type {name!r}", path)


def _format_type(data_type: DataType) -> JsonValue:
    if isinstance(data_type, Primitive):
        return data_type.name
    if isinstance(data_type, Decimal):
        return str(data_type)
    if isinstance(data_type, Array):
        return {
            "type": "array",
            "elementType": _format_type(data_type.element),
            "containsNull": data_type.contains_null,
        }
    if isinstance(data_type, Map):
        return {
            "type": "map",
            "keyType": _format_type(data_type.key),
            "valueType": _format_type(data_type.value),
            "valueContainsNull": data_type.value_contains_null,
        }
    return {"type": "struct", "fields": [format_field(f) for f in data_type.fields]}


def format_field(f: Field) -> dict[str, JsonValue]:
    """A field as it stands in a struct's list."""
    return {
        "name": f.name,
        "type": _format_type(f.type),
        "nullable": f.nullable,
        "metadata": dict(f.metadata),
    }

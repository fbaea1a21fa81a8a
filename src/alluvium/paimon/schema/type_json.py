"""Types and fields as the JSON of schema files: atomic types as SQL text, the others as objects.

Specification: "DataField": "`type`: data type, very similar to SQL type string."
"""

from __future__ import annotations

from collections.abc import Callable

from alluvium.errors import InvalidRequest
from alluvium.paimon.schema.type_text import MAX_DEPTH, parse_type_text
from alluvium.paimon.schema.types import CONSTRUCTED, DataField, DataType
from alluvium.schema.types import JsonValue

#: Gives a field without an id its id.
NextId = Callable[[], int]
_MAX_ID = 2**31 - 1


def parse_type(node: JsonValue, next_id: NextId | None = None) -> DataType:
    """A type out of JSON.

    Args:
        node: Text, or an object with `type` and what the root takes.
        next_id: Numbers fields without an id; None: every field must have one.

    Raises:
        InvalidRequest: `"invalid-type"`; `.column` is the field inside of the type, if it lies in one.
    """
    return _parse_type(node, next_id, ())


def parse_field(node: JsonValue, next_id: NextId | None = None, place: str = "a field") -> DataField:
    """A field out of JSON: `id`, `name`, `type`, `description`, `defaultValue`.

    Raises:
        InvalidRequest: `"invalid-type"`; `.column` names the field.
    """
    return _parse_field(node, next_id, (), place)


def format_type(t: DataType) -> JsonValue:
    """The type as Java writes it."""
    if t.root not in CONSTRUCTED:
        return str(t)
    document: dict[str, JsonValue] = {"type": t.root if t.nullable else f"{t.root} NOT NULL"}
    for name, inner in (("element", t.element), ("key", t.key), ("value", t.value)):
        if inner is not None:
            document[name] = format_type(inner)
    if t.root == "VECTOR":
        document["length"] = t.length
    if t.root == "ROW":
        document["fields"] = [format_field(f) for f in t.fields]
    return document


def format_field(f: DataField) -> JsonValue:
    """The field as Java writes it: what is null stays away."""
    document: dict[str, JsonValue] = {"id": f.id, "name": f.name, "type": format_type(f.type)}
    if f.description is not None:
        document["description"] = f.description
    if f.default is not None:
        document["defaultValue"] = f.default
    return document


def _error(problem: str, path: tuple[str, ...]) -> InvalidRequest:
    return InvalidRequest(problem, code="invalid-type", column=".".join(path) or None)


def _parse_type(node: JsonValue, next_id: NextId | None, path: tuple[str, ...], depth: int = 0) -> DataType:
    if depth > MAX_DEPTH:
        raise _error(f"more than {MAX_DEPTH} levels of nesting", path[:3])
    try:
        if isinstance(node, str):
            return parse_type_text(node)
        if not isinstance(node, dict):
            raise _error(f"expected a type, found {type(node).__name__}", path)
        return _parse_constructed(node, next_id, path, depth)
    except InvalidRequest as error:
        if error.column is None and path:
            error.column = ".".join(path)
        raise


def _parse_constructed(
    node: dict[str, JsonValue], next_id: NextId | None, path: tuple[str, ...], depth: int
) -> DataType:
    name = node.get("type")
    if not isinstance(name, str):
        raise _error("a type object without `type`", path)
    # Old writers spell the whole type there, as in "ARRAY<INT> NOT NULL": the root leads, the nullability is somewhere.
    nullable = "NOT NULL" not in name

    def child(key: str) -> DataType:
        return _parse_type(node.get(key), next_id, (*path, key), depth + 1)

    if name.startswith("ARRAY"):
        return DataType("ARRAY", nullable, element=child("element"))
    if name.startswith("MULTISET"):
        return DataType("MULTISET", nullable, element=child("element"))
    if name.startswith("VECTOR"):
        length = node.get("length")
        if type(length) is not int:
            raise _error("a VECTOR without a length", path)
        return DataType("VECTOR", nullable, element=child("element"), length=length)
    if name.startswith("MAP"):
        return DataType("MAP", nullable, key=child("key"), value=child("value"))
    if name.startswith("ROW"):
        members = node.get("fields")
        if not isinstance(members, list):
            raise _error("a ROW without a list of fields", path)
        fields = tuple(_parse_field(f, next_id, path, "a field of a ROW", depth + 1) for f in members)
        return DataType("ROW", nullable, fields=fields)
    raise _error(f"{name[:100]!r} is no type", path)


def _parse_field(
    node: JsonValue, next_id: NextId | None, path: tuple[str, ...], place: str, depth: int = 0
) -> DataField:
    if not isinstance(node, dict) or not isinstance(node.get("name"), str):
        raise _error(f"{place} has no name", path)
    name = str(node["name"])
    here = (*path, name)
    number = node.get("id")
    if number is None:
        if next_id is None:
            raise _error(f"the field {name!r} has no id", here)
        number = next_id()
    if type(number) is not int or not 0 <= number <= _MAX_ID:
        raise _error(f"the id of the field {name!r} is not a number from 0 to {_MAX_ID}: {number!r}", here)
    data_type = _parse_type(node.get("type"), next_id, here, depth)
    return DataField(number, name, data_type, _text(node, "description", here), _text(node, "defaultValue", here))


def _text(node: dict[str, JsonValue], key: str, path: tuple[str, ...]) -> str | None:
    value = node.get(key)
    if value is not None and not isinstance(value, str):
        raise _error(f"{key} must be text", path)
    return value

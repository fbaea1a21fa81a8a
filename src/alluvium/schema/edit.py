"""Changes of a schema at a path: add, drop, replace, move a field. Pure; nothing is judged here but the path.

Paths go through arrays and maps by the names `element`, `key` and `value`, as in Spark's ALTER TABLE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from alluvium.errors import InvalidRequest, suggest
from alluvium.schema.types import Array, DataType, Field, Map, Struct

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """Where among its siblings a field stands.

    Attributes:
        after: Behind this one; None: the first.
    """

    after: str | None = None

    def __str__(self) -> str:
        return "FIRST" if self.after is None else f"AFTER {self.after}"


def find_path(schema: Struct, path: Path) -> tuple[Path, DataType, Field | None]:
    """The path as the schema spells it, the type there, and its field (None: an element, key or value).

    Raises:
        InvalidRequest: There is nothing at the path (`unknown-column`).
    """
    current: DataType = schema
    spelled: list[str] = []
    found: Field | None = None
    for part in path:
        if isinstance(current, Struct):
            found = current.find(part)
            if found is None:
                raise _unknown(path, part, current.names)
            spelled.append(found.name)
            current = found.type
            continue
        inner = _inner(current, part)
        if inner is None:
            raise _unknown(path, part, _inner_names(current))
        spelled.append(part.lower())
        current, found = inner, None
    return tuple(spelled), current, found


def edit_struct(schema: Struct, parent: Path, edit: Callable[[Struct], Struct]) -> Struct:
    """The schema with one struct in it changed.

    Raises:
        InvalidRequest: There is no struct at the path.
    """
    edited = _edit(schema, parent, parent, edit)
    assert isinstance(edited, Struct)
    return edited


def _edit(data_type: DataType, rest: Path, path: Path, edit: Callable[[Struct], Struct]) -> DataType:
    if not rest:
        if not isinstance(data_type, Struct):
            raise InvalidRequest(
                f"{'.'.join(path)!r} is {data_type}, not a struct, so it has no columns in it",
                code="not-a-struct",
                column=".".join(path),
                hint="an array of structs has its columns under `element`, a map under `key` and `value`",
            )
        return edit(data_type)
    part = rest[0]
    if isinstance(data_type, Struct):
        found = data_type.find(part)
        if found is None:
            raise _unknown(path, part, data_type.names)
        changed = replace(found, type=_edit(found.type, rest[1:], path, edit))
        return Struct(tuple(changed if f is found else f for f in data_type.fields))
    inner = _inner(data_type, part)
    if inner is None:
        raise _unknown(path, part, _inner_names(data_type))
    return with_inner(data_type, part, _edit(inner, rest[1:], path, edit))


def with_inner(data_type: DataType, part: str, inner: DataType) -> DataType:
    """An array or map with another element, key or value."""
    if isinstance(data_type, Array):
        return replace(data_type, element=inner)
    assert isinstance(data_type, Map)
    return replace(data_type, key=inner) if part.lower() == "key" else replace(data_type, value=inner)


def insert_field(struct: Struct, new: Field, position: Position | None) -> Struct:
    """The struct with one more field; last where no position is given.

    Raises:
        InvalidRequest: There is no field to stand behind.
    """
    fields = list(struct.fields)
    if position is None:
        return Struct((*fields, new))
    if position.after is None:
        return Struct((new, *fields))
    names = [f.name.lower() for f in fields]
    if position.after.lower() not in names:
        raise _unknown((position.after,), position.after, struct.names)
    fields.insert(names.index(position.after.lower()) + 1, new)
    return Struct(tuple(fields))


def move_field(struct: Struct, name: str, position: Position) -> Struct:
    """The struct with a field at another place."""
    found = struct.find(name)
    assert found is not None, "the path was found before"
    if position.after is not None and position.after.lower() == name.lower():
        return struct
    return insert_field(Struct(tuple(f for f in struct.fields if f is not found)), found, position)


def replace_field(struct: Struct, name: str, new: Field) -> Struct:
    """The struct with another field in the place of one."""
    found = struct.find(name)
    return Struct(tuple(new if f is found else f for f in struct.fields))


def _inner(data_type: DataType, part: str) -> DataType | None:
    folded = part.lower()
    if isinstance(data_type, Array) and folded == "element":
        return data_type.element
    if isinstance(data_type, Map) and folded in ("key", "value"):
        return data_type.key if folded == "key" else data_type.value
    return None


def _inner_names(data_type: DataType) -> tuple[str, ...]:
    if isinstance(data_type, Array):
        return ("element",)
    return ("key", "value") if isinstance(data_type, Map) else ()


def _unknown(path: Path, part: str, known: tuple[str, ...]) -> InvalidRequest:
    name = ".".join(path)
    return InvalidRequest(f"unknown column {name!r}", code="unknown-column", column=name, hint=suggest(part, known))

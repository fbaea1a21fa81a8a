"""`SchemaChange`: what may happen to a schema, as values, and their JSON form (`{"action": "addColumn", ...}`)."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from alluvium.errors import InvalidRequest, suggest
from alluvium.paimon.schema.type_json import format_type, parse_type
from alluvium.paimon.schema.types import DataType
from alluvium.schema.types import JsonValue

#: A column by name, or a path of names; elements of arrays are `element`, values of maps `value`.
Column: TypeAlias = "str | Sequence[str]"
#: A type, its SQL text, or its JSON.
TypeLike: TypeAlias = "DataType | str | Mapping[str, JsonValue]"

_MOVES = ("FIRST", "AFTER", "BEFORE", "LAST")


@dataclass(frozen=True, slots=True)
class Move:
    """Where a column goes: `kind` is FIRST, LAST, or AFTER or BEFORE the column `reference`."""

    column: str
    kind: str
    reference: str | None = None

    def as_dict(self) -> dict[str, JsonValue]:
        return {"fieldName": self.column, "referenceFieldName": self.reference, "type": self.kind}


class SchemaChange(ABC):
    """One change of a schema. Made by the functions of this class; `TableSchema.apply` carries it out.

    Example:
        >>> SchemaChange.add_column("price", "DECIMAL(10, 2)", after="name")
        >>> SchemaChange.rename_column(["address", "zip"], "postcode")
    """

    __slots__ = ()

    @staticmethod
    def set_option(key: str, value: str) -> SchemaChange:
        return SetOption(key, value)

    @staticmethod
    def remove_option(key: str) -> SchemaChange:
        return RemoveOption(key)

    @staticmethod
    def update_comment(comment: str | None) -> SchemaChange:
        """The table's comment; None removes it."""
        return UpdateComment(comment)

    @staticmethod
    def add_column(
        column: Column,
        type: TypeLike,
        comment: str | None = None,
        *,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
        last: bool = False,
    ) -> SchemaChange:
        """A new column, or a new field of a row; at the end unless a position is given.

        Raises:
            InvalidRequest: `"invalid-type"`, or `"invalid-schema-change"`: two positions.
        """
        path = _path(column)
        return AddColumn(path, as_type(type), comment, _move(path[-1], first, after, before, last))

    @staticmethod
    def rename_column(column: Column, new_name: str) -> SchemaChange:
        """Keys and options that name the column follow."""
        return RenameColumn(_path(column), new_name)

    @staticmethod
    def drop_column(column: Column) -> SchemaChange:
        return DropColumn(_path(column))

    @staticmethod
    def update_column_type(column: Column, type: TypeLike, keep_nullability: bool = False) -> SchemaChange:
        """The column's values are cast when old files are read."""
        return UpdateColumnType(_path(column), as_type(type), keep_nullability)

    @staticmethod
    def update_column_nullability(column: Column, nullable: bool) -> SchemaChange:
        return UpdateColumnNullability(_path(column), nullable)

    @staticmethod
    def update_column_comment(column: Column, comment: str | None) -> SchemaChange:
        return UpdateColumnComment(_path(column), comment)

    @staticmethod
    def update_column_default(column: Column, default: str | None) -> SchemaChange:
        """The text of the value for rows that bring none; None: null again."""
        return UpdateColumnDefault(_path(column), default)

    @staticmethod
    def update_column_position(
        column: str, *, first: bool = False, after: str | None = None, before: str | None = None, last: bool = False
    ) -> SchemaChange:
        """Moves a column of the table.

        Raises:
            InvalidRequest: `"invalid-schema-change"`: not exactly one position.
        """
        move = _move(column, first, after, before, last)
        if move is None:
            raise _invalid(f"where does {column!r} go?", hint="say first=True, last=True, after= or before=")
        return UpdateColumnPosition(move)

    @staticmethod
    def drop_primary_key() -> SchemaChange:
        """Makes an append table of a table without data."""
        return DropPrimaryKey()

    @staticmethod
    def parse(document: Mapping[str, JsonValue]) -> SchemaChange:
        """A change from Paimon's JSON form.

        Raises:
            InvalidRequest: `"invalid-schema-change"`, `"invalid-type"`.
        """
        action = document.get("action")
        parse = _PARSERS.get(action) if isinstance(action, str) else None
        if parse is None:
            raise _invalid(f"unknown action {action!r}", hint=suggest(str(action), _PARSERS))
        return parse(document)

    @abstractmethod
    def as_dict(self) -> dict[str, JsonValue]:
        """Paimon's JSON form."""


@dataclass(frozen=True, slots=True)
class SetOption(SchemaChange):
    key: str
    value: str

    def as_dict(self) -> dict[str, JsonValue]:
        return {"action": "setOption", "key": self.key, "value": self.value}


@dataclass(frozen=True, slots=True)
class RemoveOption(SchemaChange):
    key: str

    def as_dict(self) -> dict[str, JsonValue]:
        return {"action": "removeOption", "key": self.key}


@dataclass(frozen=True, slots=True)
class UpdateComment(SchemaChange):
    comment: str | None

    def as_dict(self) -> dict[str, JsonValue]:
        return {"action": "updateComment", "comment": self.comment}


@dataclass(frozen=True, slots=True)
class AddColumn(SchemaChange):
    path: tuple[str, ...]
    type: DataType
    comment: str | None
    move: Move | None

    def as_dict(self) -> dict[str, JsonValue]:
        return {
            "action": "addColumn",
            "fieldNames": list(self.path),
            "dataType": format_type(self.type),
            "comment": self.comment,
            "move": None if self.move is None else self.move.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class RenameColumn(SchemaChange):
    path: tuple[str, ...]
    new_name: str

    def as_dict(self) -> dict[str, JsonValue]:
        return {"action": "renameColumn", "fieldNames": list(self.path), "newName": self.new_name}


@dataclass(frozen=True, slots=True)
class DropColumn(SchemaChange):
    path: tuple[str, ...]

    def as_dict(self) -> dict[str, JsonValue]:
        return {"action": "dropColumn", "fieldNames": list(self.path)}


@dataclass(frozen=True, slots=True)
class UpdateColumnType(SchemaChange):
    path: tuple[str, ...]
    type: DataType
    keep_nullability: bool

    def as_dict(self) -> dict[str, JsonValue]:
        return {
            "action": "updateColumnType",
            "fieldNames": list(self.path),
            "newDataType": format_type(self.type),
            "keepNullability": self.keep_nullability,
        }


@dataclass(frozen=True, slots=True)
class UpdateColumnNullability(SchemaChange):
    path: tuple[str, ...]
    nullable: bool

    def as_dict(self) -> dict[str, JsonValue]:
        return {
            "action": "updateColumnNullability", "fieldNames": list(self.path), "newNullability": self.nullable,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class UpdateColumnComment(SchemaChange):
    path: tuple[str, ...]
    comment: str | None

    def as_dict(self) -> dict[str, JsonValue]:
        return {"action": "updateColumnComment", "fieldNames": list(self.path), "newComment": self.comment}


@dataclass(frozen=True, slots=True)
class UpdateColumnDefault(SchemaChange):
    path: tuple[str, ...]
    default: str | None

    def as_dict(self) -> dict[str, JsonValue]:
        return {
            "action": "updateColumnDefaultValue", "fieldNames": list(self.path), "newDefaultValue": self.default,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class UpdateColumnPosition(SchemaChange):
    move: Move

    def as_dict(self) -> dict[str, JsonValue]:
        return {"action": "updateColumnPosition", "move": self.move.as_dict()}


@dataclass(frozen=True, slots=True)
class DropPrimaryKey(SchemaChange):
    def as_dict(self) -> dict[str, JsonValue]:
        return {"action": "dropPrimaryKey"}


def as_type(given: TypeLike) -> DataType:
    """A type from whatever says one; fields of rows without ids are numbered from 0.

    Raises:
        InvalidRequest: `"invalid-type"`.
    """
    if isinstance(given, DataType):
        return given
    counter = itertools.count()
    return parse_type(given if isinstance(given, str) else dict(given), lambda: next(counter))


def _invalid(problem: str, hint: str | None = None) -> InvalidRequest:
    return InvalidRequest(f"a schema change makes no sense: {problem}", code="invalid-schema-change", hint=hint)


def _path(column: Column) -> tuple[str, ...]:
    path = (column,) if isinstance(column, str) else tuple(column)
    if not path or not all(isinstance(name, str) and name for name in path):
        raise _invalid(f"{column!r} names no column")
    return path


def _move(column: str, first: bool, after: str | None, before: str | None, last: bool) -> Move | None:
    wanted = [
        Move(column, kind, reference)
        for kind, is_wanted, reference in (
            ("FIRST", first, None),
            ("AFTER", after is not None, after),
            ("BEFORE", before is not None, before),
            ("LAST", last, None),
        )
        if is_wanted
    ]
    if len(wanted) > 1:
        raise _invalid(f"{column!r} cannot go to two places")
    return wanted[0] if wanted else None


def _text(document: Mapping[str, JsonValue], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise _invalid(f"{document.get('action')} needs the text {key!r}, not {value!r}")
    return value


def _optional_text(document: Mapping[str, JsonValue], key: str) -> str | None:
    return None if document.get(key) is None else _text(document, key)


def _flag(document: Mapping[str, JsonValue], key: str, default: bool | None = None) -> bool:
    value = document.get(key, default)
    if not isinstance(value, bool):
        raise _invalid(f"{document.get('action')} needs {key!r}: true or false, not {value!r}")
    return value


def _names(document: Mapping[str, JsonValue]) -> tuple[str, ...]:
    value = document.get("fieldNames")
    if not isinstance(value, list) or not value:
        raise _invalid(f"{document.get('action')} needs a list `fieldNames`, not {value!r}")
    return _path([str(name) if isinstance(name, str) else "" for name in value])


def _type(document: Mapping[str, JsonValue], key: str) -> DataType:
    value = document.get(key)
    if not isinstance(value, (str, dict)):
        raise _invalid(f"{document.get('action')} needs the type {key!r}, not {value!r}")
    return as_type(value)


def _parse_move(document: Mapping[str, JsonValue]) -> Move:
    move = document.get("move")
    if not isinstance(move, dict):
        raise _invalid(f"{document.get('action')} needs a `move`, not {move!r}")
    kind = _text(move, "type")
    if kind not in _MOVES:
        raise _invalid(f"nobody knows the move {kind!r}", hint=suggest(kind, _MOVES))
    return Move(_text(move, "fieldName"), kind, _optional_text(move, "referenceFieldName"))


_PARSERS: Mapping[str, Callable[[Mapping[str, JsonValue]], SchemaChange]] = {
    "setOption": lambda d: SetOption(_text(d, "key"), _text(d, "value")),
    "removeOption": lambda d: RemoveOption(_text(d, "key")),
    "updateComment": lambda d: UpdateComment(_optional_text(d, "comment")),
    "addColumn": lambda d: AddColumn(
        _names(d),
        _type(d, "dataType"),
        _optional_text(d, "comment"),
        None if d.get("move") is None else _parse_move(d),
    ),
    "renameColumn": lambda d: RenameColumn(_names(d), _text(d, "newName")),
    "dropColumn": lambda d: DropColumn(_names(d)),
    "updateColumnType": lambda d: UpdateColumnType(
        _names(d), _type(d, "newDataType"), _flag(d, "keepNullability", False)
    ),
    "updateColumnNullability": lambda d: UpdateColumnNullability(_names(d), _flag(d, "newNullability")),
    "updateColumnComment": lambda d: UpdateColumnComment(_names(d), _optional_text(d, "newComment")),
    "updateColumnDefaultValue": lambda d: UpdateColumnDefault(_names(d), _optional_text(d, "newDefaultValue")),
    "updateColumnPosition": lambda d: UpdateColumnPosition(_parse_move(d)),
    "dropPrimaryKey": lambda d: DropPrimaryKey(),
}

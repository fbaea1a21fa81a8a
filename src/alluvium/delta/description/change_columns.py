"""What becomes of columns that stay: wider, commented, moved, nullable, with another default. Pure; refusals are the
reference's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from alluvium.delta.description.evolve import Change, to_json, with_schema
from alluvium.delta.description.referenced import ensure_unreferenced
from alluvium.delta.description.scala_order import as_a_map_has_paths
from alluvium.delta.description.shown_columns import shown_change, type_name
from alluvium.delta.description.upgrade import ensure_defaults_supported
from alluvium.delta.features.columns import column_defaults
from alluvium.delta.features.types import type_widening
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Operation
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.edit import Path, Position, edit_struct, find_path, move_field, replace_field, with_inner
from alluvium.schema.types import STRING, Array, DataType, Field, JsonValue, Map, Struct

_VARCHAR = re.compile(r"varchar\((\d+)\)")
_IDENTITY = "delta.identity."
_CHAR = re.compile(r"char\((\d+)\)")


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What is to become of a column; what is None stays.

    Attributes:
        path: Of the column, in any case.
        data_type: A wider type.
        comment: The new comment.
        nullable: True drops NOT NULL.
        position: The new place.
        text_type: What `data_type` was declared as, where that names a length of texts.
        default: SQL of a constant: what rows get that say nothing of the column; an empty text: nothing any more.
        drops_comment: Whether its comment goes.
    """

    path: Path
    data_type: DataType | None = None
    comment: str | None = None
    nullable: bool | None = None
    position: Position | None = None
    text_type: str | None = None
    default: str | None = None
    drops_comment: bool = False


def alter_column(
    config: TableConfig,
    path: Path,
    data_type: DataType | None = None,
    comment: str | None = None,
    nullable: bool | None = None,
    position: Position | None = None,
    text_type: str | None = None,
) -> Change:
    """Changes one column, see `alter_columns`."""
    return alter_columns(config, [ColumnChange(path, data_type, comment, nullable, position, text_type)])


def alter_columns(config: TableConfig, changes: Sequence[ColumnChange]) -> Change:
    """Changes columns, one after the other, in one commit.

    Raises:
        InvalidRequest: A type is no widening (`type-change`), or the table does not allow one (`no-type-widening`);
            NOT NULL is asked for (`not-null-column`); a default of a field within a column (`nested-default`), that
            cannot be computed (`invalid-expression`), or that the table does not support (`feature-not-enabled`).
    """
    schema, shown, places = config.schema, list[dict[str, JsonValue]](), list[dict[str, JsonValue]]()
    _ensure_once([find_path(schema, change.path)[0] for change in changes])
    for change in changes:
        spelled, _, found = find_path(schema, change.path)
        _ensure_own(config, change)
        schema = _changed(config, schema, spelled, change)
        _, now, now_field = find_path(schema, spelled)
        field = replace(now_field or Field(spelled[-1], now), name=spelled[-1], type=now)
        shown.append(shown_change(field, spelled, found))
        places.append({} if change.position is None else {"position": str(change.position)})
    if len(changes) > 1:
        entries = to_json(_in_order([find_path(config.schema, c.path)[0] for c in changes], shown, places))
        return Change(with_schema(config, schema), Operation("CHANGE COLUMNS", {"columns": entries}))
    return Change(with_schema(config, schema), Operation("CHANGE COLUMN", {"column": to_json(shown[0]), **places[0]}))


def _ensure_own(config: TableConfig, change: ColumnChange) -> None:
    """Refuses a default of a field within a column, which nobody would compute, and other numbers for a column."""
    found = config.schema.find(change.path[0])
    is_numbered = found is not None and any(key.startswith(_IDENTITY) for key in found.metadata)
    if found is not None and is_numbered and (change.default is not None or change.data_type not in (None, found.type)):
        raise InvalidRequest(
            "the type and the default of an identity column are what they are",
            code="unsupported-change",
            column=found.name,
            hint="drop the column, or add another one",
        )
    if change.default is None or len(change.path) < 2:
        return
    name = ".".join(change.path)
    if change.default:
        ensure_defaults_supported(config, name)
    raise InvalidRequest(
        f"{name!r} stands within a column, and only columns have defaults",
        code="nested-default",
        column=name,
        hint="a default of the whole column may be a named_struct(...)",
    )


def _in_order(
    paths: Sequence[Path], shown: Sequence[dict[str, JsonValue]], places: Sequence[dict[str, JsonValue]]
) -> list[JsonValue]:
    """What several columns have become, as the reference's map of them has it."""
    told = {path: {**one, **place} for path, one, place in zip(paths, shown, places, strict=True)}
    return [told[tuple(path)] for path in as_a_map_has_paths(told)]


def _ensure_once(paths: Sequence[Path]) -> None:
    for n, path in enumerate(paths):
        if any(path[: len(other)] == other or other[: len(path)] == path for other in paths[:n]):
            raise InvalidRequest(
                f"{'.'.join(path)!r}, or a part of it, is changed twice in one statement",
                code="changed-twice",
                column=".".join(path),
                hint="say one change after the other",
            )


def _changed(config: TableConfig, schema: Struct, path: Path, change: ColumnChange) -> Struct:
    """The schema with one column changed; `path` as the schema spells it."""
    _, current, found = find_path(schema, path)
    if change.data_type is not None and change.data_type != current:
        schema = widen(config, schema, path, change.data_type)
        ensure_unreferenced(config, path)
    if change.text_type is not None:
        schema = _with_length(schema, path, found, change.text_type)
    elif change.data_type == STRING and found is not None and _has_length(found):
        schema = _with_declaration(schema, path, None)
    if found is not None:
        schema = _alter_field(schema, path, change)
    elif (change.comment, change.nullable, change.position, change.default) != (None, None, None, None):
        raise InvalidRequest(
            f"{'.'.join(path)!r} has a type, but neither comment nor place",
            code="not-a-column",
            column=".".join(path),
        )
    if change.position is None:
        return schema
    place = change.position
    return edit_struct(schema, path[:-1], lambda struct: move_field(struct, path[-1], place))


def _with_length(schema: Struct, path: Path, found: Field | None, text_type: str) -> Struct:
    """The schema with the length of texts of a column."""
    known = None if found is None else found.metadata.get(CHAR_VARCHAR)
    padded = _CHAR.fullmatch(known.lower()) if isinstance(known, str) else None
    after = _VARCHAR.fullmatch(text_type.lower())
    if padded is not None and after is not None and int(padded[1]) <= int(after[1]):
        # What is padded to n fits a varchar that is no shorter.
        return _with_declaration(schema, path, text_type)
    longer = longer_text(found, text_type, path)
    return schema if longer is None else _with_declaration(schema, path, longer)


def _has_length(found: Field) -> bool:
    """Whether texts of a column have a declared length; those within it are told at the column, too."""
    known = str(found.metadata.get(CHAR_VARCHAR, "")).lower()
    return bool(_VARCHAR.fullmatch(known) or _CHAR.fullmatch(known))


def _with_declaration(schema: Struct, path: Path, text_type: str | None) -> Struct:
    """The schema with another declared length of a column's texts; None: any length."""

    def change(struct: Struct) -> Struct:
        field = struct.find(path[-1])
        assert field is not None, "the path was found before"
        others = {key: value for key, value in field.metadata.items() if key != CHAR_VARCHAR}
        declared = others if text_type is None else {**others, CHAR_VARCHAR: text_type}
        return replace_field(struct, field.name, replace(field, metadata=declared))

    return edit_struct(schema, path[:-1], change)


def longer_text(found: Field | None, text_type: str, path: Path) -> str | None:
    """The declaration of a column's texts that is to be; None: it is so already.

    A varchar may become longer: no text that is there can break that.

    Raises:
        InvalidRequest: It would become something else (`type-change`).
    """
    known = None if found is None else found.metadata.get(CHAR_VARCHAR)
    lengths = [_VARCHAR.fullmatch(text.lower()) if isinstance(text, str) else None for text in (known, text_type)]
    if known == text_type:
        return None
    before, after = lengths
    if before is None or after is None or int(after[1]) < int(before[1]):
        raise InvalidRequest(
            f"the type of a column cannot be changed from {known or 'string'} to {text_type}",
            code="type-change",
            column=".".join(path),
            hint="a varchar can become longer, or a string; a char a varchar that is no shorter, or a string",
        )
    return text_type


def _alter_field(schema: Struct, path: Path, change: ColumnChange) -> Struct:
    def alter(struct: Struct) -> Struct:
        found = struct.find(path[-1])
        assert found is not None, "the path was found before"
        if change.nullable is False and found.nullable:
            raise InvalidRequest(
                "a nullable column cannot be made NOT NULL",
                code="not-null-column",
                column=".".join(path),
                hint=f"addConstraint with the condition {'.'.join(path)} is not null checks the rows that are there",
            )
        nullable = found.nullable or change.nullable is True
        return replace_field(struct, found.name, replace(found, metadata=_metadata(found, change), nullable=nullable))

    return edit_struct(schema, path[:-1], alter)


def _metadata(found: Field, change: ColumnChange) -> dict[str, JsonValue]:
    """What is said of the column, with its new comment and default."""
    metadata = dict(found.metadata)
    if change.drops_comment:
        metadata.pop("comment", None)
    if change.comment is not None:
        metadata["comment"] = change.comment
    if change.default is None:
        return metadata
    metadata.pop(column_defaults.KEY, None)
    return metadata if change.default == "" else {**metadata, column_defaults.KEY: change.default}


def widen(config: TableConfig, schema: Struct, path: Path, data_type: DataType) -> Struct:
    """The schema with a wider type at a path, and the record of it that readers of older files need.

    Specification: "Type Widening": each change is recorded with the nearest struct field, under `fieldPath` where the
    type stands in an array or map.
    """
    column = ".".join(path)
    _, current, _ = find_path(schema, path)
    nested = isinstance(current, (Struct, Array, Map)) or isinstance(data_type, (Struct, Array, Map))
    if nested or not type_widening.is_widening(current, data_type):
        raise InvalidRequest(
            f"the type of a column cannot be changed from {current} to {data_type}",
            code="type-change",
            column=column,
            hint="only to a wider type; change the parts of structs, arrays and maps one by one",
        )
    if config.metadata.configuration.get("delta.enableTypeWidening", "false").strip().lower() != "true":
        raise InvalidRequest(
            f"changing the type from {current} to {data_type} needs type widening",
            code="no-type-widening",
            column=column,
            hint="set the property delta.enableTypeWidening to true first",
        )
    owner = _owner(schema, path)
    inside = path[len(owner) :]
    entry: dict[str, JsonValue] = {"toType": type_name(data_type), "fromType": type_name(current)}
    if inside:
        entry["fieldPath"] = ".".join(inside)

    def change(struct: Struct) -> Struct:
        found = struct.find(owner[-1])
        assert found is not None, "the path was found before"
        recorded = found.metadata.get(type_widening.TYPE_CHANGES)
        changes: list[JsonValue] = [*(recorded if isinstance(recorded, list) else []), entry]
        metadata = {**found.metadata, type_widening.TYPE_CHANGES: changes}
        return replace_field(
            struct, found.name, replace(found, type=_replace_inner(found.type, inside, data_type), metadata=metadata)
        )

    return edit_struct(schema, owner[:-1], change)


def _owner(schema: Struct, path: Path) -> Path:
    """The nearest field at or above a path: what stands in an array or map has no metadata of its own."""
    while find_path(schema, path)[2] is None:
        path = path[:-1]
    return path


def _replace_inner(data_type: DataType, inside: Path, new: DataType) -> DataType:
    if not inside:
        return new
    inner = data_type.element if isinstance(data_type, Array) else None
    if isinstance(data_type, Map):
        inner = data_type.key if inside[0] == "key" else data_type.value
    assert inner is not None, "the path was found before"
    return with_inner(data_type, inside[0], _replace_inner(inner, inside[1:], new))

"""Changes of a table's columns: add, rename, drop, widen, comment, move. Pure; refusals are the reference's.

Nothing here touches the files: they keep names and types, and column mapping or type widening tells readers how to
understand them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from alluvium.delta.description.create import ensure_columns
from alluvium.delta.description.evolve import Change, to_json
from alluvium.delta.description.referenced import ensure_unreferenced, renamed_properties, without_columns
from alluvium.delta.description.upgrade import (
    configure,
)
from alluvium.delta.features.types import type_widening
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import Metadata
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Operation
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.edit import (
    Path,
    Position,
    edit_struct,
    find_path,
    insert_field,
    move_field,
    replace_field,
    with_inner,
)
from alluvium.schema.spark_json import format_field, format_schema
from alluvium.schema.types import Array, DataType, Field, JsonValue, Map, Struct
from alluvium.schema.walk import fields_within

_VARCHAR = re.compile(r"varchar\((\d+)\)")


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column to add.

    Attributes:
        path: Where, its own name last.
        field: Type, nullability, metadata; the name is the path's last part.
        position: Among its siblings; None: last.
    """

    path: Path
    field: Field
    position: Position | None = None


def add_columns(config: TableConfig, columns: Sequence[NewColumn]) -> Change:
    """Adds columns, one after the other; nested ones by their path.

    Raises:
        InvalidRequest: A column exists (`column-exists`), has no parent (`unknown-column`), or is NOT NULL
            (`not-null-column`): rows that are there have no value for it.
    """
    if not columns:
        raise InvalidRequest("no columns to add", code="no-columns")
    schema = config.schema
    shown: list[JsonValue] = []
    for column in columns:
        _ensure_addable(column)
        parent, _, _ = find_path(schema, column.path[:-1])
        new = replace(column.field, name=column.path[-1])
        schema = edit_struct(schema, parent, partial(_insert, new=new, position=column.position))
        entry: dict[str, JsonValue] = {"column": _shown_field(new, (*parent, new.name))}
        shown.append(entry if column.position is None else {**entry, "position": str(column.position)})
    return Change(_with_schema(config, schema), Operation("ADD COLUMNS", {"columns": to_json(shown)}))


def _insert(struct: Struct, new: Field, position: Position | None) -> Struct:
    _ensure_absent(struct, new.name)
    return insert_field(struct, new, position)


def _ensure_absent(struct: Struct, name: str) -> None:
    if any(f.name.casefold() == name.casefold() for f in struct.fields):
        raise InvalidRequest(f"there is a column {name!r} already (case is ignored)", code="column-exists", column=name)


def _ensure_addable(column: NewColumn) -> None:
    inner = any(not f.nullable for _, f in fields_within(column.field.type))
    if inner or not column.field.nullable:
        raise InvalidRequest(
            f"a column that is added cannot be NOT NULL: {'.'.join(column.path)}",
            code="not-null-column",
            column=".".join(column.path),
            hint="the rows of the table have no value for it; add it nullable, and a constraint for new rows",
        )


def rename_column(config: TableConfig, path: Path, new_name: str) -> Change:
    """Renames a column; the files keep the name that they have.

    Raises:
        InvalidRequest: The table has no column mapping (`no-column-mapping`), the new name is taken
            (`column-exists`), or a constraint or generated column names the column (`column-in-use`).
    """
    spelled, _, found = find_path(config.schema, path)
    if found is None:
        raise InvalidRequest(f"{'.'.join(path)!r} has no name to change", code="unknown-column", column=".".join(path))
    _ensure_mapped(config, "renaming", ".".join(spelled))
    ensure_unreferenced(config, spelled)

    def rename(struct: Struct) -> Struct:
        _ensure_absent(struct, new_name)
        return replace_field(struct, found.name, replace(found, name=new_name))

    schema = edit_struct(config.schema, spelled[:-1], rename)
    target = (*spelled[:-1], new_name)
    metadata = msgspec.structs.replace(
        config.metadata,
        configuration=renamed_properties(config.metadata.configuration, spelled, target),
        partition_columns=tuple(new_name if (n,) == spelled else n for n in config.partition_columns),
    )
    parameters: dict[str, JsonValue] = {"oldColumnPath": ".".join(spelled), "newColumnPath": ".".join(target)}
    return Change(_with_schema(config, schema, metadata), Operation("RENAME COLUMN", parameters))


def drop_columns(config: TableConfig, paths: Sequence[Path], if_exists: bool = False) -> Change:
    """Drops columns; the files keep their values, unseen.

    Raises:
        InvalidRequest: As for `rename_column`; a partition column (`partition-column`), or the last one of its struct
            (`last-column`).
    """
    spelled = [find_path(config.schema, path)[0] for path in paths if not if_exists or _exists(config.schema, path)]
    schema = config.schema
    for path in spelled:
        _ensure_mapped(config, "dropping", ".".join(path))
        if path[0] in config.partition_columns:
            raise InvalidRequest(
                f"{path[0]!r} is a partition column and cannot be dropped", code="partition-column", column=path[0]
            )
        ensure_unreferenced(config, path)
        schema = edit_struct(schema, path[:-1], partial(_without, path=path))
    metadata = msgspec.structs.replace(
        config.metadata, configuration=without_columns(config.metadata.configuration, spelled)
    )
    shown = to_json([".".join(path) for path in spelled])
    return Change(_with_schema(config, schema, metadata), Operation("DROP COLUMNS", {"columns": shown}))


def _exists(schema: Struct, path: Path) -> bool:
    try:
        find_path(schema, path)
    except InvalidRequest:
        return False
    return True


def _without(struct: Struct, path: Path) -> Struct:
    if len(struct.fields) == 1:
        raise InvalidRequest(
            f"{'.'.join(path)!r} is the only column there and cannot be dropped",
            code="last-column",
            column=".".join(path),
            hint="drop the struct that holds it" if len(path) > 1 else None,
        )
    return Struct(tuple(f for f in struct.fields if f.name.casefold() != path[-1].casefold()))


def _ensure_mapped(config: TableConfig, doing: str, column: str) -> None:
    if config.mapping_mode == "none":
        raise InvalidRequest(
            f"{doing} a column needs column mapping: the files of the table go by its name",
            code="no-column-mapping",
            column=column,
            hint="set the property delta.columnMapping.mode to name first",
        )


def alter_column(
    config: TableConfig,
    path: Path,
    data_type: DataType | None = None,
    comment: str | None = None,
    nullable: bool | None = None,
    position: Position | None = None,
    text_type: str | None = None,
) -> Change:
    """Changes a column: its type to a wider one, its comment, its place; drops NOT NULL.

    Args:
        config: The table.
        path: Of the column, in any case.
        data_type: A wider type.
        comment: The new comment.
        nullable: True drops NOT NULL.
        position: The new place.
        text_type: What `data_type` was declared as, where that names a length of texts.

    Raises:
        InvalidRequest: The type is no widening (`type-change`), or the table does not allow one
            (`no-type-widening`); NOT NULL is asked for (`not-null-column`).
    """
    spelled, current, found = find_path(config.schema, path)
    schema = config.schema
    if data_type is not None and data_type != current:
        ensure_unreferenced(config, spelled)
        schema = widen(config, schema, spelled, data_type)
    if text_type is not None:
        schema = _with_length(schema, spelled, found, text_type)
    if found is not None:
        schema = _alter_field(schema, spelled, comment, nullable)
    elif comment is not None or nullable is not None or position is not None:
        raise InvalidRequest(
            f"{'.'.join(spelled)!r} has a type, but neither comment nor place",
            code="not-a-column",
            column=".".join(path),
        )
    if position is not None:
        schema = edit_struct(schema, spelled[:-1], lambda struct: move_field(struct, spelled[-1], position))
    _, now, now_field = find_path(schema, spelled)
    shown = replace(now_field or Field(spelled[-1], now), name=spelled[-1], type=now)
    parameters: dict[str, JsonValue] = {"column": to_json(_shown_change(shown, spelled, found))}
    if position is not None:
        parameters["position"] = str(position)
    return Change(_with_schema(config, schema), Operation("CHANGE COLUMN", parameters))


def _with_length(schema: Struct, path: Path, found: Field | None, text_type: str) -> Struct:
    """A varchar may become longer: no text that is there can break that."""
    known = None if found is None else found.metadata.get(CHAR_VARCHAR)
    lengths = [_VARCHAR.fullmatch(text.casefold()) if isinstance(text, str) else None for text in (known, text_type)]
    if known == text_type:
        return schema
    before, after = lengths
    if before is None or after is None or int(after[1]) < int(before[1]):
        raise InvalidRequest(
            f"the type of a column cannot be changed from {known or 'string'} to {text_type}",
            code="type-change",
            column=".".join(path),
            hint="only a varchar can be changed, to a longer one",
        )

    def change(struct: Struct) -> Struct:
        field = struct.find(path[-1])
        assert field is not None, "the path was found before"
        return replace_field(struct, field.name, replace(field, metadata={**field.metadata, CHAR_VARCHAR: text_type}))

    return edit_struct(schema, path[:-1], change)


def _alter_field(schema: Struct, path: Path, comment: str | None, nullable: bool | None) -> Struct:
    def alter(struct: Struct) -> Struct:
        found = struct.find(path[-1])
        assert found is not None, "the path was found before"
        if nullable is False and found.nullable:
            raise InvalidRequest(
                "a nullable column cannot be made NOT NULL",
                code="not-null-column",
                column=".".join(path),
                hint=f"addConstraint with the condition {'.'.join(path)} is not null checks the rows that are there",
            )
        metadata = found.metadata if comment is None else {**found.metadata, "comment": comment}
        return replace_field(
            struct, found.name, replace(found, metadata=metadata, nullable=found.nullable or nullable is True)
        )

    return edit_struct(schema, path[:-1], alter)


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
    if config.metadata.configuration.get("delta.enableTypeWidening", "false").strip().casefold() != "true":
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


def _with_schema(config: TableConfig, schema: Struct, metadata: Metadata | None = None) -> TableConfig:
    metadata = metadata or config.metadata
    ensure_columns(schema, metadata.configuration)
    return configure(msgspec.structs.replace(metadata, schema_string=format_schema(schema)), config)


def type_name(data_type: DataType) -> str:
    """A type without parts as the schema's JSON names it."""
    if isinstance(data_type, Struct):
        return "struct"
    if isinstance(data_type, Array):
        return "array"
    if isinstance(data_type, Map):
        return "map"
    return str(format_field(Field("", data_type))["type"])


def _shown_change(f: Field, path: Path, before: Field | None) -> JsonValue:
    """A changed column as the history shows it: all that its metadata said before, and the new comment."""
    known = {} if before is None else before.metadata
    new = {key: f.metadata[key] for key in ("comment", CHAR_VARCHAR) if key in f.metadata}
    return {**_shown_field(f, path), "metadata": {**known, **new}, "type": type_name(f.type)}


def _shown_field(f: Field, path: Path) -> dict[str, JsonValue]:
    """A column as the history shows it: what mapping and widening keep to themselves is left out."""
    declared = f.metadata.get(CHAR_VARCHAR)
    metadata = {k: v for k, v in f.metadata.items() if not k.startswith("delta.") and k != CHAR_VARCHAR}
    shown_type = declared if isinstance(declared, str) else type_name(f.type)
    return {"name": ".".join(path), "type": shown_type, "nullable": f.nullable, "metadata": metadata}

"""Changes of a table's columns: add, rename, drop. Pure; refusals are the reference's.

Nothing here touches the files: they keep the names that they have, and column mapping tells readers how to understand
them. What becomes of a column that stays: `change_columns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from alluvium.delta.description.evolve import Change, to_json, with_schema
from alluvium.delta.description.referenced import ensure_unreferenced, renamed_properties, without_columns
from alluvium.delta.description.shown_columns import shown_field, shown_path
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest, suggest
from alluvium.plan.changes import Operation
from alluvium.schema.edit import Path, Position, edit_struct, find_path, insert_field, replace_field
from alluvium.schema.types import Field, JsonValue, Struct
from alluvium.schema.walk import fields_within


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
    _ensure_different(columns)
    schema = config.schema
    shown: list[JsonValue] = []
    for column in columns:
        _ensure_addable(column)
        parent, _, _ = find_path(schema, column.path[:-1])
        new = replace(column.field, name=column.path[-1])
        schema = edit_struct(schema, parent, partial(_insert, new=new, position=column.position))
        entry: dict[str, JsonValue] = {"column": shown_field(new, (*parent, new.name))}
        shown.append(entry if column.position is None else {**entry, "position": str(column.position)})
    return Change(with_schema(config, schema), Operation("ADD COLUMNS", {"columns": to_json(shown)}))


def _ensure_different(columns: Sequence[NewColumn]) -> None:
    seen = set[Path]()
    for column in columns:
        folded = tuple(part.lower() for part in column.path)
        if folded in seen:
            name = ".".join(column.path)
            raise InvalidRequest(f"{name!r} is added twice (case is ignored)", code="duplicate-column", column=name)
        seen.add(folded)


def _insert(struct: Struct, new: Field, position: Position | None) -> Struct:
    _ensure_absent(struct, new.name)
    after = None if position is None else position.after
    if after is not None and struct.find(after) is None:
        raise InvalidRequest(
            f"there is no column {after!r} for the new {new.name!r} to stand behind",
            code="unknown-column",
            column=after,
            hint=suggest(after, struct.names),
        )
    return insert_field(struct, new, position)


def _ensure_absent(struct: Struct, name: str) -> None:
    if any(f.name.lower() == name.lower() for f in struct.fields):
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
    parameters: dict[str, JsonValue] = {"oldColumnPath": shown_path(spelled), "newColumnPath": shown_path(target)}
    return Change(with_schema(config, schema, metadata), Operation("RENAME COLUMN", parameters))


def drop_columns(config: TableConfig, paths: Sequence[Path], if_exists: bool = False) -> Change:
    """Drops columns; the files keep their values, unseen.

    Raises:
        InvalidRequest: As for `rename_column`; a partition column (`partition-column`), or the last one of its struct
            (`last-column`).
    """
    spelled = [find_path(config.schema, path)[0] for path in (columns_there(config, paths) if if_exists else paths)]
    schema = config.schema
    for path in spelled:
        ensure_droppable(config, path)
        _ensure_in_struct(schema, path)
        schema = edit_struct(schema, path[:-1], partial(_without, path=path))
    metadata = msgspec.structs.replace(
        config.metadata, configuration=without_columns(config.metadata.configuration, spelled)
    )
    shown = to_json([shown_path(path) for path in spelled])
    return Change(with_schema(config, schema, metadata), Operation("DROP COLUMNS", {"columns": shown}))


def _ensure_in_struct(schema: Struct, path: Path) -> None:
    _, parent, _ = find_path(schema, path[:-1])
    if not isinstance(parent, Struct):
        raise InvalidRequest(
            f"only columns of a struct are dropped, and {'.'.join(path[:-1])!r} is {parent}",
            code="not-a-struct",
            column=".".join(path),
            hint="drop the whole column, or columns of a struct in it",
        )


def ensure_droppable(config: TableConfig, path: Path) -> None:
    """Refuses to drop a column that files or other parts of the description go by.

    Raises:
        InvalidRequest: As for `drop_columns`.
    """
    _ensure_mapped(config, "dropping", ".".join(path))
    if path[0] in config.partition_columns:
        raise InvalidRequest(
            f"{path[0]!r} is a partition column and cannot be dropped", code="partition-column", column=path[0]
        )
    ensure_unreferenced(config, path)


def columns_there(config: TableConfig, paths: Sequence[Path]) -> list[Path]:
    """Those of the paths at which there is a column."""
    found = []
    for path in paths:
        try:
            find_path(config.schema, path)
        except InvalidRequest:
            continue
        found.append(path)
    return found


def _without(struct: Struct, path: Path) -> Struct:
    if len(struct.fields) == 1:
        raise InvalidRequest(
            f"{'.'.join(path)!r} is the only column there and cannot be dropped",
            code="last-column",
            column=".".join(path),
            hint="drop the struct that holds it" if len(path) > 1 else None,
        )
    return Struct(tuple(f for f in struct.fields if f.name.lower() != path[-1].lower()))


def _ensure_mapped(config: TableConfig, doing: str, column: str) -> None:
    if config.mapping_mode == "none":
        raise InvalidRequest(
            f"{doing} a column needs column mapping: the files of the table go by its name",
            code="no-column-mapping",
            column=column,
            hint="set the property delta.columnMapping.mode to name first",
        )

"""REPLACE COLUMNS: the whole list of columns anew, those of the same names staying what they are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from alluvium.delta.description.change_columns import longer_text, widen
from alluvium.delta.description.evolve import Change, to_json, with_schema
from alluvium.delta.description.evolve_columns import ensure_droppable
from alluvium.delta.description.referenced import ensure_unreferenced, without_columns
from alluvium.delta.description.shown_columns import shown_field
from alluvium.delta.features.columns.identity_columns import identities
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Operation
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.edit import Path, find_path
from alluvium.schema.types import Array, DataType, Field, Map, Struct
from alluvium.schema.walk import fields_within


def replace_columns(config: TableConfig, columns: Sequence[Field]) -> Change:
    """Makes a list of columns the table's: they may be moved, commented, made wider and nullable; others are added, or
    dropped, but not both in one struct: it would not be told from a rename.

    Raises:
        InvalidRequest: The table has identity columns (`unsupported-change`); columns come and go at once
            (`ambiguous-change`); as for `add_columns`, `drop_columns` and `alter_columns`.
    """
    if identities(config.schema):
        raise InvalidRequest(
            "the columns of a table with identity columns cannot be replaced",
            code="unsupported-change",
            hint="ADD, ALTER, RENAME and DROP COLUMN change one thing each",
        )
    wanted = Struct(tuple(columns))
    replacing = _Replacing(config, config.schema, [])
    schema = replacing.struct(config.schema, wanted, ())
    metadata = msgspec.structs.replace(
        config.metadata, configuration=without_columns(config.metadata.configuration, replacing.dropped)
    )
    shown = to_json([shown_field(f, (f.name,)) for f in columns])
    return Change(with_schema(config, schema, metadata), Operation("REPLACE COLUMNS", {"columns": shown}))


@dataclass(slots=True)
class _Replacing:
    """A replacement under way.

    Attributes:
        config: The table.
        schema: Its columns with the wider types that were found so far.
        dropped: Paths that go.
    """

    config: TableConfig
    schema: Struct
    dropped: list[Path]

    def struct(self, before: Struct, wanted: Struct, path: Path) -> Struct:
        known = {f.name.lower(): f for f in before.fields}
        told = {f.name.lower() for f in wanted.fields}
        gone = [f for f in before.fields if f.name.lower() not in told]
        new = [f for f in wanted.fields if f.name.lower() not in known]
        if gone and new:
            raise _ambiguous(gone[0], new[0], path)
        for f in gone:
            ensure_droppable(self.config, (*path, f.name))
            self.dropped.append((*path, f.name))
        fields = [self._field(known.get(f.name.lower()), f, path) for f in wanted.fields]
        return Struct(tuple(fields))

    def _field(self, before: Field | None, wanted: Field, path: Path) -> Field:
        if before is None:
            _ensure_nullable(wanted, path)
            return wanted
        here = (*path, before.name)
        if before.nullable and not wanted.nullable:
            raise _tightened(here)
        kind = self._type(before.type, wanted.type, here)
        _, _, widened = find_path(self.schema, here)
        metadata = dict((widened or before).metadata)
        if CHAR_VARCHAR in wanted.metadata or CHAR_VARCHAR in before.metadata:
            text_type = str(wanted.metadata.get(CHAR_VARCHAR, "string"))
            if longer_text(before, text_type, here) is not None:
                metadata[CHAR_VARCHAR] = text_type
        if "comment" in wanted.metadata:
            metadata["comment"] = wanted.metadata["comment"]
        return replace(before, type=kind, nullable=wanted.nullable, metadata=metadata)

    def _type(self, before: DataType, wanted: DataType, path: Path) -> DataType:
        if isinstance(before, Struct) and isinstance(wanted, Struct):
            return self.struct(before, wanted, path)
        if isinstance(before, Array) and isinstance(wanted, Array):
            if before.contains_null and not wanted.contains_null:
                raise _tightened(path)
            return replace(wanted, element=self._type(before.element, wanted.element, (*path, "element")))
        if isinstance(before, Map) and isinstance(wanted, Map):
            if before.value_contains_null and not wanted.value_contains_null:
                raise _tightened(path)
            key = self._type(before.key, wanted.key, (*path, "key"))
            return replace(wanted, key=key, value=self._type(before.value, wanted.value, (*path, "value")))
        if before != wanted:
            ensure_unreferenced(self.config, path)
            self.schema = widen(self.config, self.schema, path, wanted)
        return wanted


def _ensure_nullable(wanted: Field, path: Path) -> None:
    if not wanted.nullable or any(not f.nullable for _, f in fields_within(wanted.type)):
        raise InvalidRequest(
            f"a column that is added cannot be NOT NULL: {'.'.join((*path, wanted.name))}",
            code="not-null-column",
            column=".".join((*path, wanted.name)),
            hint="the rows of the table have no value for it; add it nullable, and a constraint for new rows",
        )


def _tightened(path: Path) -> InvalidRequest:
    return InvalidRequest(
        "a nullable column cannot be made NOT NULL",
        code="not-null-column",
        column=".".join(path),
        hint=f"addConstraint with the condition {'.'.join(path)} is not null checks the rows that are there",
    )


def _ambiguous(gone: Field, new: Field, path: Path) -> InvalidRequest:
    return InvalidRequest(
        f"columns cannot come ({new.name!r}) and go ({gone.name!r}) at once: that would not be told from a rename",
        code="ambiguous-change",
        column=".".join((*path, gone.name)),
        hint="RENAME COLUMN, or drop and add by two statements",
    )

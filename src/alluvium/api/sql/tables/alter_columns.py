"""ALTER TABLE: columns added, changed, renamed, dropped; COMMENT ON COLUMN."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from alluvium.api.delta.alter import Alteration
from alluvium.api.delta.delta_columns import fields_of
from alluvium.api.sql.call import Call, some, texts
from alluvium.delta.description.evolve import Change
from alluvium.delta.description.evolve_columns import NewColumn, add_columns, alter_column, drop_columns, rename_column
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import UnsupportedFeature
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.edit import Position
from alluvium.schema.types import Field
from alluvium.spark.jvm.gateway import Java, JavaObject

_Path = tuple[str, ...]
_ChangeOf = Callable[[TableConfig], Change]


def run(call: Call) -> DataFrame | None:
    """Carries out one of the statements."""
    access = call.table(call.plan.table())
    if access is None:
        return None
    Alteration(access.snapshot, access.engine).apply(_CHANGES[str(call.plan.nodeName())](call))
    return call.nothing()


def _added(call: Call) -> _ChangeOf:
    columns = [_new_column(call.java, column) for column in _members(call.plan.columnsToAdd())]
    return partial(add_columns, columns=columns)


def _renamed(call: Call) -> _ChangeOf:
    return partial(rename_column, path=texts(call.plan.column().name()), new_name=str(call.plan.newName()))


def _dropped(call: Call) -> _ChangeOf:
    paths = [texts(name.name()) for name in _members(call.plan.columnsToDrop())]
    return partial(drop_columns, paths=paths, if_exists=bool(call.plan.ifExists()))


def _altered(call: Call) -> _ChangeOf:
    """`ALTER COLUMN`, `CHANGE COLUMN` and `COMMENT ON COLUMN`.

    Raises:
        UnsupportedFeature: A default, or several columns at once.
    """
    specs = list(_members(call.plan.specs()))
    if len(specs) > 1:
        raise UnsupportedFeature(
            "several columns are altered at once",
            code="unsupported-statement",
            hint="one ALTER TABLE ... ALTER COLUMN for each of them",
        )
    spec = specs[0]
    if some(spec.newDefaultExpression()) is not None or _called(spec, "dropDefault"):
        raise UnsupportedFeature(
            "the default of a column that is there cannot be changed yet",
            code="unsupported-statement",
            column=".".join(texts(spec.column().name())),
            hint="say the default when the column is made, in CREATE TABLE",
        )
    path, nullable, comment = texts(spec.column().name()), some(spec.newNullability()), some(spec.newComment())
    kind = some(spec.newDataType())
    declared = None if kind is None else _field(call.java, path[-1], kind, nullable=True, comment=None)
    text_type = None if declared is None else declared.metadata.get(CHAR_VARCHAR)
    return partial(
        alter_column,
        path=path,
        data_type=None if declared is None else declared.type,
        comment=None if comment is None else str(comment),
        nullable=None if nullable is None else bool(nullable),
        position=_position(spec.newPosition()),
        text_type=text_type if isinstance(text_type, str) else None,
    )


def _replaced(call: Call) -> _ChangeOf:
    raise UnsupportedFeature(
        "REPLACE COLUMNS is not implemented yet",
        code="unsupported-statement",
        hint="ADD, ALTER, RENAME and DROP COLUMN change one thing each",
    )


_CHANGES: dict[str, Callable[[Call], _ChangeOf]] = {
    "AddColumns": _added,
    "AlterColumns": _altered,
    "DropColumns": _dropped,
    "RenameColumn": _renamed,
    "ReplaceColumns": _replaced,
}


def _new_column(java: Java, column: JavaObject) -> NewColumn:
    """A column of ADD COLUMNS; NOT NULL and defaults are for the verb to refuse, or for us.

    Raises:
        UnsupportedFeature: It has a default.
    """
    name, parent = str(column.colName()), some(column.path())
    if some(column.default()) is not None:
        raise UnsupportedFeature(
            "a column that is added cannot have a default",
            code="unsupported-statement",
            column=name,
            hint="rows that are there would have to get it; add the column without",
        )
    comment = some(column.comment())
    field = _field(java, name, column.dataType(), bool(column.nullable()), None if comment is None else str(comment))
    path = (*(() if parent is None else texts(parent.name())), name)
    return NewColumn(path, field, _position(column.position()))


def _field(java: Java, name: str, kind: JavaObject, nullable: bool, comment: str | None) -> Field:
    """A column as the log has it: lengths of texts are metadata there."""
    types = java.jvm.org.apache.spark.sql.types
    fields = java.gateway.new_array(types.StructField, 1)
    made = types.StructField(name, kind, nullable, types.Metadata.empty())
    fields[0] = made if comment is None else made.withComment(comment)
    lengths = java.jvm.org.apache.spark.sql.catalyst.util.CharVarcharUtils
    schema = lengths.replaceCharVarcharWithStringInSchema(types.StructType(fields))
    return fields_of(StructType.fromJson(json.loads(str(schema.json()))))[0]


def _position(option: JavaObject) -> Position | None:
    """`FIRST`, or `AFTER x`."""
    found = some(option)
    if found is None:
        return None
    position = found.position()
    return Position(str(position.column()) if str(position.toString()).startswith("AFTER") else None)


def _members(sequence: JavaObject) -> Iterator[JavaObject]:
    return (sequence.apply(n) for n in range(sequence.size()))


def _called(owner: JavaObject, name: str) -> object:
    """A field that only newer versions of Spark have."""
    names = str(owner.productElementNames().mkString(",")).split(",")
    return owner.productElement(names.index(name)) if name in names else False

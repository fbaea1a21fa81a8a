"""ALTER TABLE: columns added, changed, renamed, dropped, replaced; COMMENT ON COLUMN."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.alter import Alteration
from alluvium.api.delta.delta_access import TableAccess
from alluvium.api.delta.delta_columns import fields_of
from alluvium.api.sql.call import Call, some, texts
from alluvium.delta.description.change_columns import ColumnChange, alter_columns
from alluvium.delta.description.evolve import Change
from alluvium.delta.description.evolve_columns import NewColumn, add_columns, rename_column
from alluvium.delta.description.replace_columns import replace_columns
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.edit import Position, find_path
from alluvium.schema.types import Array, Field, Map, Struct
from alluvium.spark.jvm.gateway import Java, JavaObject
from alluvium.spark.naming.names import sql_type
from alluvium.spark.naming.types import to_spark
from alluvium.spark.sessions.session import java_schema

_Path = tuple[str, ...]
_ChangeOf = Callable[[TableConfig], Change]


def run(call: Call) -> DataFrame | None:
    """Carries out one of the statements."""
    access = call.table(call.plan.table())
    if access is None:
        return None
    alteration, kind = Alteration(access.snapshot, access.engine), str(call.plan.nodeName())
    if kind == "DropColumns":
        paths = [texts(name.name()) for name in _members(call.plan.columnsToDrop())]
        alteration.drop_paths(paths, bool(call.plan.ifExists()))
    elif kind != "AlterColumns" or not _says_nothing(call, access):
        with counterparts("replaceColumns") if kind == "ReplaceColumns" else nullcontext():
            alteration.apply(_CHANGES[kind](call, access))
    return call.nothing()


def _says_nothing(call: Call, access: TableAccess) -> bool:
    """Whether columns are only said to be of the types that they have: then there is nothing to commit."""
    schema = access.snapshot().config.schema
    return all(_is_so(_change(call, spec), schema) for spec in _members(call.plan.specs()))


def _is_so(change: ColumnChange, schema: Struct) -> bool:
    if change.data_type is None or change != ColumnChange(change.path, change.data_type, text_type=change.text_type):
        return False
    _, current, found = find_path(schema, change.path)
    declared = None if found is None else found.metadata.get(CHAR_VARCHAR)
    return current == change.data_type and declared == change.text_type


def _added(call: Call, access: TableAccess) -> _ChangeOf:
    columns = [_new_column(call.java, column) for column in _members(call.plan.columnsToAdd())]
    return partial(add_columns, columns=columns)


def _renamed(call: Call, access: TableAccess) -> _ChangeOf:
    return partial(rename_column, path=texts(call.plan.column().name()), new_name=str(call.plan.newName()))


def _altered(call: Call, access: TableAccess) -> _ChangeOf:
    """`ALTER COLUMN`, `CHANGE COLUMN` and `COMMENT ON COLUMN`, of one column or several."""
    changes = [_change(call, spec) for spec in _members(call.plan.specs())]
    _ensure_surely_cast(call, access.snapshot().config.schema, changes)
    if any(change.default for change in changes):
        _ensure_of_type(call, access.snapshot().config.schema, changes)
    return partial(alter_columns, changes=changes)


#: What Spark says of other types for these.
_BY_PARTS = (
    (Struct, "a struct is changed field by field"),
    (Array, "an array is changed by its element"),
    (Map, "a map is changed by its key or its value"),
)


def _ensure_surely_cast(call: Call, schema: Struct, changes: Sequence[ColumnChange]) -> None:
    """Refuses what Spark refuses of any table, before the table is asked whether it allows wider types.

    Raises:
        InvalidRequest: Values of a column need not be any of its new type (`type-change`).
    """
    for change in changes:
        _, current, _ = find_path(schema, change.path)
        wanted, name = change.data_type, ".".join(change.path)
        if wanted is None or wanted == current:
            continue
        for kind, problem in _BY_PARTS:
            if isinstance(current, kind) and isinstance(wanted, kind):
                raise InvalidRequest(f"{name!r}: {problem}", code="type-change", column=name)
        cast, parse = call.java.cast, call.java.type_of_text
        if not bool(cast.canUpCast(parse(sql_type(current)), parse(sql_type(wanted)))):
            raise InvalidRequest(
                f"the type of a column cannot be changed from {current} to {wanted}: its values need not be any of it",
                code="type-change",
                column=name,
                hint="only to a wider type",
            )


def _change(call: Call, spec: JavaObject) -> ColumnChange:
    path, nullable, comment = texts(spec.column().name()), some(spec.newNullability()), some(spec.newComment())
    kind = some(spec.newDataType())
    declared = None if kind is None else _field(call.java, path[-1], kind, nullable=True, comment=None)
    text_type = None if declared is None else declared.metadata.get(CHAR_VARCHAR)
    return ColumnChange(
        path,
        data_type=None if declared is None else declared.type,
        comment=None if comment is None else str(comment),
        nullable=None if nullable is None else bool(nullable),
        position=_position(spec.newPosition()),
        text_type=text_type if isinstance(text_type, str) else None,
        default=_default(spec),
        drops_comment=bool(_called(spec, "dropComment")),
    )


def _default(spec: JavaObject) -> str | None:
    """SQL of `SET DEFAULT`; an empty text for `DROP DEFAULT`, as Spark 4.0 has it; None: nothing is said of it."""
    if _called(spec, "dropDefault"):
        return ""
    said = some(spec.newDefaultExpression())
    return said if said is None or isinstance(said, str) else str(said.originalSQL())


def _ensure_of_type(call: Call, schema: Struct, changes: Sequence[ColumnChange]) -> None:
    """Lets Spark judge new defaults as it judges those of its own tables: their types, queries, columns.

    Raises:
        AnalysisException: Spark's own.
    """
    judge = call.java.jvm.org.apache.spark.sql.catalyst.util.ResolveDefaultColumns
    for change in changes:
        if change.default and len(change.path) == 1:
            _, _, found = find_path(schema, change.path)
            if found is not None:
                kind = java_schema(call.spark, to_spark(Struct((found,)))).apply(0).dataType()
                judge.analyze(found.name, kind, change.default, "ALTER TABLE ALTER COLUMN")


def _replaced(call: Call, access: TableAccess) -> _ChangeOf:
    columns = [_new_column(call.java, column).field for column in _members(call.plan.columnsToAdd())]
    return partial(replace_columns, columns=columns)


_CHANGES: dict[str, Callable[[Call, TableAccess], _ChangeOf]] = {
    "AddColumns": _added,
    "AlterColumns": _altered,
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

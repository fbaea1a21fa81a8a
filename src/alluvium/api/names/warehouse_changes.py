"""Changes of a table as Spark's catalog interface has them, as Paimon's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql.types import StructField, StructType

from alluvium.errors import UnsupportedFeature
from alluvium.paimon.schema.changes import SchemaChange
from alluvium.paimon.schema.logical import fields_from_logical
from alluvium.paimon.schema.types import DataType
from alluvium.spark.jvm.gateway import JavaObject
from alluvium.spark.naming.types import from_spark_declared

_OF_COLUMNS = (
    "AddColumn", "DeleteColumn", "RenameColumn", "UpdateColumnType", "UpdateColumnNullability", "UpdateColumnComment",
    "UpdateColumnPosition",
)  # fmt: skip


def changes_of(change: JavaObject, spark_type: Callable[[JavaObject], object]) -> Iterator[SchemaChange]:
    """The changes that one of Spark's stands for.

    Args:
        change: A `TableChange`.
        spark_type: From a type of the JVM to PySpark's.

    Raises:
        UnsupportedFeature: Paimon's tables do not know it.
    """
    kind = str(change.getClass().getSimpleName())
    if kind == "SetProperty":
        key, value = str(change.property()), str(change.value())
        yield SchemaChange.update_comment(value) if key == "comment" else SchemaChange.set_option(key, value)
    elif kind == "RemoveProperty":
        key = str(change.property())
        yield SchemaChange.update_comment(None) if key == "comment" else SchemaChange.remove_option(key)
    elif kind in _OF_COLUMNS:
        yield from _of_column(kind, change, spark_type)
    else:
        raise _unknown(kind)


def _of_column(kind: str, change: JavaObject, spark_type: Callable[[JavaObject], object]) -> Iterator[SchemaChange]:
    column = tuple(str(part) for part in change.fieldNames())
    if kind == "AddColumn":
        if change.defaultValue() is not None:
            raise _unsupported(
                f"the default of a new column {'.'.join(column)!r}",
                "DEFAULT",
                "add the column, then PaimonTable.alter([SchemaChange.update_column_default(column, text)])",
            )
        type_ = _type(spark_type(change.dataType())).with_nullable(bool(change.isNullable()))
        comment = change.comment()
        yield SchemaChange.add_column(column, type_, None if comment is None else str(comment), **_where(change))
    elif kind == "DeleteColumn":
        yield SchemaChange.drop_column(column)
    elif kind == "RenameColumn":
        yield SchemaChange.rename_column(column, str(change.newName()))
    elif kind == "UpdateColumnType":
        yield SchemaChange.update_column_type(column, _type(spark_type(change.newDataType())), keep_nullability=True)
    elif kind == "UpdateColumnNullability":
        yield SchemaChange.update_column_nullability(column, bool(change.nullable()))
    elif kind == "UpdateColumnComment":
        yield SchemaChange.update_column_comment(column, str(change.newComment()))
    elif len(column) > 1:
        raise _unsupported(f"another place for {'.'.join(column)!r} in its struct", kind, "drop it, and add it there")
    else:
        yield SchemaChange.update_column_position(column[0], **_where(change))


def _where(change: JavaObject) -> dict[str, Any]:
    position = change.position()
    if position is None:
        return {}
    if str(position.getClass().getSimpleName()) == "First":
        return {"first": True}
    return {"after": str(position.column())}


def _type(given: object) -> DataType:
    column = StructField("x", given)  # type: ignore[arg-type]
    return fields_from_logical(from_spark_declared(StructType([column])))[0].type


def _unknown(kind: str) -> UnsupportedFeature:
    return _unsupported(f"a change of a table by {kind}", kind, "PaimonTable.alter([...])")


def _unsupported(what: str, feature: str, hint: str) -> UnsupportedFeature:
    return UnsupportedFeature(what, code="unsupported-statement", features=(feature,), hint=hint)

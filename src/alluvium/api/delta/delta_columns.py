"""Columns as callers of DeltaTable give them: names with types, PySpark fields, the column builder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import types as s

from alluvium.api.delta.delta_errors import UnknownType, WrongValue
from alluvium.errors import InvalidRequest, UnsupportedFeature, WrongType
from alluvium.schema.ddl import CHAR_VARCHAR, parse_ddl_type
from alluvium.schema.types import DataType, Field, JsonValue, Struct
from alluvium.spark.naming.types import from_spark, has_length

GENERATION = "delta.generationExpression"
IDENTITY = "delta.identity."
#: The collation of texts without one.
_BINARY = "UTF8_BINARY"


@dataclass
class IdentityGenerator:
    """How an identity column counts.

    Attributes:
        start: The first value.
        step: From each value to the next; not 0.
    """

    start: int = 1
    step: int = 1


class DeltaColumnBuilder:
    """A column for `DeltaTableBuilder.addColumn`; made by `DeltaTable.columnBuilder`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._type: str | s.DataType | None = None
        self._nullable = True
        self._metadata: dict[str, JsonValue] = {}

    def dataType(self, dataType: str | s.DataType) -> DeltaColumnBuilder:
        """The type, as SQL text or a PySpark type."""
        self._type = dataType
        return self

    def nullable(self, nullable: bool) -> DeltaColumnBuilder:
        """Whether values may be null."""
        self._nullable = nullable
        return self

    def comment(self, comment: str) -> DeltaColumnBuilder:
        """A comment on the column."""
        self._metadata["comment"] = comment
        return self

    def generatedAlwaysAs(self, expr: str) -> DeltaColumnBuilder:
        """The value is computed from other columns of the row."""
        self._metadata[GENERATION] = expr
        return self

    def generatedAlwaysAsIdentity(self, start: int = 1, step: int = 1) -> DeltaColumnBuilder:
        """The value counts; it is never given."""
        return self._identity(start, step, allow_explicit=False)

    def generatedByDefaultAsIdentity(self, start: int = 1, step: int = 1) -> DeltaColumnBuilder:
        """The value counts where it is not given."""
        return self._identity(start, step, allow_explicit=True)

    def build(self) -> Field:
        """The column.

        Raises:
            InvalidRequest: It has no type, or is generated in two ways.
        """
        if self._type is None:
            raise WrongValue(f"column {self._name!r} has no type", code="invalid-type", column=self._name)
        if GENERATION in self._metadata and f"{IDENTITY}start" in self._metadata:
            raise WrongValue("a column is generated or an identity, not both", code="contradicting-options")
        found = field_of(self._name, self._type, self._nullable)
        return Field(found.name, found.type, found.nullable, {**found.metadata, **self._metadata})

    def _identity(self, start: int, step: int, allow_explicit: bool) -> DeltaColumnBuilder:
        if step == 0:
            raise WrongValue("Column identity generation requires step to be non-zero.", code="invalid-identity")
        self._metadata[f"{IDENTITY}start"] = start
        self._metadata[f"{IDENTITY}step"] = step
        self._metadata[f"{IDENTITY}allowExplicitInsert"] = allow_explicit
        return self


def field_of(name: str, data_type: str | s.DataType, nullable: bool = True) -> Field:
    """A column out of a name and a type.

    Raises:
        InvalidRequest: The text is no type (a ParseException, too).
    """
    if isinstance(data_type, str):
        try:
            declared = parse_ddl_type(data_type)
        except InvalidRequest as error:
            raise UnknownType(error.message, code=error.code, column=name, hint=error.hint) from None
        return Field(name, declared.type, nullable, declared.metadata)
    return Field(name, from_spark(data_type, name), nullable, _lengths(data_type))


def fields_of(cols: s.StructType | Sequence[s.StructField]) -> tuple[Field, ...]:
    """PySpark's fields as ours.

    Raises:
        InvalidRequest: Something else than fields (a TypeError, too).
    """
    if isinstance(cols, list):
        for col in cols:
            if type(col) is not s.StructField:
                raise WrongType(f"Column in existing schema must be StructField. Found {col!r}")
        cols = s.StructType(cols)
    if type(cols) is not s.StructType:
        raise WrongType(f"Schema must be StructType or a list of StructField. Found {cols!r}")
    struct = from_spark(cols)
    assert isinstance(struct, Struct)
    for col in cols.fields:
        _ensure_binary(col.dataType, col.name)
    return tuple(
        Field(f.name, f.type, f.nullable, {**_lengths(col.dataType), **f.metadata})
        for f, col in zip(struct.fields, cols.fields, strict=True)
    )


def _ensure_binary(data_type: s.DataType, column: str) -> None:
    """Refuses texts that are compared by other rules than their bytes, as the reference does: tables forget them.

    Raises:
        UnsupportedFeature: There are such.
    """
    if isinstance(data_type, s.StructType):
        for f in data_type.fields:
            _ensure_binary(f.dataType, f"{column}.{f.name}")
    elif isinstance(data_type, s.ArrayType):
        _ensure_binary(data_type.elementType, column)
    elif isinstance(data_type, s.MapType):
        _ensure_binary(data_type.keyType, column)
        _ensure_binary(data_type.valueType, column)
    elif getattr(data_type, "collation", _BINARY) != _BINARY:
        raise UnsupportedFeature(
            f"no table can hold values of the Spark type {data_type.simpleString()}",
            code="unsupported-type",
            column=column,
            hint="leave the collation out, and say it where texts are compared: a COLLATE UTF8_LCASE = 'x'",
        )


def named_types(columns: Mapping[str, str | s.DataType]) -> dict[str, str | DataType]:
    """Types by dotted name, PySpark's as ours."""
    return {
        name: t.simpleString() if isinstance(t, s.DataType) and has_length(t) else our_type(t)
        for name, t in columns.items()
    }


def our_type(data_type: str | s.DataType) -> str | DataType:
    """A type as SQL text or as ours."""
    return from_spark(data_type) if isinstance(data_type, s.DataType) else data_type


def _lengths(data_type: s.DataType) -> dict[str, JsonValue]:
    return {CHAR_VARCHAR: data_type.simpleString()} if has_length(data_type) else {}

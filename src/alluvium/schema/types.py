"""Data types of the logical schema: immutable values with structural equality."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"

# Spark's simple names where they differ from the names in the schema JSON.
_SIMPLE = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parameters, under its name in the schema JSON (`"long"`, `"timestamp_ntz"`)."""

    name: str

    def __str__(self) -> str:
        return _SIMPLE.get(self.name, self.name)


@dataclass(frozen=True, slots=True)
class Decimal:
    """Exact number of `precision` digits, `scale` of them behind the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    element: DataType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    key: DataType
    value: DataType
    value_contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """A column or struct member; `metadata` is the format's, kept whole."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, JsonValue] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{'' if self.nullable else ' not null'}"


@dataclass(frozen=True, slots=True)
class Struct:
    """An ordered set of fields; also the schema of a table."""

    fields: tuple[Field, ...] = ()

    def __str__(self) -> str:
        return f"struct<{','.join(f'{f.name}:{f.type}' for f in self.fields)}>"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    def find(self, name: str) -> Field | None:
        """The field of that name: exact first, then without regard to case (Spark's default)."""
        folded = None
        for f in self.fields:
            if f.name == name:
                return f
            if folded is None and f.name.lower() == name.lower():
                folded = f
        return folded

    def find_path(self, path: tuple[str, ...]) -> Field | None:
        """The field at a path through structs (not through arrays or maps)."""
        current: DataType = self
        found: Field | None = None
        for name in path:
            if not isinstance(current, Struct):
                return None
            found = current.find(name)
            if found is None:
                return None
            current = found.type
        return found

    def leaves(self, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
        """Depth first: every field that is not a struct, with its path. Arrays and maps are leaves."""
        for f in self.fields:
            path = (*prefix, f.name)
            if isinstance(f.type, Struct):
                yield from f.type.leaves(path)
            else:
                yield path, f

    def tree(self) -> str:
        """The schema as Spark's `printSchema` draws it."""
        return "\n".join(["root", *_tree(self, " |-- ")])


DataType: TypeAlias = "Primitive | Decimal | Array | Map | Struct"

STRING = Primitive("string")
#: In a field's metadata: by which collations Spark compares its texts, where that is not by their bytes.
COLLATIONS = "__COLLATIONS"
LONG = Primitive("long")
INTEGER = Primitive("integer")
SHORT = Primitive("short")
BYTE = Primitive("byte")
FLOAT = Primitive("float")
DOUBLE = Primitive("double")
BOOLEAN = Primitive("boolean")
BINARY = Primitive("binary")
DATE = Primitive("date")
TIMESTAMP = Primitive("timestamp")
TIMESTAMP_NTZ = Primitive("timestamp_ntz")
VOID = Primitive("void")
VARIANT = Primitive("variant")
#: Types of formats that are finer than Spark: their values are cut, or are numbers, where Spark reads them. They have
#: no name in Spark's JSON form of a schema, so they are not among `PRIMITIVES`.
TIME = Primitive("time")
TIMESTAMP_NANOS = Primitive("timestamp_nanos")
TIMESTAMP_NTZ_NANOS = Primitive("timestamp_ntz_nanos")

PRIMITIVES: Mapping[str, Primitive] = {
    t.name: t
    for t in (
        STRING, LONG, INTEGER, SHORT, BYTE, FLOAT, DOUBLE, BOOLEAN, BINARY, DATE, TIMESTAMP,
        TIMESTAMP_NTZ, VOID, VARIANT,
    )
}  # fmt: skip

INTEGRAL = (BYTE, SHORT, INTEGER, LONG)
FLOATING = (FLOAT, DOUBLE)


def _name(data_type: DataType) -> str:
    if isinstance(data_type, Struct):
        return "struct"
    if isinstance(data_type, Array):
        return "array"
    if isinstance(data_type, Map):
        return "map"
    # Here Spark says `long`, where it says `bigint` elsewhere.
    return data_type.name if isinstance(data_type, Primitive) else str(data_type)


def _tree(struct: Struct, indent: str) -> Iterator[str]:
    for f in struct.fields:
        yield f"{indent}{f.name}: {_name(f.type)} (nullable = {str(f.nullable).lower()})"
        yield from _children(f.type, " |   " + indent)


def _children(data_type: DataType, indent: str) -> Iterator[str]:
    if isinstance(data_type, Struct):
        yield from _tree(data_type, indent)
    elif isinstance(data_type, Array):
        nullable = str(data_type.contains_null).lower()
        yield f"{indent}element: {_name(data_type.element)} (containsNull = {nullable})"
        yield from _children(data_type.element, " |   " + indent)
    elif isinstance(data_type, Map):
        nullable = str(data_type.value_contains_null).lower()
        yield f"{indent}key: {_name(data_type.key)}"
        yield from _children(data_type.key, " |   " + indent)
        yield f"{indent}value: {_name(data_type.value)} (valueContainsNull = {nullable})"
        yield from _children(data_type.value, " |   " + indent)

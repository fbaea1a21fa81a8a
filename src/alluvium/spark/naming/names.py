"""From the names in the files to the names of the table: schemas, select lists, and filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from alluvium.errors import UnsupportedFeature
from alluvium.expr import tree
from alluvium.expr.tree import Expression
from alluvium.plan.scan import (
    FIELD_ID,
    Coalesce,
    ColumnValue,
    Converted,
    FileConstant,
    Literal,
    OutputColumn,
    Physical,
    RowPosition,
    ScanPart,
    Sum,
)
from alluvium.schema import types as t
from alluvium.schema.text_lengths import metadata_for
from alluvium.schema.types import Array, DataType, Field, Map, Struct
from alluvium.schema.walk import as_nullable

LogicalPaths = Mapping[tuple[str, ...], tree.Column]


def nullable_schema(schema: Struct) -> Struct:
    """`as_nullable` of a schema."""
    return Struct(tuple(replace(f, type=as_nullable(f.type), nullable=True) for f in schema.fields))


def plain(data_type: DataType) -> DataType:
    """The type without metadata and nullability, for comparison."""
    if isinstance(data_type, Struct):
        return Struct(tuple(Field(f.name, plain(f.type)) for f in data_type.fields))
    if isinstance(data_type, Array):
        return Array(plain(data_type.element))
    return Map(plain(data_type.key), plain(data_type.value)) if isinstance(data_type, Map) else data_type


def data_schema(part: ScanPart, logical: Struct) -> Struct:
    """The columns to read from the files; those that are table columns as they stand carry the table's metadata."""
    shown = {c.value.path[0]: c for c in part.output if isinstance(c.value, Physical) and len(c.value.path) == 1}
    fields = []
    for f in part.read_schema.fields:
        column = shown.get(f.name)
        known = logical.find(column.name) if column else None
        if known is None:
            fields.append(f)
        elif FIELD_ID in f.metadata:
            # Spark's reader finds the column by the number; structs in it carry theirs.
            fields.append(replace(f, metadata={**metadata_for(known, f.type), **f.metadata}))
        elif plain(known.type) == plain(f.type):
            fields.append(Field(f.name, known.type, known.nullable, metadata_for(known, f.type)))
        else:
            fields.append(replace(f, metadata=metadata_for(known, f.type)))
    found = Struct(tuple(fields))
    return nullable_schema(found)


def constant_schema(part: ScanPart, logical: Struct) -> Struct:
    """The columns that are one value a file: the relation's partition columns."""
    found: dict[str, Field] = {}
    for column in part.output:
        for value in leaves(column.value):
            if isinstance(value, FileConstant) and value.name not in found:
                known = logical.find(column.name) if value is column.value else None
                found[value.name] = Field(value.name, value.type, True, known.metadata if known else {})
    return Struct(tuple(found.values()))


def leaves(value: ColumnValue) -> Iterator[ColumnValue]:
    """What a column is made of."""
    if isinstance(value, (Coalesce, Sum)):
        for operand in value.values:
            yield from leaves(operand)
    elif isinstance(value, Converted):
        yield from leaves(value.value)
    else:
        yield value


@dataclass(frozen=True, slots=True)
class Selected:
    """A column of the result.

    Attributes:
        sql: Spark SQL over the relation's columns.
        cast_to: The type that it is cast to; None where it has the right one.
        name: Of the column.
    """

    sql: str
    cast_to: DataType | None
    name: str


def select_list(part: ScanPart, relation: Struct) -> list[Selected] | None:
    """The result's columns over the relation's; None where they are the same."""
    same = len(relation.fields) == len(part.output) and all(
        isinstance(column.value, (Physical, FileConstant))
        and _relation_path(column.value) == (f.name,)
        and column.name == f.name
        and plain(column.type) == plain(f.type)
        for column, f in zip(part.output, relation.fields, strict=True)
    )
    return None if same else [_select(column) for column in part.output]


def _relation_path(value: Physical | FileConstant) -> tuple[str, ...]:
    return value.path if isinstance(value, Physical) else (value.name,)


def _select(column: OutputColumn) -> Selected:
    same = plain(_type(column.value)) == plain(column.type)
    return Selected(_sql(column.value), None if same else column.type, column.name)


def _sql(value: ColumnValue) -> str:
    if isinstance(value, (Physical, FileConstant)):
        return ".".join(quote(name) for name in _relation_path(value))
    if isinstance(value, RowPosition):
        return "_metadata.row_index"
    if isinstance(value, Coalesce):
        return f"coalesce({', '.join(_sql(v) for v in value.values)})"
    if isinstance(value, Sum):
        return f"({' + '.join(_sql(v) for v in value.values)})"
    if isinstance(value, Converted):
        text = value.conversion.sql(_sql(value.value))
        if text is None:
            raise UnsupportedFeature(
                f"values that change their type to {value.type} by rules that Spark does not have",
                code="unsupported-conversion",
                features=("conversion",),
                hint="read the table without Spark: alluvium.open(url).to_arrow()",
            )
        return text
    return f"cast({_literal(value)} as {sql_type(value.type)})"


def _type(value: ColumnValue) -> DataType:
    if isinstance(value, (Physical, FileConstant, Literal, Converted)):
        return value.type
    return t.LONG if isinstance(value, (RowPosition, Sum)) else _type(value.values[0])


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(literal.type, (Array, Map, Struct)):
        raise UnsupportedFeature(f"a constant of type {literal.type} cannot be read", code="unsupported-literal")
    if literal.type == t.TIMESTAMP and hasattr(value, "isoformat"):
        # Aware, so its offset is in the text, and the session's time zone has no say.
        return quote_text(value.isoformat(sep=" "))
    return quote_text(str(value))


def quote(name: str) -> str:
    """An identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def unused_name(name: str, taken: Iterable[str]) -> str:
    """The name, with as many underscores behind it as make it differ from all others even where case does not count."""
    folded = {other.lower() for other in taken}
    while name.lower() in folded:
        name += "_"
    return name


def quote_text(text: str) -> str:
    """A constant text of Spark SQL, whatever the session makes of backslashes, and of `${...}`."""
    if "'" in text or "\\" in text:
        return f"cast(X'{text.encode('utf-8', 'surrogatepass').hex()}' as string)"
    # Spark joins texts that follow each other, once it has put values in place of `${...}`.
    return "'" + text.replace("${", "$' '{") + "'"


def sql_type(data_type: DataType) -> str:
    """The type as Spark SQL spells it whatever the session takes `timestamp` for, with names quoted."""
    if isinstance(data_type, Struct):
        return f"struct<{', '.join(f'{quote(f.name)}: {sql_type(f.type)}' for f in data_type.fields)}>"
    if isinstance(data_type, Array):
        return f"array<{sql_type(data_type.element)}>"
    if isinstance(data_type, Map):
        return f"map<{sql_type(data_type.key)}, {sql_type(data_type.value)}>"
    # `timestamp` is what `spark.sql.timestampType` says.
    return "timestamp_ltz" if data_type == t.TIMESTAMP else str(data_type)


def logical_paths(part: ScanPart) -> LogicalPaths:
    """Paths in the relation -> paths and types in the table, for the columns that are passed on as they are."""
    found: dict[tuple[str, ...], tree.Column] = {}
    for column in part.output:
        if isinstance(column.value, (Physical, FileConstant)):
            path = _relation_path(column.value)
            found.update(_pairs(path, column.value.type, (column.name,), column.type))
    return found


def _pairs(
    path: tuple[str, ...], data_type: DataType, logical_path: tuple[str, ...], logical_type: DataType
) -> Iterator[tuple[tuple[str, ...], tree.Column]]:
    yield path, tree.Column(logical_path, logical_type)
    if isinstance(data_type, Struct) and isinstance(logical_type, Struct):
        for f, logical in zip(data_type.fields, logical_type.fields, strict=False):
            yield from _pairs((*path, f.name), f.type, (*logical_path, logical.name), logical.type)


def to_logical(node: Expression, paths: LogicalPaths) -> Expression:
    """The filter over the table's columns; what stands on other columns becomes `Unknown`."""
    if isinstance(node, tree.Column):
        known = paths.get(node.path)
        if known is None:
            return tree.Unknown(".".join(node.path))
        return known if node.char_length is None else replace(known, char_length=node.char_length)
    return tree.with_children(node, lambda child: to_logical(child, paths))

"""The text of a CREATE TABLE, of what it is to make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from alluvium.api.delta.creation.request import Wanted
from alluvium.api.delta.delta_columns import GENERATION, IDENTITY
from alluvium.delta.features.columns.column_defaults import KEY as DEFAULT
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Primitive, Struct
from alluvium.spark.naming.names import quote

_TYPES: Mapping[str, str] = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}


def statement_text(name: str, wanted: Wanted, location: str | None = None) -> str:
    """A statement that makes the table.

    Args:
        name: As it stands in the statement.
        wanted: The table; its clustering columns are quoted.
        location: Where its files are, if that is to be said.
    """
    columns = ",\n".join(f"  {_column(f)}" for f in wanted.columns)
    lines = [f"CREATE TABLE {name} (", f"{columns})" if columns else ")", "USING delta"]
    if wanted.partition_by:
        lines.append(f"PARTITIONED BY ({', '.join(map(quote, wanted.partition_by))})")
    if wanted.cluster_by:
        lines.append(f"CLUSTER BY ({', '.join(wanted.cluster_by)})")
    if location is not None:
        lines.append(f"LOCATION {_text(location)}")
    if wanted.comment is not None:
        lines.append(f"COMMENT {_text(wanted.comment)}")
    if wanted.properties:
        shown = ",\n".join(f"  {_text(key)} = {_text(value)}" for key, value in sorted(wanted.properties.items()))
        lines.append(f"TBLPROPERTIES (\n{shown})")
    return "\n".join(lines) + "\n"


def _column(f: Field) -> str:
    return " ".join([quote(f.name), _declared(f), *_clauses(f)])


def _clauses(f: Field) -> Iterator[str]:
    if not f.nullable:
        yield "NOT NULL"
    if DEFAULT in f.metadata:
        yield f"DEFAULT {f.metadata[DEFAULT]}"
    if GENERATION in f.metadata:
        yield f"GENERATED ALWAYS AS ({f.metadata[GENERATION]})"
    if f"{IDENTITY}start" in f.metadata:
        how = "BY DEFAULT" if f.metadata.get(f"{IDENTITY}allowExplicitInsert") else "ALWAYS"
        start, step = f.metadata[f"{IDENTITY}start"], f.metadata.get(f"{IDENTITY}step")
        yield f"GENERATED {how} AS IDENTITY (START WITH {start} INCREMENT BY {step})"
    if "comment" in f.metadata:
        yield f"COMMENT {_text(str(f.metadata['comment']))}"


def _declared(f: Field) -> str:
    """The type, with the lengths of texts that it was declared with; these are told of the column as a whole."""
    said = f.metadata.get(CHAR_VARCHAR)
    if not isinstance(said, str):
        return _type(f.type)
    return said.upper() if isinstance(f.type, Primitive) else said


def _type(data_type: DataType) -> str:
    if isinstance(data_type, Struct):
        return f"STRUCT<{', '.join(map(_member, data_type.fields))}>"
    if isinstance(data_type, Array):
        return f"ARRAY<{_type(data_type.element)}>"
    if isinstance(data_type, Map):
        return f"MAP<{_type(data_type.key)}, {_type(data_type.value)}>"
    if isinstance(data_type, Decimal):
        return f"DECIMAL({data_type.precision},{data_type.scale})"
    return _TYPES.get(data_type.name, data_type.name.upper())


def _member(f: Field) -> str:
    words = [f"{quote(f.name)}: {_declared(f)}"]
    if not f.nullable:
        words.append("NOT NULL")
    if "comment" in f.metadata:
        words.append(f"COMMENT {_text(str(f.metadata['comment']))}")
    return " ".join(words)


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

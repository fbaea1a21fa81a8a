"""Columns as the history shows them: under the keys, and with the omissions, of the reference."""

from __future__ import annotations

from alluvium.delta.description.scala_order import as_a_map_has
from alluvium.delta.features.columns.column_defaults import KEY as DEFAULT
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.edit import Path
from alluvium.schema.spark_json import format_field
from alluvium.schema.types import Array, DataType, Field, JsonValue, Map, Struct


def shown_path(path: Path) -> str:
    """A column, or a field within one, as the reference names it: parts with a dot in backticks."""
    return ".".join(f"`{part}`" if "." in part else part for part in path)


def type_name(data_type: DataType) -> str:
    """A type without parts as the schema's JSON names it."""
    if isinstance(data_type, Struct):
        return "struct"
    if isinstance(data_type, Array):
        return "array"
    if isinstance(data_type, Map):
        return "map"
    return str(format_field(Field("", data_type))["type"])


def shown_change(f: Field, path: Path, before: Field | None) -> dict[str, JsonValue]:
    """A changed column as the history shows it: all that its metadata said before, and what is said anew."""
    goes = (DEFAULT, "comment", CHAR_VARCHAR)
    known = {} if before is None else {k: v for k, v in before.metadata.items() if k not in goes or k in f.metadata}
    new = {key: f.metadata[key] for key in ("comment", CHAR_VARCHAR, DEFAULT) if key in f.metadata}
    said = {**known, **new}
    return {
        **shown_field(f, path),
        "metadata": {key: said[key] for key in as_a_map_has(said)},
        "type": type_name(f.type),
    }


def shown_field(f: Field, path: Path) -> dict[str, JsonValue]:
    """A column as the history shows it: what mapping and widening keep to themselves is left out."""
    declared = f.metadata.get(CHAR_VARCHAR)
    metadata = {k: v for k, v in f.metadata.items() if not k.startswith("delta.") and k != CHAR_VARCHAR}
    shown_type = declared if isinstance(declared, str) else type_name(f.type)
    return {"name": shown_path(path), "type": shown_type, "nullable": f.nullable, "metadata": metadata}

"""Schema files as the reader needs them: columns by id, keys, options after the compatibility rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from alluvium.errors import CorruptTable
from alluvium.paimon.column_types import ColumnField, ColumnType, logical_field
from alluvium.schema.types import Struct

_TEXT_TYPE = re.compile(r"\s*([A-Z_ ]+?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\s*([A-Z ]*?))?\s*")
_ROOTS = {
    "INT": "INTEGER", "STRING": "VARCHAR", "BYTES": "VARBINARY", "NUMERIC": "DECIMAL", "DEC": "DECIMAL",
    "DOUBLE PRECISION": "DOUBLE", "TIME": "TIME_WITHOUT_TIME_ZONE", "TIMESTAMP": "TIMESTAMP_WITHOUT_TIME_ZONE",
    "TIMESTAMP_LTZ": "TIMESTAMP_WITH_LOCAL_TIME_ZONE", "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP_WITHOUT_TIME_ZONE",
    "TIME WITHOUT TIME ZONE": "TIME_WITHOUT_TIME_ZONE",
    "TIMESTAMP WITH LOCAL TIME ZONE": "TIMESTAMP_WITH_LOCAL_TIME_ZONE",
}  # fmt: skip
_PLAIN = {
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "CHAR", "VARCHAR", "BINARY", "VARBINARY",
    "BLOB", "DATE", "TIME_WITHOUT_TIME_ZONE", "TIMESTAMP_WITHOUT_TIME_ZONE", "TIMESTAMP_WITH_LOCAL_TIME_ZONE",
    "VARIANT", "DECIMAL", "GEOMETRY", "GEOGRAPHY",
}  # fmt: skip
_LENGTHS = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")
_MAX_LENGTH = 2_147_483_647
_DEFAULT_PRECISION = {"DECIMAL": 10, "TIMESTAMP_WITHOUT_TIME_ZONE": 6, "TIMESTAMP_WITH_LOCAL_TIME_ZONE": 6}
_VECTOR = re.compile(r"\s*VECTOR\s*<(.*),\s*(\d+)\s*>\s*(NOT NULL|NULL)?\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One version of a table's schema; options are after the compatibility rules of old versions."""

    id: int
    fields: tuple[ColumnField, ...]
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str]
    comment: str | None = None
    time_millis: int = 0

    @property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The primary key without the partition keys: what sorts the rows of a bucket."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    @property
    def bucket_keys(self) -> tuple[str, ...]:
        named = tuple(part.strip() for part in self.options.get("bucket-key", "").split(",") if part.strip())
        return named or self.trimmed_primary_keys

    @property
    def logical(self) -> Struct:
        """The columns as plans know them."""
        return Struct(tuple(logical_field(f) for f in self.fields))

    def find(self, name: str) -> ColumnField | None:
        return next((f for f in self.fields if f.name == name), None)

    @property
    def by_id(self) -> Mapping[int, ColumnField]:
        return {f.id: f for f in self.fields}


def parse_table_schema(data: bytes) -> TableSchema:
    """Parses a `schema-N` file.

    Raises:
        CorruptTable: It is no schema.
    """
    try:
        document = msgspec.json.decode(data)
        options = dict(document["options"])
        version = document.get("version", 1)
        if version <= 1:
            options.setdefault("bucket", "1")
        if version <= 2:
            options.setdefault("file.format", "orc")
        return TableSchema(
            document["id"],
            tuple(_field(f, i) for i, f in enumerate(document["fields"])),
            tuple(document.get("partitionKeys") or ()),
            tuple(document.get("primaryKeys") or ()),
            options,
            document.get("comment"),
            document.get("timeMillis", 0),
        )
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptTable(f"the schema cannot be parsed: {error}", code="invalid-schema") from None


def _field(node: dict[str, object], running: int) -> ColumnField:
    number = node.get("id", running)
    if not isinstance(number, int):
        raise CorruptTable(f"a field's id is {number!r}", code="invalid-schema")
    return ColumnField(number, str(node["name"]), parse_type(node["type"]))


def parse_type(node: object) -> ColumnType:
    if isinstance(node, str):
        return _text_type(node)
    if not isinstance(node, dict):
        raise CorruptTable(f"{node!r} is no type", code="invalid-schema")
    text = str(node["type"]).upper()
    nullable = "NOT NULL" not in text
    for root in ("ARRAY", "MULTISET", "VECTOR"):
        if text.startswith(root):
            return ColumnType(root, nullable, int(node.get("length", 0)), element=parse_type(node["element"]))
    if text.startswith("MAP"):
        return ColumnType("MAP", nullable, key=parse_type(node["key"]), value=parse_type(node["value"]))
    if text.startswith("ROW"):
        return ColumnType("ROW", nullable, fields=tuple(_field(f, i) for i, f in enumerate(node["fields"])))
    raise CorruptTable(f"unknown type {text!r}", code="invalid-schema")


def _text_type(text: str) -> ColumnType:
    if vector := _VECTOR.fullmatch(text):
        return ColumnType("VECTOR", vector[3] != "NOT NULL", int(vector[2]), element=_text_type(vector[1]))
    upper = " ".join(text.upper().split())
    nullable = not upper.endswith("NOT NULL")
    bare = re.sub(r"(?:NOT )?NULL$", "", upper).strip()
    for root in ("ARRAY", "MULTISET"):
        if bare.endswith(" " + root):
            return ColumnType(root, nullable, element=_text_type(bare[: -len(root)]))
    match = _TEXT_TYPE.fullmatch(bare)
    name = " ".join(part for part in (match[1], match[4]) if part) if match else bare
    root = _ROOTS.get(name, name)
    if match is None or root not in _PLAIN:
        raise CorruptTable(f"unknown type {text!r}", code="invalid-schema")
    first, second = (int(match[i]) if match[i] else None for i in (2, 3))
    if root in _LENGTHS:
        return ColumnType(root, nullable, first or (_MAX_LENGTH if name in ("STRING", "BYTES") else 1))
    precision = _DEFAULT_PRECISION.get(root, 0) if first is None else first
    return ColumnType(root, nullable, precision=precision, scale=second or 0)

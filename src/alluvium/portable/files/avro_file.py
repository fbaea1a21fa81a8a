"""One Avro file as record batches. Avro has no columns to choose from, so a file is decoded whole."""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from alluvium.codecs.avro.avro_container import read_avro
from alluvium.errors import UnsupportedFeature
from alluvium.portable.files.file_names import damaged, own_names

_PRIMITIVES = {
    "null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "bytes": pa.binary(), "string": pa.string(), "enum": pa.string(),
}  # fmt: skip
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms"),
    "timestamp-micros": pa.timestamp("us"),
    "timestamp-nanos": pa.timestamp("ns"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}


#: What is raised at values and logical types that are none.
_FOREIGN = (
    pa.ArrowException, ValueError, OverflowError, TypeError, AttributeError, KeyError, decimal.DecimalException,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AvroFile:
    """A decoded Avro file; implements `data_file.RowFile`.

    Attributes:
        path: As the plan names it.
        schema: The writer's schema.
        records: Its rows.
    """

    path: str
    schema: Any
    records: list[Any]

    def close(self) -> None:
        """Nothing is open."""

    @property
    def num_rows(self) -> int:
        return len(self.records)

    def names(self, wanted: Sequence[str], ids: Mapping[str, int] | None = None) -> dict[str, str]:
        """The file's own name of each column wanted that it has."""
        return own_names([f["name"] for f in _plain(self.schema)["fields"]], wanted, self.path)

    def batches(self, columns: dict[str, str], batch_size: int) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Rows in order: how many, and the columns under the names wanted."""
        kinds = {f["name"]: f["type"] for f in _plain(self.schema)["fields"]}
        for start in range(0, self.num_rows, batch_size):
            rows = self.records[start : start + batch_size]
            made = {}
            for name, mine in columns.items():
                made[name] = self._array([row[mine] for row in rows], kinds[mine])
            yield len(rows), made

    def _array(self, values: list[Any], kind: Any) -> pa.Array:
        try:
            return pa.array(_values(values, kind), _arrow(kind))
        except _FOREIGN as error:
            raise damaged(self.path, error) from None


def open_avro(path: str, source: pa.NativeFile) -> AvroFile:
    """Reads an Avro file.

    Raises:
        CorruptTable: It is none.
    """
    with source:
        schema, records = read_avro(source.read(), path)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise damaged(path, "its values are no rows")
    if not all(isinstance(f, dict) and isinstance(f.get("name"), str) for f in schema.get("fields") or ()):
        raise damaged(path, "its fields have no names")
    try:
        return AvroFile(path, _written_out(schema, {}, ""), records)
    except (TypeError, KeyError) as error:
        # What is never decoded, no decoder looks at: the elements of lists that are empty.
        raise damaged(path, f"its types are none: {error}") from None


def _written_out(kind: Any, named: dict[str, Any], namespace: str) -> Any:
    """A schema without calls by name: each type stands wherever it is used. That none holds itself is known."""
    if isinstance(kind, list):
        return [_written_out(part, named, namespace) for part in kind]
    if isinstance(kind, str):
        return kind if kind in _PRIMITIVES else named.get(_full_name(kind, namespace), named.get(kind, kind))
    if not isinstance(kind["type"], str):
        return _written_out(kind["type"], named, namespace)
    made = dict(kind)
    if kind["type"] in ("record", "error", "enum", "fixed"):
        full = _full_name(kind["name"], kind.get("namespace", namespace))
        named[full] = made
        if "fields" in kind:
            inner = full.rpartition(".")[0]
            made["fields"] = [{**f, "type": _written_out(f["type"], named, inner)} for f in kind["fields"]]
        return made
    for key in ("type", "items", "values"):
        if key in kind and kind[key] not in ("array", "map"):
            made[key] = _written_out(kind[key], named, namespace)
    return made


def _full_name(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name


def _plain(kind: Any) -> Any:
    """A type without the union with null around it."""
    if isinstance(kind, list):
        rest = [part for part in kind if part != "null"]
        if len(rest) != 1:
            raise UnsupportedFeature(
                "an Avro union of several types", code="unsupported-file-type", features=("union",)
            )
        return _plain(rest[0])
    return kind


def _root(kind: Any) -> str:
    found = kind if isinstance(kind, str) else kind["type"]
    return found if isinstance(found, str) else _root(_plain(found))


def _arrow(kind: Any) -> pa.DataType:
    kind = _plain(kind)
    root = _root(kind)
    if isinstance(kind, str) or root in _PRIMITIVES:
        logical = None if isinstance(kind, str) else kind.get("logicalType")
        if logical == "decimal":
            return pa.decimal128(kind["precision"], kind.get("scale", 0))
        return _LOGICAL.get(str(logical), _PRIMITIVES[root])
    if root == "fixed":
        if kind.get("logicalType") == "decimal":
            return pa.decimal128(kind["precision"], kind.get("scale", 0))
        return pa.binary(kind["size"])
    if root == "record":
        return pa.struct([pa.field(f["name"], _arrow(f["type"])) for f in kind["fields"]])
    if root == "map":
        return pa.map_(pa.string(), _arrow(kind["values"]))
    if root == "array":
        items = _plain(kind["items"])
        if _is_map(kind, items):
            key, value = items["fields"]
            return pa.map_(_arrow(key["type"]), _arrow(value["type"]))
        return pa.list_(_arrow(items))
    raise UnsupportedFeature(f"the Avro type {root!r}", code="unsupported-file-type", features=(root,))


def _is_map(kind: Any, items: Any) -> bool:
    """A map whose keys are no text: an array of records of two fields that says so. Without the mark it is an array of
    rows, be their fields named key and value."""
    is_record = isinstance(items, dict) and items.get("type") == "record" and len(items["fields"]) == 2
    return is_record and kind.get("logicalType") == "map"


def _values(values: list[Any], kind: Any) -> list[Any]:
    """Decimals out of bytes and maps out of records, at any depth."""
    kind = _plain(kind)
    if isinstance(kind, str):
        return values
    root = _root(kind)
    if kind.get("logicalType") == "decimal":
        scale = kind.get("scale", 0)
        return [None if v is None else _decimal(v, scale) for v in values]
    if root == "record":
        columns = [(f["name"], _values([None if v is None else v[f["name"]] for v in values], f["type"]))
                   for f in kind["fields"]]  # fmt: skip
        return [None if v is None else {n: c[i] for n, c in columns} for i, v in enumerate(values)]
    if root == "map":
        return [
            None if v is None else list(zip(v, _values(list(v.values()), kind["values"]), strict=True)) for v in values
        ]
    if root == "array":
        items = _plain(kind["items"])
        if _is_map(kind, items):
            key, value = items["fields"]
            return [
                None
                if v is None
                else list(
                    zip(
                        _values([e[key["name"]] for e in v], key["type"]),
                        _values([e[value["name"]] for e in v], value["type"]),
                        strict=True,
                    )
                )
                for v in values
            ]
        return [None if v is None else _values(v, items) for v in values]
    return values


def _decimal(data: bytes, scale: int) -> decimal.Decimal:
    number = int.from_bytes(data, "big", signed=True)
    return decimal.Decimal(number).scaleb(-scale, decimal.Context(prec=60))

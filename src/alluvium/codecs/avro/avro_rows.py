"""Arrow tables as the records of Avro files, in the forms that Paimon's Java gives to types.

Fields that may be null are unions with null, decimals bytes, times counts of their unit, and maps whose keys are no
text arrays of keys and values.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.avro.avro_schema import measure_schema
from alluvium.errors import UnsupportedFeature

NAMESPACE = "org.apache.paimon.avro.generated"
_Node = dict[str, Any]
_PLAIN = {
    pa.bool_(): "boolean", pa.int8(): "int", pa.int16(): "int", pa.int32(): "int", pa.int64(): "long",
    pa.float32(): "float", pa.float64(): "double", pa.string(): "string", pa.binary(): "bytes",
}  # fmt: skip
_LOGICAL = {
    pa.date32(): ("int", "date"),
    pa.time32("ms"): ("int", "time-millis"),
}
_STAMPS = {"ms": "timestamp-millis", "us": "timestamp-micros"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def avro_schema(schema: pa.Schema) -> _Node:
    """The schema of records with these columns.

    Raises:
        UnsupportedFeature: A type that Avro has no form for (`"unsupported-type"`), a name (`"unsupported-name"`), or
            types nested so deep that the rows could not be read again (`"avro-schema"`).
    """
    made = {"type": "record", "name": "record", "namespace": NAMESPACE, "fields": _members(schema, "record", set())}
    # As our own readers do, before they read.
    measure_schema(made)
    return made


def _own_name(name: str, taken: set[str]) -> str:
    """The name of a record, as Java makes it of the names on the way: `a` with `b_c` would be `a_b` with `c`."""
    own, number = name, 2
    while own in taken:
        own, number = f"{name}_{number}", number + 1
    taken.add(own)
    return own


def _members(fields: Any, name: str, taken: set[str]) -> list[_Node]:
    found = []
    for f in fields:
        if _NAME.fullmatch(f.name) is None:
            raise UnsupportedFeature(
                f"Avro has no name {f.name!r}: letters, digits and underscores alone",
                code="unsupported-name",
                column=f.name,
                hint="rename the column, or write Parquet or ORC",
            )
        kind = _kind(f.type, f"{name}_{f.name}", f.name, taken)
        found.append({"name": f.name, "type": ["null", kind], "default": None} if f.nullable else
                     {"name": f.name, "type": kind})  # fmt: skip
    return found


def _maybe(f: pa.Field, name: str, column: str, taken: set[str]) -> Any:
    kind = _kind(f.type, name, column, taken)
    return ["null", kind] if f.nullable else kind


def _kind(kind: pa.DataType, name: str, column: str, taken: set[str]) -> Any:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _LOGICAL:
        root, logical = _LOGICAL[kind]
        return {"type": root, "logicalType": logical}
    if pa.types.is_timestamp(kind) and kind.unit in _STAMPS:
        return {"type": "long", "logicalType": _STAMPS[kind.unit] if kind.tz is None else f"local-{_STAMPS[kind.unit]}"}
    if pa.types.is_decimal128(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_struct(kind):
        return {"type": "record", "name": _own_name(name, taken), "fields": _members(kind, name, taken)}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _maybe(kind.value_field, name, column, taken)}
    if pa.types.is_map(kind):
        if kind.key_type == pa.string():
            return {"type": "map", "values": _maybe(kind.item_field, name, column, taken)}
        own = _own_name(name, taken)
        pair = [{"name": "key", "type": _kind(kind.key_type, f"{name}_key", column, taken)},
                {"name": "value", "type": _maybe(kind.item_field, f"{name}_value", column, taken)}]  # fmt: skip
        return {"type": "array", "items": {"type": "record", "name": own, "fields": pair}, "logicalType": "map"}
    raise UnsupportedFeature(
        f"Avro files have no form for {kind}", code="unsupported-type", column=column, features=(str(kind),)
    )


def records(table: pa.Table) -> list[_Node]:
    """The rows as records of `avro_schema`."""
    columns = [_values(column.combine_chunks()) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(values: pa.Array) -> list[Any]:
    kind = values.type
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return _list(values.cast(pa.int32()))
    if pa.types.is_timestamp(kind):
        return _list(values.cast(pa.int64()))
    if pa.types.is_decimal(kind):
        return _list(_unscaled(values))
    if pa.types.is_struct(kind):
        columns = [_values(member) for member in values.flatten()]
        names = [f.name for f in kind]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return _masked(rows, values)
    if pa.types.is_map(kind):
        keys, items = _values(values.keys), _values(values.items)
        if kind.key_type == pa.string():
            return _masked([dict(zip(keys[a:b], items[a:b], strict=True)) for a, b in _spans(values)], values)
        pairs = [{"key": key, "value": item} for key, item in zip(keys, items, strict=True)]
        return _masked([pairs[a:b] for a, b in _spans(values)], values)
    if pa.types.is_list(kind):
        members = _values(values.values)
        return _masked([members[a:b] for a, b in _spans(values)], values)
    return _list(values)


def _list(values: pa.Array) -> list[Any]:
    found: list[Any] = values.to_pylist()
    return found


def _spans(values: pa.Array) -> Sequence[tuple[int, int]]:
    offsets = values.offsets.to_pylist()
    return list(itertools.pairwise(offsets))


def _masked(rows: list[Any], values: pa.Array) -> list[Any]:
    if not values.null_count:
        return rows
    return [row if valid else None for row, valid in zip(rows, values.is_valid().to_pylist(), strict=True)]


def _unscaled(values: pa.Array) -> pa.Array:
    """Big-endian bytes, as many as the most digits of the type need."""
    whole = pa.concat_arrays([values, values.slice(0, 0)])
    width = math.ceil((whole.type.precision * math.log2(10) + 1) / 8)
    words = np.frombuffer(whole.buffers()[1], np.uint8)[: 16 * len(whole)].reshape(-1, 16)[:, :width][:, ::-1]
    data = pa.py_buffer(np.ascontiguousarray(words))
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(whole), [None, data])
    return pc.if_else(whole.is_valid(), fixed, pa.scalar(None, fixed.type))

"""Columns as a data file has them to columns as the table's schema wants them.

Only conversions that lose nothing and that a table format allows; anything else is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from alluvium.codecs.variants.variant_shredding import rebuild
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.plan.scan import FIELD_ID
from alluvium.portable.files.file_names import own_member
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Array, DataType, Decimal, JsonValue, Map, Struct
from alluvium.schema.walk import fields_within, holds

_is = pa.types
_Conversion: TypeAlias = Callable[[pa.Array, DataType, str], pa.Array]


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        _is.is_string(kind) or _is.is_large_string(kind) or _is.is_string_view(kind)
        or _is.is_binary(kind) or _is.is_large_binary(kind) or _is.is_binary_view(kind)
        or _is.is_fixed_size_binary(kind)
    )  # fmt: skip


def _is_date_or_timestamp(kind: pa.DataType) -> bool:
    return bool(_is.is_timestamp(kind) or _is.is_date(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(_is.is_time(kind) or _is.is_int32(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(_is.is_integer(kind) or _is.is_floating(kind))


#: What a file may hold for a column of each type: itself, and what it may have been widened from.
_ALLOWED: dict[DataType, Callable[[pa.DataType], bool]] = {
    **dict.fromkeys(t.INTEGRAL, _is.is_integer),
    **dict.fromkeys((t.STRING, t.BINARY), _is_text),
    t.FLOAT: _is.is_floating,
    t.DOUBLE: _is_number,
    t.BOOLEAN: _is.is_boolean,
    t.DATE: _is.is_date,
    t.TIMESTAMP: _is.is_timestamp,
    t.TIMESTAMP_NTZ: _is_date_or_timestamp,
    t.TIMESTAMP_NANOS: _is.is_timestamp,
    t.TIMESTAMP_NTZ_NANOS: _is.is_timestamp,
    t.TIME: _is_time,
}


def conform(values: pa.Array, data_type: DataType, column: str) -> pa.Array:
    """The values under the Arrow type of a physical type; struct fields that the file lacks are null.

    Struct fields are found by the `FIELD_ID` in their metadata, where they have one, else by name.

    Raises:
        CorruptTable: The file's type is not one that the column can have been written with.
            Or a variant is malformed, code `malformed-variant`.
        UnsupportedFeature: More variants than one column can hold.
    """
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    target = to_arrow(data_type)
    if data_type == t.VARIANT:
        return _variant(values, target, column)
    # Variants are looked at even where their type is right: their bytes may still be none.
    if values.type == target and not _is_by_id(data_type) and not holds(data_type, t.VARIANT):
        return values
    if _is.is_null(values.type):
        return pa.nulls(len(values), target)
    if _is.is_dictionary(values.type):
        return conform(values.dictionary_decode(), data_type, column)
    if isinstance(data_type, Struct):
        return _struct(values, data_type, column)
    if isinstance(data_type, Array):
        return _list(values, data_type, column, conform)
    if isinstance(data_type, Map):
        return _map(values, data_type, column, conform)
    return _scalar(values, data_type, target, column)


def relabel(values: pa.Array, data_type: DataType, column: str) -> pa.Array:
    """The values under the Arrow type of a logical type of the same shape: struct fields go by place.

    Raises:
        CorruptTable: The types at some place do not go together.
    """
    if isinstance(data_type, (Struct, Array, Map)) and values.type != to_arrow(data_type):
        if isinstance(data_type, Array):
            return _list(values, data_type, column, relabel)
        if isinstance(data_type, Map):
            return _map(values, data_type, column, relabel)
        members = values.flatten()
        arrays = [relabel(v, f.type, f"{column}.{f.name}") for v, f in zip(members, data_type.fields, strict=True)]
        return _struct_of(arrays, data_type, values)
    return values if data_type == t.VARIANT else conform(values, data_type, column)


def field_id(f: pa.Field) -> int | None:
    """The number that a Parquet file gives a column, if any."""
    text = (f.metadata or {}).get(b"PARQUET:field_id")
    # The reader numbers columns -1 where the file does not.
    return int(text) if text is not None and int(text) >= 0 else None


def _is_by_id(data_type: DataType) -> bool:
    return isinstance(data_type, (Struct, Array, Map)) and any(
        FIELD_ID in f.metadata for _, f in fields_within(data_type)
    )


def _mismatch(values: pa.Array, data_type: DataType, column: str) -> CorruptTable:
    return CorruptTable(
        f"the data file has {values.type} for a column of type {data_type}",
        code="incompatible-type",
        column=column,
        hint="the file was not written for this schema; rewrite it, or restore the table's schema",
    )


def _scalar(values: pa.Array, data_type: DataType, target: pa.DataType, column: str) -> pa.Array:
    kind = values.type
    if isinstance(data_type, Decimal):
        allowed = _is.is_decimal(kind) or _is.is_integer(kind)
    else:
        allowed = data_type in _ALLOWED and _ALLOWED[data_type](kind)
    if not allowed:
        raise _mismatch(values, data_type, column)
    if isinstance(data_type, Decimal) and _is.is_integer(kind):
        # Arrow wants room for the widest value of the integer type before it rescales.
        values = values.cast(pa.decimal128(38, 0)) if data_type.scale == 0 else values.cast(pa.decimal128(20, 0))
    try:
        # Nanoseconds are cut to microseconds, as Spark reads them.
        return values.cast(target, safe=not _is.is_timestamp(kind))
    except pa.ArrowException:
        raise _mismatch(values, data_type, column) from None


def _struct(values: pa.Array, data_type: Struct, column: str) -> pa.Array:
    if not _is.is_struct(values.type):
        raise _mismatch(values, data_type, column)
    # flatten() carries the parent's nulls into the members, and honours slices.
    members = values.flatten()
    names = [f.name for f in values.type]
    by_name = dict(zip(names, members, strict=True))
    by_id: dict[JsonValue, pa.Array] = {field_id(f): member for f, member in zip(values.type, members, strict=True)}
    arrays = []
    for f in data_type.fields:
        if FIELD_ID in f.metadata:
            found = by_id.get(f.metadata[FIELD_ID])
        else:
            own = own_member(names, f.name, column)
            found = None if own is None else by_name[own]
        missing = found is None
        arrays.append(
            pa.nulls(len(values), to_arrow(f.type)) if missing else conform(found, f.type, f"{column}.{f.name}")
        )
    return _struct_of(arrays, data_type, values)


def _struct_of(members: list[pa.Array], data_type: Struct, values: pa.Array) -> pa.Array:
    """Members as a struct that is null where `values` is."""
    fields = list(to_arrow(data_type))
    if not fields:
        return pa.array([{} if valid else None for valid in values.is_valid().to_pylist()], pa.struct([]))
    return pa.StructArray.from_arrays(members, fields=fields, mask=values.is_null())


def _variant(values: pa.Array, target: pa.DataType, column: str) -> pa.Array:
    if _is.is_null(values.type):
        return pa.nulls(len(values), target)
    if not _is.is_struct(values.type) or "metadata" not in {f.name for f in values.type}:
        raise _mismatch(values, t.VARIANT, column)
    try:
        members = rebuild(values)
    except (CorruptTable, UnsupportedFeature) as error:
        error.column = column
        raise
    return pa.StructArray.from_arrays(list(members), fields=list(target), mask=values.is_null())


def _unsliced(values: pa.Array) -> pa.Array:
    """The same values from offset 0: Arrow cannot rebuild a list with nulls from a slice."""
    return values if values.offset == 0 else pa.concat_arrays([values, values.slice(0, 0)])


def _list(values: pa.Array, data_type: Array, column: str, inner: _Conversion) -> pa.Array:
    kind = values.type
    if _is.is_map(kind) or not (_is.is_list(kind) or _is.is_large_list(kind)):
        raise _mismatch(values, data_type, column)
    whole = _unsliced(values)
    elements = inner(whole.values, data_type.element, f"{column}.element")
    offsets = whole.offsets.cast(pa.int32())
    return pa.ListArray.from_arrays(offsets, elements, type=to_arrow(data_type), mask=whole.is_null())


def _map(values: pa.Array, data_type: Map, column: str, inner: _Conversion) -> pa.Array:
    if not _is.is_map(values.type):
        raise _mismatch(values, data_type, column)
    whole = _unsliced(values)
    keys = inner(whole.keys, data_type.key, f"{column}.key")
    items = inner(whole.items, data_type.value, f"{column}.value")
    return pa.MapArray.from_arrays(whole.offsets, keys, items, type=to_arrow(data_type), mask=whole.is_null())

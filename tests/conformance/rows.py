"""Equality of two Arrow tables as multisets of rows.

Columns and struct fields are matched by name, timestamps are UTC microseconds, decimals compare by value, NaN equals
NaN, 0.0 equals -0.0, maps are sets of pairs, variants compare after decoding. Kinds must agree (an integer is not a
string, a timestamp with time zone not one without), widths need not.

Each column becomes one of plain, sortable values; then both tables are sorted and compared by Arrow.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import VariantVal

SHOWN_DIFFERENCES = 3

_MICROSECONDS = pa.timestamp("us")


def difference(expected: pa.Table, actual: pa.Table) -> str | None:
    """What differs, in words; None if both hold the same rows."""
    if sorted(expected.column_names) != sorted(actual.column_names):
        return f"columns {sorted(actual.column_names)} instead of {sorted(expected.column_names)}"
    kinds = [
        f"{name}: {kind(actual.schema.field(name).type)} instead of {kind(expected.schema.field(name).type)}"
        for name in expected.column_names
        if not same_kind(expected.schema.field(name).type, actual.schema.field(name).type)
    ]
    if kinds:
        return "; ".join(kinds)
    if expected.num_rows != actual.num_rows:
        return f"{actual.num_rows} rows instead of {expected.num_rows}"
    left, right = plain_tables(expected, actual)
    if _sorted(left).equals(_sorted(right)):
        return None
    return _first_differences(left, right)


def kind(data_type: pa.DataType) -> str:
    """The kind of values of a type, without widths; members of structs in the order of their names."""
    t = _storage(data_type)
    if pa.types.is_struct(t):
        members = {t.field(i).name: t.field(i).type for i in range(t.num_fields)}
        if _is_variant(t):
            return "variant"
        return "struct<" + ",".join(f"{name}:{kind(members[name])}" for name in sorted(members)) + ">"
    if pa.types.is_map(t):
        return f"map<{kind(t.key_type)},{kind(t.item_type)}>"
    if _is_list(t):
        return f"list<{kind(t.value_type)}>"
    if pa.types.is_timestamp(t):
        return "timestamp" if t.tz is not None else "timestamp_ntz"
    for name, test in _KINDS:
        if test(t):
            return name
    return str(t)


_KINDS = (
    ("integer", pa.types.is_integer),
    ("float", pa.types.is_floating),
    ("decimal", pa.types.is_decimal),
    ("string", lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t)),
    ("binary", lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_binary_view(t)),
)


def same_kind(expected: pa.DataType, actual: pa.DataType) -> bool:
    """A `void` column stands in the corpus as null type; what it is read as is free, its values are not."""
    return pa.types.is_null(expected) or kind(expected) == kind(actual)


def plain_tables(expected: pa.Table, actual: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both tables with the same columns in the same order, of plain values in the same types."""
    names = sorted(expected.column_names)
    pairs = [_plain_pair(expected.column(name), actual.column(name)) for name in names]
    # positions instead of names: a sort key may hold any character
    positions = [str(i) for i in range(len(names))]
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    return pa.table(left, names=positions), pa.table(right, names=positions)


def _plain_pair(expected: pa.ChunkedArray, actual: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    t, u = _storage(expected.type), _storage(actual.type)
    if pa.types.is_null(t):
        return tuple(pc.is_null(column).combine_chunks() for column in (expected, actual))  # type: ignore[return-value]
    if pa.types.is_decimal(t):
        common = pa.decimal256(76, max(t.scale, u.scale))
        return expected.cast(common).combine_chunks(), actual.cast(common).combine_chunks()
    return _plain(expected), _plain(actual)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    if isinstance(array.type, pa.ExtensionType):
        array = array.storage
    t = array.type
    if pa.types.is_dictionary(t):
        array, t = array.dictionary_decode(), t.value_type
    if pa.types.is_floating(t):
        return _float_bits(array)
    if pa.types.is_struct(t) or pa.types.is_map(t) or _is_list(t):
        values = (None if value is None else repr(_canonical(value, t)) for value in _integer_times(array).to_pylist())
        return pa.array(values, pa.large_string())
    return _integer_times(array)


def _float_bits(array: pa.Array) -> pa.Array:
    """The bits of doubles: every NaN the same, and no negative zero."""
    doubles = array.cast(pa.float64())
    positive_zero = pc.add(doubles, 0.0)
    one_nan = pc.if_else(pc.is_nan(positive_zero), pa.scalar(math.nan), positive_zero)
    return one_nan.view(pa.int64())


def _integer_times(array: pa.Array) -> pa.Array:
    """Plain values with timestamps as microseconds, at any depth: Python's datetime ends at year 9999."""
    return array.cast(_plain_type(array.type)).cast(_plain_type(array.type, times=pa.int64()))


def _plain_type(data_type: pa.DataType, times: pa.DataType = _MICROSECONDS) -> pa.DataType:
    t = _storage(data_type)
    if pa.types.is_struct(t):
        members = (t.field(i) for i in range(t.num_fields))
        return pa.struct([pa.field(member.name, _plain_type(member.type, times)) for member in members])
    if pa.types.is_map(t):
        return pa.map_(_plain_type(t.key_type, times), _plain_type(t.item_type, times))
    if _is_list(t):
        return pa.large_list(_plain_type(t.value_type, times))
    if pa.types.is_timestamp(t):
        return times
    return _WIDEST.get(kind(t), t)


_WIDEST = {"integer": pa.int64(), "float": pa.float64(), "string": pa.large_string(), "binary": pa.large_binary()}


def _canonical(value: object, data_type: pa.DataType) -> object:
    """A nested Python value so that equal values have equal `repr`."""
    if value is None:
        return None
    t = _storage(data_type)
    if pa.types.is_struct(t):
        assert isinstance(value, dict)
        if _is_variant(t):
            return _canonical_variant(VariantVal(value["value"], value["metadata"]).toPython())
        members = sorted((t.field(i).name, t.field(i).type) for i in range(t.num_fields))
        return [(name, _canonical(value[name], member)) for name, member in members]
    if pa.types.is_map(t):
        assert isinstance(value, list)
        return sorted(((_canonical(k, t.key_type), _canonical(v, t.item_type)) for k, v in value), key=repr)
    if _is_list(t):
        assert isinstance(value, list)
        return [_canonical(item, t.value_type) for item in value]
    return _canonical_leaf(value)


def _canonical_variant(value: object) -> object:
    if isinstance(value, dict):
        return sorted((name, _canonical_variant(item)) for name, item in value.items())
    if isinstance(value, list):
        return [_canonical_variant(item) for item in value]
    return _canonical_leaf(value)


def _canonical_leaf(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value else "0"
    return value


def _storage(data_type: pa.DataType) -> pa.DataType:
    if isinstance(data_type, pa.ExtensionType):
        return data_type.storage_type
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


def _is_list(t: pa.DataType) -> bool:
    return pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t)


def _is_variant(t: pa.StructType) -> bool:
    members = {t.field(i).name: t.field(i).type for i in range(t.num_fields)}
    return set(members) == {"metadata", "value"} and all(kind(member) == "binary" for member in members.values())


def _sorted(table: pa.Table) -> pa.Table:
    if table.num_columns == 0 or table.num_rows < 2:
        return table
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names]))


def _rows(table: pa.Table) -> Iterator[tuple[object, ...]]:
    yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


def _first_differences(expected: pa.Table, actual: pa.Table) -> str:
    left, right = Counter(_rows(expected)), Counter(_rows(actual))
    missing = list((left - right).elements())
    extra = list((right - left).elements())
    return (
        f"{len(missing)} rows differ; expected e.g. {str(missing[:SHOWN_DIFFERENCES])[:400]}, "
        f"got e.g. {str(extra[:SHOWN_DIFFERENCES])[:400]}"
    )

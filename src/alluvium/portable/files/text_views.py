"""Texts and bytes that Arrow holds as views, as files of other writers ask for: it cannot choose rows of them."""

from __future__ import annotations

import pyarrow as pa

_PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with plain texts and bytes at any depth.

    Arrow has neither `filter` nor `take` for views (26.0); delta-rs leaves them in maps, arrays and structs.
    """
    schema = pa.schema([f.with_type(_plain(f.type)) for f in batch.schema])
    return batch if schema.equals(batch.schema) else batch.cast(schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(place)) for place in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field), kind.keys_sorted)
    if pa.types.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    return _PLAIN.get(kind, kind)


def _plain_field(f: pa.Field) -> pa.Field:
    return f.with_type(_plain(f.type))

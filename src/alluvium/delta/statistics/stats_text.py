"""Statistics that a checkpoint has as columns alone, as the text that commits have.

Specification: "Per-file Statistics"; "Checkpoints": `delta.checkpoint.writeStatsAsJson` may be false.
"""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.terms.spec import FILES


def with_stats_text(files: pa.Table) -> pa.Table:
    """Live files as commits have them (`FILES`), whatever their version was read from. Whoever commits one of them
    again, or asks how many rows it has, takes them so.
    """
    if "stats_parsed" not in files.column_names:
        return files.select(FILES.names)
    texts = stats_texts(files.column("stats").combine_chunks(), files.column("stats_parsed").combine_chunks())
    return files.select(FILES.names).set_column(FILES.get_field_index("stats"), FILES.field("stats"), texts)


def stats_texts(texts: pa.Array, parsed: pa.StructArray) -> pa.Array:
    """The texts, those that are missing made of columns."""
    missing = texts.is_null()
    made = _format(parsed.filter(missing))
    return pc.replace_with_mask(texts, missing, made) if len(made) else texts


def _format(parsed: pa.StructArray) -> pa.Array:
    rows = _printable(parsed).to_pylist()
    return pa.array([None if row is None else msgspec.json.encode(_compact(row)).decode() for row in rows], pa.string())


def _printable(values: pa.Array) -> pa.Array:
    """The same with the times in it as statistics spell them."""
    if pa.types.is_struct(values.type):
        members = [_printable(values.field(i)) for i in range(values.type.num_fields)]
        return pa.StructArray.from_arrays(members, names=[f.name for f in values.type], mask=values.is_null())
    if pa.types.is_timestamp(values.type):
        # "Timestamp columns are truncated down to milliseconds."
        truncated = pc.floor_temporal(values, unit="millisecond").cast(pa.timestamp("ms", values.type.tz))
        return pc.strftime(truncated, "%Y-%m-%dT%H:%M:%SZ" if values.type.tz else "%Y-%m-%dT%H:%M:%S")
    return values.cast(pa.string()) if pa.types.is_date(values.type) else values


def _compact(value: object) -> object:
    """Without nulls, decimals with all of their digits, numbers that JSON lacks left out."""
    if isinstance(value, dict):
        return {name: _compact(member) for name, member in value.items() if member is not None}
    if isinstance(value, Decimal):
        return msgspec.Raw(format(value, "f").encode())
    return value

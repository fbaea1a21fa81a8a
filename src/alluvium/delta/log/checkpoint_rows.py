"""Actions as the rows of a checkpoint: one column a kind of action, of which each row fills one. Pure.

Specification: "Checkpoints", "Checkpoint Schema".
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence, Sized
from itertools import accumulate
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from alluvium.codecs.columns import boolean_column, long_column, string_column, validity
from alluvium.delta.log.columns import Nulls
from alluvium.delta.terms.spec import STRING_MAP, Metadata, Wire, known_metadata

_STRINGS = pa.list_(pa.field("element", pa.string()))

PROTOCOL = pa.struct(
    [
        pa.field("minReaderVersion", pa.int32()),
        pa.field("minWriterVersion", pa.int32()),
        pa.field("readerFeatures", _STRINGS),
        pa.field("writerFeatures", _STRINGS),
    ]
)
METADATA = pa.struct(
    [
        pa.field("id", pa.string()),
        pa.field("name", pa.string()),
        pa.field("description", pa.string()),
        pa.field("format", pa.struct([pa.field("provider", pa.string()), pa.field("options", STRING_MAP)])),
        pa.field("schemaString", pa.string()),
        pa.field("partitionColumns", _STRINGS),
        pa.field("configuration", STRING_MAP),
        pa.field("createdTime", pa.int64()),
    ]
)
TXN = pa.struct([pa.field("appId", pa.string()), pa.field("version", pa.int64()), pa.field("lastUpdated", pa.int64())])
DOMAIN_METADATA = pa.struct(
    [pa.field("domain", pa.string()), pa.field("configuration", pa.string()), pa.field("removed", pa.bool_())]
)
HIGH_WATER_MARK = pa.struct([pa.field("highWaterMark", pa.int64()), pa.field("preservedRowIds", pa.bool_())])
CHECKPOINT_METADATA = pa.struct([pa.field("version", pa.int64()), pa.field("tags", STRING_MAP)])
SIDECAR = pa.struct(
    [
        pa.field("path", pa.string()),
        pa.field("sizeInBytes", pa.int64()),
        pa.field("modificationTime", pa.int64()),
        pa.field("tags", STRING_MAP),
    ]
)

#: Rows of a checkpoint by the name of their column, in chunks.
Rows = Mapping[str, Sequence[pa.Array]]

# Few values repeat in the columns of a checkpoint, except these; a dictionary for the others is built in vain.
_DICTIONARY = [
    f"{kind}.{name}"
    for kind in ("add", "remove")
    for name in ("partitionValues.key_value.key", "partitionValues.key_value.value")
]
_ROW_GROUP = 100_000


def documents(actions: Sequence[Wire], data_type: pa.DataType) -> list[pa.Array]:
    """Actions of one kind as structs."""
    return [_column([msgspec.to_builtins(action) for action in actions], data_type)]


def described(metadata: Metadata) -> list[pa.Array]:
    """The metadata as a struct, with the plain ones of the fields that we do not know: they are not to be lost by the
    checkpoint that takes the place of the commit. Readers ask for the columns that they know.
    """
    (known,) = documents([known_metadata(metadata)], METADATA)
    # To Spark names that differ by case are the same.
    taken = {f.name.lower() for f in METADATA}
    plain: dict[str, pa.Array] = {}
    for name, text in metadata.unknown:
        value = msgspec.json.decode(text)
        is_long = isinstance(value, int) and -(2**63) <= value < 2**63
        if name.lower() not in taken and (is_long or isinstance(value, (str, float))):
            taken.add(name.lower())
            plain[name] = pa.array([value])
    fields = [*METADATA, *(pa.field(name, column.type) for name, column in plain.items())]
    return [pa.StructArray.from_arrays([*known.flatten(), *plain.values()], fields=fields)]


def file_rows(table: pa.Table) -> list[pa.Array]:
    """File actions as structs, chunk by chunk, without a copy."""
    fields = [f.with_nullable(True) for f in table.schema]
    rows = [pa.StructArray.from_arrays(batch.columns, fields=fields) for batch in table.to_batches()]
    return rows or [pa.nulls(0, pa.struct(fields))]


def count_rows(rows: Rows) -> int:
    """How many actions there are."""
    return sum(len(chunk) for chunks in rows.values() for chunk in chunks)


def format_rows(rows: Rows) -> bytes:
    """ "Each row in the checkpoint corresponds to a single action." The few come first, as readers want them first."""
    sink = pa.BufferOutputStream()
    with CheckpointFile(sink, rows) as file:
        file.write(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


class CheckpointFile:
    """A Parquet file of a checkpoint that is written one run of rows after another. Use it in a `with`.

    Args:
        sink: Where it goes: a path, or an Arrow stream.
        shape: Its columns; of their rows only the type counts.
    """

    def __init__(self, sink: str | pa.NativeFile, shape: Rows) -> None:
        self._shape: Rows = {name: [chunks[0].slice(0, 0)] for name, chunks in shape.items()}
        self._writer = pq.ParquetWriter(
            sink, _table(self._shape).schema, compression="snappy", use_dictionary=_DICTIONARY,
            write_statistics=[f"{kind}.path" for kind in ("add", "remove") if kind in shape],
        )  # fmt: skip

    def write(self, rows: Rows) -> None:
        """Some rows more, of some of the columns."""
        self._writer.write_table(_table({**self._shape, **rows}), row_group_size=_ROW_GROUP)

    def __enter__(self) -> CheckpointFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


def _table(rows: Rows) -> pa.Table:
    order = sorted(rows, key=lambda name: (name == "add", name == "remove", name != "protocol", name))
    return pa.table({name: _spread(name, order, rows) for name in rows})


def _spread(name: str, order: Sequence[str], rows: Rows) -> pa.ChunkedArray:
    """A column over all rows: its own values in the place of its actions, nulls in that of the others."""
    nulls = Nulls()
    data_type = rows[name][0].type
    chunks: list[pa.Array] = []
    for other in order:
        for chunk in rows[other]:
            chunks.append(chunk if other == name else nulls.take(len(chunk), data_type))
    return pa.chunked_array(chunks, data_type)


def _column(values: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """Documents as an Arrow column; what they lack, and what they have beyond the type, is left out."""
    present = validity(values)
    if pa.types.is_struct(data_type):
        children = [_column([None if v is None else v.get(f.name) for v in values], f.type) for f in data_type]
        return pa.Array.from_buffers(data_type, len(values), [present], children=children)
    if pa.types.is_map(data_type):
        pairs = [pair for value in values for pair in (value or {}).items()]
        keys, items = (_column([pair[side] for pair in pairs], pa.string()) for side in (0, 1))
        fields = [data_type.key_field, data_type.item_field]
        child = pa.StructArray.from_arrays([keys, items], fields=fields)
        return pa.Array.from_buffers(data_type, len(values), [present, _offsets(values)], children=[child])
    if pa.types.is_list(data_type):
        child = _column([element for value in values for element in value or ()], data_type.value_type)
        return pa.Array.from_buffers(data_type, len(values), [present, _offsets(values)], children=[child])
    if pa.types.is_string(data_type):
        return string_column(values)
    return boolean_column(values) if pa.types.is_boolean(data_type) else long_column(values).cast(data_type)


def _offsets(values: Sequence[Sized | None]) -> pa.Buffer:
    return pa.py_buffer(array("i", accumulate((len(value or ()) for value in values), initial=0)))

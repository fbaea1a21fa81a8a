"""Data files in the making, in memory: Parquet, ORC, Avro; and values in the types that such files have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc

from alluvium.codecs.avro.avro_container import AvroContainer
from alluvium.codecs.avro.avro_rows import avro_schema, records

_ROW_GROUP_ROWS = 1 << 20
#: The names of codecs as each library has them, where it is another than Parquet's.
_ORC_CODECS = {"none": "uncompressed", "null": "uncompressed", "gzip": "zlib", "deflate": "zlib"}
_AVRO_CODECS = {"zstd": "zstandard", "none": "null", "uncompressed": "null", "gzip": "deflate", "zlib": "deflate"}


class FileWriter(Protocol):
    """A file that rows are added to."""

    @property
    def size(self) -> int:
        """Bytes so far; what is held back is not counted."""

    def add(self, rows: pa.Table) -> None:
        """Appends rows."""

    def finish(self) -> bytes:
        """The whole file."""


class ParquetWriter:
    """Implements `FileWriter` as Spark's own Parquet writer has types."""

    def __init__(self, schema: pa.Schema, compression: str, level: int) -> None:
        self._sink = pa.BufferOutputStream()
        leaves = _leaves(schema)
        nanos = any(pa.types.is_timestamp(f.type) and f.type.unit == "ns" for f in schema)
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression=compression,
            compression_level=level if compression == "zstd" else None,
            # As Spark's own writer has decimals of few digits; nanoseconds are known in this form alone.
            store_decimal_as_integer=True,
            use_dictionary=_dictionary_columns(leaves),
            write_statistics=_bounded_columns(leaves),
            use_deprecated_int96_timestamps=nanos,
            store_schema=False,
        )

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    def add(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=_ROW_GROUP_ROWS)

    def finish(self) -> bytes:
        self._writer.close()
        return bytes(self._sink.getvalue())


def _leaves(schema: pa.Schema) -> list[pq.ColumnSchema]:
    """The columns of a file, those within others, too."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink, store_decimal_as_integer=True)
    described = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    return [described.column(index) for index in range(len(described))]


def _dictionary_columns(leaves: Sequence[pq.ColumnSchema]) -> list[str]:
    """Leaves whose values may be in dictionaries: all but decimals of many digits.

    Java's writers make no dictionaries of values of fixed length, and some of their readers look in one for a decimal's
    fewest bytes, which they never find: they would skip the rows.
    """
    return [leaf.path for leaf in leaves if leaf.physical_type != "FIXED_LEN_BYTE_ARRAY"]


def _bounded_columns(leaves: Sequence[pq.ColumnSchema]) -> list[str]:
    """Leaves that have bounds in the file: all but floating ones.

    Arrow's bounds pass NaN over, which is the greatest number to Spark and Java; their readers trust the bounds of a
    file, and would skip the rows. Their own writers give none where there is NaN.
    """
    return [leaf.path for leaf in leaves if leaf.physical_type not in ("FLOAT", "DOUBLE")]


def plain_nulls(array: pa.Array) -> pa.Array:
    """The same values, and nothing below those that are null: Arrow's ORC writer would write that all the same, and
    readers take it for the next value's.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        # `flatten` gives a struct's nulls to its members.
        members = [plain_nulls(member) for member in array.flatten()]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=array.is_null()) if members else array
    if not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        # The writer does not look where in its buffers a member begins either.
        return array if not array.offset else array.take(pa.array(np.arange(len(array))))
    starts = array.offsets.to_numpy().astype(np.int64)
    lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), np.diff(starts), 0)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    places = pa.array(np.arange(ends[-1]) + np.repeat(starts[:-1] - ends[:-1], lengths))
    offsets, mask = pa.array(ends, pa.int32()), array.is_null()
    if pa.types.is_map(kind):
        keys, items = (plain_nulls(values.take(places)) for values in (array.keys, array.items))
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=mask)
    return pa.ListArray.from_arrays(offsets, plain_nulls(array.values.take(places)), type=kind, mask=mask)


class OrcWriter:
    """Implements `FileWriter`. ORC has no level of compression here, and field ids are attributes of types."""

    def __init__(self, schema: pa.Schema, compression: str, level: int) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = orc.ORCWriter(self._sink, compression=_ORC_CODECS.get(compression, compression))
        self._schema = schema

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    def add(self, rows: pa.Table) -> None:
        columns = [pa.chunked_array(map(plain_nulls, c.chunks), c.type) for c in rows.columns]
        self._writer.write(pa.Table.from_arrays(columns, schema=self._schema))

    def finish(self) -> bytes:
        self._writer.close()
        return bytes(self._sink.getvalue())


class AvroWriter:
    """Implements `FileWriter`."""

    def __init__(self, schema: pa.Schema, compression: str, level: int) -> None:
        self._container = AvroContainer(avro_schema(schema), _AVRO_CODECS.get(compression, compression))

    @property
    def size(self) -> int:
        return self._container.size

    def add(self, rows: pa.Table) -> None:
        self._container.add(records(rows))

    def finish(self) -> bytes:
        return b"".join(self._container.parts)


@dataclass(frozen=True, slots=True)
class FileForm:
    """How the files of a job are written.

    Attributes:
        format: `"parquet"`, `"orc"` or `"avro"`.
        schema: Their columns.
        compression: The codec, by Parquet's name.
        level: Of zstd.
    """

    format: str
    schema: pa.Schema
    compression: str
    level: int

    def open(self) -> FileWriter:
        """A new file."""
        return _WRITERS[self.format](self.schema, self.compression, self.level)

    @property
    def tells_statistics(self) -> bool:
        """Whether a file's footer can be asked for the bounds of its columns at the top level."""
        return self.format == "parquet" and not any(pa.types.is_floating(f.type) for f in self.schema)


_WRITERS: Mapping[str, Callable[[pa.Schema, str, int], FileWriter]] = {
    "parquet": ParquetWriter,
    "orc": OrcWriter,
    "avro": AvroWriter,
}


def stored_as(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Values as Spark has them under the type of the file; fractions of seconds are cut off downwards."""
    kind = values.type
    if kind == target:
        return values
    if pa.types.is_timestamp(target):
        if target.unit == "ms" and kind.unit == "us":
            values = pc.floor_temporal(values.cast(pa.timestamp("us")), unit="millisecond")
        return values.cast(pa.timestamp(target.unit)).cast(target)
    if pa.types.is_list(target):
        inner = stored_as(values.values, target.value_type)
        return pa.ListArray.from_arrays(values.offsets, inner, type=target, mask=values.is_null())
    if pa.types.is_map(target):
        keys, items = stored_as(values.keys, target.key_type), stored_as(values.items, target.item_type)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=target, mask=values.is_null())
    if pa.types.is_struct(target):
        members = [stored_as(values.field(i), target.field(i).type) for i in range(target.num_fields)]
        return pa.StructArray.from_arrays(members, fields=list(target), mask=values.is_null())
    return values.cast(target)

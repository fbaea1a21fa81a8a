"""Targets of the fuzzer: footers and rows of data files in Parquet, ORC and Avro, variants, bitmaps and sketches."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyroaring import BitMap
from variant_table import _columns as shredded_columns

from alluvium.codecs.avro.avro_container import MAGIC, encode_record, read_avro, read_blocks
from alluvium.codecs.avro.avro_rows import avro_schema
from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.codecs.bitmaps.art_bitmap import unite_64
from alluvium.codecs.bitmaps.roaring import highest_of, parse_bitmap, positions_of, subtract, unite_32, window
from alluvium.codecs.file_forms import FileForm
from alluvium.codecs.footers.orc_footer import char_columns, read_orc_footer, read_sound_tail
from alluvium.codecs.footers.orc_writer_clock import read_writer_clock
from alluvium.codecs.footers.page_index import parse_column_index, parse_offset_index
from alluvium.codecs.footers.parquet_footer import FooterColumn, read_described
from alluvium.codecs.footers.parquet_pages import Footer, NoPages
from alluvium.codecs.footers.spark_schema import stored_schema
from alluvium.codecs.variants.variant_shredding import rebuild
from alluvium.codecs.variants.variant_text import format_variant
from alluvium.errors import AlluviumError
from alluvium.portable.files.blob_file import open_blob
from alluvium.portable.files.data_file import open_data_file
from alluvium.schema import types as t
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import Decimal, Field, Struct

Made = tuple[Sequence[bytes], Callable[[bytes], str]]

#: Columns of most kinds; few rows, for files are inputs.
_ROWS = pa.table({
    "id": pa.array([1, 2, 3], pa.int64()), "s": ["a", None, "c"], "d": pa.array([None, 1, 2], pa.decimal128(10, 2)),
    "at": pa.array([0, 1_600_000_000_000_000, None], pa.timestamp("us", "UTC")), "f": [0.5, -1.0, None],
    "l": pa.array([[1], None, []], pa.list_(pa.int32())), "b": [True, False, None],
})  # fmt: skip
_NARROW = _ROWS.select(["id", "s"])
_COLUMNS = [
    FooterColumn(("id",), t.LONG), FooterColumn(("s",), t.STRING), FooterColumn(("d",), Decimal(10, 2)),
    FooterColumn(("at",), t.TIMESTAMP), FooterColumn(("f",), t.DOUBLE), FooterColumn(("l",), t.Array(t.INTEGER)),
    FooterColumn(("b",), t.BOOLEAN),
]  # fmt: skip


def parquet(rows: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return sink.getvalue()


def orc_file(rows: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    orc.write_table(rows, sink, **options)
    return sink.getvalue()


@dataclass(frozen=True)
class _One:
    """Implements `data_file.Files`: every path is the input."""

    data: bytes

    def open(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.data)


def _read_rows(data: bytes, file_format: str) -> str:
    file = open_data_file(_One(data), "x", "UTC", file_format)
    try:
        columns = file.names([*_ROWS.column_names, "more"])
        count = 0
        for number, (rows, arrays) in enumerate(file.batches(columns, 1000)):
            for values in arrays.values():
                # Whether texts are text nobody looks at, as with Spark: the bytes of the pages are what they are.
                values.validate()
                assert len(values) == rows
            count += rows
            if number > 100:
                break
    finally:
        file.close()
    return "rows" if count else "empty"


def _parquet_footers() -> Made:
    def act(data: bytes) -> str:
        metadata, footer = read_described(pa.BufferReader(data), _COLUMNS, "x")
        stored_schema(metadata, "x")
        return "ok" if footer.num_rows == metadata.num_rows else "other rows"

    said = {"org.apache.spark.sql.parquet.row.metadata": format_schema(Struct((Field("id", t.LONG),)))}
    files = (_ROWS, _NARROW, _NARROW.slice(0, 0), _NARROW.select(["id"]).replace_schema_metadata(said))
    return [*map(parquet, files), parquet(_ROWS, version="1.0")], act


def _parquet_rows() -> Made:
    return [parquet(_ROWS), parquet(_NARROW, compression="none"), parquet(_NARROW, data_page_version="2.0")], (
        lambda data: _read_rows(data, "parquet")
    )


def _parquet_pages() -> Made:
    """Some rows of a file, of which only the pages are read that hold them."""

    def act(data: bytes) -> str:
        file = open_data_file(_One(data), "x", "UTC")
        try:
            columns = file.names(["id", "s"])
            for row_group in range(min(file.reader.metadata.num_row_groups, 4)):
                for name in columns.values():
                    file.pages.bounds(row_group, name)
                found = file.rows(row_group, columns, np.array([1, 40]))
                for values in (found or {}).values():
                    values.validate(full=True)
                    assert len(values) == 2
                for leaf in range(2):
                    try:
                        file.pages.statistics(row_group, leaf)
                    except NoPages:
                        return "no pages"
        finally:
            file.close()
        return "ok"

    rows = pa.table({"id": range(60), "s": [f"{i}" for i in range(60)]})
    pages = {"data_page_size": 64, "write_batch_size": 8, "compression": "none", "use_dictionary": False}
    return [
        parquet(rows, write_page_index=True, **pages),
        parquet(rows, **pages),
        parquet(rows, write_page_index=True),
    ], act


def _page_indexes() -> Made:
    """Offset indexes and column indexes, and footers as they are read field by field; the first byte says which."""
    rows = pa.table({"id": range(60), "s": [f"{i}" for i in range(60)]})
    whole = parquet(rows, write_page_index=True, data_page_size=64, write_batch_size=8, use_dictionary=False)
    size = int.from_bytes(whole[-8:-4], "little")
    raw = whole[-8 - size : -8]
    chunk = Footer(raw).chunk(0, 0)
    places = [chunk.offset_index, chunk.column_index]

    def act(data: bytes) -> str:
        try:
            if data[:1] == b"o":
                parse_offset_index(data[1:], chunk, 60)
            elif data[:1] == b"c":
                parse_column_index(data[1:])
            else:
                footer = Footer(data[1:])
                for leaf in range(min(footer.num_leaves, 4)):
                    one = footer.chunk(0, leaf)
                    footer.has_order(leaf), one.statistics, one.offset_index, one.column_index
        except NoPages:
            return "no pages"
        return "ok"

    indexes = [kind + whole[place[0] : sum(place)] for kind, place in zip((b"o", b"c"), places, strict=True) if place]
    return [*indexes, b"f" + raw], act


def _orc_footers() -> Made:
    def act(data: bytes) -> str:
        code = "ok"
        for read in (
            lambda file: read_orc_footer(file, _COLUMNS, "x"),
            lambda file: char_columns(read_sound_tail(file, "x"), "x"),
            lambda file: read_writer_clock(file, read_sound_tail(file, "x"), "x"),
        ):
            try:
                read(pa.BufferReader(data))
            except AlluviumError as error:
                code = error.code
        return code

    codecs = ("uncompressed", "zstd", "snappy", "zlib", "lz4")
    return [orc_file(_ROWS.slice(0, 2 if codec == "zstd" else 3), compression=codec) for codec in codecs], act


def _orc_rows() -> Made:
    return [orc_file(_ROWS), orc_file(_NARROW, compression="zstd")], lambda data: _read_rows(data, "orc")


def avro_file(rows: pa.Table, codec: str = "none") -> bytes:
    writer = FileForm("avro", rows.schema, codec, 1).open()
    writer.add(rows)
    return writer.finish()


def _avro_containers() -> Made:
    def act(data: bytes) -> str:
        try:
            read_blocks(data, "x")
        finally:
            read_avro(data, "x")
        return "ok"

    few = _ROWS.drop_columns(["at"])
    return [
        avro_file(few),
        avro_file(_NARROW, "zstd"),
        avro_file(_NARROW, "snappy"),
        avro_file(_NARROW, "deflate"),
    ], act


def _avro_rows() -> Made:
    return [avro_file(_ROWS.drop_columns(["at"])), avro_file(_NARROW)], lambda data: _read_rows(data, "avro")


def _avro_schemas() -> Made:
    """The text of a schema, in a container of two blocks of zeros."""

    def piece(data: bytes) -> bytes:
        return encode_record('{"type":"record","name":"r","fields":[{"name":"b","type":"bytes"}]}', {"b": data})

    def act(data: bytes) -> str:
        head = MAGIC + b"\x02" + piece(b"avro.schema") + piece(data) + b"\x00" + bytes(16)
        block = b"\x04" + piece(bytes(40)) + bytes(16)
        return _read_rows(head + block, "avro")

    wide = avro_schema(_ROWS.schema)
    union = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "id", "type": ["null", "long", {"type": "array", "items": "r"}]}],
    }
    return [json.dumps(schema).encode() for schema in (avro_schema(_NARROW.schema), wide, union)], act


def _blobs() -> Made:
    def act(data: bytes) -> str:
        file = open_blob("x", pa.BufferReader(data))
        names = file.names(["v"])
        list(file.batches(names, 100))
        return "ok"

    body = (1_481_511_375).to_bytes(4, "little") + b"abc" + (19).to_bytes(8, "little") + bytes(4)
    index = b"\x26"
    return [body + index + len(index).to_bytes(4, "little") + b"\x01", b"\x00" * 4 + b"\x01"], act


def _variants() -> Made:
    """Metadata and value of one variant; the first byte is the length of the metadata."""

    def act(data: bytes) -> str:
        length = data[0] if data else 0
        metadata, value = data[1 : 1 + length], data[1 + length :]
        try:
            text = format_variant(metadata, value)
            assert isinstance(text, str)
        finally:
            group = pa.array([{"metadata": metadata, "value": value}] * 2, _GROUP)
            for values in rebuild(group):
                values.validate(full=True)
        return "ok"

    found = []
    for column in shredded_columns():
        metadata, values = rebuild(column)
        found += [bytes([len(m)]) + m + v for m, v in zip(metadata.to_pylist(), values.to_pylist(), strict=True) if m]
    return found, act


_GROUP = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])


def _shredded() -> Made:
    """The bytes beside shredded fields: metadata, then the value; the first bytes say how long and which shape."""
    shapes = [column for column in shredded_columns() if "typed_value" in [f.name for f in column.type]]

    def act(data: bytes) -> str:
        if len(data) < 2:
            return "short"
        shape, length = shapes[data[0] % len(shapes)], data[1]
        rows = [
            row and {**row, "metadata": data[2 : 2 + length], "value": data[2 + length :]} for row in shape.to_pylist()
        ]
        for values in rebuild(pa.array([*rows, *shape.to_pylist()], shape.type)):
            values.validate(full=True)
        return "ok"

    rows = [(number, row) for number, shape in enumerate(shapes) for row in shape.to_pylist() if row]
    return [bytes([n, len(row["metadata"])]) + row["metadata"] + (row["value"] or b"\x00") for n, row in rows], act


def _bitmaps() -> Made:
    """Two bitmaps of 32 bits as values of an aggregation, and one of 64 bits; the first byte says how they part."""

    def act(data: bytes) -> str:
        length = 4 * (data[0] if data else 0)
        first, then = data[1 : 1 + length], data[1 + length :]
        code = "nothing"
        for ask in (lambda: unite_32(first, then), lambda: unite_64(first, then), lambda: _asked(then)):
            try:
                ask()
                code = "ok"
            except AlluviumError as error:
                code = code if code == "ok" else error.code
        return code

    def joined(first: bytes, then: bytes) -> bytes:
        first += bytes(-len(first) % 4)
        return bytes([len(first) // 4]) + first + then

    small, large = BitMap([1, 5, 70_000]).serialize(), BitMap(range(40)).serialize()
    wide = unite_64(b"\x00", b"\x00")
    portable = (1).to_bytes(8, "little") + bytes(4) + small
    return [joined(small, large), joined(wide, wide), joined(portable, portable), joined(b"", small)], act


def _asked(bitmap: bytes) -> None:
    found = parse_bitmap(bitmap)
    if found.highest < 1 << 20:
        assert len(positions_of(found.data)) == found.cardinality
        assert highest_of(found.data) == found.highest
        window(found.data, 0, 100)
        assert subtract(found.data, found.data) is None or found.cardinality == 0


_ROW_TYPES = [
    (t.LONG, 0), (t.STRING, 0), (t.INTEGER, 0), (Decimal(10, 2), 0), (Decimal(30, 5), 0), (t.TIMESTAMP, 3),
    (t.TIMESTAMP_NTZ, 6), (t.TIMESTAMP_NTZ_NANOS, 9), (t.BINARY, 0), (t.BOOLEAN, 0), (t.DATE, 0), (t.DOUBLE, 0), (t.TIME, 0),
]  # fmt: skip


def _binary_rows() -> Made:
    """A row of bytes, beside one that is whole."""
    columns = [
        pa.array([7], pa.int64()), pa.array(["a text of more than seven"]), pa.array([3], pa.int32()), pa.array([1], pa.decimal128(10, 2)),
        pa.array([-1], pa.decimal128(30, 5)), pa.array([0], pa.timestamp("us", "UTC")), pa.array([1], pa.timestamp("us")),
        pa.array([2], pa.timestamp("ns")), pa.array([b"ab"]), pa.array([True]), pa.array([19_000], pa.int32()).cast(pa.date32()),
        pa.array([0.5]), pa.array([5], pa.int32()).cast(pa.time32("ms")).cast(pa.time64("us")),
    ]  # fmt: skip
    types = _ROW_TYPES[: len(columns)]
    while True:
        try:
            whole = encode_rows(columns, types)[0].as_py()
            break
        except (AlluviumError, KeyError, TypeError, pa.ArrowException):
            columns, types = columns[:-1], types[:-1]
    short = encode_rows(columns[:2], types[:2])[0].as_py()

    def act(data: bytes) -> str:
        for kinds, other in ((types, whole), (types[:2], short)):
            for values in decode_rows(pa.array([other, data, None], pa.binary()), kinds):
                values.validate(full=True)
        return "ok"

    return [whole, short], act


MAKERS: Mapping[str, Callable[[], Made]] = {
    "parquet-footer": _parquet_footers,
    "parquet-rows": _parquet_rows,
    "parquet-pages": _parquet_pages,
    "parquet-page-index": _page_indexes,
    "orc-footer": _orc_footers,
    "orc-rows": _orc_rows,
    "avro-container": _avro_containers,
    "avro-rows": _avro_rows,
    "avro-schema": _avro_schemas,
    "blob-file": _blobs,
    "variant": _variants,
    "variant-shredded": _shredded,
    "bitmap": _bitmaps,
    "binary-row": _binary_rows,
}

"""Avro container files to Python records and back, with every codec that writers use.

Logical types are left aside: dates, times and decimals come as the numbers and bytes that the file holds, since
Python's own types do not hold all of them.

Specification: https://avro.apache.org/docs/1.11.1/specification/#object-container-files. fastavro decodes the records;
blocks are decompressed here, by pyarrow, since fastavro wants a package of its own for each codec.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import secrets
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, cast

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException

from alluvium.codecs.avro.avro_schema import RecordShape, measure_schema
from alluvium.codecs.inflate import inflated
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.storage.varint import read_signed, read_unsigned

MAGIC = b"Obj\x01"
_SYNC = 16
_STREAM_CODECS = {"zstandard": "zstd", "bzip2": "bz2"}
#: Bounds on what a few bytes may become. Writers make blocks of 16 kB to some MB, whose rows may all be alike: a file
#: that grows a thousandfold is no attack, one that grows beyond what a machine holds is.
_MAX_SCHEMA_BYTES = 16 << 20
_MAX_BLOCK_BYTES = 256 << 20
_MAX_FILE_BYTES, _MAX_EXPANSION = 2 << 30, 100
#: Schemas that are kept.
_SHORT_SCHEMA_BYTES = 64 << 10
#: Records of a file that take no bytes of it.
_MAX_EMPTY_RECORDS = 1_000_000


def read_avro(data: bytes, path: str) -> tuple[Any, list[Any]]:
    """The writer's schema and the records of a container.

    Args:
        data: The whole file.
        path: Of the file, for errors.

    Raises:
        CorruptTable: It is cut off or malformed (`"damaged-file"`).
        UnsupportedFeature: Its codec is unknown.
    """
    with _naming(path):
        header, position = _header(data)
        known = _schema(header)
        plain = {"avro.schema": known.plain, "avro.codec": b"null"}
        blocks = _plain_blocks(data, position, header, known.shape)
        return json.loads(header["avro.schema"]), list(
            fastavro.reader(cast("IO[bytes]", _Pieces(_container(plain, blocks))))
        )


def read_blocks(data: bytes, path: str) -> tuple[bytes, list[tuple[int, bytes]]]:
    """The writer's schema as it stands, and the blocks: numbers of records, and their bytes, not compressed.

    Raises:
        CorruptTable: The container is cut off or malformed (`"damaged-file"`).
        UnsupportedFeature: Its codec is unknown.
    """
    with _naming(path):
        header, position = _header(data)
        shape = _schema(header).shape
        return header["avro.schema"], list(_plain_blocks(data, position, header, shape))


def parse_schema(text: bytes) -> Any:
    """A schema without its logical types."""
    return _physical(json.loads(text))


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Errors of a file, with its path."""
    try:
        yield
    except (CorruptTable, UnsupportedFeature) as error:
        error.path = path
        raise
    except _FOREIGN as error:
        raise _damaged(str(error) or type(error).__name__, path) from None


#: What the decoders raise at bytes that are none of theirs, or are made to be too much.
_FOREIGN = (
    ValueError, EOFError, LookupError, TypeError, StopIteration, OSError, OverflowError, MemoryError, RecursionError,
    zlib.error, pa.ArrowException, SchemaParseException,
)  # fmt: skip


#: A block ends with so many records or bytes, for readers decompress it at once.
_BLOCK_RECORDS, _BLOCK_BYTES = 4096, 1 << 20


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """A schema that is written by again and again, made ready once.

    Attributes:
        text: As headers have it.
        compiled: As fastavro wants it.
    """

    text: bytes
    compiled: Any

    @staticmethod
    def of(schema: Mapping[str, Any]) -> WriterSchema:
        text = json.dumps(schema)
        return WriterSchema(text.encode(), _compiled(text))


def format_avro(
    schema: Mapping[str, Any] | WriterSchema, records: Sequence[Mapping[str, Any]], codec: str = "zstandard"
) -> bytes:
    """A container of records.

    Args:
        schema: Of the records; logical types are told to readers, but values are given as numbers.
        records: In order.
        codec: `"zstandard"`, `"deflate"`, `"snappy"` or `"null"`.

    Raises:
        UnsupportedFeature: Another codec.
    """
    container = AvroContainer(schema, codec)
    container.add(records)
    return b"".join(container.parts)


def joined_avro(schema: WriterSchema, containers: Iterable[tuple[str, bytes]], codec: str) -> bytes | None:
    """A container with the records of several, none of which is decoded.

    Args:
        schema: That of each of them, and of the whole.
        containers: Path and bytes of each, in order.
        codec: As of `format_avro`.

    Returns:
        Its bytes; None: one of them was written by another schema.

    Raises:
        CorruptTable: One is cut off or malformed (`"damaged-file"`).
        UnsupportedFeature: Its codec is unknown.
    """
    joined = AvroContainer(schema, codec)
    for path, data in containers:
        text, blocks = read_blocks(data, path)
        if text != joined.schema_text:
            return None
        joined.add_blocks(blocks)
    joined.close_block()
    return b"".join(joined.parts)


class AvroContainer:
    """A container in the making.

    Args:
        schema: As of `format_avro`.
        codec: Likewise.

    Attributes:
        parts: Its bytes so far, in pieces.
        size: How many they are.
        schema_text: The schema as its header has it.
    """

    def __init__(self, schema: Mapping[str, Any] | WriterSchema, codec: str = "zstandard") -> None:
        known = schema if isinstance(schema, WriterSchema) else WriterSchema.of(schema)
        self._schema, self._codec = known.compiled, codec
        self._sync = secrets.token_bytes(_SYNC)
        self.schema_text = known.text
        header = {"avro.schema": self.schema_text, "avro.codec": codec.encode()}
        self.parts = [MAGIC, *_map(header), self._sync]
        self.size = sum(map(len, self.parts))
        self._open: list[bytes] = []
        self._count, self._bytes = 0, 0

    def add(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Appends records as blocks of their own."""
        out, count = io.BytesIO(), 0
        for record in records:
            fastavro.schemaless_writer(out, self._schema, record)
            count += 1
            if count == _BLOCK_RECORDS or out.tell() >= _BLOCK_BYTES:
                self.add_blocks([(count, out.getvalue())])
                out, count = io.BytesIO(), 0
        if count:
            self.add_blocks([(count, out.getvalue())])
        self.close_block()

    def add_blocks(self, blocks: Iterable[tuple[int, bytes]]) -> None:
        """Appends encoded records, so many in so many bytes each, to the last block; a full one is closed first."""
        for count, plain in blocks:
            if self._count and (self._count + count > _BLOCK_RECORDS or self._bytes + len(plain) > _BLOCK_BYTES):
                self.close_block()
            self._open.append(plain)
            self._count, self._bytes = self._count + count, self._bytes + len(plain)

    def close_block(self) -> None:
        """Writes the last block, if it has records."""
        if not self._count:
            return
        block = _compressed(b"".join(self._open), self._codec)
        added = [_format_signed(self._count), _format_signed(len(block)), block, self._sync]
        self.parts += added
        self.size += sum(map(len, added))
        self._open, self._count, self._bytes = [], 0, 0


def encode_record(schema: str, record: Mapping[str, Any]) -> bytes:
    """One record without a container; logical types are left aside, as everywhere here.

    Raises:
        CorruptTable: It is not of the schema, as of one that calls two fields by one name (`damaged-file`).
    """
    out = io.BytesIO()
    try:
        fastavro.schemaless_writer(out, _compiled(schema), record)
    except _FOREIGN as error:
        raise _damaged(f"a record is not of its schema: {error}") from None
    return out.getvalue()


def decode_record(schema: str, data: bytes) -> dict[str, Any]:
    """What `encode_record` made."""
    record = fastavro.schemaless_reader(io.BytesIO(data), _compiled(schema), None)
    assert isinstance(record, dict), "the schema is a record's"
    return record


@functools.lru_cache(16)
def _compiled(schema: str) -> Any:
    """What fastavro makes of a schema; a writer has few of them."""
    return fastavro.parse_schema(_physical(json.loads(schema)))


def _map(entries: Mapping[str, bytes]) -> list[bytes]:
    parts = [_format_signed(len(entries))]
    for key, value in entries.items():
        parts += [_format_signed(len(key.encode())), key.encode(), _format_signed(len(value)), value]
    return [*parts, _format_signed(0)]


def _compressed(block: bytes, codec: str) -> bytes:
    if codec == "null":
        return block
    if codec == "deflate":
        # Raw: without the header and checksum of zlib.
        deflater = zlib.compressobj(wbits=-15)
        return deflater.compress(block) + deflater.flush()
    if codec == "snappy":
        # "Each compressed block is followed by the 4-byte, big-endian CRC32 checksum of the uncompressed data".
        return bytes(pa.compress(block, "snappy", asbytes=True)) + zlib.crc32(block).to_bytes(4, "big")
    if codec == "zstandard":
        return bytes(pa.compress(block, "zstd", asbytes=True))
    raise UnsupportedFeature(f"Avro blocks compressed by {codec!r}", code="unsupported-codec", features=(codec,))


def _damaged(reason: str, path: str | None = None) -> CorruptTable:
    return CorruptTable(f"the Avro file cannot be read: {reason}", code="damaged-file", path=path)


def _header(data: bytes) -> tuple[dict[str, bytes], int]:
    if data[:4] != MAGIC:
        raise _damaged("it does not begin as one")
    position = 4
    entries: dict[str, bytes] = {}
    while True:
        count, position = read_signed(data, position)
        if count == 0:
            return entries, position
        if count < 0:
            _, position = read_signed(data, position)
            count = -count
        for _ in range(count):
            key, position = _piece(data, position)
            entries[key.decode()], position = _piece(data, position)


def _physical(node: Any) -> Any:
    """A schema without its logical types."""
    if isinstance(node, list):
        return [_physical(part) for part in node]
    if isinstance(node, dict):
        return {key: _physical(value) for key, value in node.items() if key != "logicalType"}
    return node


@dataclass(frozen=True, slots=True)
class _Schema:
    """What is known of a writer's schema, whose own form callers may change.

    Attributes:
        shape: What decoding by it takes.
        plain: Its text without logical types.
    """

    shape: RecordShape
    plain: bytes


def _schema(header: Mapping[str, bytes]) -> _Schema:
    """The writer's schema, once it is known that decoding by it comes to an end."""
    text = header["avro.schema"]
    if len(text) > _MAX_SCHEMA_BYTES:
        raise _damaged(f"its schema has {len(text)} bytes")
    return _short_schema(text) if len(text) <= _SHORT_SCHEMA_BYTES else _parsed_schema(text)


def _parsed_schema(text: bytes) -> _Schema:
    schema = json.loads(text)
    return _Schema(measure_schema(schema), json.dumps(_physical(schema)).encode())


#: A table's manifests have the same two schemas, and small ones take less time to decode than to understand.
_short_schema = functools.lru_cache(maxsize=16)(_parsed_schema)


def _container(header: Mapping[str, bytes], blocks: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
    """A container of blocks that are not compressed, in pieces."""
    sync = bytes(_SYNC)
    yield b"".join([MAGIC, *_map(header), sync])
    for count, plain in blocks:
        yield _format_signed(count) + _format_signed(len(plain))
        yield plain
        yield sync


class _Pieces(io.RawIOBase):
    """A file of pieces that are made when they are read, so that one block at a time is held."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece, self._position = b"", 0

    def read(self, size: int = -1) -> bytes:
        """So many bytes, or fewer at the end; all that there are if the size is negative."""
        found: list[bytes] = []
        while size:
            if self._position == len(self._piece):
                following = next(self._pieces, None)
                if following is None:
                    break
                self._piece, self._position = following, 0
                continue
            taken = self._piece[self._position :] if size < 0 else self._piece[self._position : self._position + size]
            self._position += len(taken)
            size -= len(taken) if size > 0 else 0
            found.append(taken)
        return found[0] if len(found) == 1 else b"".join(found)


def _plain_blocks(
    data: bytes, position: int, header: Mapping[str, bytes], shape: RecordShape
) -> Iterator[tuple[int, bytes]]:
    """Numbers of records and their bytes; what is told of them is checked against what is there."""
    codec = header.get("avro.codec", b"null").decode()
    sync = data[position : position + _SYNC]
    if len(sync) < _SYNC:
        raise _damaged("its header is cut off")
    room, empty_records = _MAX_FILE_BYTES + _MAX_EXPANSION * len(data), 0
    for count, block in _blocks(data, position + _SYNC, sync):
        plain = _decompressed(block, codec, _MAX_BLOCK_BYTES)
        room -= len(plain)
        if room < 0:
            raise _damaged(f"its {len(data)} bytes grow to more than {_MAX_FILE_BYTES}")
        empty_records += count if shape.min_bytes == 0 else 0
        if count < 0 or count * shape.min_bytes > len(plain) or empty_records > _MAX_EMPTY_RECORDS:
            raise _damaged(f"a block of {len(plain)} bytes is said to hold {count} records")
        yield count, plain


def _blocks(data: bytes, position: int, sync: bytes) -> Iterator[tuple[int, bytes]]:
    while position < len(data):
        count, position = read_signed(data, position)
        size, position = read_signed(data, position)
        block, position = data[position : position + size], position + size
        if size < 0 or len(block) != size or data[position : position + _SYNC] != sync:
            raise _damaged("a block is cut off")
        yield count, block
        position += _SYNC


def _decompressed(block: bytes, codec: str, most: int) -> bytes:
    """The bytes of a block, at most so many."""
    if codec == "null":
        return block
    if codec == "deflate":
        inflater = zlib.decompressobj(wbits=-15)
        plain = inflater.decompress(block, most)
        if not inflater.eof and (inflater.unconsumed_tail or len(plain) == most):
            raise _too_large(most)
        if not inflater.eof:
            raise _damaged("a block is cut off")
        return plain
    if codec == "snappy":
        # "Each compressed block is followed by the 4-byte, big-endian CRC32 checksum of the uncompressed data".
        size, _ = read_unsigned(block, 0)
        if size > most:
            raise _too_large(most)
        return bytes(pa.decompress(block[:-4], size, "snappy", asbytes=True))
    if codec in _STREAM_CODECS:
        grown = inflated(block, _STREAM_CODECS[codec], most)
        if grown is None:
            raise _too_large(most)
        return grown
    raise UnsupportedFeature(f"Avro blocks compressed by {codec!r}", code="unsupported-codec", features=(codec,))


def _too_large(most: int) -> CorruptTable:
    return _damaged(f"a block grows to more than {most} bytes, which no writer makes of so few")


def _piece(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = read_signed(data, position)
    piece = data[position : position + size]
    if size < 0 or len(piece) != size:
        raise _damaged("its header is cut off")
    return piece, position + size


def _format_signed(value: int) -> bytes:
    rest, out = value << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])

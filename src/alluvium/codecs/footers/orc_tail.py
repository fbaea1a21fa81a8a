"""The tail of an ORC file as messages of Protocol Buffers: what every reader of something there begins with.

Specification: https://orc.apache.org/specification/ORCv1/ ("File Tail", "Compression").
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from alluvium.codecs.inflate import inflated
from alluvium.codecs.lzo import decompress_lzo
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.storage.varint import read_unsigned

#: The fields of a message by their numbers, each as often as it is there: numbers, and bytes of what has a length.
Message: TypeAlias = Mapping[int, Sequence[int | bytes]]

_MAGIC = b"ORC"
#: Of most files the whole tail is within.
_TAIL_BYTES = 16 << 10
#: What a footer or a stream of lengths may grow to: a writer holds them in memory as a whole.
_MAX_PLAIN_BYTES = 256 << 20
_CHUNK_HEADER = 3
# PostScript
_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE, _POSTSCRIPT_MAGIC = 1, 2, 3, 8000
#: Of `CompressionKind`.
_NUM_CODECS = 7
# StripeInformation
_STRIPE_OFFSET, _INDEX_LENGTH, _DATA_LENGTH, _STRIPE_FOOTER_LENGTH = 1, 2, 3, 4
# Type
_KIND, _FIELD_NAMES = 1, 3
#: What an enumeration is cut to.
UINT32 = (1 << 32) - 1


@contextmanager
def reading_orc(path: str | None) -> Iterator[None]:
    """What goes wrong with the bytes of a file, as `CorruptTable` (`"damaged-file"`)."""
    try:
        yield
    # A decimal that is none is an ArithmeticError.
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        ArithmeticError,
        struct.error,
        zlib.error,
    ) as error:
        raise CorruptTable(
            f"the footer of an ORC file cannot be read: {error}",
            code="damaged-file",
            path=path,
            hint="the file was cut or overwritten; restore it, or remove it from the table",
        ) from None


@dataclass(frozen=True, slots=True)
class OrcTail:
    """The footer of a file, and the codec of all that lies beside it, with the bytes of its largest chunk."""

    footer: Message
    codec: int
    block_bytes: int


def read_tail(file: pa.NativeFile) -> OrcTail:
    """Reads the tail of an open file; errors as they come, for `reading_orc`."""
    size = file.size()
    file.seek(max(0, size - _TAIL_BYTES))
    tail = bytes(file.read())
    # "The final byte of the file contains the serialized length of the Postscript".
    length = tail[-1]
    postscript = fields_of(tail[-1 - length : -1])
    if bytes_of(postscript, _POSTSCRIPT_MAGIC) != _MAGIC:
        raise ValueError("it does not end as an ORC file does")
    end = size - 1 - length
    begin = end - number_of(postscript, _FOOTER_LENGTH)
    if begin < 0:
        raise ValueError("the file is shorter than its footer")
    if begin < size - len(tail):
        file.seek(begin)
        stored = bytes(file.read(end - begin))
    else:
        stored = tail[len(tail) - (size - begin) : len(tail) - (size - end)]
    codec = kind_of(postscript, _COMPRESSION, _NUM_CODECS)
    return OrcTail(fields_of(plain_bytes(stored, codec)), codec, number_of(postscript, _BLOCK_SIZE))


def read_within(file: pa.NativeFile, begin: int, length: int) -> bytes:
    """Bytes of a stripe; `ValueError`: the file has them not. Memory is taken before it is read."""
    if begin + length > file.size():
        raise ValueError("a stripe does not lie within the file")
    file.seek(begin)
    return bytes(file.read(length))


def read_stripe_footer(file: pa.NativeFile, stripe: Message, codec: int) -> tuple[int, Message]:
    """Where the footer of a stripe begins, which is where its streams end, and what it says."""
    begin = sum(number_of(stripe, field) for field in (_STRIPE_OFFSET, _INDEX_LENGTH, _DATA_LENGTH))
    stored = read_within(file, begin, number_of(stripe, _STRIPE_FOOTER_LENGTH))
    return begin, fields_of(plain_bytes(stored, codec))


def plain_bytes(stored: bytes, codec: int) -> bytes:
    """Chunks as they were before they were compressed, in one piece."""
    pieces, size = [], 0
    for piece in plain_chunks(stored, codec):
        pieces.append(piece)
        size += len(piece)
        if size > _MAX_PLAIN_BYTES:
            raise ValueError(f"{len(stored)} bytes grow to more than {_MAX_PLAIN_BYTES}")
    return b"".join(pieces)


def plain_chunks(stored: bytes, codec: int) -> Iterator[bytes]:
    """Chunks as they were before they were compressed."""
    if codec == 0:
        yield stored
        return
    if codec not in _CODECS:
        raise UnsupportedFeature(f"ORC's codec {codec}", code="unsupported-codec", features=(f"orc-codec-{codec}",))
    position = 0
    while position < len(stored):
        # "the header is (compressedLength * 2 + isOriginal) stored as a little endian value".
        header = int.from_bytes(stored[position : position + _CHUNK_HEADER], "little")
        position += _CHUNK_HEADER
        chunk = stored[position : position + (header >> 1)]
        if len(chunk) < header >> 1:
            raise ValueError("a chunk is cut off")
        yield chunk if header & 1 else _CODECS[codec](chunk)
        position += len(chunk)


def _from_zlib(chunk: bytes) -> bytes:
    return zlib.decompressobj(wbits=-15).decompress(chunk, _MAX_PLAIN_BYTES)


def _from_snappy(chunk: bytes) -> bytes:
    size, _ = read_unsigned(chunk, 0)
    if size > _MAX_PLAIN_BYTES:
        raise ValueError(f"a chunk of {len(chunk)} bytes is said to hold {size}")
    return bytes(pa.decompress(chunk, size, "snappy", asbytes=True))


def _from_lz4(chunk: bytes) -> bytes:
    """Of a block of LZ4 nobody says how long it was: its sequences do."""
    size = position = 0
    while position < len(chunk):
        token, position = chunk[position], position + 1
        literals, position = _lz4_length(token >> 4, chunk, position)
        size, position = size + literals, position + literals
        if position >= len(chunk):
            break
        # "little endian offset": 2 bytes. "minmatch": 4 bytes.
        copied, position = _lz4_length(token & 15, chunk, position + 2)
        size += copied + 4
        if size > _MAX_PLAIN_BYTES:
            raise ValueError(f"a chunk of {len(chunk)} bytes grows to more than {_MAX_PLAIN_BYTES}")
    return bytes(pa.decompress(chunk, size, "lz4_raw", asbytes=True))


def _lz4_length(begun: int, chunk: bytes, position: int) -> tuple[int, int]:
    """A length of four bits and, where these are full, of the bytes behind up to one that is not."""
    length, more = begun, begun == 15
    while more:
        length, more, position = length + chunk[position], chunk[position] == 255, position + 1
    return length, position


def _from_zstd(chunk: bytes) -> bytes:
    plain = inflated(chunk, "zstd", _MAX_PLAIN_BYTES)
    if plain is None:
        raise ValueError(f"a chunk of {len(chunk)} bytes grows to more than {_MAX_PLAIN_BYTES}")
    return plain


def _from_lzo(chunk: bytes) -> bytes:
    return decompress_lzo(chunk, _MAX_PLAIN_BYTES)


#: By `CompressionKind`.
_CODECS: Mapping[int, Callable[[bytes], bytes]] = {
    1: _from_zlib,
    2: _from_snappy,
    3: _from_lzo,
    4: _from_lz4,
    5: _from_zstd,
}


def fields_of(data: bytes) -> Message:
    """A message of Protocol Buffers."""
    found: dict[int, list[int | bytes]] = {}
    position = 0
    while position < len(data):
        key, position = read_unsigned(data, position)
        value: int | bytes
        if key & 7 == 0:
            value, position = read_unsigned(data, position)
        else:
            if key & 7 == 2:
                length, position = read_unsigned(data, position)
            else:
                length = {1: 8, 5: 4}[key & 7]
            value = data[position : position + length]
            if len(value) < length:
                raise ValueError("a field is cut off")
            position += length
        found.setdefault(key >> 3, []).append(value)
    return found


def number_of(message: Message, field: int) -> int:
    """A number without a sign; where it is not there, 0, as Protocol Buffers have it."""
    value = message[field][-1] if field in message else 0
    if not isinstance(value, int):
        raise ValueError(f"field {field} is no number")
    return value


def kind_of(message: Message, field: int, count: int) -> int:
    """A value of an enumeration of so many: the last that is one of them, as Protocol Buffers have it."""
    given = [one & UINT32 for one in message.get(field, ()) if isinstance(one, int)]
    return next((one for one in reversed(given) if one < count), 0)


def bytes_of(message: Message, field: int) -> bytes:
    """Bytes, a text or a message within; where it is not there, none."""
    value = message[field][-1] if field in message else b""
    if not isinstance(value, bytes):
        raise ValueError(f"field {field} is a number")
    return value


def signed(number: int) -> int:
    """A number of type "sint64"."""
    return (number >> 1) ^ -(number & 1)


def messages_of(message: Message, field: int) -> list[Message]:
    """All messages of a field."""
    return [fields_of(one) for one in message.get(field, ()) if isinstance(one, bytes)]


def sole_kind(orc_type: Message) -> int:
    """The kind of a type. It stands there once: which of two counts, depends on which ones a reader knows."""
    kinds = set(orc_type.get(_KIND, (0,)))
    if len(kinds) > 1:
        raise ValueError("a type has two kinds")
    return number_of(orc_type, _KIND) & UINT32


def names_of(struct_type: Message) -> list[str]:
    """The names of a struct's fields."""
    return [bytes(name).decode() for name in struct_type.get(_FIELD_NAMES, ()) if isinstance(name, bytes)]


def numbers_of(message: Message, field: int) -> list[int]:
    """Numbers, packed into one field or not."""
    found = []
    for value in message.get(field, ()):
        if isinstance(value, int):
            found.append(value)
            continue
        position = 0
        while position < len(value):
            number, position = read_unsigned(value, position)
            found.append(number)
    return found

"""What an ORC file says of itself in its tail: rows, the bounds and null counts of columns, and their types.

Nothing but the tail is read: pyarrow opens ORC files, but shows nobody their statistics, nor all of their types. Bounds
are exact values; one that the file does not give for certain is None.

Specification: https://orc.apache.org/specification/ORCv1/ ("File Tail", "Column Statistics").
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

from alluvium.codecs.footers.parquet_footer import Bound, ColumnStats, FileFooter, FooterColumn
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import DataType
from alluvium.schema.types import Decimal as DecimalType
from alluvium.storage.varint import read_unsigned

#: The fields of a message by their numbers, each as often as it is there: numbers, and bytes of what has a length.
_Message: TypeAlias = Mapping[int, Sequence[int | bytes]]
_Bounds: TypeAlias = "tuple[Bound, Bound] | None"
_Read: TypeAlias = Callable[[_Message, int], _Bounds]

_MAGIC = b"ORC"
#: Of most files the whole tail is within.
_TAIL_BYTES = 16 << 10
#: What the tail of a file may grow to: a writer holds it in memory as a whole.
_MAX_FOOTER_BYTES = 256 << 20
_PIECE_BYTES = 1 << 20
_CHUNK_HEADER = 3
# PostScript
_FOOTER_LENGTH, _COMPRESSION, _POSTSCRIPT_MAGIC = 1, 2, 8000
# Footer
_TYPES, _NUM_ROWS, _STATISTICS = 4, 6, 7
# Type
_KIND, _SUBTYPES, _FIELD_NAMES = 1, 2, 3
# ColumnStatistics
_NUM_VALUES, _OF_INTEGERS, _OF_DOUBLES, _OF_STRINGS, _OF_BOOLEANS, _OF_DECIMALS, _OF_DATES = range(1, 8)
# Within those of one kind
_MIN, _MAX, _SUM = 1, 2, 3
_BOOLEAN, _BYTE, _SHORT, _INT, _LONG, _FLOAT, _DOUBLE, _STRING = range(8)
_DECIMAL, _DATE, _VARCHAR, _CHAR = 14, 15, 16, 17


def read_orc_footer(file: pa.NativeFile, columns: Sequence[FooterColumn], path: str | None = None) -> FileFooter:
    """Reads the tail of an ORC file, and closes the file.

    Args:
        file: A seekable file.
        columns: The columns at the top level to take statistics of, by their names in the file.
        path: For the error.

    Raises:
        CorruptTable: The file is not an ORC file.
        UnsupportedFeature: Its codec is unknown (`"unsupported-codec"`).
    """
    with _reading(path), file:
        return _footer(_fields(_footer_bytes(file)), columns)


@dataclass(frozen=True, slots=True)
class OrcType:
    """A type of an ORC file.

    Attributes:
        is_char: Whether it is `char(n)`.
        holds_char: Whether it is, or has such a member at any depth.
        members: Of a struct its fields', of a list its elements', of a map those of keys and values, of a union all.
    """

    is_char: bool
    holds_char: bool
    members: tuple[OrcType, ...] = ()


def read_char_columns(file: pa.NativeFile, path: str | None = None) -> Mapping[str, OrcType]:
    """The columns of an ORC file that are `char(n)`, or hold such, by name.

    Args:
        file: A seekable file, which stays open.
        path: For the error.

    Raises:
        CorruptTable: The file is not an ORC file.
        UnsupportedFeature: Its codec is unknown (`"unsupported-codec"`).
    """
    with _reading(path):
        types = [_fields(one) for one in _fields(_footer_bytes(file)).get(_TYPES, ()) if isinstance(one, bytes)]
        if not any(_number(one, _KIND) == _CHAR for one in types):
            return {}
        made: dict[int, OrcType] = {}
        # Types are numbered from the root down, so that the last ones have no members, and each is a member once.
        for place in reversed(range(len(types))):
            members = tuple(made.pop(member) for member in _numbers(types[place], _SUBTYPES))
            is_char = _number(types[place], _KIND) == _CHAR
            made[place] = OrcType(is_char, is_char or any(m.holds_char for m in members), members)
        columns = zip(_names(types[0]), made[0].members, strict=True)
        return {name: kind for name, kind in columns if kind.holds_char}


@contextmanager
def _reading(path: str | None) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, IndexError, KeyError, TypeError, struct.error, zlib.error) as error:
        raise CorruptTable(
            f"the footer of an ORC file cannot be read: {error}",
            code="damaged-file",
            path=path,
            hint="the file was cut or overwritten; restore it, or remove it from the table",
        ) from None


def _footer_bytes(file: pa.NativeFile) -> bytes:
    """The footer, as it was before it was compressed."""
    size = file.size()
    file.seek(max(0, size - _TAIL_BYTES))
    tail = bytes(file.read())
    # "The final byte of the file contains the serialized length of the Postscript".
    length = tail[-1]
    postscript = _fields(tail[-1 - length : -1])
    if _bytes(postscript, _POSTSCRIPT_MAGIC) != _MAGIC:
        raise ValueError("it does not end as an ORC file does")
    end = size - 1 - length
    begin = end - _number(postscript, _FOOTER_LENGTH)
    if begin < 0:
        raise ValueError("the file is shorter than its footer")
    if begin < size - len(tail):
        file.seek(begin)
        stored = bytes(file.read(end - begin))
    else:
        stored = tail[len(tail) - (size - begin) : len(tail) - (size - end)]
    return _plain(stored, _number(postscript, _COMPRESSION))


def _plain(stored: bytes, codec: int) -> bytes:
    if codec == 0:
        return stored
    if codec not in _CODECS:
        raise UnsupportedFeature(f"ORC's codec {codec}", code="unsupported-codec", features=(f"orc-codec-{codec}",))
    pieces, position, size = [], 0, 0
    while position < len(stored):
        # "the header is (compressedLength * 2 + isOriginal) stored as a little endian value".
        header = int.from_bytes(stored[position : position + _CHUNK_HEADER], "little")
        position += _CHUNK_HEADER
        chunk = stored[position : position + (header >> 1)]
        if len(chunk) < header >> 1:
            raise ValueError("a chunk is cut off")
        pieces.append(chunk if header & 1 else _CODECS[codec](chunk))
        position += len(chunk)
        size += len(pieces[-1])
        if size > _MAX_FOOTER_BYTES:
            raise ValueError(f"a footer of {len(stored)} bytes grows to more than {_MAX_FOOTER_BYTES}")
    return b"".join(pieces)


def _inflated(chunk: bytes) -> bytes:
    return zlib.decompressobj(wbits=-15).decompress(chunk, _MAX_FOOTER_BYTES)


def _from_snappy(chunk: bytes) -> bytes:
    size, _ = read_unsigned(chunk, 0)
    if size > _MAX_FOOTER_BYTES:
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
        if size > _MAX_FOOTER_BYTES:
            raise ValueError(f"a chunk of {len(chunk)} bytes grows to more than {_MAX_FOOTER_BYTES}")
    return bytes(pa.decompress(chunk, size, "lz4_raw", asbytes=True))


def _lz4_length(begun: int, chunk: bytes, position: int) -> tuple[int, int]:
    """A length of four bits and, where these are full, of the bytes behind up to one that is not."""
    length, more = begun, begun == 15
    while more:
        length, more, position = length + chunk[position], chunk[position] == 255, position + 1
    return length, position


def _from_zstd(chunk: bytes) -> bytes:
    pieces, room = [], _MAX_FOOTER_BYTES
    stream = pa.CompressedInputStream(pa.BufferReader(chunk), "zstd")
    while piece := stream.read(_PIECE_BYTES):
        pieces.append(bytes(piece))
        room -= len(piece)
        if room < 0:
            raise ValueError(f"a chunk of {len(chunk)} bytes grows to more than {_MAX_FOOTER_BYTES}")
    return b"".join(pieces)


_CODECS: Mapping[int, Callable[[bytes], bytes]] = {1: _inflated, 2: _from_snappy, 4: _from_lz4, 5: _from_zstd}


def _fields(data: bytes) -> _Message:
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


def _number(message: _Message, field: int) -> int:
    """A number without a sign; where it is not there, 0, as Protocol Buffers have it."""
    value = message[field][-1] if field in message else 0
    if not isinstance(value, int):
        raise ValueError(f"field {field} is no number")
    return value


def _bytes(message: _Message, field: int) -> bytes:
    value = message[field][-1] if field in message else b""
    if not isinstance(value, bytes):
        raise ValueError(f"field {field} is a number")
    return value


def _numbers(message: _Message, field: int) -> list[int]:
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


def _footer(footer: _Message, columns: Sequence[FooterColumn]) -> FileFooter:
    num_rows = _number(footer, _NUM_ROWS)
    types = [_fields(one) for one in footer.get(_TYPES, ()) if isinstance(one, bytes)]
    statistics = [_fields(one) for one in footer.get(_STATISTICS, ()) if isinstance(one, bytes)]
    # The first is that of the rows: what did not count all of them tells nothing of their columns either.
    if num_rows == 0 or not statistics or _number(statistics[0], _NUM_VALUES) != num_rows:
        return FileFooter(num_rows)
    places = dict(zip(_names(types[0]), _numbers(types[0], _SUBTYPES), strict=True))
    found = {}
    for column in columns:
        place = places.get(column.path[0]) if len(column.path) == 1 else None
        if place is not None:
            kind = _number(types[place], _KIND)
            found[column.path] = _column_stats(statistics[place], kind, column.type, num_rows)
    return FileFooter(num_rows, found)


def _names(struct: _Message) -> list[str]:
    return [bytes(name).decode() for name in struct.get(_FIELD_NAMES, ()) if isinstance(name, bytes)]


def _column_stats(message: _Message, kind: int, data_type: DataType, num_rows: int) -> ColumnStats:
    count = _number(message, _NUM_VALUES)
    bounds: _Bounds = None
    for expected, kinds, field, read in _READERS:
        if kind in kinds and count and field in message and expected(data_type):
            bounds = read(_fields(_bytes(message, field)), count)
    low, high = bounds or (None, None)
    return ColumnStats(data_type, low, high, num_rows - count)


def _integers(message: _Message, count: int) -> _Bounds:
    if _MIN not in message or _MAX not in message:
        return None
    # "sint64"
    low, high = _number(message, _MIN), _number(message, _MAX)
    return (low >> 1) ^ -(low & 1), (high >> 1) ^ -(high & 1)


def _doubles(message: _Message, count: int) -> _Bounds:
    if not {_MIN, _MAX, _SUM} <= message.keys():
        return None
    low, high, total = (struct.unpack("<d", _bytes(message, field))[0] for field in (_MIN, _MAX, _SUM))
    # NaN is greater than any number, and the bounds do not know it: but a sum with one is one.
    if total != total or low != low or high != high:
        return None
    # Zero has two signs, and equals itself.
    return (-0.0 if low == 0 else low, 0.0 if high == 0 else high)


def _texts(message: _Message, count: int) -> _Bounds:
    # Of texts beyond 1024 bytes there are bounds of another name, which no row needs to have.
    if _MIN not in message or _MAX not in message:
        return None
    return _bytes(message, _MIN).decode(), _bytes(message, _MAX).decode()


def _booleans(message: _Message, count: int) -> _Bounds:
    true = sum(_numbers(message, _MIN))
    return true == count, true > 0


def _decimals(message: _Message, count: int) -> _Bounds:
    if _MIN not in message or _MAX not in message:
        return None
    return Decimal(_bytes(message, _MIN).decode()), Decimal(_bytes(message, _MAX).decode())


#: For which types, as which kinds of ORC's, where, and how the bounds of a column are told.
_READERS: Sequence[tuple[Callable[[DataType], bool], tuple[int, ...], int, _Read]] = (
    (lambda kind: kind in t.INTEGRAL or kind == t.TIME, (_BYTE, _SHORT, _INT, _LONG), _OF_INTEGERS, _integers),
    (lambda kind: kind in t.FLOATING, (_FLOAT, _DOUBLE), _OF_DOUBLES, _doubles),
    (lambda kind: kind == t.STRING, (_STRING, _VARCHAR, _CHAR), _OF_STRINGS, _texts),
    (lambda kind: kind == t.BOOLEAN, (_BOOLEAN,), _OF_BOOLEANS, _booleans),
    (lambda kind: isinstance(kind, DecimalType), (_DECIMAL,), _OF_DECIMALS, _decimals),
    (lambda kind: kind == t.DATE, (_DATE,), _OF_DATES, _integers),
)

"""Hadoop's `ArrayWritable` of `FileStatus`, parsed: a whole listing as one byte array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from alluvium.storage.varint import read_unsigned

#: Field numbers of `FileStatusProto` (hadoop-common, FSProtos.proto), and its `FT_DIR`.
_FILE_TYPE, _PATH, _LENGTH, _MODIFICATION_TIME = 1, 2, 3, 7
_FT_DIR = 1
#: Wire types of protocol buffers: a varint, a length and as many bytes, and the fixed widths.
_VARINT, _BYTES = 0, 2
_FIXED_WIDTHS = {1: 8, 5: 4}


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One entry of a directory: its literal path with the scheme, bytes, last change (ms since 1970 UTC)."""

    path: str
    size: int
    modified_ms: int
    is_directory: bool

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def parse_file_statuses(data: bytes) -> list[FileStatus]:
    """Parses what `ArrayWritable.write` wrote: a count, then each message behind its length (32 bits, big endian)."""
    statuses: list[FileStatus] = []
    position = 4
    for _ in range(int.from_bytes(data[:4], "big")):
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        statuses.append(_parse_status(data, position, position + size))
        position += size
    return statuses


def _parse_status(data: bytes, position: int, end: int) -> FileStatus:
    numbers = {_FILE_TYPE: 0, _LENGTH: 0, _MODIFICATION_TIME: 0}
    path = ""
    for number, value in _fields(data, position, end):
        if isinstance(value, int):
            numbers[number] = value
        elif number == _PATH:
            path = value.decode()
    return FileStatus(path, numbers[_LENGTH], numbers[_MODIFICATION_TIME], numbers[_FILE_TYPE] == _FT_DIR)


def _fields(data: bytes, position: int, end: int) -> Iterator[tuple[int, int | bytes]]:
    while position < end:
        tag, position = read_unsigned(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, position = read_unsigned(data, position)
            yield number, value
        elif wire_type == _BYTES:
            size, position = read_unsigned(data, position)
            yield number, data[position : position + size]
            position += size
        else:
            position += _FIXED_WIDTHS[wire_type]

"""A file of large values: one column, each value with a frame of its own.

Specification: Paimon's PIP-35. A frame is a magic number, the value, the frame's length (8 bytes, little endian) and a
CRC32 of all that; the file ends with the frames' lengths (as zigzag varints of differences), the size of that index
(4 bytes) and a version (1 byte). A length of -1 is null.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from alluvium.errors import UnsupportedFeature
from alluvium.portable.files.file_names import damaged
from alluvium.storage.varint import read_signed

_MAGIC = (1_481_511_375).to_bytes(4, "little")
_FOOTER, _HEAD, _TAIL = 5, 4, 12
_VERSION = 1
#: Columns that files of other formats may have beside the table's own.
_OF_ROWS = frozenset({"_ROW_ID", "_SEQUENCE_NUMBER", "_VALUE_KIND"})
#: What readers of one batch may hold in memory.
_BATCH_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class BlobFile:
    """An open file of large values; implements `data_file.RowFile`.

    Attributes:
        path: As the plan names it.
        source: Its bytes.
        lengths: Of each value's frame; -1: the value is null.
    """

    path: str
    source: pa.NativeFile
    lengths: tuple[int, ...]

    def close(self) -> None:
        """Closes the file."""
        self.source.close()

    @property
    def num_rows(self) -> int:
        return len(self.lengths)

    def names(self, wanted: Sequence[str], ids: Mapping[str, int] | None = None) -> dict[str, str]:
        """The one column has no name of its own: it is the one that is wanted and is none of those of rows."""
        return {name: name for name in wanted if name not in _OF_ROWS}

    def batches(self, columns: dict[str, str], batch_size: int) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Rows in order: how many, and the column under the name wanted."""
        start, position = 0, 0
        while start < self.num_rows:
            end, size = start, 0
            while end < self.num_rows and end - start < batch_size and (size < _BATCH_BYTES or end == start):
                size += max(self.lengths[end], 0)
                end += 1
            values = self._values(position, self.lengths[start:end]) if columns else []
            yield end - start, {name: pa.array(values, pa.binary()) for name in columns}
            start, position = end, position + size

    def _values(self, position: int, lengths: Sequence[int]) -> list[bytes | None]:
        self.source.seek(position)
        data, at = self.source.read(sum(max(n, 0) for n in lengths)), 0
        values: list[bytes | None] = []
        for length in lengths:
            if length == -1:
                values.append(None)
                continue
            frame = data[at : at + length]
            at += length
            if len(frame) != length or length < _HEAD + _TAIL or frame[:_HEAD] != _MAGIC:
                raise damaged(self.path, "a value is cut short")
            if zlib.crc32(frame[:-4]) != int.from_bytes(frame[-4:], "little"):
                raise damaged(self.path, "the checksum of a value is wrong")
            values.append(frame[_HEAD:-_TAIL])
        return values


def open_blob(path: str, source: pa.NativeFile) -> BlobFile:
    """Opens a file of large values.

    Raises:
        CorruptTable: It is none.
        UnsupportedFeature: It has placeholders, which other files fill.
    """
    size = source.size()
    if size < _FOOTER:
        raise damaged(path, "it is too short")
    source.seek(size - _FOOTER)
    footer = source.read(_FOOTER)
    count = int.from_bytes(footer[:4], "little")
    if footer[4] != _VERSION or count > size - _FOOTER:
        raise damaged(path, f"its version is {footer[4]}")
    source.seek(size - _FOOTER - count)
    lengths = _lengths(source.read(count), path)
    if any(length < -1 for length in lengths):
        raise UnsupportedFeature("placeholders in files of large values", code="unsupported-file-type", path=path)
    if sum(max(length, 0) for length in lengths) > size - _FOOTER - count:
        # Before anything is read: room is made for as many bytes as are asked for.
        raise damaged(path, "its index tells of more bytes than there are")
    return BlobFile(path, source, lengths)


def _lengths(data: bytes, path: str) -> tuple[int, ...]:
    found: list[int] = []
    position, before = 0, 0
    while position < len(data):
        try:
            step, position = read_signed(data, position)
        except (IndexError, ValueError) as error:
            raise damaged(path, f"its index is cut short: {error}") from None
        before += step
        found.append(before)
    return tuple(found)

"""A seekable file made of range requests, for pyarrow's readers."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa


class RangeFile(io.RawIOBase):
    """Reads an object piece by piece; each `read` is one request.

    Args:
        read_range: Gives `length` bytes from `start`.
        size: The object's size in bytes.
    """

    def __init__(self, read_range: Callable[[int, int], bytes], size: int) -> None:
        super().__init__()
        self._read_range = read_range
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._position)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        data = self._read_range(self._position, length)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()


def open_ranges(read_range: Callable[[int, int], bytes], size: int) -> pa.NativeFile:
    """The object as a file of pyarrow."""
    return pa.PythonFile(RangeFile(read_range, size), mode="r")

"""Objects on their way from one store to another, in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

#: Bytes that are in memory for each object that is under way.
PART_BYTES = 8 << 20


class _Readable(Protocol):
    def get_range(self, path: str, start: int, length: int) -> bytes: ...


def read_parts(store: _Readable, path: str, counted: Callable[[int], None]) -> Iterator[bytes]:
    """The bytes of an object, one part after the other.

    Args:
        store: Where it lies.
        path: The object.
        counted: Told of the bytes of each part.

    Raises:
        NotFound: It is not there.
    """
    start = 0
    while part := store.get_range(path, start, PART_BYTES):
        counted(len(part))
        yield part
        start += len(part)
        if len(part) < PART_BYTES:
            return


class Count:
    """How many bytes there were."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, more: int) -> None:
        self.total += more

"""Objects that are read in parts: how many requests that takes, and what is counted."""

from __future__ import annotations

import pytest

from alluvium.storage import copying
from alluvium.storage.copying import Count, read_parts
from alluvium.storage.stores.memory import MemoryStore


class Asked:
    """Bytes, and the ranges of them that were asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ranges: list[tuple[str, int, int]] = []

    def get_range(self, path: str, start: int, length: int) -> bytes:
        self.ranges.append((path, start, length))
        return self.data[start : start + length]


@pytest.mark.parametrize(
    ("size", "parts", "starts"),
    [
        (0, [], [0]),
        (1, [1], [0]),
        (9, [9], [0]),
        # Only the next request tells that there is no more.
        (10, [10], [0, 10]),
        (11, [10, 1], [0, 10]),
        (20, [10, 10], [0, 10, 20]),
        (25, [10, 10, 5], [0, 10, 20]),
    ],
)
def test_parts_until_one_is_short(
    size: int, parts: list[int], starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "PART_BYTES", 10)
    store, told, count = Asked(bytes(range(size))), [], Count()

    def counted(more: int) -> None:
        told.append(more)
        count(more)

    found = list(read_parts(store, "d/x", counted))
    assert (b"".join(found), [len(part) for part in found]) == (store.data, parts)
    assert store.ranges == [("d/x", start, 10) for start in starts]
    assert told == parts and count.total == size


def test_parts_are_told_before_they_are_given() -> None:
    """Whoever stops knows of all that he has."""
    store, count = MemoryStore("copying", "t"), Count()
    store.put("x", b"abc")
    parts = read_parts(store, "x", count)
    assert count.total == 0
    assert next(parts) == b"abc" and count.total == 3
    assert copying.PART_BYTES == 8 << 20

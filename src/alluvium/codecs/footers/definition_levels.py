"""How many rows of a Parquet file have null for an array or map: out of the footer's histograms of definition levels.

Arrow shows neither. The footer is a struct of Thrift's compact protocol, of which this reads what it must.
Specifications: parquet.thrift (`FileMetaData`, `SchemaElement`, `SizeStatistics`), thrift-compact-protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from alluvium.errors import CorruptTable

Path: TypeAlias = tuple[str, ...]
Value: TypeAlias = "bool | int | float | bytes | list[Value] | dict[int, Value] | None"

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_OPTIONAL, _REPEATED = 1, 2


def null_collections(footer: bytes, paths: list[Path]) -> dict[Path, int]:
    """Rows in which the array or map at a path is null, or a struct around it; paths that nobody counted are left out.

    Args:
        footer: The file's metadata, without its length and the magic bytes.
        paths: Of the collections, by their names in the file.

    Raises:
        CorruptTable: The footer ends too early, or is no such struct (`damaged-file`).
    """
    try:
        return _null_collections(footer, paths)
    except (LookupError, TypeError, ValueError, AssertionError, RecursionError, StopIteration, OverflowError) as error:
        raise CorruptTable(f"the footer of a Parquet file is damaged: {error!r}", code="damaged-file") from None


def _null_collections(footer: bytes, paths: list[Path]) -> dict[Path, int]:
    document = _Reader(footer).struct()
    levels = dict(_levels(iter(_items(document[2])), (), 0, is_root=True))
    counts: dict[Path, int | None] = {path: 0 for path in paths if path in levels}
    for row_group in _items(document.get(4)):
        histograms = dict(_histograms(_struct(row_group)))
        for path, count in counts.items():
            found = next((h for leaf, h in histograms.items() if leaf[: len(path)] == path and h), None)
            # "definition_level_histogram: [...] the element at index i is the number of levels equal to i": a level
            # below that of the collection is that of a row without it.
            counts[path] = None if found is None or count is None else count + sum(found[: levels[path]])
    return {path: count for path, count in counts.items() if count is not None}


def _levels(elements: Iterator[Value], path: Path, level: int, is_root: bool = False) -> Iterator[tuple[Path, int]]:
    """The definition level at which each node is there: "schema: [...] depth first traversal"."""
    element = _struct(next(elements))
    name, repetition, children = element[4], element.get(3), element.get(5) or 0
    assert isinstance(name, bytes) and isinstance(children, int)
    here = path if is_root else (*path, name.decode())
    level += 1 if repetition in (_OPTIONAL, _REPEATED) and not is_root else 0
    yield here, level
    for _ in range(children):
        yield from _levels(elements, here, level)


def _histograms(row_group: dict[int, Value]) -> Iterator[tuple[Path, list[int]]]:
    for chunk in _items(row_group[1]):
        column = _struct(_struct(chunk)[3])
        path = tuple(part.decode() for part in _items(column[3]) if isinstance(part, bytes))
        sizes = column.get(16)
        if isinstance(sizes, dict):
            yield path, [n for n in _items(sizes.get(3)) if isinstance(n, int)]


def _items(value: Value) -> list[Value]:
    return value if isinstance(value, list) else []


def _struct(value: Value) -> dict[int, Value]:
    assert isinstance(value, dict)
    return value


@dataclass
class _Reader:
    data: bytes
    at: int = 0

    def struct(self) -> dict[int, Value]:
        """Fields by their numbers: "field-id-delta type" in a byte, or the number behind the type."""
        found: dict[int, Value] = {}
        number = 0
        while (head := self._byte()) != 0:
            delta = head >> 4
            number = number + delta if delta else self._zigzag()
            found[number] = self._value(head & 15)
        return found

    def _value(self, kind: int, in_list: bool = False) -> Value:
        if kind in (_TRUE, _FALSE):
            return self._byte() == _TRUE if in_list else kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return self._zigzag()
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _BINARY:
            return self._take(self._varint())
        if kind in (_LIST, _SET):
            return self._list()
        if kind == _MAP:
            return self._map()
        if kind == _STRUCT:
            return self.struct()
        raise KeyError(f"type {kind}")

    def _list(self) -> list[Value]:
        head = self._byte()
        size = head >> 4
        if size == 15:
            size = self._varint()
        return [self._value(head & 15, in_list=True) for _ in range(size)]

    def _map(self) -> Value:
        size = self._varint()
        kinds = self._byte() if size else 0
        for _ in range(size):
            self._value(kinds >> 4, in_list=True)
            self._value(kinds & 15, in_list=True)
        return None

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise IndexError("it ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def _varint(self) -> int:
        result = shift = 0
        while True:
            byte = self._byte()
            result |= (byte & 127) << shift
            if byte < 128:
                return result
            shift += 7

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

"""Many Avro records of one schema to Arrow columns, all blocks at the same time.

A record can only be read from its first byte to its last, one after the other; but blocks are independent, and a large
file has hundreds. So the n-th records of all blocks are read together, each step a handful of numpy operations.

Specification: https://avro.apache.org/docs/1.11.1/specification/#binary-encoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Indices: TypeAlias = npt.NDArray[np.int64]
Path: TypeAlias = tuple[str, ...]
#: A varint has at most so many bytes.
_VARINT_BYTES = 10
_PADDING = 32
#: Where items of lists stand, which no field's path is.
_ITEM = ("\x00item",)
_NUMBERS, _TEXTS = ("int", "long"), ("string", "bytes")


class Unreadable(Exception):
    """The blocks are damaged, or have what is not read here: the slower reader decides."""


class _Leaf:
    """Values of a column, or items of its lists, by their numbers; those never put are null."""

    def __init__(self, count: int) -> None:
        self._first = np.zeros(count, np.int64)
        self._length = np.zeros(count, np.int64)
        self._valid = np.zeros(count, bool)

    def grow(self, count: int) -> None:
        if count > len(self._valid):
            size = max(count, 2 * len(self._valid))
            self._first, self._length = (np.resize(a, size) for a in (self._first, self._length))
            self._valid = np.append(self._valid, np.zeros(size - len(self._valid), bool))

    def put(self, rows: Indices, first: Indices, length: Indices | None = None) -> None:
        self._first[rows] = first
        if length is not None:
            self._length[rows] = length
        self._valid[rows] = True

    def array(self, rows: Indices, data: npt.NDArray[np.uint8], is_text: bool) -> pa.Array:
        if not is_text:
            return pa.array(self._first[rows], mask=~self._valid[rows])
        valid = self._valid[rows]
        bounds = np.empty(2 * int(valid.sum()), np.int64)
        bounds[0::2] = self._first[rows][valid]
        bounds[1::2] = bounds[0::2] + self._length[rows][valid]
        # Rows stand in the order of the file: what lies between two values is a value that nobody takes.
        if not len(bounds) or (np.diff(bounds) < 0).any():
            return _no_texts(len(rows), len(bounds))
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
        values = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)
        return values.take(pa.array(2 * (np.cumsum(valid) - 1), mask=~valid))


def _no_texts(rows: int, bounds: int) -> pa.Array:
    if bounds:
        raise Unreadable
    return pa.nulls(rows, pa.large_binary())


@dataclass(slots=True)
class _Column:
    """What is collected of one path.

    Attributes:
        leaf: Its values, or the items of its lists.
        is_text: Bytes rather than numbers.
        is_list: Whether it is one of lists.
        listed: Of lists: which rows have one.
        owners: Of lists: the row of each item, in the order of the items' numbers.
    """

    leaf: _Leaf
    is_text: bool
    is_list: bool
    listed: npt.NDArray[np.bool_]
    owners: list[Indices] = field(default_factory=list)
    items: int = 0

    def array(self, data: npt.NDArray[np.uint8]) -> pa.Array:
        if not self.is_list:
            return self.leaf.array(np.arange(len(self.listed)), data, self.is_text)
        owners = np.concatenate([np.zeros(0, np.int64), *self.owners])
        values = self.leaf.array(np.argsort(owners, kind="stable"), data, self.is_text)
        ends = np.cumsum(np.bincount(owners, minlength=len(self.listed)))
        offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, values, mask=pa.array(~self.listed))


def read_columns(
    schema: Any, blocks: Sequence[tuple[int, bytes]], paths: Sequence[Path]
) -> dict[Path, pa.Array | None]:
    """The values at some paths of all records, in order.

    Args:
        schema: Of the records, without logical types.
        blocks: Numbers of records, and their bytes.
        paths: Names of fields. What stands there may be a number, bytes or text, or a list of such; null is allowed
            anywhere on the way.

    Returns:
        Of each path numbers as int64, text and bytes as large binary; None where the schema has no such field.

    Raises:
        Unreadable: The blocks are damaged, or a path leads to values of another type.
    """
    return _Walk(schema, blocks, paths).run()


class _Walk:
    """One reading."""

    def __init__(self, schema: Any, blocks: Sequence[tuple[int, bytes]], paths: Sequence[Path]) -> None:
        self._schema = schema
        self._counts = np.array([count for count, _ in blocks], np.int64)
        self._data = np.frombuffer(b"".join([data for _, data in blocks]) + bytes(_PADDING), np.uint8)
        self._ends = np.cumsum(np.array([len(data) for _, data in blocks], np.int64))
        self._total = int(self._counts.sum())
        self._columns: dict[Path, _Column | None] = dict.fromkeys(paths)
        self._named = dict(_named(schema))

    def run(self) -> dict[Path, pa.Array | None]:
        sizes = np.diff(self._ends, prepend=0)
        if (self._counts < 0).any() or (self._counts > sizes).any():
            raise Unreadable
        first_rows = np.cumsum(self._counts) - self._counts
        position = np.concatenate([[0], self._ends[:-1]]).astype(np.int64)
        try:
            for number in range(int(self._counts.max(initial=0))):
                lanes = np.flatnonzero(self._counts > number)
                position[lanes] = self._read(self._schema, first_rows[lanes] + number, position[lanes], ())
                if (position > self._ends).any():
                    raise Unreadable
        except IndexError:
            raise Unreadable from None
        if (position != self._ends).any():
            raise Unreadable
        return {path: None if c is None else c.array(self._data) for path, c in self._columns.items()}

    def _read(self, node: Any, rows: Indices, position: Indices, path: Path) -> Indices:
        """Reads a value of each row, and gives the positions behind them."""
        if isinstance(node, str) and node in self._named:
            node = self._named[node]
        if isinstance(node, list):
            return self._union(node, rows, position, path)
        if not isinstance(node, dict):
            return self._leaf(node, rows, position, path)
        kind = node["type"]
        if kind == "record":
            for member in node["fields"]:
                position = self._read(member["type"], rows, position, (*path, member["name"]))
            return position
        if kind == "array":
            return self._array(node["items"], rows, position, path)
        return self._read(kind, rows, position, path)

    def _union(self, branches: list[Any], rows: Indices, position: Indices, path: Path) -> Indices:
        chosen, position = self._varints(position)
        for number in np.unique(chosen):
            if not 0 <= number < len(branches):
                raise Unreadable
            if branches[number] == "null":
                continue
            here = chosen == number
            if here.all():
                return self._read(branches[number], rows, position, path)
            position[here] = self._read(branches[number], rows[here], position[here], path)
        return position

    def _leaf(self, kind: object, rows: Indices, position: Indices, path: Path) -> Indices:
        if kind not in _NUMBERS and kind not in _TEXTS:
            if kind == "null":
                return position
            raise Unreadable
        values, position = self._varints(position)
        column = self._column(path, kind in _TEXTS, is_list=False)
        if kind in _NUMBERS:
            if column is not None:
                column.leaf.put(rows, values)
            return position
        if (values < 0).any() or (values > len(self._data)).any():
            raise Unreadable
        if column is not None:
            column.leaf.put(rows, position, values)
        return position + values

    def _array(self, items: Any, rows: Indices, position: Indices, path: Path) -> Indices:
        kinds = [kind for kind in (items if isinstance(items, list) else [items]) if kind != "null"]
        column = None
        if path in self._columns:
            if len(kinds) != 1 or kinds[0] not in (*_NUMBERS, *_TEXTS):
                raise Unreadable
            column = self._column(path, kinds[0] in _TEXTS, is_list=True)
        if column is not None:
            column.listed[rows] = True
        open_lanes = np.arange(len(rows))
        while len(open_lanes):
            counts, after = self._varints(position[open_lanes])
            # "If a block's count is negative, its absolute value is used, and the count is followed by a long block
            # size".
            sized = counts < 0
            if sized.any():
                _, after[sized] = self._varints(after[sized])
                counts = np.abs(counts)
            position[open_lanes] = after
            open_lanes, counts = open_lanes[counts > 0], counts[counts > 0]
            if (counts > len(self._data)).any():
                raise Unreadable
            for number in range(int(counts.max(initial=0))):
                lanes = open_lanes[counts > number]
                position[lanes] = self._item(items, column, rows[lanes], position[lanes])
        return position

    def _item(self, items: Any, column: _Column | None, rows: Indices, position: Indices) -> Indices:
        if column is None:
            return self._read(items, rows, position, _ITEM)
        numbers = np.arange(column.items, column.items + len(rows))
        column.items += len(rows)
        column.leaf.grow(column.items)
        column.owners.append(rows)
        # Under a path of its own, whose values are the items.
        known, self._columns = self._columns, {_ITEM: _Column(column.leaf, column.is_text, False, column.listed)}
        try:
            return self._read(items, numbers, position, _ITEM)
        finally:
            self._columns = known

    def _column(self, path: Path, is_text: bool, is_list: bool) -> _Column | None:
        if path not in self._columns:
            return None
        found = self._columns[path]
        if found is None:
            leaf = _Leaf(0 if is_list else self._total)
            found = self._columns[path] = _Column(leaf, is_text, is_list, np.zeros(self._total, bool))
        return found

    def _varints(self, position: Indices) -> tuple[Indices, Indices]:
        octets = self._data[position]
        values = (octets & 0x7F).astype(np.int64)
        position = position + 1
        more = octets >= 0x80
        shift = 7
        while more.any():
            if shift >= 7 * _VARINT_BYTES:
                raise Unreadable
            octets = np.where(more, self._data[position], 0)
            values |= (octets & 0x7F).astype(np.int64) << shift
            position += more
            more = octets >= 0x80
            shift += 7
        return (values >> 1 & 0x7FFF_FFFF_FFFF_FFFF) ^ -(values & 1), position


def _named(node: Any) -> Iterator[tuple[str, Any]]:
    """Records by their names, which later ones may be told by."""
    if isinstance(node, list):
        for branch in node:
            yield from _named(branch)
    elif isinstance(node, dict):
        if "name" in node and node.get("type") == "record":
            yield node["name"], node
        for member in node.get("fields", ()):
            yield from _named(member["type"])
        for key in ("type", "items"):
            yield from _named(node.get(key))


def typed_columns(
    found: Mapping[Path, pa.Array | None], paths: Sequence[Path], schema: pa.Schema, count: int
) -> pa.Table:
    """What `read_columns` found, under the types wanted.

    Raises:
        pyarrow.ArrowException: A value does not fit its type.
    """
    pairs = [(found[path], f.type) for path, f in zip(paths, schema, strict=True)]
    arrays = [pa.nulls(count, kind) if values is None else values.cast(kind) for values, kind in pairs]
    return pa.Table.from_arrays(arrays, schema=schema)

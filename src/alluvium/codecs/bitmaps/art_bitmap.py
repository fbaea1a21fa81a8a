"""Bitmaps of 64-bit numbers as Java's `Roaring64Bitmap` serialises them, which is not the portable format.

A flag whether there is anything (1 byte) and how many keys (8 bytes); an adaptive radix tree of the keys, which are the
high 48 bits of the numbers, depth first; then the containers of the low 16 bits, which the tree's leaves name by their
index. All numbers little endian. Layout: `org.roaringbitmap.art.Node`, `Containers` of RoaringBitmap 0.9 and 1.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from alluvium.errors import CorruptTable

_NODE_4, _NODE_16, _NODE_48, _NODE_256, _LEAF = range(5)
#: Children that a node of each kind has places for, and bytes of its table.
_PLACES, _TABLES = (4, 16, 48, 256), (4, 16, 256, 32)
_RUNS, _BITS, _ARRAY = range(3)
_KEY_BYTES, _BITSET_BYTES, _MAX_ARRAY = 6, 8192, 4096
#: Marks an array of containers of which none was moved.
_NOT_TRIMMED = b"\xfe"

Values = npt.NDArray[np.uint16]
Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Container:
    """Numbers of equal high 48 bits: which form, how many, and the bytes of the form."""

    form: int
    cardinality: int
    data: bytes


def unite_64(older: bytes, newer: bytes) -> bytes:
    """The union of two bitmaps, in the same form.

    Raises:
        CorruptTable: `"damaged-bitmap"`: bytes are no bitmap.
    """
    joined = _parse(older)
    for key, container in _parse(newer).items():
        known = joined.get(key)
        joined[key] = container if known is None else _unite(known, container)
    return _format(joined)


class _Reader:
    """Bytes from their start to their end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._position = data, 0

    def take(self, length: int) -> bytes:
        taken = self._data[self._position : self._position + length]
        if len(taken) < length:
            raise _damaged(f"it is cut off after {len(self._data)} bytes")
        self._position += length
        return taken

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "little")


def _parse(data: bytes) -> dict[bytes, _Container]:
    """Containers by key."""
    reader = _Reader(data)
    if not reader.number(1):
        return {}
    leaves = _parse_tree(reader)
    containers = _parse_containers(reader)
    if not set(leaves.values()) <= containers.keys():
        raise _damaged("its keys name containers that it does not have")
    return {key: containers[index] for key, index in leaves.items()}


def _parse_tree(reader: _Reader) -> dict[bytes, int]:
    """Of each key the index of its container."""
    count, awaited = reader.number(8), 1
    leaves: dict[bytes, int] = {}
    while awaited:
        form, children = reader.number(1), reader.number(2)
        reader.take(reader.number(1))
        if form == _LEAF:
            # A leaf has its whole key, so that what the nodes above say of it is not needed.
            key = reader.take(_KEY_BYTES)
            leaves[key] = reader.number(8)
            awaited -= 1
        elif form < _LEAF and 0 < children <= _PLACES[form]:
            reader.take(_TABLES[form])
            awaited += children - 1
        else:
            raise _damaged(f"a node of kind {form} has {children} children")
    if len(leaves) != count:
        raise _damaged(f"it has {len(leaves)} keys, and says to have {count}")
    return leaves


def _parse_containers(reader: _Reader) -> dict[int, _Container]:
    found: dict[int, _Container] = {}
    for first in range(reader.number(4)):
        reader.take(1)
        for second in range(reader.number(4)):
            if not reader.number(1):
                continue
            form, cardinality = reader.number(1), reader.number(4)
            if form == _RUNS:
                runs = reader.take(2)
                content = runs + reader.take(4 * int.from_bytes(runs, "little"))
            elif form in (_BITS, _ARRAY):
                content = reader.take(_BITSET_BYTES if form == _BITS else 2 * cardinality)
            else:
                raise _damaged(f"a container is of kind {form}")
            found[first << 32 | second] = _Container(form, cardinality, content)
    return found


def _unite(left: _Container, right: _Container) -> _Container:
    if left.form == right.form == _ARRAY:
        both = np.union1d(_values(left), _values(right))
        if len(both) <= _MAX_ARRAY:
            return _of_values(both)
    return _of_bits(_bits(left) | _bits(right))


def _values(container: _Container) -> Values:
    values = np.frombuffer(container.data, "<u2")
    if (values[1:] <= values[:-1]).any():
        raise _damaged("its numbers are out of order")
    return values


def _bits(container: _Container) -> Bits:
    if container.form == _BITS:
        bits = np.unpackbits(np.frombuffer(container.data, np.uint8), bitorder="little").astype(bool)
    elif container.form == _ARRAY:
        bits = np.zeros(1 << 16, bool)
        bits[_values(container)] = True
    else:
        firsts, lengths = np.frombuffer(container.data[2:], "<u2").astype(np.int64).reshape(-1, 2).T
        ends = firsts + lengths + 1
        if (firsts[1:] < ends[:-1]).any() or (ends > 1 << 16).any():
            raise _damaged("its runs are out of order")
        edges = np.zeros((1 << 16) + 1, np.int8)
        np.add.at(edges, firsts, 1)
        np.add.at(edges, ends, -1)
        bits = np.cumsum(edges[:-1], dtype=np.int8) > 0
    if np.count_nonzero(bits) != container.cardinality:
        raise _damaged(f"a container of {container.cardinality} numbers holds {np.count_nonzero(bits)}")
    return bits


def _of_bits(bits: Bits) -> _Container:
    cardinality = int(np.count_nonzero(bits))
    if cardinality <= _MAX_ARRAY:
        return _of_values(np.flatnonzero(bits).astype(np.uint16))
    runs = _runs_of(np.flatnonzero(bits).astype(np.uint16))
    if runs is not None and len(runs) < _BITSET_BYTES:
        return _Container(_RUNS, cardinality, runs)
    return _Container(_BITS, cardinality, np.packbits(bits, bitorder="little").tobytes())


def _of_values(values: Values) -> _Container:
    runs = _runs_of(values)
    if runs is not None and len(runs) < 2 * len(values):
        return _Container(_RUNS, len(values), runs)
    return _Container(_ARRAY, len(values), values.astype("<u2").tobytes())


def _runs_of(values: Values) -> bytes | None:
    """First number and length less one of each run; None: they are too many for the form to be worth it."""
    wide = values.astype(np.int64)
    begins = np.flatnonzero(np.diff(wide, prepend=-2) != 1)
    if len(begins) > _BITSET_BYTES // 4:
        return None
    lengths = np.diff(np.append(begins, len(wide))) - 1
    return struct.pack("<H", len(begins)) + np.stack([wide[begins], lengths], axis=1).astype("<u2").tobytes()


def _format(containers: Mapping[bytes, _Container]) -> bytes:
    if not containers:
        return b"\x00"
    keys = sorted(containers)
    pieces = [b"\x01", struct.pack("<q", len(keys))]
    _format_tree(keys, 0, 0, pieces)
    pieces.append(struct.pack("<i", 1) + _NOT_TRIMMED + struct.pack("<i", len(keys)))
    for key in keys:
        container = containers[key]
        pieces += (struct.pack("<BBi", 1, container.form, container.cardinality), container.data)
    pieces.append(struct.pack("<qii", len(keys), 0, len(keys) - 1))
    return b"".join(pieces)


def _format_tree(keys: Sequence[bytes], depth: int, index: int, pieces: list[bytes]) -> None:
    """Appends a node and all below it. `index` is the container's of the first key; keys agree before `depth`."""
    if len(keys) == 1:
        pieces.append(struct.pack("<BHB", _LEAF, 0, 0) + keys[0] + struct.pack("<q", index))
        return
    # Sorted keys agree where the first and the last do.
    branch = next(i for i in range(depth, _KEY_BYTES) if keys[0][i] != keys[-1][i])
    below = [(byte, list(group)) for byte, group in groupby(keys, lambda key: key[branch])]
    form = next(kind for kind, places in enumerate(_PLACES) if len(below) <= places)
    pieces.append(struct.pack("<BHB", form, len(below), branch - depth) + keys[0][depth:branch])
    pieces.append(_table(form, [byte for byte, _ in below]))
    for _, group in below:
        _format_tree(group, branch + 1, index, pieces)
        index += len(group)


def _table(form: int, branches: Sequence[int]) -> bytes:
    """Which bytes of a key lead to which child; Java writes words of it, the last byte first."""
    if form == _NODE_256:
        flags = np.zeros(256, bool)
        flags[list(branches)] = True
        return np.packbits(flags, bitorder="little").tobytes()
    if form == _NODE_48:
        table = bytearray(b"\xff" * 256)
        for child, byte in enumerate(branches):
            table[byte] = child
    else:
        table = bytearray(bytes(branches).ljust(_TABLES[form], b"\x00"))
    word = 4 if form == _NODE_4 else 8
    return b"".join(bytes(table[start : start + word])[::-1] for start in range(0, len(table), word))


def _damaged(what: str) -> CorruptTable:
    return CorruptTable(f"a value is no bitmap of 64-bit numbers: {what}", code="damaged-bitmap")

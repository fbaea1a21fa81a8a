"""Thrift's compact protocol, as far as Parquet's metadata needs it: reading of structs, and writing of small ones.

Specification: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

#: A struct is its fields by their numbers. Maps are left out, and doubles stay bytes: Parquet's metadata has neither.
Value: TypeAlias = "bool | int | bytes | list[Value] | dict[int, Value] | None"

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_SHORT, _INTEGERS = (_I32, _I64), (_I32, _I64, _I16)
_STOP = b"\x00"
#: Of the last seven bits of 64, in the tenth byte.
_MAX_SHIFT = 63
#: What damaged bytes raise in the reader, and in whoever takes its values for the struct that they are not.
DAMAGE = (LookupError, TypeError, ValueError, AssertionError, RecursionError, StopIteration, OverflowError)


@dataclass
class CompactReader:
    """Reads values one after the other; errors are among `DAMAGE`.

    Attributes:
        data: Bytes.
        at: The place of the next value.
    """

    data: bytes
    at: int = 0

    def struct(self) -> dict[int, Value]:
        """Fields by their numbers: "field-id-delta type" in a byte, or the number behind the type."""
        found: dict[int, Value] = {}
        data, at, number = self.data, self.at, 0
        while head := data[at]:
            at += 1
            kind = head & 15
            if head >= 16:
                number += head >> 4
            else:
                self.at = at
                number = self._zigzag()
                at = self.at
            if number in found:
                # What becomes of the two is each reader's own matter.
                raise ValueError(f"the field {number} stands twice")
            # Most fields are short integers: a call for each would cost more than all else.
            if kind in _SHORT and data[at] < 128:
                found[number] = (data[at] >> 1) ^ -(data[at] & 1)
                at += 1
            else:
                self.at = at
                found[number] = self._value(kind)
                at = self.at
        self.at = at + 1
        return found

    def written_fields(self) -> dict[int, tuple[int, Value, bytes]]:
        """As `struct`, but each field's type, value, and the value as it is written."""
        found: dict[int, tuple[int, Value, bytes]] = {}
        number = 0
        while (head := self._byte()) != 0:
            delta = head >> 4
            number = number + delta if delta else self._zigzag()
            start = self.at
            value = self._value(head & 15)
            found[number] = (head & 15, value, self.data[start : self.at])
        return found

    def _value(self, kind: int, in_list: bool = False) -> Value:
        if kind in _INTEGERS:
            return self._zigzag()
        if kind == _BINARY:
            return self._take(self._varint())
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            return self._list()
        if kind in (_TRUE, _FALSE):
            return self._byte() == _TRUE if in_list else kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _MAP:
            return self._map()
        raise KeyError(f"type {kind}")

    def _list(self) -> list[Value]:
        head = self._byte()
        size = head >> 4
        if size == 15:
            size = self._varint()
        kind = head & 15
        return [self._value(kind, in_list=True) for _ in range(size)]

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
        data, at = self.data, self.at
        while True:
            byte = data[at]
            at += 1
            result |= (byte & 127) << shift
            if byte < 128:
                self.at = at
                return result
            shift += 7
            # Of bytes without end every further one would cost as much as all before it.
            if shift > _MAX_SHIFT:
                raise ValueError("an integer of more than 64 bits")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


def i32_field(number: int, value: int) -> bytes:
    """A field of a struct that is being written."""
    return written_field(number, _I32, _zigzag(value))


def i64_field(number: int, value: int) -> bytes:
    """A field of a struct that is being written."""
    return written_field(number, _I64, _zigzag(value))


def struct_field(number: int, value: bytes) -> bytes:
    """A field of a struct that is being written, itself from `struct_of`."""
    return written_field(number, _STRUCT, value)


def i32_list_field(number: int, values: Sequence[int]) -> bytes:
    """A field of a struct that is being written."""
    return written_field(number, _LIST, _list_head(_I32, len(values)) + b"".join(map(_zigzag, values)))


def binary_list_field(number: int, values: Sequence[bytes]) -> bytes:
    """A field of a struct that is being written."""
    written = b"".join(_varint(len(value)) + value for value in values)
    return written_field(number, _LIST, _list_head(_BINARY, len(values)) + written)


def struct_list_field(number: int, values: Sequence[bytes]) -> bytes:
    """A field of a struct that is being written; the values from `struct_of`."""
    return written_field(number, _LIST, _list_head(_STRUCT, len(values)) + b"".join(values))


def written_field(number: int, kind: int, value: bytes) -> bytes:
    """A field whose value is written already, as `CompactReader.written_fields` gives it."""
    # The long form of the head: numbers need not rise.
    return bytes((kind,)) + _zigzag(number) + value


def struct_of(fields: Iterable[bytes]) -> bytes:
    """A struct of fields that are written."""
    return b"".join(fields) + _STOP


def _list_head(kind: int, size: int) -> bytes:
    return bytes((size << 4 | kind,)) if size < 15 else bytes((0xF0 | kind,)) + _varint(size)


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _varint(value: int) -> bytes:
    written = bytearray()
    while value >= 128:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def items_of(value: Value) -> list[Value]:
    """A value that must be a list; errors are among `DAMAGE`, as of those below."""
    assert isinstance(value, list)
    return value


def fields_of(value: Value) -> dict[int, Value]:
    """A value that must be a struct."""
    assert isinstance(value, dict)
    return value


def next_of(structs: Iterator[dict[int, Value]]) -> dict[int, Value]:
    """The next of several, which must be there; unlike `next`, in a generator too."""
    for one in structs:
        return one
    raise IndexError("a struct is missing")


def integer_at(fields: dict[int, Value], number: int) -> int:
    """A field that must be there and an integer."""
    value = fields[number]
    assert isinstance(value, int)
    return value

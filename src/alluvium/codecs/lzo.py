"""Decompression of LZO1X, which older ORC files may have: for footers, a few kilobytes.

Format: https://docs.kernel.org/staging/lzo.html
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: How many bytes were copied as they are before an instruction; more than three count as four.
_MANY = 4
_END = 16_384


@dataclass
class _Stream:
    """What is read, and what became of it.

    Attributes:
        data: Compressed.
        most: Bytes that may come out.
        at: Of the next byte.
        out: What came out.
        literals: See `_MANY`.
    """

    data: bytes
    most: int
    at: int = 0
    out: bytearray = field(default_factory=bytearray)
    literals: int = 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def length(self, given: int, bits: int) -> int:
        """A length of some bits; none set: it goes on in the bytes behind, each zero as 255."""
        if given:
            return given
        given = (1 << bits) - 1
        while not (more := self.byte()):
            given += 255
        return given + more

    def pair(self) -> int:
        return self.byte() | self.byte() << 8

    def copy_literals(self, count: int) -> None:
        if self.at + count > len(self.data):
            raise ValueError("literals are cut off")
        self._ensure_room(count)
        self.out += self.data[self.at : self.at + count]
        self.at += count
        self.literals = min(count, _MANY)

    def copy_back(self, distance: int, count: int) -> None:
        """Bytes that came out before; they may reach into themselves."""
        start = len(self.out) - distance
        if start < 0:
            raise ValueError("a distance beyond the begin")
        self._ensure_room(count)
        pattern = bytes(self.out[start : start + count])
        self.out += (pattern * (count // len(pattern) + 1))[:count]

    def _ensure_room(self, count: int) -> None:
        if len(self.out) + count > self.most:
            raise ValueError(f"{len(self.data)} bytes grow to more than {self.most}")


def decompress_lzo(data: bytes, most: int) -> bytes:
    """The bytes of a stream.

    Args:
        data: The whole stream.
        most: Bytes that may come out.

    Raises:
        ValueError: There are more of them, or the stream is damaged.
        IndexError: It is cut off.
    """
    stream = _Stream(data, most)
    if data and data[0] > 17:
        stream.copy_literals(stream.byte() - 17)
    goes_on = True
    while goes_on:
        goes_on = _step(stream)
    return bytes(stream.out)


def _step(stream: _Stream) -> bool:
    """One instruction; whether others follow."""
    code = stream.byte()
    if code < 16 and not stream.literals:
        stream.copy_literals(stream.length(code, 4) + 3)
        return True
    if code < 16:
        further = 2049 if stream.literals == _MANY else 1
        count, trailing = (3 if further > 1 else 2), code & 3
        distance = (stream.byte() << 2) + (code >> 2) + further
    elif code < 64:
        is_far = code < 32
        count = 2 + stream.length(code & (7 if is_far else 31), 3 if is_far else 5)
        pair = stream.pair()
        trailing = pair & 3
        distance = (pair >> 2) + (_END + ((code & 8) << 11) if is_far else 1)
        if is_far and distance == _END:
            return False
    else:
        count, trailing = (code >> 5) + 1, code & 3
        distance = (stream.byte() << 3) + (code >> 2 & 7) + 1
    stream.copy_back(distance, count)
    stream.copy_literals(trailing)
    return True

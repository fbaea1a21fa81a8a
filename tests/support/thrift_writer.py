"""Thrift's compact protocol as its page has it, written plainly: what readers of Parquet's metadata are tried with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KINDS = {"byte": 3, "i16": 4, "i32": 5, "i64": 6, "double": 7, "binary": 8, "list": 9, "set": 10, "struct": 12}


def varint(value: int) -> bytes:
    digits = []
    while True:
        value, digit = divmod(value, 128)
        digits.append(digit)
        if not value:
            return bytes([*(d + 128 for d in digits[:-1]), digits[-1]])


def zigzag(value: int) -> bytes:
    return varint(2 * value if value >= 0 else -2 * value - 1)


def written_struct(
    struct: Mapping[int, tuple[str, Any]], long_heads: bool = False, empty: Sequence[int] = (5, 5, 5)
) -> bytes:
    """A struct of typed values by their numbers.

    Args:
        struct: `{1: ("i32", 7), 2: ("list", [("binary", b"x")]), 3: ("bool", True), 4: ("struct", {...})}`.
        long_heads: Each field's number stands behind its type, not the difference from the last one in the same byte.
        empty: The types that empty lists are said to be of, one after the other.
    """
    out, last, empties = bytearray(), 0, list(empty)
    for number, (kind, value) in struct.items():
        code = KINDS.get(kind) or (1 if value else 2)
        if not long_heads and 0 < number - last < 16:
            out.append((number - last) << 4 | code)
        else:
            out.append(code)
            out += zigzag(number)
        last = number
        if kind in ("list", "set"):
            fallback = empties.pop(0) if len(empties) > 1 else empties[0]
            out += written_list(value, fallback, long_heads)
        elif kind != "bool":
            out += written_value(kind, value, long_heads)
    return bytes(out) + b"\0"


def written_value(kind: str, value: Any, long_heads: bool = False) -> bytes:
    if kind == "struct":
        return written_struct(value, long_heads)
    if kind in ("list", "set"):
        return written_list(value, 5, long_heads)
    if kind == "binary":
        return varint(len(value)) + bytes(value)
    if kind == "bool":
        return b"\1" if value else b"\2"
    if kind == "byte":
        return bytes([value])
    return bytes(value) if kind == "double" else zigzag(value)


def written_list(values: Sequence[tuple[str, Any]], empty: int, long_heads: bool = False) -> bytes:
    code = empty if not values else KINDS.get(values[0][0], 1)
    head = bytes([len(values) << 4 | code]) if len(values) < 15 else bytes([0xF0 | code]) + varint(len(values))
    return head + b"".join(written_value(kind, value, long_heads) for kind, value in values)

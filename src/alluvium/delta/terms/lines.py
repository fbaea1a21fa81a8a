"""Lines of the log: one JSON document each. What every reader of them takes for a line, and for damage. Pure.

Specification: "Delta Log Entries".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from alluvium.errors import DECODE_ERRORS, CorruptTable

#: What some editors put before UTF-8. "[Parsers] MAY ignore the presence of a byte order mark" (RFC 8259), and the
#: reference implementation does.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

T = TypeVar("T")


def split_lines(data: bytes, first: int | None = None) -> Iterator[tuple[int, bytes]]:
    """The lines that hold something, with their numbers.

    Args:
        data: A whole file; or, without a byte order mark, some lines of it.
        first: Number of the first of some lines; None: a whole file.
    """
    content = data.removeprefix(BYTE_ORDER_MARK) if first is None else data
    for number, text in enumerate(content.split(b"\n"), first or 1):
        if text.strip():
            yield number, text


def decode_lines(
    data: bytes, decoder: msgspec.json.Decoder[T], path: str | None, version: int | None, mentioning: bytes = b""
) -> Iterator[T]:
    """The documents of a log entry, one a line: the decoder alone would take a line break for white space.

    Args:
        data: The entry.
        decoder: Of one line.
        path: The file, for errors.
        version: Its version, for errors.
        mentioning: Lines without these bytes are passed over, damaged ones too.

    Raises:
        CorruptTable: A line is damaged (`damaged-line`); the message names it, counted from 1.
    """
    for number, text in split_lines(data):
        if mentioning in text:
            yield decode_line(text, decoder, number, path, version)


def decode_line(text: bytes, decoder: msgspec.json.Decoder[T], number: int, path: str | None, version: int | None) -> T:
    """The document of one line; arguments and errors as for `decode_lines`."""
    try:
        return decoder.decode(text)
    except DECODE_ERRORS as error:
        raise damaged_line(number, error, path, version) from None


def damaged_line(number: int, problem: object, path: str | None, version: int | None) -> CorruptTable:
    """The error for a line that is not one document of the right form."""
    return CorruptTable(
        f"line {number} of the log entry is damaged: {problem}",
        code="damaged-line",
        path=path,
        version=version,
        hint="read a version before it, or restore the file from a copy",
    )

"""Z85 (ZeroMQ RFC 32): four bytes as five printable characters that JSON need not escape."""

from __future__ import annotations

import base64

from alluvium.errors import CorruptTable

# Z85 and RFC 1924, which Python knows, differ in nothing but the alphabet.
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_RFC_1924 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_RFC_1924 = str.maketrans(_Z85, _RFC_1924)
_TO_Z85 = str.maketrans(_RFC_1924, _Z85)
_KNOWN = frozenset(_Z85)


def parse_z85(text: str) -> bytes:
    """The bytes that the text stands for, a multiple of four.

    Raises:
        CorruptTable: `"malformed-z85"`: a length that is no multiple of five, a character outside the alphabet, or
            five characters that stand for more than 32 bits.
    """
    if len(text) % 5:
        raise _malformed(text, f"{len(text)} characters are no multiple of five")
    if not _KNOWN.issuperset(text):
        raise _malformed(text, f"{min(set(text) - _KNOWN)!r} is not in the alphabet")
    try:
        return base64.b85decode(text.translate(_TO_RFC_1924))
    except ValueError:
        raise _malformed(text, "a group of five stands for more than 32 bits") from None


def format_z85(data: bytes) -> str:
    """The text of the bytes, filled up with zeros to a multiple of four."""
    return base64.b85encode(data + bytes(-len(data) % 4)).decode("ascii").translate(_TO_Z85)


def _malformed(text: str, reason: str) -> CorruptTable:
    return CorruptTable(
        f"{text[:60]!r} is no Z85 text: {reason}",
        code="malformed-z85",
        hint="the log was damaged, or written by a broken client",
    )

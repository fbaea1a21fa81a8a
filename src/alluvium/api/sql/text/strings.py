"""The values of string literals, as Spark reads them."""

from __future__ import annotations

import re

# What Spark's parser takes for an escape, tried in this order; any other escaped character stands for itself.
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_CHARACTERS = {
    "0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a",
    # Kept for LIKE: the backslash stays.
    "%": "\\%", "_": "\\_",
}  # fmt: skip


def string_value(literal: str, escaped_string_literals: bool) -> str:
    """The text that a literal stands for.

    Args:
        literal: With its quotes, and the `r` of a raw string.
        escaped_string_literals: `spark.sql.parser.escapedStringLiterals`: backslashes stand for themselves.
    """
    if literal[0] in "rR":
        return literal[2:-1]
    quote, inner = literal[0], literal[1:-1]
    if escaped_string_literals:
        return inner
    if "\\" not in inner:
        return inner.replace(quote * 2, quote)
    # A quote behind a backslash is no half of a doubled one, so both are read in one pass.
    pieces = re.compile(f"{quote}{quote}|{_ESCAPE.pattern}", re.DOTALL)
    text = pieces.sub(lambda found: quote if found.group() == quote * 2 else _unescaped(found), inner)
    # Two escapes may make one character beyond the basic plane, as in Java's texts.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(found: re.Match[str]) -> str:
    short, long, octal, character = found.groups()
    if short is not None:
        return chr(int(short, 16))
    if long is not None:
        # Java makes of numbers beyond the last character what nobody can read; so does this.
        return chr(int(long, 16)) if int(long, 16) <= 0x10FFFF else "\ufffd"
    if octal is not None:
        return chr(int(octal, 8))
    return _CHARACTERS.get(character, character)


def name_value(quoted: str) -> str:
    """The name that stands in backticks, or in double quotes."""
    quote = quoted[0]
    return quoted[1:-1].replace(quote * 2, quote)

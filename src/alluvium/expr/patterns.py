"""LIKE patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alluvium.errors import InvalidRequest


def _parts(pattern: str) -> Iterator[tuple[bool, str]]:
    """The pattern's characters: (is it a wildcard, the character)."""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char != "\\":
            yield char in "%_", char
            at += 1
            continue
        # Spark: the escape character may only stand before a wildcard or itself, and not at the end
        if at + 1 == len(pattern) or pattern[at + 1] not in "%_\\":
            raise InvalidRequest(
                f"the LIKE pattern {pattern!r} has a backslash that escapes nothing",
                code="invalid-predicate",
                hint="write two backslashes for one",
            )
        yield False, pattern[at + 1]
        at += 2


def like_regex(pattern: str) -> str:
    r"""An RE2 pattern of the same meaning; `_` is one code point, and wildcards match line breaks, too.

    Raises:
        InvalidRequest: A backslash escapes nothing.
    """
    wild = {"%": ".*", "_": "."}
    return r"(?s)\A" + "".join(wild[c] if is_wild else re.escape(c) for is_wild, c in _parts(pattern)) + r"\z"


def like_prefix(pattern: str) -> tuple[str, str]:
    """The literal text before the first wildcard, and the wildcards and text after it as the pattern has them.

    The rest is `""` where there is no wildcard and `"%"` where the pattern asks for the prefix alone.
    """
    prefix: list[str] = []
    rest: list[str] = []
    for is_wild, char in _parts(pattern):
        (rest if rest or is_wild else prefix).append(char)
    return "".join(prefix), "%" if rest and set(rest) == {"%"} and _only_wild(pattern, len(rest)) else "".join(rest)


def _only_wild(pattern: str, count: int) -> bool:
    return all(is_wild for is_wild, _ in list(_parts(pattern))[-count:])

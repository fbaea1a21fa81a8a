"""LIKE patterns: what is asked for before the first wildcard, and what after it."""

from __future__ import annotations

import pytest

from alluvium.errors import InvalidRequest
from alluvium.expr.patterns import like_prefix


@pytest.mark.parametrize(
    ("pattern", "prefix", "rest"),
    [
        ("ab", "ab", ""),
        ("ab%", "ab", "%"),
        ("ab%%", "ab", "%"),
        ("abc%%", "abc", "%"),
        ("%", "", "%"),
        ("ab_", "ab", "_"),
        ("ab%c", "ab", "%c"),
        (r"a\%b%", "a%b", "%"),
        # Here an end is asked for, too, which only looks like a wildcard.
        (r"ab%\%", "ab", "%%"),
        (r"ab%\%%", "ab", "%%%"),
        ("", "", ""),
    ],
)
def test_the_prefix_and_the_rest(pattern: str, prefix: str, rest: str) -> None:
    assert like_prefix(pattern) == (prefix, rest)


@pytest.mark.parametrize("pattern", ["a\\", r"a\b", r"\\\x"])
def test_a_backslash_that_escapes_nothing(pattern: str) -> None:
    with pytest.raises(InvalidRequest, match="escapes nothing"):
        like_prefix(pattern)

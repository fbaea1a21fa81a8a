"""SQL as tokens: what is taken away, and what is not read at all."""

from __future__ import annotations

import pytest

from alluvium.expr.sql_tokens import UnreadableText, without_comments


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("  a  >  1 ", "  a  >  1 "),
        ("a > 1 -- more", "a > 1"),
        ("a /* x */ > /**/ 1", "a > 1"),
        ("-- first\r\na > 1 --\n and /* ' */ b", "a > 1 and b"),
        ("a = '-- no' and b = \"/* no\" and `--` > 1", "a = '-- no' and b = \"/* no\" and `--` > 1"),
        ("a = 'it''s -- \\' /*' -- yes", "a = 'it''s -- \\' /*'"),
        ("1/*x*/2", "1 2"),
        ("/* nothing */", ""),
    ],
)
def test_comments_are_left_out_where_they_are_some(text, kept):
    assert without_comments(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "a > 1 /*+ hint */",
        "a /* x /* y */ */ > 1",
        "a > 1 /* open",
        "a /*/*/ > 1",
        "a -- goes on\\\n > 1",
        "a; -- x",
        "'",
    ],
)
def test_comments_that_may_end_elsewhere_are_not_read(text):
    with pytest.raises(UnreadableText):
        without_comments(text)

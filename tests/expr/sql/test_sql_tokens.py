"""SQL as tokens: what is taken away, and what is not read at all."""

from __future__ import annotations

import pytest

from alluvium.expr.sql.sql_tokens import UnreadableText, read_tokens, without_comments


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


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a < 1.", "a < 1BD"),
        ("(1.)", "( 1BD )"),
        ("1.e9 + 2.E-3", "1e9 + 2E-3"),
        ("1.d 1.F 1.bd 1.e2BD", "1d 1F 1bd 1e2BD"),
        ("1.5 .5 0.e1 1.0", "1.5 .5 0e1 1.0"),
        ("1. select", "1BD select"),
    ],
)
def test_numbers_may_end_in_a_dot(text, written):
    assert " ".join(token.canonical for token in read_tokens(text)) == written


@pytest.mark.parametrize("text", ["1.select", "1..2", "1.`a`", "1.'a'", "1.L", "1.e", "1.e9x", "1._", "a.1.b"])
def test_what_is_glued_to_a_number_is_not_read(text):
    with pytest.raises(UnreadableText):
        list(read_tokens(text))

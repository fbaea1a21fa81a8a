"""The structure of a condition by its tokens, beside what stands there: brackets, CASE, names that read as operators."""

from __future__ import annotations

import pytest
from sqlglot import TokenType

from alluvium.errors import InvalidRequest
from alluvium.expr.sql.condition_tokens import (
    count_commas,
    has_bare_is,
    has_doubled_quote,
    invalid,
    matching,
    split,
    with_calls,
    with_members,
)
from alluvium.expr.sql.sql_reader import _DIALECT


def tokens(text: str) -> list:  # type: ignore[type-arg]
    return list(_DIALECT.tokenize(text))


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a", []), ("(a)", [(0, 2)]), ("((a))", [(0, 4), (1, 3)]), ("(a)(b)", [(0, 2), (3, 5)]), ("a[b]", [(1, 3)]), ("{a}", [(0, 2)]),
        ("(a[b])", [(0, 5), (2, 4)]), ("case when a then b end", [(0, 5)]), ("case case when a then b end when a then b end", [(0, 11), (1, 6)]),
        ("(case when a then b end)", [(0, 7), (1, 6)]), ("case when (a) then b end", [(0, 7), (2, 4)]),
        # Columns that are called so.
        ("case = 1", []), ("(case) = 1", [(0, 2)]), ("end = 1", []), ("(end)", [(0, 2)]), ("(case when a) end", [(0, 4)]),
    ],
)  # fmt: skip
def test_what_closes_what(text: str, pairs: list[tuple[int, int]]) -> None:
    found = tokens(text)
    close = matching(found, text)
    assert [(i, end) for i, end in enumerate(close) if i != end] == pairs


@pytest.mark.parametrize(
    "text", ["(", ")", "(a]", "[a)", "(a))", "((a)", "a[", "{a)", "(case when a then [b end)", ")("]
)
def test_brackets_that_do_not_fit(text: str) -> None:
    with pytest.raises(InvalidRequest, match="unbalanced brackets") as caught:
        matching(tokens(text), text)
    assert caught.value.code == "invalid-predicate"


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("a and b", TokenType.AND, ["a", "b"]), ("a and b and c", TokenType.AND, ["a", "b", "c"]), ("a or b", TokenType.AND, ["a or b"]),
        ("a or b and c", TokenType.OR, ["a", "b and c"]), ("(a and b) and c", TokenType.AND, ["(a and b)", "c"]),
        ("a between 1 and 2", TokenType.AND, ["a between 1 and 2"]), ("a between 1 and 2 and b", TokenType.AND, ["a between 1 and 2", "b"]),
        ("a between 1 and 2 and b between 3 and 4", TokenType.AND, ["a between 1 and 2", "b between 3 and 4"]),
        ("case when a and b then c end and d", TokenType.AND, ["case when a and b then c end", "d"]),
        ("a and", TokenType.AND, ["a", ""]), ("and", TokenType.AND, ["", ""]),
        ("between between 1 and 2 and 3 and b", TokenType.AND, ["between between 1 and 2 and 3", "b"]),
    ],
)  # fmt: skip
def test_operands(text: str, kind: TokenType, parts: list[str]) -> None:
    found = tokens(text)
    ranges = split(found, matching(found, text), 0, len(found), kind)
    assert [text[found[a].start : found[b - 1].end + 1] if a < b else "" for a, b in ranges] == parts


@pytest.mark.parametrize(
    ("text", "is_bare"),
    [
        ("is = 1", True), ("a and is = 1", True), ("a or is", True), ("not is null", True), ("(is)", True), ("[is]", True), ("{is}", True), ("f(a, is)", True),
        ("case when is then is else is end", True), ("case when a then is end", True), ("case when a then b else is end", True),
        ("a is null", False), ("a is not null", False), ("(a) is null", False), ("`is` = 1", False), ("1 is null", False), ("", False),
    ],
)  # fmt: skip
def test_a_column_called_is(text: str, is_bare: bool) -> None:
    assert has_bare_is(tokens(text)) is is_bare


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("t.or = 1", ["or"]), ("t.or.and", ["or", "and"]), ("or.x", ["or"]), ("a or b", []), ("t.`or`", []), ("case when a then b end.x", []),
        ("t.end.x", ["end"]), ("1.5 or b", []), ("x.between", ["between"]), ("not.a", ["not"]),
    ],
)  # fmt: skip
def test_members_are_names(text: str, names: list[str]) -> None:
    before = tokens(text)
    after = with_members(before)
    assert [t.text for t in after] == [t.text for t in before]
    assert [(t.start, t.end, t.line, t.col) for t in after] == [(t.start, t.end, t.line, t.col) for t in before]
    changed = [new.text for old, new in zip(before, after, strict=True) if old.token_type != new.token_type]
    assert changed == names
    assert all(t.token_type == TokenType.VAR for t in after if t.text in names)


@pytest.mark.parametrize(
    ("text", "is_doubled"),
    [
        ("'it''s'", True), ('"a""b"', True), ("'a' 'b'", False), ("'a'\"b\"", False), ("'a', 'b'", False), ("''", False), ("'a'", False),
        ("a = 'x' and b = 'y''z'", True), ("'a'b", False),
    ],
)  # fmt: skip
def test_quotes_that_stand_twice(text: str, is_doubled: bool) -> None:
    assert has_doubled_quote(tokens(text), text) is is_doubled


@pytest.mark.parametrize(
    ("text", "is_call"),
    [
        ("between(a, 1, 2)", True), ("between(a, (1, 2), 2)", True), ("between(a, 1)", False), ("between(a, 1, 2, 3)", False), ("a between (1) and (2)", False),
        ("between (f(a, b, c), 1, 2)", True), ("between(f(a, b, c))", False), ("a between", False), ("between", False),
    ],
)  # fmt: skip
def test_between_as_a_function(text: str, is_call: bool) -> None:
    found = tokens(text)
    after = with_calls(found, matching(found, text))
    assert any(t.token_type == TokenType.VAR and t.text == "between" for t in after) is is_call
    assert [t.text for t in after] == [t.text for t in found]


@pytest.mark.parametrize(
    ("text", "count"),
    [("f(a, b, c)", 2), ("cast(a as decimal(10, 2))", 0), ("f(cast(a as decimal(10, 2)), b)", 1), ("a", 0), ("a, b", 1), ("decimal, b", 1)],
)  # fmt: skip
def test_commas_between_arguments(text: str, count: int) -> None:
    found = tokens(text)
    assert count_commas(found, 0, len(found)) == count


def test_commas_of_some_tokens() -> None:
    found = tokens("f(a, b) and g(c, d, e)")
    assert (count_commas(found, 0, 6), count_commas(found, 7, len(found)), count_commas(found, 3, 4)) == (1, 2, 1)


def test_long_texts_are_cut_in_messages() -> None:
    assert str(invalid("is odd", "x" * 200)).count("x") == 200
    told = invalid("is odd", "y" * 201, "a hint")
    assert (told.message.count("y"), told.message.endswith("..."), told.hint) == (200, True, "a hint")

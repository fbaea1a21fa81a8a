"""The structure of a condition, as far as its tokens tell it: brackets, AND and OR, names that read as operators."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from sqlglot import Token, TokenType

from alluvium.errors import InvalidRequest

_WORD = re.compile(r"\w+")


def invalid(problem: str, text: str, hint: str = "write a condition such as \"day >= '2024-01-01'\"") -> InvalidRequest:
    shown = text if len(text) <= 200 else text[:200] + "..."
    return InvalidRequest(f"the predicate {problem}: {shown}", code="invalid-predicate", hint=hint)


#: What closes which bracket.
_OPEN = {
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.L_BRACE: TokenType.R_BRACE,
}
_CLOSE = frozenset(_OPEN.values())
#: After these, and at the beginning, an operand starts.
_BEFORE_OPERANDS = frozenset(
    {
        TokenType.AND,
        TokenType.OR,
        TokenType.NOT,
        TokenType.COMMA,
        TokenType.WHEN,
        TokenType.THEN,
        TokenType.ELSE,
        *_OPEN,
    }
)


def with_members(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, whatever stands beside a point being a name: Catalyst prints the column `or` as t.or, and its member
    as ``or.`x` ``. The END of a CASE may have members, too.
    """
    found = list(tokens)
    for i, token in enumerate(tokens):
        after = i > 0 and tokens[i - 1].token_type == TokenType.DOT
        before = i + 1 < len(tokens) and tokens[i + 1].token_type == TokenType.DOT
        beside = after or (before and token.token_type != TokenType.END)
        if beside and _WORD.fullmatch(token.text) and _is_bare(token):
            found[i] = Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)
    return found


def _is_bare(token: Token) -> bool:
    """Whether a word has no quotes, and is no number."""
    return token.token_type not in (TokenType.IDENTIFIER, TokenType.NUMBER) and token.end - token.start + 1 == len(
        token.text
    )


def has_bare_is(tokens: Sequence[Token]) -> bool:
    """Whether IS stands where an operand begins: a column of that name. In ``not IS NOT NULL`` Spark speaks of a column
    called `not`, and sqlglot of one called `is`, for which it takes `NOT NULL` as a condition, too.
    """
    before: TokenType | None = None
    for token in tokens:
        if token.token_type == TokenType.IS and (before is None or before in _BEFORE_OPERANDS):
            return True
        before = token.token_type
    return False


def has_doubled_quote(tokens: Sequence[Token], text: str) -> bool:
    """Whether a text has its quote twice: to Spark 4.0 `'it''s'` is two texts that follow each other, to later ones a
    quote within one.
    """
    return any(
        one.token_type == other.token_type == TokenType.STRING
        and one.end + 1 == other.start
        and text[one.end] == text[other.start]
        for one, other in pairwise(tokens)
    )


def matching(tokens: Sequence[Token], text: str) -> list[int]:
    """For each opening bracket, and each CASE, the index of the token that closes it; else the token's own index."""
    close = list(range(len(tokens)))
    pending: list[int] = []
    for i, token in enumerate(tokens):
        kind = token.token_type
        if kind in _OPEN or kind == TokenType.CASE:
            pending.append(i)
        elif kind == TokenType.END and pending and tokens[pending[-1]].token_type == TokenType.CASE:
            close[pending.pop()] = i
        elif kind in _CLOSE:
            while pending and tokens[pending[-1]].token_type == TokenType.CASE:
                pending.pop()  # a column that is called `case`
            if not pending or _OPEN[tokens[pending[-1]].token_type] != kind:
                raise invalid("has unbalanced brackets", text)
            close[pending.pop()] = i
    if any(tokens[i].token_type != TokenType.CASE for i in pending):
        raise invalid("has unbalanced brackets", text)
    return close


def with_calls(tokens: Sequence[Token], close: list[int]) -> list[Token]:
    """The tokens, `between` being a name where it is called with three arguments: so Catalyst of Spark 4 prints it."""
    found = list(tokens)
    for i, token in enumerate(tokens[:-1]):
        if token.token_type == TokenType.BETWEEN and tokens[i + 1].token_type == TokenType.L_PAREN:
            commas, at = 0, i + 2
            while at < close[i + 1]:
                commas += tokens[at].token_type == TokenType.COMMA
                at = close[at] + 1
            if commas == 2:
                found[i] = Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)
    return found


def split(tokens: Sequence[Token], close: list[int], start: int, end: int, kind: TokenType) -> list[tuple[int, int]]:
    """The ranges of tokens between the outermost `kind`s; the AND of a BETWEEN does not count."""
    ranges, begin, between, i = [], start, 0, start
    while i < end:
        current = tokens[i].token_type
        if current == TokenType.BETWEEN:
            between += 1
        elif current == TokenType.AND and between:
            between -= 1
        elif current == kind:
            ranges.append((begin, i))
            begin = i + 1
        i = close[i] + 1
    ranges.append((begin, end))
    return ranges


def count_commas(tokens: Sequence[Token], start: int, end: int) -> int:
    """The commas of some tokens, but for those of types: of decimal(10, 2)."""
    found = (i for i in range(start, end) if tokens[i].token_type == TokenType.COMMA)
    return sum(i < start + 3 or tokens[i - 3].token_type != TokenType.DECIMAL for i in found)

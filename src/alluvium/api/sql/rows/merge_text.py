"""Sources of a MERGE that Spark's grammar lacks, spelled as queries: columns renamed by an alias, older versions.

`USING (VALUES (1, 2)) AS s(id, v)` and `USING u VERSION AS OF 3 AS s` mean rows that a query can name; every piece of
the statement stays as it was written.
"""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.api.sql.text.lexer import Token, TokenKind, scan_tokens
from alluvium.api.sql.text.syntax_error import SqlSyntaxError

_NAMES = (TokenKind.WORD, TokenKind.BACKQUOTED)
_POINTS = ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")
#: What a point in time can end with, so that a name behind it is an alias.
_ENDS = (TokenKind.STRING, TokenKind.DOUBLE_QUOTED, TokenKind.INTEGER)


def in_sparks_words(text: str) -> str | None:
    """A MERGE whose source Spark's grammar lacks, in words that it has; None: the text is no such MERGE."""
    try:
        tokens = list(scan_tokens(text))
    except SqlSyntaxError:
        return None
    outer = _outer(tokens)
    begins = next((n for n in outer if tokens[n].word == "MERGE"), None)
    using = next((n for n in outer if begins is not None and n > begins and tokens[n].word == "USING"), None)
    on = next((n for n in outer if using is not None and n > using and tokens[n].word == "ON"), None)
    if using is None or on is None:
        return None
    found = _source(tokens, outer, using + 1, on)
    if found is None:
        return None
    rows, alias = text[tokens[using + 1].start : tokens[on - 1].end], found.alias
    named = rows if found.has_alias else f"{rows} AS {alias}"
    return f"{text[: tokens[using].end]} (SELECT * FROM {named}) AS {alias} {text[tokens[on].start :]}"


def _outer(tokens: list[Token]) -> list[int]:
    """The tokens outside of brackets, and the brackets around others."""
    found, depth = [], 0
    for n, token in enumerate(tokens):
        is_symbol = token.kind is TokenKind.SYMBOL
        if is_symbol and token.text in (")", "]"):
            depth -= 1
        if depth == 0:
            found.append(n)
        if is_symbol and token.text in ("(", "["):
            depth += 1
    return found


@dataclass(frozen=True, slots=True)
class _Source:
    alias: str
    has_alias: bool


def _source(tokens: list[Token], outer: list[int], start: int, end: int) -> _Source | None:
    """What stands between USING and ON, if Spark's grammar lacks it."""
    own = [n for n in outer if start <= n < end]
    is_query = tokens[start].text == "("
    behind = own[2:] if is_query else _behind_name(tokens, own)
    is_point = bool(behind) and (tokens[behind[0]].word in _POINTS or tokens[behind[0]].word == "FOR")
    has_columns = len(behind) > 2 and tokens[behind[-1]].text == ")" and tokens[behind[-3]].kind in _NAMES
    if is_point:
        named = _aliased(tokens, behind)
        if named is not None or is_query:
            return None if named is None else _Source(tokens[named].text, True)
        last = own[len(own) - len(behind) - 1]
        return _Source(tokens[last].text, False)
    return _Source(tokens[behind[-3]].text, True) if has_columns else None


def _behind_name(tokens: list[Token], own: list[int]) -> list[int]:
    """What follows a dotted name."""
    at = 0
    while at < len(own) and tokens[own[at]].kind in _NAMES:
        if at + 1 >= len(own) or tokens[own[at + 1]].text != ".":
            return own[at + 1 :]
        at += 2
    return []


def _aliased(tokens: list[Token], behind: list[int]) -> int | None:
    """The alias behind a point in time; None: there is none."""
    if tokens[behind[-1]].text == ")" and len(behind) > 3 and tokens[behind[-4]].word == "AS":
        return behind[-3]
    last, before = tokens[behind[-1]], tokens[behind[-2]]
    is_end = before.kind in _ENDS or before.text == ")" or before.word == "AS"
    return behind[-1] if last.kind in _NAMES and is_end else None

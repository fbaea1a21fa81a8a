"""Columns by all four parts of their name, `lake.db.t.k`, where `lake` is a catalog of ours.

Spark calls the rows of our tables by its own catalog's name, whichever catalog they were asked of: in a statement that
names the table, the column's first part becomes that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from alluvium.api.sql.text.lexer import Token, TokenKind, scan_tokens
from alluvium.api.sql.text.strings import name_value
from alluvium.api.sql.text.syntax_error import SqlSyntaxError

_SESSION_CATALOG = "spark_catalog"
_NAMES = (TokenKind.WORD, TokenKind.BACKQUOTED)
#: Catalog, database, table.
_TABLE_PARTS = 3


def with_session_columns(text: str, catalogs: Callable[[], Collection[str]]) -> str:
    """The statement as Spark resolves it.

    Args:
        text: The statement.
        catalogs: The names of ours; asked for only where the text may have such a column.
    """
    if text.count(".") < _TABLE_PARTS:
        return text
    try:
        chains = list(_chains(text))
    except SqlSyntaxError:
        return text  # Spark says what is wrong with it
    columns = [c for c in chains if len(c.parts) > _TABLE_PARTS or (len(c.parts) == _TABLE_PARTS and c.has_star)]
    if not columns:
        return text
    known = {name.lower() for name in catalogs()}
    named = {c.parts for c in chains if not c.has_star and len(c.parts) in (_TABLE_PARTS - 1, _TABLE_PARTS)}
    for column in reversed(columns):
        table = column.parts[:_TABLE_PARTS]
        if table[0] in known and (table in named or table[1:] in named):
            text = text[: column.first.start] + _SESSION_CATALOG + text[column.first.end :]
    return text


class _Chain:
    """Names with dots between them.

    Attributes:
        first: The first of them.
        parts: All, folded.
        has_star: Whether `.*` follows.
    """

    def __init__(self, first: Token) -> None:
        self.first = first
        self.parts: tuple[str, ...] = (_folded(first),)
        self.has_star = False


def _folded(token: Token) -> str:
    return name_value(token.text).lower() if token.kind is TokenKind.BACKQUOTED else token.text.lower()


def _chains(text: str) -> Iterator[_Chain]:
    chain, dotted = None, False
    for token in scan_tokens(text):
        if token.kind in _NAMES and chain is not None and dotted:
            chain.parts, dotted = (*chain.parts, _folded(token)), False
            continue
        if chain is not None and dotted and token.text == "*":
            chain.has_star = True
        elif chain is not None and not dotted and token.text == ".":
            dotted = True
            continue
        if chain is not None:
            yield chain
        chain, dotted = (_Chain(token) if token.kind in _NAMES else None), False

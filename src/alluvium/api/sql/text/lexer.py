"""Text to tokens, by the lexical rules of Spark 4 and of delta-spark's own grammar, where they agree.

Not sqlglot's tokens: it splits names that begin with a digit (`2024_t`) and numbers with a suffix (`1L`, `.5`), joins
no doubled quotes, and wants the whole text, while the head of a statement is told from its first tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from alluvium.api.sql.text.syntax_error import syntax_error


class TokenKind(Enum):
    """What a token is; keywords are words, since nearly every keyword may be a name."""

    WORD = "word"
    BACKQUOTED = "name in backticks"
    STRING = "string"
    DOUBLE_QUOTED = "string in double quotes"
    INTEGER = "integer"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    """A piece of a statement.

    Attributes:
        kind: What it is.
        text: As it is written, quotes and all.
        start: Its first character in the statement.
        end: The character after its last one.
    """

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """A bare word in capitals, else an empty text. Other alphabets have no keywords: `ſet` is not SET."""
        return self.text.upper() if self.kind is TokenKind.WORD and self.text.isascii() else ""


# No alternative can begin with what another ends in, so that hostile text costs no more than its length.
_TOKEN = re.compile(
    r"""
    (?P<STRING>        [rR]'[^']*' | '[^'\\]*(?:(?:\\.|'')[^'\\]*)*' )
  | (?P<DOUBLE_QUOTED> [rR]"[^"]*" | "[^"\\]*(?:(?:\\.|"")[^"\\]*)*" )
  | (?P<BACKQUOTED>    `[^`]*(?:``[^`]*)*` )
  | (?P<NUMBER>        (?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:BD|[DF])?(?!\w)
                     | [0-9]+(?:[eE][+-]?[0-9]+(?:BD|[DF])?|BD|[DFLSY])(?!\w) )
  | (?P<INTEGER>       [0-9]+(?!\w) )
  | (?P<WORD>          \w+ )
  | (?P<SYMBOL>        <=>|<>|!=|<=|>=|!<|!>|==|\|\||::|->|=>|. )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_BLANK = re.compile(r"\s*")
# A backslash before the end of its line carries a comment on, in Spark.
_LINE_COMMENT = re.compile(r"(?:\\\n|[^\r\n])*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_KINDS = {kind.name: kind for kind in TokenKind}
_UNCLOSED = {"'": "string", '"': "string", "`": "name in backticks"}


def skip_blank(text: str, at: int) -> int:
    """Where the next token begins: behind blanks, comments and hints.

    Raises:
        SqlSyntaxError: A comment is not closed.
    """
    while True:
        at = _BLANK.match(text, at).end()  # type: ignore[union-attr]  # it matches anywhere
        if text.startswith("--", at):
            at = _LINE_COMMENT.match(text, at).end()  # type: ignore[union-attr]
        elif text.startswith("/*", at):
            at = _comment_end(text, at)
        else:
            return at


def _comment_end(text: str, start: int) -> int:
    """Comments nest in Spark."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise syntax_error(text, start, "/*", "the comment is not closed", hint="close it with */")


def scan_tokens(text: str, at: int = 0) -> Iterator[Token]:
    """The tokens from a position on, each when it is asked for; the last is an `END`.

    Raises:
        SqlSyntaxError: A comment, a string or a name in backticks is not closed.
    """
    while (at := skip_blank(text, at)) < len(text):
        found = _TOKEN.match(text, at)
        # The last alternative takes any character.
        assert found is not None and found.lastgroup is not None
        piece = found.group()
        if piece in _UNCLOSED:
            raise syntax_error(text, at, piece, f"the {_UNCLOSED[piece]} is not closed", hint=f"close it with {piece}")
        yield Token(_KINDS[found.lastgroup], piece, at, found.end())
        at = found.end()
    yield Token(TokenKind.END, "", len(text), len(text))

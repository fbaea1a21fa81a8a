"""Which tables of ours a statement names by path, told from its text alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.lexer import Token, TokenKind
from alluvium.api.sql.text.names import read_as_of
from alluvium.api.sql.text.strings import name_value
from alluvium.api.sql.text.terms import AsOf, Parameter, Settings

FORMATS = ("delta", "paimon")
FUNCTIONS = ("TABLE_CHANGES", "TABLE_CHANGES_BY_PATH")
#: Text without any of these names nothing of ours, and is not taken apart.
_HINT = re.compile(r"delta|paimon|table_changes", re.IGNORECASE)
_PATH = re.compile(r"/|[a-z][a-z0-9+.-]*:", re.IGNORECASE)
#: Words that a table comes behind; a path that is neither absolute nor a URL is one only there.
_BEFORE_TABLES = frozenset(
    ("FROM", "JOIN", "INTO", "OVERWRITE", "TABLE", "UPDATE", "USING", "LATERAL", "DESCRIBE", "DESC")
)
#: Words that what a statement changes, or tells of, comes behind.
_BEFORE_TARGETS = frozenset(
    ("INTO", "OVERWRITE", "UPDATE", "DESCRIBE", "DESC", "EXTENDED", "FORMATTED", "TBLPROPERTIES")
)
_BEFORE_TARGETS_2 = frozenset(
    (
        *((word, "TABLE") for word in ("INTO", "OVERWRITE", "CREATE", "REPLACE", "ALTER", "DROP", "TRUNCATE", "ON")),
        *((word, "TABLE") for word in ("DESCRIBE", "DESC", "ANALYZE", "REPAIR", "REFRESH", "EXTERNAL")),
        *((word, "TABLE") for word in ("CACHE", "LAZY", "UNCACHE")),
        *((word, "EXISTS") for word in ("IF", "NOT", "!")),
        *((word, place) for word in ("COLUMNS", "PARTITIONS") for place in ("FROM", "IN")),
        ("DELETE", "FROM"),
        ("SHOW", "PARTITIONS"),
        ("ON", "COLUMN"),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table by its path.

    Attributes:
        format: Of the table, in lower case.
        path: As it is written, maybe with `@v3`.
        as_of: The point in time that is said behind it.
        start: Where it begins in the text.
        end: The character after it.
        is_target: Whether it is what the statement changes or tells of, should it be no query.
    """

    format: str
    path: str
    as_of: AsOf | None
    start: int
    end: int
    is_target: bool

    def values(self) -> tuple[object, ...]:
        """Version and time, as they are written."""
        return () if self.as_of is None else (self.as_of.version, self.as_of.timestamp)


@dataclass(frozen=True, slots=True)
class ChangesRead:
    """`table_changes(...)`.

    Attributes:
        function: Its name, in capitals.
        arguments: In their order.
        start: Where it begins in the text.
        end: The character after it.
    """

    function: str
    arguments: tuple[int | str | Parameter, ...]
    start: int
    end: int

    def values(self) -> tuple[object, ...]:
        """The arguments, as they are written."""
        return self.arguments


Read = TableRead | ChangesRead
_NOWHERE: dict[str, Any] = {"start": 0, "end": 0}


def may_name_ours(text: str) -> bool:
    """Whether a text may name a table of ours at all, at a look."""
    return _HINT.search(text) is not None


def reads_in(text: str, settings: Settings) -> tuple[Read, ...]:
    """The tables that a statement names by path, and the change feeds that it asks for.

    Raises:
        SqlSyntaxError: A string, a name or a comment is not closed, or what stands behind such a table is no time.

    Example:
        >>> reads_in("select * from delta.`/t` version as of 3", Settings())[0].as_of
        AsOf(version=3, timestamp=None)
    """
    if not may_name_ours(text):
        return ()
    called = _called_like_formats(text, settings)
    cursor, found = Cursor(text, settings), list[Read]()
    before = ("", "")
    while (token := cursor.peek()).kind is not TokenKind.END:
        read = None if before[1] == "." else _table(cursor, before, called) or _changes(cursor)
        if read is None:
            cursor.advance()
        else:
            found.append(read)
        before = (before[1], token.word or token.text)
    return tuple(found)


def _called_like_formats(text: str, settings: Settings) -> frozenset[str]:
    """Formats whose names stand in a text for something else: `FROM t AS delta`, `WITH delta AS (...)`."""
    cursor, found = Cursor(text, settings), set[str]()
    before = ""
    while (token := cursor.peek()).kind is not TokenKind.END:
        name = _name(token).lower()
        if name in FORMATS and before not in (".", "USING") and cursor.peek(1).text != ".":
            found.add(name)
        before = token.word or token.text
        cursor.advance()
    return frozenset(found)


def _table(cursor: Cursor, before: tuple[str, str], called: Collection[str]) -> TableRead | None:
    named, path = cursor.peek(), cursor.peek(2)
    table_format = _name(named).lower()
    if table_format not in FORMATS or cursor.peek(1).text != "." or path.kind is not TokenKind.BACKQUOTED:
        return None
    shown = name_value(path.text)
    # Else it is a column of something that is called like the format.
    stands_for_table = before[1] in _BEFORE_TABLES and before != ("DISTINCT", "FROM")
    may_be_path = _PATH.match(shown) is not None and table_format not in called
    if cursor.peek(3).text == "." or not (may_be_path or stands_for_table):
        return None
    for _ in range(3):
        cursor.advance()
    as_of = read_as_of(cursor)
    end = cursor.before().end
    is_target = before[1] in _BEFORE_TARGETS or before in _BEFORE_TARGETS_2
    return TableRead(table_format, shown, as_of, named.start, end, is_target)


def _name(token: Token) -> str:
    return name_value(token.text) if token.kind is TokenKind.BACKQUOTED and len(token.text) > 2 else token.text


def _changes(cursor: Cursor) -> ChangesRead | None:
    start = cursor.peek()
    if start.word not in FUNCTIONS or cursor.peek(1).text != "(":
        return None
    cursor.advance()
    cursor.advance()
    arguments = [_argument(cursor)]
    while cursor.take(","):
        arguments.append(_argument(cursor))
    cursor.expect(")")
    return ChangesRead(start.word, tuple(arguments), start.start, cursor.before().end)


def _argument(cursor: Cursor) -> int | str | Parameter:
    parameter = cursor.parameter()
    if parameter is not None:
        return parameter
    number = cursor.integer("a version", 2**63 - 1)
    if number is not None:
        return number
    text = cursor.string()
    if text is None:
        cursor.fail("a value", hint="over Spark Connect a string, a number or a parameter")
    return text


def frame_names(reads: Sequence[Read]) -> list[str]:
    """A name for the rows of each; the same for what is the same table at the same point in time, or the same feed.

    Parameters without names are each of their own.
    """
    known = dict[Read, str]()
    return [known.setdefault(replace(read, **_NOWHERE), f"_alluvium_{len(known)}") for read in reads]


def replaced(text: str, pieces: Sequence[tuple[Read, str]], kept: Callable[[str], str] = str) -> str:
    """The text with other words in the place of tables.

    Args:
        text: The statement.
        pieces: What stands in it, in its order, and the words for each.
        kept: What becomes of the rest.
    """
    found, at = list[str](), 0
    for read, words in pieces:
        found += [kept(text[at : read.start]), words]
        at = read.end
    return "".join((*found, kept(text[at:])))

"""Names of tables and columns in a statement."""

from __future__ import annotations

import re

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.lexer import TokenKind
from alluvium.api.sql.text.strings import name_value
from alluvium.api.sql.text.syntax_error import SqlSyntaxError
from alluvium.api.sql.text.terms import (
    AsOf,
    ColumnName,
    Named,
    NamedBy,
    Parameter,
    PathLiteral,
    Settings,
    TableName,
    Target,
)

#: Words that are no names without backticks, as in delta-spark: `VACUUM WHERE` is a slip, not a table.
RESERVED = frozenset(
    {
        "ADD", "ALTER", "COMMENT", "CONSTRAINT", "CREATE", "DROP", "FALSE", "HISTORY", "IF", "LOCATION", "NOT", "NULL",
        "OR", "REPLACE", "SYSTEM_TIME", "SYSTEM_VERSION", "TBLPROPERTIES", "TIMESTAMP", "TRUE", "VERSION", "WHERE",
    }
)  # fmt: skip

#: `t@v3` and `t@20240131235959999`.
_TRAVEL = re.compile(r"[vV]([0-9]{1,18})|([0-9]{17})")
_PARTS = 3
_VERSIONS = ("VERSION", "SYSTEM_VERSION")
#: The words that a point in time begins with.
TEMPORAL = (*_VERSIONS, "TIMESTAMP", "SYSTEM_TIME")


def read_table_name(cursor: Cursor, what: str = "a table's name", most_parts: int | None = _PARTS) -> Named:
    """Takes a name of a table, or `IDENTIFIER(...)`.

    Args:
        cursor: The place.
        what: What is named, for messages.
        most_parts: How many parts a name may have; None: any number.

    Raises:
        SqlSyntaxError: There is none, or it has too many parts.
    """
    if cursor.sees("IDENTIFIER", "("):
        named = _read_identifier_clause(cursor)
        if isinstance(named, Parameter):
            return NamedBy(named)
        parts = named
    else:
        start = cursor.peek()
        parts = read_name(cursor, what)
        if most_parts is not None and len(parts) > most_parts:
            hint = "a name with dots in it stands in backticks as a whole"
            raise cursor.refused(f"a table's name has at most {most_parts} parts", token=start, hint=hint)
    return TableName(parts)


def read_target(cursor: Cursor) -> Target:
    """Takes a name of a table, or a path in quotes.

    Raises:
        SqlSyntaxError: There is neither.
    """
    path = cursor.string()
    if path is not None:
        return PathLiteral(path)
    parameter = cursor.parameter()
    if parameter is not None:
        return PathLiteral(parameter)
    return read_table_name(cursor)


def read_name(cursor: Cursor, what: str, free: bool = False) -> tuple[str, ...]:
    """Takes a name of one part or more, joined by dots.

    Args:
        cursor: The place.
        what: What is named, for messages.
        free: Whether any keyword may be a name here, since none may come.
    """
    parts = [read_part(cursor, what, free)]
    while cursor.sees("."):
        cursor.advance()
        # Behind a dot nothing but a name can come.
        parts.append(read_part(cursor, "a name", free=True))
    return tuple(parts)


def read_part(cursor: Cursor, what: str, free: bool = False) -> str:
    """Takes a name without dots.

    Raises:
        SqlSyntaxError: There is none.
    """
    token = cursor.peek()
    if token.kind is TokenKind.BACKQUOTED or (
        token.kind is TokenKind.DOUBLE_QUOTED and cursor.settings.double_quoted_identifiers
    ):
        if len(token.text) == 2:
            raise cursor.refused("a name is not empty")
        cursor.advance()
        return name_value(token.text)
    # Names may begin with a digit, but not be numbers.
    if token.kind is TokenKind.WORD and (free or token.word not in RESERVED):
        cursor.advance()
        return token.text
    hint = f"{token.text} is a keyword here: as a name it stands in backticks" if token.word in RESERVED else None
    if cursor.sees_string():
        hint = "a path stands in backticks here: delta.`/path/of/table`"
    return cursor.fail(what, hint=hint)


def read_column_list(cursor: Cursor) -> tuple[ColumnName, ...]:
    """Takes columns in brackets."""
    cursor.expect("(")
    columns = read_columns(cursor)
    cursor.expect(")")
    return columns


def read_columns(cursor: Cursor) -> tuple[ColumnName, ...]:
    """Takes columns with commas between them."""
    columns = [read_name(cursor, "a column", free=True)]
    while cursor.take(","):
        columns.append(read_name(cursor, "a column", free=True))
    return tuple(columns)


def read_as_of(cursor: Cursor) -> AsOf | None:
    """Takes `[FOR] VERSION | TIMESTAMP AS OF ...`, if it comes next.

    Raises:
        SqlSyntaxError: What stands behind it is no version, or no time.
    """
    skip = 1 if cursor.sees("FOR") else 0
    kind = cursor.peek(skip).word
    if kind not in TEMPORAL:
        cursor.wanted("VERSION AS OF")
        cursor.wanted("TIMESTAMP AS OF")
        return None
    for _ in range(skip + 1):
        cursor.advance()
    cursor.expect("AS", "OF")
    parameter = cursor.parameter()
    if kind in _VERSIONS:
        return AsOf(version=_read_version(cursor) if parameter is None else parameter)
    if parameter is not None:
        return AsOf(timestamp=parameter)
    text = cursor.string()
    if text is None:
        cursor.fail("a time", hint="write a time such as '2024-01-31 12:00:00'")
    return AsOf(timestamp=text)


def _read_version(cursor: Cursor) -> int:
    number = cursor.integer("a version", 2**63 - 1)
    if number is not None:
        return number
    token = cursor.peek()
    text = cursor.string()
    if text is None:
        cursor.fail(hint="versions are whole numbers, from 0")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise cursor.refused(f"{text[:80]!r} is no version", token=token, hint="versions are whole numbers, from 0")
    return int(text)


def read_at_version(cursor: Cursor) -> AsOf | None:
    """Takes the `@v3` of `t@v3`, or `@` and a time as yyyyMMddHHmmssSSS, if it stands right behind the name."""
    at, what = cursor.peek(), cursor.peek(1)
    if at.text != "@" or at.end != what.start:
        return None
    found = _TRAVEL.fullmatch(what.text)
    if found is None:
        cursor.advance()
        cursor.fail("a version such as v3")
    cursor.advance()
    cursor.advance()
    version, time = found.groups()
    if version is not None:
        return AsOf(version=int(version))
    day, clock = f"{time[:4]}-{time[4:6]}-{time[6:8]}", f"{time[8:10]}:{time[10:12]}:{time[12:14]}.{time[14:]}"
    return AsOf(timestamp=f"{day} {clock}")


def _read_identifier_clause(cursor: Cursor) -> tuple[str, ...] | Parameter:
    """Takes `IDENTIFIER('name')` or `IDENTIFIER(:parameter)`."""
    cursor.expect("IDENTIFIER", "(")
    token = cursor.peek()
    found: tuple[str, ...] | Parameter | None = cursor.parameter()
    text = cursor.string() if found is None else None
    if text is not None:
        try:
            found = split_name(text, cursor.settings)
        except SqlSyntaxError as error:
            raise cursor.refused(f"{text[:80]!r} is no name", token=token) from error
    if found is None:
        cursor.fail("a parameter", hint="IDENTIFIER takes a string or a parameter here, no expression")
    cursor.expect(")")
    return found


def split_name(text: str, settings: Settings) -> tuple[str, ...]:
    """The parts of a name that a text holds, read as in a statement.

    Raises:
        SqlSyntaxError: The text is no name.
    """
    inner = Cursor(text, settings)
    parts = read_name(inner, "a name", free=True)
    if inner.peek().kind is not TokenKind.END:
        inner.fail("end of the name")
    return parts

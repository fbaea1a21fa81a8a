"""CREATE TABLE ... CLONE: a copy of a table, with its files or by reference to them."""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.lexer import TokenKind
from alluvium.api.sql.text.names import read_as_of, read_at_version, read_name, read_table_name
from alluvium.api.sql.text.terms import AsOf, Named, Parameter, Statement

SYNTAX = (
    "CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t [SHALLOW | DEEP] CLONE source [VERSION AS OF n | TIMESTAMP AS OF "
    "'time'] [TBLPROPERTIES ('key' = 'value', ...)] [LOCATION 'path']"
)


@dataclass(frozen=True, slots=True)
class Clone(Statement):
    """`CREATE [OR REPLACE] TABLE ... CLONE` and `REPLACE TABLE ... CLONE`.

    Attributes:
        target: The new table.
        source: The table to copy.
        shallow: Whether the files stay where they are; a clone that says nothing is deep.
        as_of: The version of the source; None: its newest.
        create: Whether the table may be new: not so for a bare REPLACE.
        replace: Whether a table that is there is replaced.
        if_not_exists: Whether a table that is there is left alone.
        properties: Keys and values for the copy, in their order.
        location: Where it shall lie.
    """

    target: Named
    source: Named
    shallow: bool
    as_of: AsOf | None = None
    create: bool = True
    replace: bool = False
    if_not_exists: bool = False
    properties: tuple[tuple[str, str | Parameter], ...] = ()
    location: str | Parameter | None = None


def parse_clone(cursor: Cursor) -> Clone:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none; OR REPLACE stands with IF NOT EXISTS; a property stands twice, or without a value.
    """
    create = cursor.take("CREATE")
    replace = cursor.take("OR", "REPLACE") if create else cursor.take("REPLACE")
    cursor.expect("TABLE")
    if_not_exists = _read_if_not_exists(cursor, replace)
    # `CREATE TABLE SHALLOW CLONE s` lost its name: it is no deep clone that is called `shallow`.
    if cursor.peek().word in ("SHALLOW", "DEEP") and cursor.is_at(cursor.at + 1, "CLONE"):
        cursor.fail("a table's name", hint="a table that is called so stands in backticks")
    target = read_table_name(cursor)
    shallow = cursor.take("SHALLOW")
    if not shallow:
        cursor.take("DEEP")
    cursor.expect("CLONE")
    source = read_table_name(cursor, most_parts=None)
    as_of = read_at_version(cursor) or read_as_of(cursor)
    properties: tuple[tuple[str, str | Parameter], ...] = ()
    if cursor.take("TBLPROPERTIES"):
        properties = _read_properties(cursor)
    location = _read_location(cursor)
    # In delta-spark the place comes last.
    if location is not None and not properties and cursor.take("TBLPROPERTIES"):
        properties = _read_properties(cursor)
    cursor.expect_end()
    return Clone(target, source, shallow, as_of, create, replace, if_not_exists, properties, location)


def _read_if_not_exists(cursor: Cursor, replace: bool) -> bool:
    if not cursor.sees("IF", "NOT", "EXISTS") and not cursor.sees("IF", "!", "EXISTS"):
        return False
    if replace:
        raise cursor.refused("IF NOT EXISTS does not go with REPLACE", hint="leave out one of them")
    for _ in range(3):
        cursor.advance()
    return True


def _read_location(cursor: Cursor) -> str | Parameter | None:
    if not cursor.take("LOCATION"):
        return None
    location: str | Parameter | None = cursor.parameter()
    if location is None:
        location = cursor.string()
    if location is None:
        cursor.fail("a path in quotes")
    return location


def _read_properties(cursor: Cursor) -> tuple[tuple[str, str | Parameter], ...]:
    found: dict[str, str | Parameter] = {}
    cursor.expect("(")
    while True:
        token = cursor.peek()
        key = cursor.string()
        if key is None:
            key = ".".join(read_name(cursor, "a property", free=True))
        if key in found:
            raise cursor.refused(f"the property {key[:80]} stands twice", token=token, hint="leave one of them out")
        if not cursor.take("=="):
            cursor.take("=")
        found[key] = _read_value(cursor, key)
        if not cursor.take(","):
            break
    cursor.expect(")")
    return tuple(found.items())


def _read_value(cursor: Cursor, key: str) -> str | Parameter:
    """A string, number or truth value; whichever it is, properties are texts."""
    parameter = cursor.parameter()
    if parameter is not None:
        return parameter
    text = cursor.string()
    if text is not None:
        return text
    token = cursor.peek()
    if token.word in ("TRUE", "FALSE"):
        return cursor.advance().text.lower()
    decimal = token.kind is TokenKind.NUMBER and token.text[-1] not in "bBdDfFlLsSyY"
    if token.kind is not TokenKind.INTEGER and not decimal:
        cursor.fail(f"a value of the property {key[:80]}", hint=f"give it a value: '{key[:80]}' = '...'")
    return cursor.advance().text

"""DESCRIBE DETAIL, DESCRIBE HISTORY and RESTORE: what a table was, and the way back."""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.names import TEMPORAL, read_as_of, read_table_name, read_target
from alluvium.api.sql.text.syntax_error import SqlSyntaxError
from alluvium.api.sql.text.terms import AsOf, Named, Parameter, Statement, Target

DETAIL_SYNTAX = "DESCRIBE DETAIL t | 'path'"
HISTORY_SYNTAX = "DESCRIBE HISTORY t | 'path' [LIMIT n]"
RESTORE_SYNTAX = "RESTORE [TABLE] t [TO] VERSION AS OF n | TIMESTAMP AS OF 'time'"


@dataclass(frozen=True, slots=True)
class DescribeDetail(Statement):
    """`DESCRIBE DETAIL`.

    Attributes:
        target: The table.
    """

    target: Target


@dataclass(frozen=True, slots=True)
class DescribeHistory(Statement):
    """`DESCRIBE HISTORY`.

    Attributes:
        target: The table.
        limit: How many versions, from the newest; None: all.
    """

    target: Target
    limit: int | Parameter | None = None


@dataclass(frozen=True, slots=True)
class Restore(Statement):
    """`RESTORE`.

    Attributes:
        target: The table.
        as_of: Where to go back to.
    """

    target: Named
    as_of: AsOf


def parse_describe(cursor: Cursor) -> DescribeDetail | DescribeHistory:
    """Parses either statement from its first word on.

    Raises:
        SqlSyntaxError: It is neither.
    """
    if not cursor.take("DESC"):
        cursor.expect("DESCRIBE")
    if cursor.take("DETAIL"):
        target = read_target(cursor)
        cursor.expect_end()
        return DescribeDetail(target)
    cursor.expect("HISTORY")
    target = read_target(cursor)
    limit: int | Parameter | None = None
    if cursor.take("LIMIT"):
        limit = cursor.parameter()
        if limit is None:
            limit = cursor.integer("a number of versions", 2**31 - 1)
        if limit is None:
            cursor.fail()
    cursor.expect_end()
    return DescribeHistory(target, limit)


def parse_restore(cursor: Cursor) -> Restore:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    cursor.expect("RESTORE")
    begin = cursor.at
    if not cursor.take("TABLE"):
        return _read_restore(cursor)
    try:
        return _read_restore(cursor)
    except SqlSyntaxError:
        # The table itself may be called `table`; if not even that fits, the first error says more.
        cursor.at = begin
        if not cursor.is_at(begin + 1, "TO") and cursor.peek(1).word not in TEMPORAL:
            raise
        return _read_restore(cursor)


def _read_restore(cursor: Cursor) -> Restore:
    target = read_table_name(cursor)
    cursor.take("TO")
    as_of = read_as_of(cursor)
    if as_of is None:
        cursor.fail()
    cursor.expect_end()
    return Restore(target, as_of)

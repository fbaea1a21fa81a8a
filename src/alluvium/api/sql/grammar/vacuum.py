"""VACUUM."""

from __future__ import annotations

import math
from dataclasses import dataclass

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.lexer import TokenKind
from alluvium.api.sql.text.names import read_table_name, read_target
from alluvium.api.sql.text.terms import Named, Parameter, SqlText, Statement, Target

SYNTAX = "VACUUM t | 'path' [LITE | FULL] [USING INVENTORY t | (query)] [RETAIN n HOURS] [DRY RUN]"


@dataclass(frozen=True, slots=True)
class Vacuum(Statement):
    """`VACUUM`; the clauses behind the table come in any order.

    Attributes:
        target: The table.
        lite: True for LITE, False for FULL, None where neither is said.
        inventory: The table or query that lists the files.
        retain_hours: As it is said; negative, where a minus stands.
        dry_run: Whether nothing may be removed.
    """

    target: Target
    lite: bool | None = None
    inventory: Named | SqlText | None = None
    retain_hours: float | Parameter | None = None
    dry_run: bool = False


@dataclass(slots=True)
class _Clauses:
    lite: bool | None = None
    inventory: Named | SqlText | None = None
    retain_hours: float | Parameter | None = None
    dry_run: bool = False


def parse_vacuum(cursor: Cursor) -> Vacuum:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none; a clause stands twice; LITE stands with an inventory.
    """
    cursor.expect("VACUUM")
    target = read_target(cursor)
    clauses = _Clauses()
    while not cursor.at_end():
        _read_clause(cursor, clauses)
    if clauses.lite and clauses.inventory is not None:
        raise cursor.refused("LITE does not go with an inventory", hint="leave out LITE, or USING INVENTORY")
    return Vacuum(target, clauses.lite, clauses.inventory, clauses.retain_hours, clauses.dry_run)


def _read_clause(cursor: Cursor, clauses: _Clauses) -> None:
    if cursor.sees("LITE") or cursor.sees("FULL"):
        _ensure_once(cursor, clauses.lite is None, "LITE or FULL")
        clauses.lite = cursor.advance().word == "LITE"
    elif cursor.sees("USING"):
        _ensure_once(cursor, clauses.inventory is None, "USING INVENTORY")
        cursor.expect("USING", "INVENTORY")
        clauses.inventory = _read_inventory(cursor)
    elif cursor.sees("RETAIN"):
        _ensure_once(cursor, clauses.retain_hours is None, "RETAIN")
        cursor.expect("RETAIN")
        clauses.retain_hours = _read_hours(cursor)
        cursor.expect("HOURS")
    elif cursor.sees("DRY"):
        _ensure_once(cursor, not clauses.dry_run, "DRY RUN")
        cursor.expect("DRY", "RUN")
        clauses.dry_run = True
    else:
        for words in ("LITE", "FULL", "USING INVENTORY", "RETAIN", "DRY RUN"):
            cursor.wanted(words)
        cursor.expect_end()


def _ensure_once(cursor: Cursor, first: bool, clause: str) -> None:
    if not first:
        raise cursor.refused(f"{clause} stands twice", hint="leave one of them out")


def _read_inventory(cursor: Cursor) -> Named | SqlText:
    if not cursor.sees("("):
        return read_table_name(cursor)
    close = cursor.closing()
    cursor.expect("(")
    query = cursor.sql_until(close, "a query")
    cursor.expect(")")
    return query


def _read_hours(cursor: Cursor) -> float | Parameter:
    """A number as Spark writes them: 168, 0.5, 1e2, 24L, 1.5BD."""
    parameter = cursor.parameter()
    if parameter is not None:
        return parameter
    negative = cursor.sees("-")
    if negative:
        cursor.advance()
    token = cursor.peek()
    if token.kind not in (TokenKind.INTEGER, TokenKind.NUMBER):
        cursor.fail("a number of hours")
    hours = float(token.text.rstrip("bBdDfFlLsSyY"))
    if not math.isfinite(hours):
        raise cursor.refused("the number is too large", hint="a week has 168 hours")
    cursor.advance()
    return -hours if negative else hours

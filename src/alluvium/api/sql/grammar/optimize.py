"""OPTIMIZE and REORG TABLE: files rewritten, rows unchanged."""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.names import read_columns, read_table_name, read_target
from alluvium.api.sql.text.terms import ColumnName, Named, SqlText, Statement, Target

OPTIMIZE_SYNTAX = "OPTIMIZE t | 'path' [FULL] [WHERE condition] [ZORDER BY (column, ...)]"
REORG_SYNTAX = (
    "REORG TABLE t [WHERE condition] APPLY (PURGE), "
    "or REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))"
)


@dataclass(frozen=True, slots=True)
class Optimize(Statement):
    """`OPTIMIZE`.

    Attributes:
        target: The table.
        full: Whether files that are clustered already are rewritten, too.
        where: Which partitions.
        zorder_by: The columns to order by; empty where none are said.
    """

    target: Target
    full: bool = False
    where: SqlText | None = None
    zorder_by: tuple[ColumnName, ...] = ()


@dataclass(frozen=True, slots=True)
class Reorg(Statement):
    """`REORG TABLE`.

    Attributes:
        target: The table.
        where: Which partitions.
        iceberg_compat_version: Of `UPGRADE UNIFORM`; None for `PURGE`.
    """

    target: Named
    where: SqlText | None = None
    iceberg_compat_version: int | None = None


def parse_optimize(cursor: Cursor) -> Optimize:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    cursor.expect("OPTIMIZE")
    target = read_target(cursor)
    full = cursor.take("FULL")
    where = None
    if cursor.take("WHERE"):
        # A column may be called `zorder`; a condition has no BY outside of brackets.
        marks = (i for i in cursor.outer_tokens() if cursor.is_at(i, "ZORDER", "BY"))
        where = cursor.sql_until(next(marks, cursor.stop()), "a condition")
    zorder_by: tuple[ColumnName, ...] = ()
    if cursor.take("ZORDER", "BY"):
        bracket = cursor.take("(")
        zorder_by = read_columns(cursor)
        if bracket:
            cursor.expect(")")
    cursor.expect_end()
    return Optimize(target, full, where, zorder_by)


def parse_reorg(cursor: Cursor) -> Reorg:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    cursor.expect("REORG", "TABLE")
    target = read_table_name(cursor)
    where = None
    if cursor.take("WHERE"):
        # The last one: a function may be called `apply`.
        marks = [i for i in cursor.outer_tokens() if cursor.is_at(i, "APPLY", "(")]
        where = cursor.sql_until(marks[-1] if marks else cursor.stop(), "a condition")
    cursor.expect("APPLY", "(")
    version = None
    if where is None and cursor.take("UPGRADE"):
        version = _read_compat_version(cursor)
    else:
        cursor.expect("PURGE")
    cursor.expect(")")
    cursor.expect_end()
    return Reorg(target, where, version)


def _read_compat_version(cursor: Cursor) -> int:
    cursor.expect("UNIFORM", "(", "ICEBERG_COMPAT_VERSION")
    if not cursor.take("=="):
        cursor.expect("=")
    version = cursor.integer("a version", 2**31 - 1)
    if version is None:
        cursor.fail()
    cursor.expect(")")
    return version

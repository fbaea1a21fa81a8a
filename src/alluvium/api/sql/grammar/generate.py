"""GENERATE: files that other engines read a table by."""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.names import read_part, read_table_name
from alluvium.api.sql.text.terms import Named, Statement

SYNTAX = "GENERATE symlink_format_manifest FOR TABLE t"


@dataclass(frozen=True, slots=True)
class Generate(Statement):
    """`GENERATE`.

    Attributes:
        target: The table.
        mode: As it is written; `symlink_format_manifest` is the one there is.
    """

    target: Named
    mode: str


def parse_generate(cursor: Cursor) -> Generate:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    cursor.expect("GENERATE")
    mode = read_part(cursor, "a mode")
    cursor.expect("FOR", "TABLE")
    target = read_table_name(cursor)
    cursor.expect_end()
    return Generate(target, mode)

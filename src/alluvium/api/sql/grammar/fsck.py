"""FSCK REPAIR TABLE: files that are missing leave the table."""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.names import read_table_name
from alluvium.api.sql.text.terms import Named, Statement

SYNTAX = "FSCK REPAIR TABLE t [DRY RUN]"


@dataclass(frozen=True, slots=True)
class FsckRepair(Statement):
    """`FSCK REPAIR TABLE`, which delta-spark does not know.

    Attributes:
        target: The table.
        dry_run: Whether nothing may be changed.
    """

    target: Named
    dry_run: bool = False


def parse_fsck(cursor: Cursor) -> FsckRepair:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    cursor.expect("FSCK", "REPAIR", "TABLE")
    target = read_table_name(cursor)
    dry_run = cursor.take("DRY", "RUN")
    cursor.expect_end()
    return FsckRepair(target, dry_run)

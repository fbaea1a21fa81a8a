"""FSCK REPAIR TABLE: files that are missing leave the table. ANALYZE TABLE ... COMPUTE DELTA STATISTICS."""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.names import read_table_name
from alluvium.api.sql.text.terms import Named, Statement

SYNTAX = "FSCK REPAIR TABLE t [DRY RUN]"
ANALYZE_SYNTAX = "ANALYZE TABLE t COMPUTE DELTA STATISTICS"


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


@dataclass(frozen=True, slots=True)
class ComputeStatistics(Statement):
    """`ANALYZE TABLE ... COMPUTE DELTA STATISTICS`, which delta-spark does not know either.

    Attributes:
        target: The table.
    """

    target: Named


def parse_analyze(cursor: Cursor) -> ComputeStatistics:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    cursor.expect("ANALYZE", "TABLE")
    target = read_table_name(cursor)
    cursor.expect("COMPUTE", "DELTA", "STATISTICS")
    cursor.expect_end()
    return ComputeStatistics(target)

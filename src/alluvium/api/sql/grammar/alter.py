"""ALTER TABLE, as far as only Delta knows it: constraints, features, clustering, identity columns."""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.names import read_column_list, read_name, read_part, read_table_name
from alluvium.api.sql.text.terms import ColumnName, Named, SqlText, Statement

ADD_CONSTRAINT_SYNTAX = "ALTER TABLE t ADD CONSTRAINT name CHECK (condition)"
DROP_CONSTRAINT_SYNTAX = "ALTER TABLE t DROP CONSTRAINT [IF EXISTS] name"
ADD_FEATURE_SYNTAX = "ALTER TABLE t ADD FEATURE name"
DROP_FEATURE_SYNTAX = "ALTER TABLE t DROP FEATURE name [TRUNCATE HISTORY]"
CLUSTER_BY_SYNTAX = "ALTER TABLE t CLUSTER BY (column, ...) | NONE"
SYNC_IDENTITY_SYNTAX = "ALTER TABLE t ALTER COLUMN name SYNC IDENTITY"


@dataclass(frozen=True, slots=True)
class AddConstraint(Statement):
    """`ALTER TABLE ... ADD CONSTRAINT ... CHECK`.

    Attributes:
        target: The table.
        name: The constraint's.
        check: The condition, without the brackets around it.
    """

    target: Named
    name: str
    check: SqlText


@dataclass(frozen=True, slots=True)
class DropConstraint(Statement):
    """`ALTER TABLE ... DROP CONSTRAINT`.

    Attributes:
        target: The table.
        name: The constraint's.
        if_exists: Whether it may be missing.
    """

    target: Named
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddFeature(Statement):
    """`ALTER TABLE ... ADD FEATURE`, which delta-spark spells as a property.

    Attributes:
        target: The table.
        feature: As it is written.
    """

    target: Named
    feature: str


@dataclass(frozen=True, slots=True)
class DropFeature(Statement):
    """`ALTER TABLE ... DROP FEATURE`.

    Attributes:
        target: The table.
        feature: As it is written.
        truncate_history: Whether older versions go with it.
    """

    target: Named
    feature: str
    truncate_history: bool = False


@dataclass(frozen=True, slots=True)
class ClusterBy(Statement):
    """`ALTER TABLE ... CLUSTER BY`.

    Attributes:
        target: The table.
        columns: Empty for NONE.
    """

    target: Named
    columns: tuple[ColumnName, ...]


@dataclass(frozen=True, slots=True)
class SyncIdentity(Statement):
    """`ALTER TABLE ... ALTER COLUMN ... SYNC IDENTITY`.

    Attributes:
        target: The table.
        column: The identity column.
    """

    target: Named
    column: ColumnName


def _read_table(cursor: Cursor) -> Named:
    cursor.expect("ALTER", "TABLE")
    return read_table_name(cursor, most_parts=None)


def parse_add_constraint(cursor: Cursor) -> AddConstraint:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    target = _read_table(cursor)
    cursor.expect("ADD", "CONSTRAINT")
    name = read_part(cursor, "a constraint's name")
    cursor.expect("CHECK")
    if not cursor.sees("("):
        cursor.fail("(")
    close = cursor.closing()
    cursor.expect("(")
    check = cursor.sql_until(close, "a condition")
    cursor.expect(")")
    cursor.expect_end()
    return AddConstraint(target, name, check)


def parse_drop_constraint(cursor: Cursor) -> DropConstraint:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    target = _read_table(cursor)
    cursor.expect("DROP", "CONSTRAINT")
    if_exists = cursor.take("IF", "EXISTS")
    name = read_part(cursor, "a constraint's name")
    cursor.expect_end()
    return DropConstraint(target, name, if_exists)


def parse_add_feature(cursor: Cursor) -> AddFeature:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    target = _read_table(cursor)
    cursor.expect("ADD", "FEATURE")
    feature = _read_feature(cursor)
    cursor.expect_end()
    return AddFeature(target, feature)


def parse_drop_feature(cursor: Cursor) -> DropFeature:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    target = _read_table(cursor)
    cursor.expect("DROP", "FEATURE")
    feature = _read_feature(cursor)
    truncate_history = cursor.take("TRUNCATE", "HISTORY")
    cursor.expect_end()
    return DropFeature(target, feature, truncate_history)


def _read_feature(cursor: Cursor) -> str:
    text = cursor.string()
    return read_part(cursor, "a feature's name") if text is None else text


def parse_cluster_by(cursor: Cursor) -> ClusterBy:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    target = _read_table(cursor)
    cursor.expect("CLUSTER", "BY")
    columns: tuple[ColumnName, ...] = ()
    if cursor.sees("AUTO"):
        raise cursor.refused("columns to cluster by are not found out by themselves", hint=CLUSTER_BY_SYNTAX)
    if not cursor.take("NONE"):
        columns = read_column_list(cursor)
    cursor.expect_end()
    return ClusterBy(target, columns)


def parse_sync_identity(cursor: Cursor) -> SyncIdentity:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none.
    """
    target = _read_table(cursor)
    if not cursor.take("CHANGE"):
        cursor.expect("ALTER")
    # A column may be called `column`.
    if cursor.sees("COLUMN") and not cursor.is_at(cursor.at + 1, ".") and not cursor.sees("COLUMN", "SYNC", "IDENTITY"):
        cursor.expect("COLUMN")
    column = read_name(cursor, "a column", free=True)
    cursor.expect("SYNC", "IDENTITY")
    cursor.expect_end()
    return SyncIdentity(target, column)

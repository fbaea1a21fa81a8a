"""The statements that only Delta knows: text to a frozen dataclass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from alluvium.api.sql.grammar import alter, clone, convert, fsck, generate, history, optimize, vacuum
from alluvium.api.sql.kinds import Kind, head_of
from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.syntax_error import SqlSyntaxError
from alluvium.api.sql.text.terms import Settings, Statement


@dataclass(frozen=True, slots=True)
class _Rule:
    """How a statement is read.

    Attributes:
        parse: From its first word on.
        syntax: For the hint of an error.
        shared: Whether Spark, too, reads statements with this head, so that what we do not read is its to judge.
    """

    parse: Callable[[Cursor], Statement]
    syntax: str
    shared: bool = False


#: By the names that `kinds` gives to heads.
_RULES = {
    "VACUUM": _Rule(vacuum.parse_vacuum, vacuum.SYNTAX),
    "OPTIMIZE": _Rule(optimize.parse_optimize, optimize.OPTIMIZE_SYNTAX),
    "REORG": _Rule(optimize.parse_reorg, optimize.REORG_SYNTAX),
    "RESTORE": _Rule(history.parse_restore, history.RESTORE_SYNTAX),
    "DESCRIBE": _Rule(history.parse_describe, f"{history.DETAIL_SYNTAX}, or {history.HISTORY_SYNTAX}"),
    "CLONE": _Rule(clone.parse_clone, clone.SYNTAX),
    "CONVERT": _Rule(convert.parse_convert, convert.SYNTAX),
    "GENERATE": _Rule(generate.parse_generate, generate.SYNTAX),
    "FSCK": _Rule(fsck.parse_fsck, fsck.SYNTAX),
    "ANALYZE": _Rule(fsck.parse_analyze, fsck.ANALYZE_SYNTAX),
    # From 4.1 on Spark reads constraints, with more behind them than Delta knows: NOT ENFORCED, CASCADE.
    "ADD CONSTRAINT": _Rule(alter.parse_add_constraint, alter.ADD_CONSTRAINT_SYNTAX, shared=True),
    "DROP CONSTRAINT": _Rule(alter.parse_drop_constraint, alter.DROP_CONSTRAINT_SYNTAX, shared=True),
    "ADD FEATURE": _Rule(alter.parse_add_feature, alter.ADD_FEATURE_SYNTAX),
    "DROP FEATURE": _Rule(alter.parse_drop_feature, alter.DROP_FEATURE_SYNTAX),
    "CLUSTER BY": _Rule(alter.parse_cluster_by, alter.CLUSTER_BY_SYNTAX, shared=True),
    "SYNC IDENTITY": _Rule(alter.parse_sync_identity, alter.SYNC_IDENTITY_SYNTAX),
}


def parse_statement(text: str, settings: Settings | None = None) -> Statement | None:
    """Parses a statement that only Delta knows.

    Args:
        text: One statement, with its variables put in (`spark.sql.variable.substitute`).
        settings: The session's.

    Returns:
        The statement; None where it is Spark's to read, or to refuse.

    Raises:
        SqlSyntaxError: The statement can be nobody else's, and is wrong.

    Example:
        >>> parse_statement("VACUUM t DRY RUN")
        Vacuum(target=TableName(parts=('t',)), lite=None, inventory=None, retain_hours=None, dry_run=True)
    """
    head = head_of(text)
    if head.kind is not Kind.DELTA_ONLY:
        return None
    rule = _RULES[head.name]
    try:
        cursor = Cursor(text, settings or Settings())
        cursor.syntax = rule.syntax
        return rule.parse(cursor)
    except SqlSyntaxError:
        if rule.shared:
            return None
        raise

"""What a test's job has written, as a commit takes it."""

from __future__ import annotations

from alluvium.plan.changes import Append, NewFiles, Operation, Overwrite, ReadScope, Rearrange, Replace, WrittenRows


def changes_of(
    new: NewFiles,
    operation: Operation,
    replace: Replace | None = None,
    txn: tuple[str, int] | None = None,
    data_change: bool = True,
) -> WrittenRows:
    """Rows that have read nothing: an append, or in the place of others."""
    if replace is None:
        return Append(new, operation, ReadScope.nothing(), txn)
    if not data_change:
        return Rearrange(new, replace, operation, txn)
    return Overwrite(new, replace, operation, ReadScope.nothing(), txn)

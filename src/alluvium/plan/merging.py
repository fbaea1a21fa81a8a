"""The clauses of a MERGE: which rows, what becomes of them, and in which order they may stand."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from alluvium.errors import InvalidRequest


class When(enum.Enum):
    """Which rows a clause is about."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


class Action(enum.Enum):
    """What it does with them."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


def clause_problem(clauses: Sequence[tuple[When, bool]]) -> InvalidRequest | None:
    """What is wrong with a list of clauses; None: nothing.

    Args:
        clauses: Of each which rows it is about, and whether it has a condition.

    Returns:
        `"merge-without-clauses"`, or `"unreachable-clause"`: one stands behind another that takes all rows.
    """
    if not clauses:
        return InvalidRequest(
            "a merge needs at least one WHEN clause", code="merge-without-clauses", hint="whenMatchedUpdateAll(), ..."
        )
    for when in When:
        of_kind = [has_condition for kind, has_condition in clauses if kind is when]
        if not all(of_kind[:-1]):
            return InvalidRequest(
                f"only the last clause WHEN {when.value.upper()} may go without a condition: those behind it are never "
                "reached",
                code="unreachable-clause",
                hint="give the clause a condition, or put it last",
            )
    return None

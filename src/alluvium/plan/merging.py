"""The clauses of a MERGE: which rows, what becomes of them, and in which order they may stand."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

from alluvium.errors import InvalidRequest
from alluvium.schema.types import JsonValue


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


def merge_parameters(predicate: str, clauses: Sequence[tuple[When, Action, str | None]]) -> dict[str, JsonValue]:
    """How a merge was asked for, as the history shows it.

    Args:
        predicate: Which rows meet, as text.
        clauses: Of each which rows it is about, what it does, and its condition as text.
    """

    def listed(when: When) -> str:
        shown = [
            {**({} if condition is None else {"predicate": condition}), "actionType": action.value}
            for kind, action, condition in clauses
            if kind is when
        ]
        return msgspec.json.encode(shown).decode()

    return {
        "predicate": msgspec.json.encode([predicate]).decode(),
        "matchedPredicates": listed(When.MATCHED),
        "notMatchedPredicates": listed(When.NOT_MATCHED),
        "notMatchedBySourcePredicates": listed(When.NOT_MATCHED_BY_SOURCE),
    }


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

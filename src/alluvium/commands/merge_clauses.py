"""The clauses of a MERGE, as they were asked for, and the rules that they obey before anything is read.

Specification: none; the rules are those of the reference's `delta.tables.DeltaMergeBuilder`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column

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


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN clause.

    Attributes:
        when: Which rows.
        action: What becomes of them.
        condition: Which of them; None: all.
        values: Column to value; None: all columns from the source's columns of the same names.
    """

    when: When
    action: Action
    condition: Column | str | None = None
    values: Mapping[str, Column | str] | None = None

    @property
    def shown(self) -> str:
        """As in SQL, for errors."""
        star = " *" if self.values is None and self.action is not Action.DELETE else ""
        return f"WHEN {self.when.value.upper()} THEN {self.action.value.upper()}{star}"


def ensure_clauses(clauses: Sequence[Clause]) -> None:
    """Refuses a merge that does nothing, or has clauses that no row can come to.

    Raises:
        InvalidRequest: `"merge-without-clauses"`, `"unreachable-clause"`.
    """
    if not clauses:
        raise InvalidRequest(
            "a merge needs at least one WHEN clause", code="merge-without-clauses", hint="whenMatchedUpdateAll(), ..."
        )
    for when in When:
        of_kind = [c for c in clauses if c.when is when]
        if any(c.condition is None for c in of_kind[:-1]):
            raise InvalidRequest(
                f"only the last clause WHEN {when.value.upper()} may go without a condition: those behind it are never "
                "reached",
                code="unreachable-clause",
                hint="give the clause a condition, or put it last",
            )

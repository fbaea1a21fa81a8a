"""What rows that come lack of a write plan, and what they may not bring."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from alluvium.errors import InvalidRequest
from alluvium.plan.checks import length_checks
from alluvium.plan.write import Check, Derived, Numbered, WritePlan
from alluvium.schema.types import Struct


@dataclass(frozen=True, slots=True)
class Lacking:
    """What is to be made for rows that come.

    Attributes:
        constants: Columns of one value; they are filled in first, for all others to see.
        numbered: Columns of numbers.
        computed: Columns that are computed of the others.
        checks: What must hold of the complete rows.
        filled: Columns that come, whose nulls become one value.
    """

    constants: tuple[Derived, ...]
    numbered: tuple[Numbered, ...]
    computed: tuple[Derived, ...]
    checks: tuple[Check, ...]
    filled: tuple[Derived, ...] = ()

    @property
    def derived(self) -> tuple[Derived, ...]:
        """All columns with values of their own."""
        return (*self.constants, *self.computed)


def lacking(plan: WritePlan, schema: Struct, columns: Collection[str], *, may_lack_partitions: bool = False) -> Lacking:
    """What the plan makes where the rows bring some columns.

    Args:
        plan: How rows are written.
        schema: Columns of the table.
        columns: Names of the columns that come; case does not count.
        may_lack_partitions: Whether rows may leave out in which partition they are: in that of null.

    Raises:
        InvalidRequest: `"numbers-given"`: they bring a column whose numbers only the table may make;
            `"schema-mismatch"`: they lack a partition column.
        CorruptTable: As of `length_checks`.
    """
    brought = {name.lower() for name in columns}
    derived = [d for d in plan.derived if d.column.lower() not in brought]
    missing = {d.column for d in derived}
    _ensure_not_given(plan.numbered, brought)
    if not may_lack_partitions:
        _ensure_partitioned(plan, brought, missing)
    own = tuple(d.check for d in plan.derived if d.check is not None and d.column not in missing)
    return Lacking(
        tuple(d for d in derived if d.is_constant),
        tuple(n for n in plan.numbered if n.column.lower() not in brought),
        tuple(d for d in derived if not d.is_constant),
        plan.checks + own + length_checks(schema),
        tuple(d for d in plan.filled if d.column not in missing),
    )


def _ensure_partitioned(plan: WritePlan, brought: set[str], computed: set[str]) -> None:
    """Rows that do not say in which partition they are would all go to that of null, which nobody meant."""
    missing = [name for name in plan.partition_by if name.lower() not in brought and name not in computed]
    if missing:
        raise InvalidRequest(
            f"the data lacks the partition column {missing[0]!r}",
            code="schema-mismatch",
            column=missing[0],
            hint="add it, with null for rows of no partition",
        )


def _ensure_not_given(numbered: Sequence[Numbered], brought: set[str]) -> None:
    for column in numbered:
        if column.column.lower() in brought and not column.accepts_data:
            raise InvalidRequest(
                f"values of column {column.column!r} are made by the table alone (GENERATED ALWAYS AS IDENTITY)",
                code="numbers-given",
                column=column.column,
                hint=f"leave it out: df.drop({column.column!r})",
            )


def numbers_exhausted(column: str, url: str) -> InvalidRequest:
    """What the caller is told where a column has no number left."""
    return InvalidRequest(
        f"the numbers of column {column!r} do not fit into 64 bits any more",
        code="numbers-exhausted",
        url=url,
        column=column,
        hint="nothing was written; the column's values, or its step, are too far out for so many rows",
    )

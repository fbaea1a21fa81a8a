"""The clauses of a MERGE, as they were asked for, and the rules that they obey before anything is read.

Specification: none; the rules are those of the reference's `delta.tables.DeltaMergeBuilder`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column

from alluvium.plan.merging import Action, When, clause_problem
from alluvium.schema.ddl import parse_column_path
from alluvium.schema.types import Struct
from alluvium.spark.jvm.failures import Unresolvable
from alluvium.spark.statements.resolve import Qualifier
from alluvium.spark.values.assign import without_table


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


def taken_columns(clauses: Sequence[Clause], source: Struct, table: Qualifier) -> Struct:
    """The source's columns that a merge may bring into the table: all that a star takes, others as far as they are set.

    Args:
        clauses: In order.
        source: Columns of the source.
        table: Its name, which may stand before a column that is set.
    """
    paths = _taken_paths(clauses, table)
    return source if paths is None else _taken(source, (), paths)


def taken_names(clauses: Sequence[Clause], table: Qualifier) -> frozenset[str] | None:
    """The names of these columns, in small letters, as far as the clauses tell; None: all that the source has."""
    paths = _taken_paths(clauses, table)
    return None if paths is None else frozenset(path[0] for path in paths)


def _taken_paths(clauses: Sequence[Clause], table: Qualifier) -> list[tuple[str, ...]] | None:
    about = [c for c in clauses if c.action is not Action.DELETE and c.when is not When.NOT_MATCHED_BY_SOURCE]
    if any(c.values is None for c in about):
        return None
    paths = [tuple(part.lower() for part in parse_column_path(name)) for c in about for name in c.values or ()]
    return [*paths, *(without_table(path, table) for path in paths)]


def _taken(source: Struct, path: tuple[str, ...], assigned: Sequence[tuple[str, ...]]) -> Struct:
    kept = []
    for f in source.fields:
        here = (*path, f.name.lower())
        if here in assigned:
            kept.append(f)
        elif isinstance(f.type, Struct) and any(p[: len(here)] == here for p in assigned):
            kept.append(replace(f, type=_taken(f.type, here, assigned)))
    return Struct(tuple(kept))


def ensure_clauses(clauses: Sequence[Clause]) -> None:
    """Refuses a merge that does nothing, or has clauses that no row can come to (`clause_problem`)."""
    problem = clause_problem([(clause.when, clause.condition is not None) for clause in clauses])
    if problem is not None:
        raise Unresolvable(problem.message, code=problem.code, hint=problem.hint)

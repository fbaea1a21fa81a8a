"""checkConstraints: named conditions that every row of the table meets.

Specification: "CHECK Constraints". They stand in the table's properties: `delta.constraints.NAME`.
"""

from __future__ import annotations

from dataclasses import replace

from alluvium.delta.features.feature import Feature
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.expr.sql.row_functions import JOB, ROW
from alluvium.expr.sql.row_sql import parse_row_expression
from alluvium.plan.write import Check, WritePlan

PREFIX = "delta.constraints."


def check_constraints(config: TableConfig) -> tuple[Check, ...]:
    """The table's constraints as checks on rows, in the order of their names.

    Raises:
        UnsupportedFeature: A constraint is more than a condition on a row (code `"unsupported-constraint"`).
    """
    found = {key: sql for key, sql in config.metadata.configuration.items() if key.startswith(PREFIX)}
    return tuple(constraint_check(key, found[key], config) for key in sorted(found))


def constraint_check(key: str, sql: str, config: TableConfig) -> Check:
    """A constraint as a check on rows.

    Args:
        key: The property that holds it.
        sql: The condition.
        config: Of the table.

    Raises:
        UnsupportedFeature: It is more than a condition on a row (code `"unsupported-constraint"`).
    """
    name = key[len(PREFIX) :]
    try:
        parsed = parse_row_expression(sql, config.schema, ROW | JOB)
    except InvalidRequest as error:
        raise UnsupportedFeature(
            f"the constraint {name!r} cannot be enforced: {error.message}",
            code="unsupported-constraint",
            features=(FEATURE.name,),
            hint=f"drop the table property {key} with the engine that made it, or write with that engine",
        ) from None
    columns = tuple(".".join(path) for path in parsed.columns)
    return Check(name, sql, columns, table_sql=parsed.canonical)


def is_used(config: TableConfig) -> bool:
    """ "Each CHECK constraint has a name and is stored as a key value pair. The key format is
    `delta.constraints.{name}`"
    """
    return any(key.startswith(PREFIX) for key in config.metadata.configuration)


def enforce(plan: WritePlan, config: TableConfig) -> WritePlan:
    """ "When writing to a table that contains CHECK constraints, every new row being written to the table must satisfy
    CHECK constraints in the table. Otherwise, the write operation must fail and the table must stay unchanged."

    A table whose protocol does not know the feature, and that has constraints, is held to them all the same: as the
    reference does.
    """
    return replace(plan, checks=plan.checks + check_constraints(config))


FEATURE = Feature(
    name="checkConstraints",
    reader=False,
    spec="CHECK Constraints",
    legacy_writer=3,
    is_used=is_used,
    on_write=enforce,
)

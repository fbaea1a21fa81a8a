"""invariants: conditions on single columns, and NOT NULL.

Specification: "Column Invariants". Found as `columnInvariants` in drafts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from alluvium.delta.features.feature import Feature
from alluvium.delta.terms.config import TableConfig
from alluvium.errors import DECODE_ERRORS, CorruptTable, InvalidRequest
from alluvium.expr.sql.not_null import quote, required_inside
from alluvium.expr.sql.parse import parse_predicate
from alluvium.expr.sql.row_functions import JOB, ROW
from alluvium.expr.sql.row_sql import RowExpression, parse_row_expression
from alluvium.plan.write import Check, WritePlan
from alluvium.schema.types import Struct

KEY = "delta.invariants"
_NOT_NULL = "not-null-violated"


def invariants(schema: Struct) -> tuple[Check, ...]:
    """The schema's conditions as checks on rows: NOT NULL columns first, then expressions.

    Raises:
        CorruptTable: An invariant is not a condition on a row.
    """
    return (*_not_null(schema, ()), *_expressions(schema, schema, ()))


def _not_null(struct: Struct, prefix: tuple[str, ...]) -> Iterator[Check]:
    for f in struct.fields:
        path = (*prefix, f.name)
        name = f"NOT NULL {'.'.join(path)}"
        if not f.nullable:
            # As the reference: a member is required even where the struct around it is null.
            yield Check(name, f"{quote(path)} is not null", (".".join(path),), _NOT_NULL)
        if isinstance(f.type, Struct):
            yield from _not_null(f.type, path)
        elif (inside := required_inside(f.type, quote(path))) is not None:
            yield Check(f"{name} (inside)", inside, (".".join(path),), _NOT_NULL)


def _expressions(struct: Struct, schema: Struct, prefix: tuple[str, ...]) -> Iterator[Check]:
    for f in struct.fields:
        path = (*prefix, f.name)
        stored = f.metadata.get(KEY)
        if stored is not None:
            parsed = _parse_condition(_parse_invariant(stored, path), schema, path)
            columns = tuple(".".join(p) for p in parsed.columns)
            name = f"{'.'.join(path)}: {parsed.sql}"
            yield Check(name, parsed.sql, columns or (path[0],), table_sql=parsed.canonical)
        if isinstance(f.type, Struct):
            yield from _expressions(f.type, schema, path)


def _parse_condition(sql: str, schema: Struct, path: tuple[str, ...]) -> RowExpression:
    try:
        parsed = parse_row_expression(sql, schema, ROW | JOB)
        # Found before any row is written: text that is no condition at all, and columns that do not exist.
        parse_predicate(sql, schema)
        return parsed
    except InvalidRequest as error:
        raise CorruptTable(
            f"the invariant of the column cannot be enforced: {error.message}",
            code="invalid-invariant",
            column=".".join(path),
            hint="the field's metadata delta.invariants must hold an SQL condition over the table's columns",
        ) from None


def _parse_invariant(stored: object, path: tuple[str, ...]) -> str:
    """ "The value of `delta.invariants` SHOULD be parsed as a JSON string containing a boolean SQL expression at the
    key `expression.expression`."
    """
    try:
        document = msgspec.json.decode(stored) if isinstance(stored, str) else None
        sql = document["expression"]["expression"] if document else None
    except (*DECODE_ERRORS, KeyError, TypeError):
        sql = None
    if not isinstance(sql, str):
        raise CorruptTable(
            f"the invariant of the column is not a condition: {str(stored)[:200]!r}",
            code="invalid-invariant",
            column=".".join(path),
            hint="the field's metadata delta.invariants must hold an SQL condition",
        )
    return sql


def enforce(plan: WritePlan, config: TableConfig) -> WritePlan:
    """ "Writers MUST abort any transaction that adds a row to the table, where an invariant evaluates to `false` or
    `null`."
    """
    return replace(plan, checks=plan.checks + invariants(config.schema))


def is_used(config: TableConfig) -> bool:
    return any(True for _ in _expressions(config.schema, config.schema, ()))


FEATURE = Feature(
    name="invariants",
    reader=False,
    spec="Column Invariants",
    legacy_writer=2,
    aliases=("columnInvariants",),
    is_used=is_used,
    on_write=enforce,
)

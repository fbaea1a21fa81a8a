"""invariants: conditions on single columns, and NOT NULL.

Specification: "Column Invariants". Found as `columnInvariants` in drafts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from alluvium.delta.config import TableConfig
from alluvium.delta.features.feature import Feature
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.expr.parse import parse_predicate
from alluvium.plan.write import Check, WritePlan
from alluvium.schema.types import Array, DataType, Map, Struct

KEY = "delta.invariants"

# The log is untrusted: a condition must not reach into the JVM.
_REFLECTION = re.compile(r"\b(reflect|java_method|try_reflect)\s*\(", re.IGNORECASE)


def invariants(schema: Struct) -> tuple[Check, ...]:
    """The schema's conditions as checks on rows: NOT NULL columns first, then expressions.

    Raises:
        CorruptTable: An invariant's JSON or SQL does not parse.
        UnsupportedFeature: A NOT NULL inside an array or map, which no SQL condition can express cheaply.
    """
    return (*_not_null(schema, (), None), *_expressions(schema, schema, ()))


def quote(path: tuple[str, ...]) -> str:
    """A column path as SQL."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def _not_null(struct: Struct, prefix: tuple[str, ...], nullable_parent: tuple[str, ...] | None) -> Iterator[Check]:
    for f in struct.fields:
        path = (*prefix, f.name)
        if not f.nullable:
            condition = f"{quote(path)} is not null"
            if nullable_parent is not None:
                # A member is only required where its struct is there at all.
                condition = f"({quote(nullable_parent)} is null or {condition})"
            yield Check(f"NOT NULL {'.'.join(path)}", condition, (path[0],))
        if isinstance(f.type, Struct):
            yield from _not_null(f.type, path, path if f.nullable else nullable_parent)
        elif _requires_inside(f.type):
            raise UnsupportedFeature(
                "NOT NULL inside an array or map is not enforced yet, so the table cannot be written",
                code="nested-not-null",
                features=("invariants",),
                column=".".join(path),
            )


def _requires_inside(data_type: DataType) -> bool:
    if isinstance(data_type, Array):
        return _requires_inside(data_type.element)
    if isinstance(data_type, Map):
        return _requires_inside(data_type.key) or _requires_inside(data_type.value)
    if isinstance(data_type, Struct):
        return any(not f.nullable or _requires_inside(f.type) for f in data_type.fields)
    return False


def _expressions(struct: Struct, schema: Struct, prefix: tuple[str, ...]) -> Iterator[Check]:
    for f in struct.fields:
        path = (*prefix, f.name)
        stored = f.metadata.get(KEY)
        if stored is not None:
            sql = _parse_invariant(stored, path)
            # Parsed once here so that damage is found before any row is written.
            parse_predicate(sql, schema)
            yield Check(f"{'.'.join(path)}: {sql}", f"({sql})", (path[0],))
        if isinstance(f.type, Struct):
            yield from _expressions(f.type, schema, path)


def _parse_invariant(stored: object, path: tuple[str, ...]) -> str:
    """ "The value of `delta.invariants` SHOULD be parsed as a JSON string containing a boolean SQL expression at the
    key `expression.expression`."
    """
    try:
        document = msgspec.json.decode(stored) if isinstance(stored, str) else None
        sql = document["expression"]["expression"] if document else None
    except (msgspec.DecodeError, KeyError, TypeError):
        sql = None
    if not isinstance(sql, str) or _REFLECTION.search(sql):
        raise CorruptTable(
            f"the invariant of the column is not a condition: {str(stored)[:200]!r}",
            code="invalid-invariant",
            column=".".join(path),
            hint="the field's metadata delta.invariants must hold an SQL condition without reflection",
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

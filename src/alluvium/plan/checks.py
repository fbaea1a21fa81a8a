"""Conditions that every written row must meet: those that declared types ask for, and what a caller is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from alluvium.errors import InvalidRequest
from alluvium.expr.sql.not_null import quote
from alluvium.plan.write import Check
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.text_lengths import declared_type, text_limit
from alluvium.schema.types import Array, DataType, Map, Struct

#: Values of a row that breaks a check, as texts, by their columns.
Row: TypeAlias = Mapping[str, str | None]
#: How many such rows a message shows at most.
SHOWN_ROWS = 5
_SHOWN_CHARACTERS = 300


def violation(check: Check, rows: Sequence[Row], url: str) -> InvalidRequest:
    """What the caller is told of a broken check."""
    texts = [", ".join(f"{k} = {'null' if v is None else v}" for k, v in row.items()) for row in rows]
    shown = [text[:_SHOWN_CHARACTERS] for text in texts if text]
    which = f" with {shown[0]}" if shown else ""
    others = "".join(f"\n  and for one with {text}" for text in shown[1:])
    return InvalidRequest(
        f"constraint {check.name!r} ({check.sql}) does not hold for a row{which}{others}",
        code=check.code,
        url=url,
        column=check.columns[0] if len(check.columns) == 1 else None,
        hint=check.hint or "nothing was written; filter or correct the rows, or change the table's constraint",
    )


def length_checks(schema: Struct) -> tuple[Check, ...]:
    """Conditions on the columns whose texts have a greatest length.

    Raises:
        CorruptTable: The declared type is none (code `"invalid-text-type"`).
    """
    found = []
    for f in schema.fields:
        declared = declared_type(f)
        condition = None if declared is None else _condition(declared, quote((f.name,)), 0)
        if condition is not None:
            found.append(Check(f"{f.name} {f.metadata[CHAR_VARCHAR]}", condition, (f.name,), "text-too-long"))
    return tuple(found)


def _condition(declared: DataType, value: str, depth: int) -> str | None:
    """True where no text in the value is too long, and where the value is null; None where nothing is limited."""
    element = f"e{depth}"
    if (limit := text_limit(declared)) is not None:
        return f"({value} is null or length({value}) <= {limit[1]})"
    if isinstance(declared, Array):
        inner = _condition(declared.element, element, depth + 1)
        return None if inner is None else f"({value} is null or forall({value}, {element} -> {inner}))"
    if isinstance(declared, Map):
        parts = [
            f"forall({function}({value}), {element} -> {inner})"
            for function, of in (("map_keys", declared.key), ("map_values", declared.value))
            if (inner := _condition(of, element, depth + 1)) is not None
        ]
        return f"({value} is null or ({' and '.join(parts)}))" if parts else None
    if isinstance(declared, Struct):
        members = [_condition(f.type, f"{value}.{quote((f.name,))}", depth) for f in declared.fields]
        parts = [member for member in members if member is not None]
        return f"({value} is null or ({' and '.join(parts)}))" if parts else None
    return None

"""Aggregates whose accumulators are tables in a row: lists of rows, which have a key of their own or none.

Specification: `FieldNestedUpdateAgg` and `FieldNestedPartialUpdateAgg`. Java keeps keyed rows in a hash table, so that
their order says nothing; here they stand in the order in which their keys came first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from alluvium.errors import CorruptTable
from alluvium.plan.aggregates import named_fields

Row: TypeAlias = "dict[str, Any]"
Rows: TypeAlias = "list[Row | None]"
#: What joins, or takes away: the accumulator and a row's value, either of which may be null.
Combine: TypeAlias = "Callable[[Rows | None, Rows | None], Rows | None]"

#: Rows of a nested table without a limit.
_MOST = 2**31 - 1


class NestedKey:
    """How rows of a nested table are told apart.

    Args:
        parameters: `nested-key`, `nested-sequence-field` and `nested-key-null-strategy`, of the column's options.
    """

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self._fields = named_fields(parameters.get("nested-key", ""))
        self._sequence = named_fields(parameters.get("nested-sequence-field", ""))
        self._null_keys = parameters.get("nested-key-null-strategy", "merge").lower()

    def __bool__(self) -> bool:
        return bool(self._fields)

    @property
    def is_recent(self) -> bool:
        """Whether options are set that Java 1.4 does not know, and which Java then goes by newer rules: it looks at the
        first value, too, and its limit counts keys."""
        return bool(self._sequence) or self._null_keys != "merge"

    def of(self, row: Row) -> str | None:
        """A text that is the same for rows of one key; None: the row is left out."""
        values = [row[name] for name in self._fields]
        if self._null_keys != "merge" and any(value is None for value in values):
            if self._null_keys == "ignore":
                return None
            raise CorruptTable(
                "a nested key is null, which nested-key-null-strategy = error forbids", code="null-nested-key"
            )
        return repr(values)

    def is_older(self, row: Row, known: Row) -> bool:
        """Whether a row comes before the one that is there: "null is smallest"."""
        return self._age(row) < self._age(known)

    def _age(self, row: Row) -> list[tuple[Any, ...]]:
        return [(False,) if row[name] is None else (True, row[name]) for name in self._sequence]


def nested_update(parameters: Mapping[str, str], kind: pa.DataType) -> tuple[Combine, Combine]:
    """Rows by their key, later ones instead of earlier; without a key all are kept.

    Args:
        parameters: Those of `NestedKey`, and `count-limit`.
        kind: Of the column, a list of structs.

    Returns:
        What joins, and what takes away.
    """
    key, limit = NestedKey(parameters), int(parameters.get("count-limit", _MOST))

    def add(state: Rows | None, value: Rows | None) -> Rows | None:
        if value is None or (state is None and not key.is_recent):
            # Nothing to join: what is there is not looked at.
            return value if state is None else state
        state = state or []
        if key.is_recent:
            return _last_of_key([*_present(state), *_present(value)], key, known=len(_present(state)), limit=limit)
        # Java 1.4: what has as many rows as the limit stays as it is, updates of its keys are left out as well.
        if len(state) >= limit:
            return state
        joined = [*_present(state), *_present(value)[: limit - len(state)]]
        return _last_of_key(joined, key) if key else list(joined)

    def retract(state: Rows | None, value: Rows | None) -> Rows | None:
        if state is None or value is None:
            return state
        if key:
            gone = {key.of(row) for row in _present(value)}
            return [row for row in _last_of_key(_present(state), key) if row is None or key.of(row) not in gone]
        equal = {repr(row) for row in _present(value)}
        return [row for row in _present(state) if repr(row) not in equal]

    return add, retract


def nested_partial_update(parameters: Mapping[str, str], kind: pa.DataType) -> tuple[Combine, None]:
    """Rows by their key, of which each field is the last that is not null; a row cannot be taken away."""
    key = NestedKey(parameters)

    def add(state: Rows | None, value: Rows | None) -> Rows | None:
        if value is None or (state is None and not key.is_recent):
            return value if state is None else state
        merged: dict[str, Row] = {}
        for row in (*_present(state or []), *_present(value)):
            name = key.of(row)
            if name is not None:
                merged.setdefault(name, dict.fromkeys(row)).update({n: v for n, v in row.items() if v is not None})
        return list(merged.values())

    return add, None


def _last_of_key(rows: list[Row], key: NestedKey, known: int = 0, limit: int | None = None) -> Rows:
    """Of each key its newest row; behind the first `known` rows, keys beyond the limit are left out."""
    kept: dict[str, Row] = {}
    for place, row in enumerate(rows):
        name = key.of(row)
        if name is None:
            continue
        if name in kept:
            if not key.is_older(row, kept[name]):
                kept[name] = row
        elif limit is None or place < known or len(kept) < limit:
            kept[name] = row
    return list(kept.values())


def _present(rows: Rows) -> list[Row]:
    return [row for row in rows if row is not None]

"""Ids for fields: each new one is the next that was never used."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace

from alluvium.paimon.schema.types import DataField, DataType


def number_fields(fields: Iterable[DataField], first_id: int = 0) -> tuple[DataField, ...]:
    """The columns of a new table with ids in the order in which Java gives them: a column, then what is in it."""
    counter = itertools.count(first_id)
    numbered = []
    for f in fields:
        number = next(counter)
        numbered.append(replace(f, id=number, type=number_within(f.type, lambda: next(counter))))
    return tuple(numbered)


def number_within(t: DataType, next_id: Callable[[], int]) -> DataType:
    """The type with new ids for all fields in it; a field's own id comes after those inside of it."""
    if t.root == "ROW":
        fields = []
        for f in t.fields:
            inner = number_within(f.type, next_id)
            fields.append(replace(f, id=next_id(), type=inner))
        return replace(t, fields=tuple(fields))
    if t.root == "MAP" and t.key is not None and t.value is not None:
        return replace(t, key=number_within(t.key, next_id), value=number_within(t.value, next_id))
    return t if t.element is None else replace(t, element=number_within(t.element, next_id))

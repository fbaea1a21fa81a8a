"""Which types go into which where nobody asks for a cast: every pair of them, by a table of Spark's rules."""

from __future__ import annotations

import itertools

import pytest

from alluvium.delta.description.implicit_casts import is_cast_implicitly
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Struct

NUMBERS: tuple[DataType, ...] = (t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.FLOAT, t.DOUBLE, Decimal(5, 2), Decimal(38, 18))
TIMES: tuple[DataType, ...] = (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)
NESTED: tuple[DataType, ...] = (Array(t.LONG), Map(t.STRING, t.LONG), Struct((Field("x", t.LONG),)), Array(t.STRING))
EVERY = (*NUMBERS, *TIMES, *NESTED, t.STRING, t.BINARY, t.BOOLEAN, t.VOID)


def goes_into(source: DataType, target: DataType) -> bool:
    for kind in (NUMBERS, TIMES):
        if source in kind and target in kind:
            return True
    if source == t.STRING:
        return target in (*NUMBERS, *TIMES, t.BINARY, t.STRING)
    return source in (t.VOID, target) or (target == t.STRING and source not in NESTED)


@pytest.mark.parametrize("source", EVERY, ids=str)
def test_every_pair(source: DataType) -> None:
    found = {str(target): is_cast_implicitly(source, target) for target in EVERY}
    assert found == {str(target): goes_into(source, target) for target in EVERY}


def test_decimals_go_into_each_other() -> None:
    for one, other in itertools.product((Decimal(3, 0), Decimal(10, 9), Decimal(38, 0)), repeat=2):
        assert is_cast_implicitly(one, other)

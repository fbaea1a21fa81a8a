"""What rows lack of a plan: every kind of column, brought and not."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from alluvium.errors import InvalidRequest
from alluvium.plan.completion import lacking, numbers_exhausted
from alluvium.plan.write import Check, Derived, Numbered, WritePlan
from alluvium.schema.ddl import CHAR_VARCHAR, parse_fields
from alluvium.schema.types import Field, Struct

SCHEMA = Struct(tuple(parse_fields("a int, P int, g int, c int, n bigint, m bigint")))
OWN = Check("small", "a < 9", ("a",))
OF_G = Check("g is right", "g <=> a + 1", ("g",))
CONSTANT, COMPUTED = Derived("c", "7", "7", is_constant=True), Derived("g", "a + 1", "a + 1", check=OF_G)
ALWAYS, BY_DEFAULT = Numbered("n", 1, 1, accepts_data=False), Numbered("m", 5, -2, accepts_data=True)
PLAN = WritePlan("memory://x/t", "d", SCHEMA, ("P",), (OWN,), (COMPUTED, CONSTANT), numbered=(ALWAYS, BY_DEFAULT))


@pytest.mark.parametrize("brought", [*itertools.product([False, True], repeat=3)], ids=str)
def test_what_is_brought_is_not_made(brought: tuple[bool, bool, bool]) -> None:
    names = ["A", "p", *(name for name, comes in zip(("G", "C", "M"), brought, strict=True) if comes)]
    found = lacking(PLAN, SCHEMA, names)
    g, c, m = brought
    assert found.computed == (() if g else (COMPUTED,))
    assert found.constants == (() if c else (CONSTANT,))
    assert found.derived == found.constants + found.computed
    assert found.numbered == ((ALWAYS,) if m else (ALWAYS, BY_DEFAULT))
    # What the table computes itself needs no check; what comes does.
    assert found.checks == ((OWN, OF_G) if g else (OWN,))


def test_constants_in_place_of_nulls_are_for_columns_that_come() -> None:
    filling = replace(CONSTANT, fills_nulls=True)
    plan = replace(PLAN, derived=(COMPUTED, filling))
    for names, constants, filled in ((("a", "p"), (filling,), ()), (("a", "p", "C"), (), (filling,))):
        found = lacking(plan, SCHEMA, names)
        assert (found.constants, found.filled) == (constants, filled)


def test_numbers_that_only_the_table_makes() -> None:
    with pytest.raises(InvalidRequest) as caught:
        lacking(PLAN, SCHEMA, ["a", "p", "N"])
    assert (caught.value.code, caught.value.column) == ("numbers-given", "n")


def test_partition_columns_are_brought_or_computed() -> None:
    with pytest.raises(InvalidRequest) as caught:
        lacking(PLAN, SCHEMA, ["a", "c"])
    assert (caught.value.code, caught.value.column) == ("schema-mismatch", "P")
    assert lacking(PLAN, SCHEMA, ["a"], may_lack_partitions=True).checks == (OWN,)
    for column in ("g", "c"):
        plan = WritePlan("memory://x/t", "d", SCHEMA, (column,), derived=(COMPUTED, CONSTANT))
        assert len(lacking(plan, SCHEMA, ["a"]).derived) == 2


def test_texts_of_limited_length_are_checked() -> None:
    schema = Struct((*SCHEMA.fields, Field("w", SCHEMA.fields[0].type, metadata={CHAR_VARCHAR: "varchar(3)"})))
    *own, last = lacking(PLAN, schema, ["a", "p"]).checks
    assert own == [OWN] and (last.columns, last.code) == (("w",), "text-too-long")


def test_numbers_that_are_used_up() -> None:
    error = numbers_exhausted("n", "memory://x/t")
    assert (error.code, error.column, error.url) == ("numbers-exhausted", "n", "memory://x/t")

"""Schemas of random files put together, beside a dict of columns."""

from __future__ import annotations

import itertools
import random

import pytest

from alluvium.delta.upkeep.convert.schemas import INT32, INTEGERS, merge_schemas, with_partitions
from alluvium.errors import InvalidRequest
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Field, Map, Struct


def struct(**fields: DataType) -> Struct:
    return Struct(tuple(Field(name, kind) for name, kind in fields.items()))


KINDS = (t.VOID, t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.STRING)


def wider(one: DataType, other: DataType, alike: tuple[DataType, ...]) -> DataType | None:
    """None: there is no such type."""
    if t.VOID in (one, other):
        return other if one == t.VOID else one
    if one == other:
        return one
    return alike[max(alike.index(one), alike.index(other))] if one in alike and other in alike else None


@pytest.mark.parametrize("alike", [INT32, INTEGERS], ids=["int32", "all"])
def test_types_of_one_column(alike: tuple[DataType, ...]) -> None:
    shapes = [lambda k: k, Array, lambda k: Map(t.STRING, k), lambda k: Map(k, t.STRING), lambda k: struct(x=k)]
    paths = ["c", "c.element", "c.value", "c.key", "c.x"]
    for one, other in itertools.product(KINDS, repeat=2):
        expected = wider(one, other, alike)
        for shape, path in zip(shapes, paths, strict=True):
            before, after = struct(c=shape(one)), struct(C=shape(other))
            if expected is not None:
                assert merge_schemas(before, after, "f", alike) == struct(c=shape(expected))
                continue
            with pytest.raises(InvalidRequest) as caught:
                merge_schemas(before, after, "f", alike)
            assert (caught.value.code, caught.value.column, caught.value.path) == ("schemas-differ", path, "f")


def test_shapes_that_differ() -> None:
    shapes = [t.STRING, Array(t.STRING), Map(t.STRING, t.STRING), struct(x=t.STRING)]
    for one, other in itertools.permutations(shapes, 2):
        with pytest.raises(InvalidRequest) as caught:
            merge_schemas(struct(c=one), struct(c=other), "f")
        assert caught.value.column == "c"


@pytest.mark.parametrize("seed", range(20))
def test_columns_of_many_files(seed: int) -> None:
    lot = random.Random(seed)

    def file() -> Struct:
        names = lot.sample("abcde", lot.randint(0, 5))
        return Struct(tuple(Field(lot.choice([n, n.upper()]), lot.choice(INT32), lot.random() < 0.5) for n in names))

    files = [file() for _ in range(lot.randint(1, 4))]
    expected: dict[str, Field] = {}
    merged = files[0]
    for one in files:
        merged = merge_schemas(merged, one, "f")
        for f in one.fields:
            known = expected.setdefault(f.name.lower(), f)
            kind = wider(known.type, f.type, INT32)
            assert kind is not None
            expected[f.name.lower()] = Field(known.name, kind, known.nullable)
    assert merged == Struct(tuple(expected.values()))
    partitions = [Field(name, t.STRING) for name in lot.sample(["A", "p", "q"], 2)]
    own = {f.name.lower(): f for f in partitions}
    table = with_partitions(merged, partitions)
    assert [f.name.lower() for f in table.fields] == [*expected, *(n for n in own if n not in expected)]
    assert all(own.get(f.name.lower(), f) is f for f in table.fields)

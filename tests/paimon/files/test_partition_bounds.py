"""Manifests that may hold a partition, by the bounds of its values: beside a plain comparison, value by value."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.paimon.files.partition_bounds import may_hold
from alluvium.paimon.schema import DataField, parse_type
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.schema.arrow import to_arrow

KINDS = {
    "INT": [-2, -1, 0, 1, 2, 3],
    "STRING": ["", "a", "ab", "b", "é", "z"],
    "DOUBLE": [-1.5, 0.0, 1.5, 2.5, math.inf],
}


def schema_of(*kinds: str) -> TableSchema:
    fields = [DataField(n, f"p{n}", parse_type(kind)) for n, kind in enumerate(("INT", *kinds))]
    return TableSchema.create(fields, [f"p{n + 1}" for n in range(len(kinds))])


def encoded(schema: TableSchema, rows: list[tuple[Any, ...]]) -> pa.Array:
    types = [(to_logical(f.type), f.type.precision) for f in schema.fields[1:]]
    columns = [pa.array([row[n] for row in rows], to_arrow(kind)) for n, (kind, _) in enumerate(types)]
    return encode_rows(columns, types)


def held(schema: TableSchema, lows: list[tuple[Any, ...]], highs: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> list[bool]:  # fmt: skip
    manifests = pa.table({"partition_min": encoded(schema, lows), "partition_max": encoded(schema, highs)})
    found: list[bool] = may_hold(manifests, schema, encoded(schema, wanted)).to_pylist()
    return found


@pytest.mark.parametrize("kinds", [("INT",), ("STRING",), ("DOUBLE",), ("INT", "STRING")], ids=str)
def test_random_bounds(kinds: tuple[str, ...]) -> None:
    """Each key by itself: what lies between the least and the greatest that is wanted may be one of them."""
    lot, schema, kept = random.Random(7), schema_of(*kinds), []
    for _ in range(30):
        ends = [sorted((lot.choice(KINDS[kind]), lot.choice(KINDS[kind]))) for kind in kinds for _ in range(4)]
        lows = [tuple(ends[4 * k + n][0] for k in range(len(kinds))) for n in range(4)]
        highs = [tuple(ends[4 * k + n][1] for k in range(len(kinds))) for n in range(4)]
        wanted = [tuple(lot.choice(KINDS[kind]) for kind in kinds) for _ in range(lot.randint(1, 3))]
        expected = [
            all(high[k] >= min(row[k] for row in wanted) and low[k] <= max(row[k] for row in wanted) for k in range(len(kinds)))
            for low, high in zip(lows, highs, strict=True)
        ]  # fmt: skip
        assert held(schema, lows, highs, wanted) == expected
        kept += expected
    assert {True, False} == set(kept)


def test_ends_belong_to_it() -> None:
    schema = schema_of("INT")
    lows, highs = [(1,), (4,), (5,), (6,)], [(4,), (5,), (5,), (9,)]
    assert held(schema, lows, highs, [(5,)]) == [False, True, True, False]
    assert held(schema, lows, highs, [(4,), (6,)]) == [True, True, True, True]


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("INT", [(None,)]), ("INT", [(9,), (None,)]), ("DOUBLE", [(math.nan,)]), ("DOUBLE", [(math.nan,), (7.5,)])],
)
def test_what_bounds_do_not_tell(kind: str, wanted: list[tuple[Any, ...]]) -> None:
    """Nulls are outside of them; that NaN is the greatest not all writers know."""
    assert held(schema_of(kind), [(1,), (2,)], [(1,), (3,)], wanted) == [True, True]
    # The other key tells all the same.
    both = [(*row, "x") for row in wanted]
    assert held(schema_of(kind, "STRING"), [(1, "a"), (2, "x")], [(1, "b"), (3, "z")], both) == [False, True]


@pytest.mark.parametrize("end", ["lows", "highs"])
def test_bounds_that_are_not_known(end: str) -> None:
    """Where one of both is not, nobody relies on the other."""
    schema = schema_of("INT")
    ends = {"lows": [(1,)], "highs": [(3,)], end: [(None,)]}
    for wanted in (-9, 2, 9):
        assert held(schema, ends["lows"], ends["highs"], [(wanted,)]) == [True]


def test_where_nothing_is_asked() -> None:
    schema, none = schema_of("INT"), pa.array([], pa.binary())
    manifests = pa.table({"partition_min": encoded(schema, [(1,)]), "partition_max": encoded(schema, [(1,)])})
    assert may_hold(manifests, schema, none).to_pylist() == [True]
    assert may_hold(manifests.slice(0, 0), schema, encoded(schema, [(1,)])).to_pylist() == []
    plain = TableSchema.create([DataField(0, "k", parse_type("INT"))])
    assert may_hold(manifests, plain, encoded(schema, [(9,)])).to_pylist() == [True]

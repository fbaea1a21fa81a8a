"""Rows stand along a curve where Python finds them by the same ranges."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from alluvium.commands.optimize.curves import HILBERT_CURVE, Z_CURVE
from alluvium.delta.upkeep.z_values import divided, rank_bits
from alluvium.schema.types import DOUBLE, LONG, STRING
from alluvium.spark.values.ranks import rank_key

pytestmark = pytest.mark.spark
TYPES = {"a": LONG, "b": DOUBLE, "c": STRING, "d": LONG, "e": LONG, "f": LONG}


@pytest.mark.parametrize(("curve", "columns"), [(Z_CURVE, 1), (Z_CURVE, 2), (Z_CURVE, 6), (HILBERT_CURVE, 3)])
def test_places_are_those_of_the_ranks(spark, curve, columns):
    names = list(TYPES)[:columns]
    values = [
        (n * n % 50, None if n % 7 == 0 else n / 3, f"é{n % 4}", None if n % 2 else n, 5, -n) for n in range(2000)
    ]
    rows = spark.createDataFrame(values, "a long, b double, c string, d long, e long, f long").coalesce(1)
    keys = [rank_key((name,), TYPES[name]) for name in names]
    bits = rank_bits(columns)
    known = [
        [None if v is None else v.encode() if isinstance(v, str) else v for v in column]
        for column in zip(*values, strict=True)
    ]
    ranges = [divided(column[::3], 1 << bits) for column in known[:columns]]
    ranked = rows.select(*(c.alias(f"r{n}") for n, c in enumerate(curve.ranks(spark, keys, ranges, bits))))
    place = curve.column(spark, [sf.col(f"r{n}") for n in range(columns)], bits)
    expected = curve.places([[r.rank(v) for v in column] for r, column in zip(ranges, known, strict=False)], bits)
    assert [row[0] for row in ranked.select(place.alias("p")).collect()] == expected

from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from alluvium.delta.upkeep.z_values import Ranges
from alluvium.schema.types import BINARY, DOUBLE, LONG, STRING, VARIANT, Map
from alluvium.spark.values.ranks import constant_array, rank_among, rank_key


def test_there_are_types_without_order(spark):
    assert rank_key(("a",), VARIANT) is None
    assert rank_key(("a",), Map(STRING, LONG)) is None


@pytest.mark.parametrize(
    ("data_type", "ddl", "values", "bounds"),
    [
        (LONG, "long", [None, -(2**63), 9, 10, 11, 30, 2**63 - 1], [10, 30]),
        (DOUBLE, "double", [None, -1.0, 0.5, float("nan"), 2.0], [0.5, 1.5]),
        (STRING, "string", [None, "", "b", "ba", "é", "z"], [b"b", b"c"]),
        (BINARY, "binary", [None, b"", b"\x10", b"\xff"], [b"10", b"F0"]),
        (LONG, "long", [None, 1], []),
    ],
)
def test_ranks_are_found_as_in_python(spark, data_type, ddl, values, bounds):
    rows = spark.createDataFrame([(v,) for v in values], f"`a.b` {ddl}").coalesce(1)
    key = rank_key(("a.b",), data_type)
    assert key is not None
    ranges = Ranges(bounds, [10 * n + 1 for n in range(len(bounds) + 1)])
    found = [row[0] for row in rows.select(rank_among(spark, key, bounds, ranges.starts).alias("r")).collect()]
    ranked = [
        v.hex().upper().encode() if isinstance(v, bytes) else v.encode() if isinstance(v, str) else v for v in values
    ]
    assert found == list(map(ranges.rank, ranked))


def test_texts_travel_as_bytes_and_only_so_much_of_them(spark):
    rows = spark.createDataFrame([(b"\xffA",), (b"b" * 999,), (None,)], "s binary").selectExpr("cast(s as string) as s")
    key = rank_key(("s",), STRING)
    assert key is not None
    sampled = rows.select(key.sampled.alias("k")).toArrow()["k"].to_pylist()
    assert sampled == [b"\xffA", b"b" * 256, None]
    ranks = rows.select(rank_among(spark, key, [b"a", b"c" * 9, b"\xff"], [0, 1, 2, 3]).alias("r")).collect()
    assert [row[0] for row in ranks] == [3, 1, 0]


@pytest.mark.parametrize("numbers", [[7], [3, 2**31 - 1, 0], [1, 2**62]])
def test_arrays_of_numbers_of_either_size(spark, numbers):
    rows = spark.range(len(numbers)).coalesce(1)
    found = rows.select(constant_array(spark, numbers)[sf.col("id").cast("int")].alias("n")).collect()
    assert [row[0] for row in found] == numbers

"""The comparison itself: what must count as equal, and what must not."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest

from conformance.rows import difference

UTC = dt.timezone.utc
MAP = pa.map_(pa.string(), pa.float64())


def column(values, data_type):
    return pa.table({"c": pa.array(values, data_type)})


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (column([1, 2, 2], pa.int32()), column([2, 1, 2], pa.int64())),
        (column([0.0, math.nan, None], pa.float64()), column([None, -0.0, math.nan], pa.float32())),
        (column([Decimal("1.50")], pa.decimal128(10, 2)), column([Decimal("1.5")], pa.decimal128(5, 1))),
        (column([[("a", 1.0), ("b", -0.0)]], MAP), column([[("b", 0.0), ("a", 1.0)]], MAP)),
        (column([None, None], pa.null()), column([None, None], pa.string())),
        (
            column([{"a": 1, "b": "x"}], pa.struct([("a", pa.int32()), ("b", pa.string())])),
            column([{"b": "x", "a": 1}], pa.struct([("b", pa.large_string()), ("a", pa.int64())])),
        ),
        (
            column([dt.datetime(2024, 1, 1, 12, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            column([dt.datetime(2024, 1, 1, 12, tzinfo=UTC)], pa.timestamp("ns", "Europe/Berlin")),
        ),
        (pa.table({"a": [1], "b": [2]}), pa.table({"b": [2], "a": [1]})),
        # beyond what Python's datetime can hold, in a list
        (
            column([[400_000_000_000_000_000]], pa.list_(pa.int64())).cast(
                pa.schema([("c", pa.list_(pa.timestamp("us", "UTC")))])
            ),
        )
        * 2,
    ],
)
def test_equal(expected, actual):
    assert difference(expected, actual) is None


@pytest.mark.parametrize(
    ("expected", "actual", "said"),
    [
        (column([1, 2], pa.int32()), column([1, 1], pa.int32()), "1 rows differ"),
        (column([1, 1, 2], pa.int32()), column([1, 2, 2], pa.int32()), "1 rows differ"),
        (column([1], pa.int32()), column([1, 1], pa.int32()), "2 rows instead of 1"),
        (column([1], pa.int32()), column(["1"], pa.string()), "string instead of integer"),
        (column([None], pa.int32()), column([0], pa.int32()), "1 rows differ"),
        (column([""], pa.string()), column([None], pa.string()), "1 rows differ"),
        (column([math.nan], pa.float64()), column([None], pa.float64()), "1 rows differ"),
        (column([None], pa.null()), column(["x"], pa.string()), "1 rows differ"),
        (column([[("a", 1.0)]], MAP), column([[("a", 2.0)]], MAP), "1 rows differ"),
        (
            column([dt.datetime(2024, 1, 1)], pa.timestamp("us")),
            column([dt.datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            "timestamp instead of timestamp_ntz",
        ),
        (pa.table({"a": [1]}), pa.table({"A": [1]}), "columns ['A'] instead of ['a']"),
    ],
)
def test_different(expected, actual, said):
    assert said in (difference(expected, actual) or "")

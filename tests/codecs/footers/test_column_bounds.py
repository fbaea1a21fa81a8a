"""Bounds of rows that come batch by batch, beside a plain loop over all of them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alluvium.codecs.footers.column_bounds import ColumnBounds
from alluvium.codecs.footers.parquet_footer import FooterColumn
from alluvium.schema import types as t
from alluvium.schema.types import Decimal

D = decimal.Decimal
EPOCH = dt.datetime(1970, 1, 1)


def micros(value: dt.datetime) -> int:
    return (value - EPOCH) // dt.timedelta(microseconds=1)


#: Of each Arrow type: its column's, values, and the form that bounds have; None: no bounds.
KINDS: list[tuple[pa.DataType, t.DataType, list[Any], Callable[[Any], Any] | None]] = [
    (pa.int32(), t.INTEGER, [-(2**31), -1, 0, 5, 2**31 - 1], lambda v: v),
    (pa.int64(), t.LONG, [-(2**63), 0, 2**63 - 1], lambda v: v),
    (pa.bool_(), t.BOOLEAN, [True, False], lambda v: v),
    (pa.string(), t.STRING, ["", "a", "b", "é", "\U0010ffff"], lambda v: v),
    (pa.decimal128(9, 2), Decimal(9, 2), [D("-1.50"), D("0.00"), D("9999999.99")], lambda v: v),
    (pa.date32(), t.DATE, [dt.date(1, 1, 1), dt.date(1970, 1, 2), dt.date(9999, 12, 31)], lambda v: (v - EPOCH.date()).days),
    (pa.timestamp("us"), t.TIMESTAMP_NTZ, [EPOCH, dt.datetime(1, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 7)], micros),
    (pa.timestamp("ms"), t.TIMESTAMP_NTZ, [EPOCH, dt.datetime(2024, 1, 1, 0, 0, 0, 7000)], micros),
    (pa.timestamp("s"), t.TIMESTAMP_NTZ, [EPOCH, dt.datetime(1900, 1, 1), dt.datetime(2024, 1, 1)], micros),
    (pa.timestamp("ns"), t.TIMESTAMP_NTZ, [EPOCH], None),
    (pa.time32("ms"), t.INTEGER, [dt.time(0), dt.time(12, 0, 0, 5000)], lambda v: (v.hour * 3600 + v.second) * 1000 + v.microsecond // 1000),
    (pa.binary(), t.BINARY, [b"", b"a"], None),
    (pa.list_(pa.int64()), t.Array(t.LONG), [[], [1]], None),
]  # fmt: skip


@pytest.mark.parametrize(("stored", "kind", "values", "shown"), KINDS, ids=[str(one[0]) for one in KINDS])
def test_the_least_and_the_greatest(stored: pa.DataType, kind: t.DataType, values: list[Any], shown: Any) -> None:
    @settings(max_examples=25, derandomize=True)
    @given(st.lists(st.lists(st.one_of(st.none(), st.sampled_from(values)), max_size=4), max_size=4))
    def compared(batches: list[list[Any]]) -> None:
        bounds = ColumnBounds(
            [FooterColumn(("c",), kind), FooterColumn(("not", "there"), kind), FooterColumn(("x",), kind)]
        )
        for batch in batches:
            bounds.add(pa.table({"other": pa.nulls(len(batch)), "c": pa.array(batch, stored)}))
        footer = bounds.footer()
        rows = [value for batch in batches for value in batch]
        assert footer.num_rows == bounds.num_rows == len(rows)
        assert list(footer.columns) == ([("c",)] if batches else [])
        if batches:
            found, known = footer.columns[("c",)], [v for v in rows if v is not None]
            assert found.type == kind and found.null_count == len(rows) - len(known)
            ends = (shown(min(known)), shown(max(known))) if known and shown else (None, None)
            assert (found.min, found.max) == ends

    compared()


FLOATS = [-math.inf, -1.5, -0.0, 0.0, 2.5, math.inf, math.nan]


@settings(max_examples=100, derandomize=True)
@given(st.lists(st.lists(st.one_of(st.none(), st.sampled_from(FLOATS)), max_size=3), min_size=1, max_size=4))
def test_floating_numbers(batches: list[list[float | None]]) -> None:
    """NaN in any part leaves the whole without bounds; zero is bounded by both of its signs."""
    bounds = ColumnBounds([FooterColumn(("c",), t.DOUBLE)])
    for batch in batches:
        bounds.add(pa.table({"c": pa.array(batch, pa.float64())}))
    found = bounds.footer().columns[("c",)]
    known = [value for batch in batches for value in batch if value is not None]
    assert found.null_count == sum(value is None for batch in batches for value in batch)
    if not known or any(math.isnan(value) for value in known):
        assert (found.min, found.max) == (None, None)
        return
    assert (found.min, found.max) == (min(known), max(known))
    for bound, sign in ((found.min, -1.0), (found.max, 1.0)):
        assert isinstance(bound, float) and (bound != 0 or math.copysign(1.0, bound) == sign)

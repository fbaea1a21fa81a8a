"""Deleted rows by public functions alone: the text of bits, and the filter on it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from alluvium.errors import CorruptTable
from alluvium.spark.scan.letters import format_deleted_rows, is_deleted


def mask(rows: Iterable[int]) -> bytes:
    return bytes(BitMap64(rows).serialize())


@given(st.sets(st.integers(0, 5000)))
def test_the_text_has_a_bit_a_row(rows: set[int]) -> None:
    text = format_deleted_rows(mask(rows))
    assert len(text) == (max(rows) // 6 + 1 if rows else 0)
    assert all(0x40 <= letter < 0x80 for letter in text)
    assert {i for i in range(len(text) * 6) if text[i // 6] >> i % 6 & 1} == rows


def test_rows_that_no_file_has() -> None:
    with pytest.raises(CorruptTable, match="no file has as many rows"):
        format_deleted_rows(mask([1 << 31]))


@pytest.mark.spark
def test_every_row_of_a_text(spark: SparkSession) -> None:
    rows = {0, 5, 6, 11, 12, 40, 41, 47}
    found = spark.range(0, 100, 1, 1).select(
        "id", is_deleted(sf.lit(format_deleted_rows(mask(rows))), sf.col("id")).alias("gone")
    )
    assert {r.id for r in found.where("gone").collect()} == rows
    assert found.where("not gone").count() == 100 - len(rows)
    nothing = spark.range(3).select(is_deleted(sf.lit(b""), sf.col("id")).alias("gone"))
    assert nothing.where("gone").count() == 0

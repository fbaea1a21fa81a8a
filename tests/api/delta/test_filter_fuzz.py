"""Random conditions over random tables, a few seeds; `scripts/filters.py` plays on."""

from __future__ import annotations

from pathlib import Path

import pytest
from filter_fuzz import Found, play
from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("seed", [2, 5])
def test_no_condition_is_read_otherwise(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    found = Found()
    play(spark, seed, tmp_path, found, conditions=25, runs=2)
    assert not found.differences
    # Else nothing was asked.
    assert found.counts["scan: understood"] > 10 and found.counts["scan: files skipped"] > 3
    assert found.counts["verb: understood"] > 10 and found.counts["run"] == 2

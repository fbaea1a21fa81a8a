"""A session that goes on and on holds on to nothing: a small part of `scripts/long_life.py`."""

from __future__ import annotations

from pathlib import Path

from holdings import grown, held, play
from pyspark.sql import SparkSession

import alluvium

#: Every verb twice.
STATEMENTS = 30


def test_nothing_grows_with_statements(spark: SparkSession, tmp_path: Path) -> None:
    alluvium.enable(spark)
    play(spark, tmp_path / "tables", STATEMENTS)
    before = held(spark)
    play(spark, tmp_path / "tables", STATEMENTS)
    assert grown(before, held(spark)) == {}

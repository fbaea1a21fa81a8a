"""The same sequences by an engine chosen anew for each step: Alluvium without Spark, by DataFrames and by SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import alluvium
from model.engines.python_engine import PythonEngine
from model.engines.sessions import SETTINGS, spark_engines
from model.player import Counts, Engine, make_sequence, play
from model.values import NESTED

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def engines(spark: SparkSession) -> Iterator[dict[str, Engine]]:
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    yield {"python": PythonEngine(), **spark_engines(spark)}
    alluvium.disable(spark)
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.mark.parametrize("seed", [1])
def test_random_verbs_by_random_engines(engines: dict[str, Engine], tmp_path: Path, seed: int) -> None:
    counts = Counts()
    sequence = make_sequence(seed, list(engines), 10)
    # Flat values alone: those with parts are played by `make torture`.
    flat = tuple(column for column in sequence.columns if column.type not in NESTED)
    play(replace(sequence, columns=flat), engines, tmp_path, counts)
    assert counts.steps + counts.skipped == 11

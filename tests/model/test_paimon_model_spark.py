"""The same sequences on Paimon tables by an engine chosen anew for each step: Alluvium without Spark, by DataFrames and by SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import alluvium
from model.engines.sessions import SETTINGS, spark_engines
from model.paimon.python_engine import PaimonPython
from model.paimon.spark_engine import paimon_spark_engines
from model.player import Counts, Engine, make_sequence, play

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def engines(spark: SparkSession) -> Iterator[dict[str, Engine]]:
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    spark_engines(spark)
    yield {"python": PaimonPython(), **paimon_spark_engines(spark)}
    alluvium.disable(spark)
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.mark.parametrize("seed", [1])
def test_random_verbs_by_random_engines(engines: dict[str, Engine], tmp_path: Path, seed: int) -> None:
    counts = Counts()
    play(make_sequence(seed, list(engines), 10, format="paimon"), engines, tmp_path, counts)
    assert counts.steps + counts.skipped == 11

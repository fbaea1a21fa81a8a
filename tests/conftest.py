"""Fixtures for all tests. The Spark session is made when the first test asks for it, one a process."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HAS_SPARK = importlib.util.find_spec("pyspark") is not None

# Modules of Spark tests import pyspark at their top: without it they cannot even be collected.
collect_ignore_glob = [] if HAS_SPARK else ["spark/*", "cluster/*", "commands/*"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A small local session in UTC."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'alluvium[spark]'")
    session = (
        sql.SparkSession.builder.master("local[2]")
        .appName("alluvium-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()

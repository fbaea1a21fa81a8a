"""Sessions of tests in which two engines are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import jvm
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    """The process's session, which compiles nothing for tables of a few rows; other folders' tests see it as it was."""
    before = {name: spark.conf.get(name, None) for name in jvm.INTERPRETED}
    for name, value in jvm.INTERPRETED.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)

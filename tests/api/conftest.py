"""Sessions of tests of what users see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import jvm
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    """The process's session, which compiles no whole stages for tables of a few rows: a tenth of the time. Other folders'
    tests, which run the same operators, see it as it was.
    """
    with jvm.having(spark, jvm.BY_OPERATORS):
        yield spark

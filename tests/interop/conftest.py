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
    with jvm.having(spark, jvm.INTERPRETED):
        yield spark

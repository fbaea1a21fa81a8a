"""A path that a reader or a writer is told twice is refused, as by Spark: by an argument, and by an option."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import alluvium
from alluvium.errors import InvalidRequest

pytestmark = pytest.mark.spark

SETTING = "spark.sql.legacy.pathOptionBehavior.enabled"


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.fixture
def paths(enabled: SparkSession, tmp_path: Path) -> tuple[str, str]:
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    alluvium.write(enabled.range(3), one)
    return one, other


def test_a_path_is_said_once(enabled: SparkSession, paths: tuple[str, str]) -> None:
    one, other = paths
    rows = enabled.range(5)
    read, write = enabled.read.format("delta"), rows.write.format("delta").mode("append")
    for act, condition in (
        (lambda: read.option("path", other).load(one), "_LEGACY_ERROR_TEMP_1306"),
        (lambda: enabled.read.format("delta").load(one, Path=other), "_LEGACY_ERROR_TEMP_1306"),
        (lambda: write.option("path", other).save(one), "_LEGACY_ERROR_TEMP_1307"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            act()
        assert (caught.value.code, caught.value.getCondition()) == ("contradicting-options", condition)
    assert alluvium.open(one).version == 0 and not Path(other).exists()
    assert enabled.read.format("delta").option("path", one).load().count() == 3
    rows.write.format("delta").option("path", other).save()
    assert enabled.read.format("delta").load([other]).count() == 5


def test_the_argument_counts_where_the_session_says_so(enabled: SparkSession, paths: tuple[str, str]) -> None:
    one, other = paths
    enabled.conf.set(SETTING, "true")
    try:
        enabled.range(2).write.format("delta").option("path", one).save(other)
        assert enabled.read.format("delta").option("path", one).load(other).count() == 2
    finally:
        enabled.conf.unset(SETTING)

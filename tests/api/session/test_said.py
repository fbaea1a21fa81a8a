"""`bucketBy` and `sortBy`, which tables of ours do not have, and `partitionBy` where there are partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import alluvium
from alluvium.errors import AlluviumError

pytestmark = pytest.mark.spark


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    alluvium.enable(spark)
    spark.sql("CREATE TABLE there_already (id BIGINT) USING delta")
    yield spark
    spark.sql("DROP TABLE there_already")
    alluvium.disable(spark)


def test_buckets_are_refused_before_anything_is_written(enabled: SparkSession, tmp_path: Path) -> None:
    rows, path = enabled.range(2), str(tmp_path / "t")
    bucketed = lambda: rows.write.format("delta").bucketBy(2, "id")  # noqa: E731
    sorted_ = lambda: rows.write.format("delta").sortBy("id")  # noqa: E731
    detail, alone = "DELTA_OPERATION_NOT_ALLOWED_DETAIL", "SORT_BY_WITHOUT_BUCKETING"
    writes: list[tuple[Callable[[], object], str | None]] = [
        (lambda: bucketed().saveAsTable("made"), detail),
        (lambda: bucketed().sortBy("id").mode("overwrite").saveAsTable("made"), detail),
        (lambda: bucketed().mode("append").saveAsTable("there_already"), detail),
        (lambda: sorted_().saveAsTable("made"), alone),
        (lambda: bucketed().save(path), "_LEGACY_ERROR_TEMP_1312"),
        (lambda: bucketed().sortBy("id").save(path), "_LEGACY_ERROR_TEMP_1313"),
        (lambda: sorted_().save(path), alone),
        (lambda: bucketed().insertInto("there_already"), "_LEGACY_ERROR_TEMP_1312"),
        (lambda: sorted_().insertInto("there_already"), alone),
        (lambda: rows.write.partitionBy("id").insertInto("there_already"), "PARTITION_BY_NOT_ALLOWED_WITH_INSERT_INTO"),
        (lambda: rows.write.format("paimon").bucketBy(2, "id").save(path), None),
        (lambda: rows.writeTo("made").using("delta").partitionedBy(sf.partitioning.bucket(2, "id")).create(), None),
    ]
    for write, condition in writes:
        with pytest.raises(AlluviumError) as refused:
            write()
        if condition is not None:
            assert isinstance(refused.value, AnalysisException) and refused.value.getCondition() == condition
    assert not enabled.catalog.tableExists("made") and not Path(path).exists()
    assert enabled.table("there_already").count() == 0

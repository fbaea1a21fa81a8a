"""Every door of Delta's tables in a session raises what delta-spark raises; other doors do not."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException, UnsupportedOperationException

import alluvium
from alluvium import DeltaTable, RetryPolicy
from alluvium.api.counterparts.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
)
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import AlluviumError, CommitConflict, InvalidRequest, NotFound

pytestmark = pytest.mark.spark


@pytest.fixture
def enabled(spark):
    alluvium.enable(spark)
    yield spark
    alluvium.disable(spark)


@pytest.fixture
def path(spark, tmp_path) -> str:
    alluvium.write(spark.range(4).coalesce(1), str(tmp_path / "t"))
    return str(tmp_path / "t")


def test_each_door_has_its_condition(enabled, path, tmp_path):
    table = DeltaTable.forPath(enabled, path)
    rows, nothing = enabled.sql("select 1L id, 2 n"), str(tmp_path / "nothing")
    calls = [
        (lambda: enabled.read.format("delta").load(nothing), "PATH_NOT_FOUND", AnalysisException),
        (lambda: enabled.read.format("delta").option("versionAsOf", 9).load(path), "DELTA_VERSION_NOT_FOUND", AnalysisException),
        (lambda: rows.write.format("delta").save(path), "DELTA_PATH_EXISTS", AnalysisException),
        (lambda: rows.write.format("delta").mode("append").save(path), "DELTA_METADATA_MISMATCH", AnalysisException),
        (lambda: rows.write.format("delta").mode("append").option("txnAppId", "a").save(path), "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", IllegalArgumentException),
        (lambda: rows.writeTo(f"delta.`{path}`").using("delta").create(), "TABLE_OR_VIEW_ALREADY_EXISTS", AnalysisException),
        (lambda: rows.write.insertInto(f"delta.`{path}`"), "DELTA_METADATA_MISMATCH", AnalysisException),
        (lambda: enabled.range(1).write.format("delta").saveAsTable(f"delta.`{path}`"), "TABLE_OR_VIEW_ALREADY_EXISTS", AnalysisException),
        (lambda: DeltaTable.forPath(enabled, nothing), "DELTA_MISSING_DELTA_TABLE", AnalysisException),
        (lambda: table.restoreToVersion(9), "DELTA_CANNOT_RESTORE_TABLE_VERSION", AnalysisException),
        (lambda: table.merge(rows, "true").execute(), "DELTA_MERGE_MISSING_WHEN", AnalysisException),
        (lambda: DeltaTable.create(enabled).location(nothing).addColumn("g", "geometry(4326)"), "DELTA_GEOSPATIAL_NOT_SUPPORTED", UnsupportedOperationException),
    ]  # fmt: skip
    for call, condition, kind in calls:
        with pytest.raises(AlluviumError) as caught:
            call()
        assert isinstance(caught.value, kind)
        assert (caught.value.getCondition(), str(caught.value).startswith(f"[{condition}] ")) == (condition, True)


def test_a_lost_race_is_one_of_deltas_exceptions(spark, path, monkeypatch):
    table, other, commit, pending = (
        DeltaTable.forPath(spark, path),
        DeltaTable.forPath(spark, path),
        DeltaTarget.commit,
        [1],
    )

    def interrupted(self: DeltaTarget, changes: object) -> object:
        if pending:
            pending.pop()
            other.delete("id = 1")
        return commit(self, changes)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaTarget, "commit", interrupted)
    with pytest.raises(DeltaConcurrentModificationException) as caught:
        table.update("id < 3", {"id": "id + 10"}, retry=RetryPolicy(max_repeats=0))
    assert isinstance(caught.value, CommitConflict)
    assert isinstance(
        caught.value,
        {"concurrent-delete-read": ConcurrentDeleteReadException, "concurrent-append": ConcurrentAppendException}[
            caught.value.code
        ],
    )
    assert caught.value.getCondition().startswith("DELTA_CONCURRENT_")
    assert caught.value.conflicts[0].version == 1


def test_other_doors_raise_ours_alone(enabled, path, tmp_path):
    for call in (
        lambda: alluvium.open(path + "/nothing"),
        lambda: alluvium.read(enabled, path + "/nothing"),
        lambda: enabled.read.format("paimon").load(str(tmp_path / "nothing")),
    ):
        with pytest.raises(NotFound) as caught:
            call()
        assert not isinstance(caught.value, PySparkException)


def test_an_error_of_a_builder_is_python_s_own_where_delta_spark_s_is(spark, tmp_path):
    with pytest.raises(ValueError, match="non-zero") as caught:
        DeltaTable.create(spark).addColumn("a", "bigint", generatedAlwaysAs=alluvium.IdentityGenerator(1, 0))
    assert isinstance(caught.value, InvalidRequest)
    assert not isinstance(caught.value, PySparkException)

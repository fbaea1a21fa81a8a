"""`clusterBy` of PySpark's writer: tables that are made are clustered, and no word of it is passed over."""

import pytest

import alluvium
from alluvium import DeltaTable
from alluvium.errors import InvalidRequest

pytestmark = pytest.mark.spark


@pytest.fixture
def session(spark):
    alluvium.enable(spark)
    yield spark
    spark.sql("drop table if exists clustered_by_writer")
    alluvium.disable(spark)


def clusters(session, path):
    return DeltaTable.forPath(session, path).detail().head()["clusteringColumns"]


def rows(session):
    return session.range(3).selectExpr("id as a", "named_struct('c', string(id)) as b", "id % 2 as `d.e`")


def test_a_table_by_its_path(session, tmp_path):
    path = str(tmp_path / "t")
    rows(session).write.format("delta").clusterBy("b.c", "A").save(path)
    assert clusters(session, path) == ["b.c", "a"]
    assert "clustering" in alluvium.open(path).protocol.writer_features
    rows(session).write.format("delta").mode("append").clusterBy("B.c", "a").save(path)
    rows(session).write.format("delta").mode("append").save(path)
    assert alluvium.read(session, path).count() == 9
    with pytest.raises(InvalidRequest) as caught:
        rows(session).write.format("delta").mode("append").clusterBy("a").save(path)
    assert caught.value.code == "clustering-mismatch"
    assert alluvium.open(path).version == 2


def test_a_table_by_its_name(session):
    rows(session).write.format("delta").clusterBy(["`d.e`"]).saveAsTable("clustered_by_writer")
    path = session.sql("describe detail clustered_by_writer").head()["location"]
    assert clusters(session, path) in (["d.e"], ["`d.e`"])
    with pytest.raises(InvalidRequest):
        rows(session).write.format("delta").mode("overwrite").clusterBy("a").saveAsTable("clustered_by_writer")


def test_not_by_partitions_too(session, tmp_path):
    with pytest.raises(InvalidRequest, match="partitioned or clustered") as caught:
        rows(session).write.format("delta").partitionBy("a").option("clusterBy", "b.c").save(str(tmp_path / "t"))
    assert caught.value.code == "contradicting-options"
    assert not (tmp_path / "t").exists()

"""HDFS, really spoken to: Hadoop's own mini cluster, whose rename and create decide who wins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyspark
import pytest
from object_servers import missing, serve_hdfs
from pyspark.sql import SparkSession

import alluvium
from alluvium import DeltaTable
from alluvium.storage.open import open_store
from alluvium.storage.store import PutOutcome
from alluvium.storage.stores.hadoop import HadoopAccess

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HADOOP_JARS = Path(pyspark.__file__).parent / "jars"


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    reason = missing("hdfs")
    if reason or not list(HADOOP_JARS.glob("hadoop-client-api-3.5.*")):
        pytest.skip(reason or "the mini cluster is of another Hadoop than this PySpark")
    with serve_hdfs(tmp_path_factory.mktemp("hdfs"), HADOOP_JARS) as address:
        yield address


def test_one_of_many_puts_at_once_wins(spark: SparkSession, hdfs: str) -> None:
    store = open_store(f"{hdfs}/puts", None, HadoopAccess(spark._jvm, spark._jsc.hadoopConfiguration()))
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda n: store.put_if_absent("a b/%20é", b"%d" % n), range(8)))
    assert Counter(outcomes) == {PutOutcome.DONE: 1, PutOutcome.EXISTS: 7}
    assert store.get("a b/%20é") == b"%d" % outcomes.index(PutOutcome.DONE)
    assert [info.path for info in store.list_tree("")] == ["a b/%20é"]


def test_the_life_of_a_table(spark: SparkSession, hdfs: str) -> None:
    url = f"{hdfs}/a b/t%20é"
    alluvium.write(spark.range(10), url, **{"delta.enableDeletionVectors": "true"})
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: alluvium.write(spark.range(n, n + 5), url, mode="append"), (10, 20, 30)))
    table = DeltaTable.forPath(spark, url)
    table.delete("id % 2 = 0")
    table.optimize().executeCompaction()
    expected = [n for n in (*range(15), *range(20, 25), *range(30, 35)) if n % 2]
    assert sorted(r.id for r in alluvium.read(spark, url).collect()) == expected
    assert alluvium.read(spark, url, version=0).count() == 10
    table.vacuum()
    assert table.detail().first().location.startswith("hdfs://")

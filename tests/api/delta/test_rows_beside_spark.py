"""The same verbs over rows by Spark and without it: the same rows, history, changes and row ids."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from past_tables import WITH_PAST, with_past
from pyspark.sql import SparkSession
from row_verbs import KINDS, SOURCE, VERBS, changes, kept_ids, make_begun, rows, told

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.portable.delta_table import PortableDeltaTable

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_begun(tmp_path_factory.mktemp("begun"))


@pytest.mark.parametrize("parts", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["v > 7", "id >= 50", "v > 7 or p = 'p1'", "x > 2 and v is not null"])
def test_both_replace_the_same_rows(
    spark: SparkSession, begun: Path, tmp_path: Path, where: str, kind: str, parts: int
) -> None:
    urls = [str(tmp_path / name) for name in ("here", "spark")]
    for url in urls:
        shutil.copytree(begun / f"{kind}{parts}", url)
    new = SOURCE.filter(pc.and_(pc.greater(SOURCE["v"], 7), pc.greater_equal(SOURCE["id"], 50)))
    new = pa.concat_tables([new.set_column(3, "x", pa.array([9.0] * new.num_rows))])
    alluvium.write(new, urls[0], mode="overwrite", replaceWhere=where)
    alluvium.write(spark.createDataFrame(new).coalesce(1), urls[1], mode="overwrite", replaceWhere=where)
    assert rows(urls[0]) == rows(urls[1])
    assert told(urls[0]) == told(urls[1])
    assert changes(urls[0]) == changes(urls[1])


@pytest.mark.parametrize("parts", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", VERBS)
def test_both_do_the_same(spark: SparkSession, begun: Path, tmp_path: Path, verb: str, kind: str, parts: int) -> None:
    urls = [str(tmp_path / name) for name in ("here", "spark")]
    for url in urls:
        shutil.copytree(begun / f"{kind}{parts}", url)
    VERBS[verb](PortableDeltaTable.forPath(urls[0]), SOURCE)
    source = spark.createDataFrame(SOURCE).alias("s")
    VERBS[verb](DeltaTable.forPath(spark, urls[1]).alias("t"), source)
    assert rows(urls[0]) == rows(urls[1])
    assert told(urls[0]) == told(urls[1])
    assert changes(urls[0]) == changes(urls[1])
    assert kept_ids(urls[0], kind) == kept_ids(urls[1], kind)


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_rows_that_were_there_before_a_column(spark: SparkSession, tmp_path: Path, mapping: str) -> None:
    """Spark's reader knows what the schema says of them."""
    path = str(with_past(tmp_path / "t", mapping))
    assert sorted(tuple(row) for row in alluvium.read(spark, path).collect()) == WITH_PAST
    DeltaTable.forPath(spark, path).delete("x is null")
    assert sorted(row.id for row in alluvium.read(spark, path).where("x = 7").collect()) == [0, 1, 2]


@pytest.mark.parametrize("told", [1, 2, 3])
@pytest.mark.parametrize("masks", ["true", "false"])
@pytest.mark.parametrize("with_spark", [True, False])
@pytest.mark.parametrize(("where", "left"), [("id in (1, 2)", [0, 3, 4]), ("id = 4", [0, 1, 2, 3]), ("id < 3", [3, 4])])
def test_a_number_of_rows_that_is_too_small_takes_none_along(
    spark: SparkSession, tmp_path: Path, told: int, masks: str, with_spark: bool, where: str, left: list[int]
) -> None:
    """Statistics say that no row is left where two are: that is for the file to say (docs/decisions/0018)."""
    path = forgetful(tmp_path, told, masks)
    table = DeltaTable.forPath(spark, path) if with_spark else DeltaTable.forPath(path)
    table.update(where, {"v": "9"})
    assert sorted(alluvium.open(path).to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]
    table.delete(where)
    assert sorted(alluvium.open(path).to_arrow()["id"].to_pylist()) == left


@pytest.mark.parametrize("told", [1, 2, 3])
@pytest.mark.parametrize("masks", ["true", "false"])
@pytest.mark.parametrize("with_spark", [True, False])
def test_a_merge_takes_none_along_either(
    spark: SparkSession, tmp_path: Path, told: int, masks: str, with_spark: bool
) -> None:
    """More rows go than the statistic knows of, and one of them comes back changed."""
    path = forgetful(tmp_path, told, masks)
    source = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": pa.array([-1, -1, 7], pa.int64())})
    table = DeltaTable.forPath(spark, path) if with_spark else DeltaTable.forPath(path)
    rows = spark.createDataFrame(source).alias("s") if with_spark else source
    merge = table.alias("t").merge(rows, "t.id = s.id")
    merge.whenMatchedDelete("s.v < 0").whenMatchedUpdate(set={"v": "s.v"}).execute()
    left = alluvium.open(path).to_arrow().sort_by("id")
    assert left.to_pydict() == {"id": [0, 3, 4], "v": [0, 7, 0]}


def forgetful(path: Path, told: int, masks: str) -> str:
    """A table of five rows in a file of which the statistics say that it has `told`."""
    rows = pa.table({"id": pa.array(range(5), pa.int64()), "v": pa.array([0] * 5, pa.int64())})
    alluvium.write(rows, str(path), **{"delta.enableDeletionVectors": masks})
    log = path / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace('\\"numRecords\\":5', f'\\"numRecords\\":{told}'))
    for crc in log.parent.glob("*.crc"):
        crc.unlink()
    assert alluvium.open(str(path)).count() == told
    return str(path)

"""Compaction by Spark and without it: the same files go, the same rows and identities stay, the same is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.plan.changes import Preview

pytestmark = pytest.mark.spark

KINDS = {
    "plain": {},
    "all": {
        "delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true",
        "delta.columnMapping.mode": "name", "delta.dataSkippingNumIndexedCols": "2",
    },
    "small": {"delta.targetFileSize": "4000"},
}  # fmt: skip
ACTS: dict[str, Callable[[Any], Any]] = {
    "compaction": lambda o: o.executeCompaction(),
    "some partitions": lambda o: o.where("p is null or p = 'p1'").executeCompaction(),
    "purge": lambda o: o.executePurge(),
}
#: Of the history: what says how large files of another writer are.
_SIZES = ("numAddedBytes", "p25FileSize", "p50FileSize", "p75FileSize", "minFileSize", "maxFileSize")


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of eight commits by both writers, rows deleted and updated in between."""
    root = tmp_path_factory.mktemp("begun")
    rows = pa.table({
        "id": range(80),
        "p": [f"p{i % 3}" if i % 8 else None for i in range(80)],
        "x": [float("nan") if i % 9 == 0 else i / 4 for i in range(80)],
        "t": ["ab" * (i % 4) for i in range(80)],
    })  # fmt: skip
    for kind, properties in KINDS.items():
        url = str(root / kind)
        for n in range(8):
            part = rows.slice(n * 10, 10)
            data = part if n % 2 == 0 else spark.createDataFrame(part).coalesce(1)
            alluvium.write(data, url, mode="append", partition_by=["p"], **properties)
        table = PortableDeltaTable.forPath(url)
        table.delete("id % 7 = 3")
        table.update("id % 11 = 5", {"t": "concat(t, 'z')"})
    return root


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("kind", KINDS)
def test_both_do_the_same(spark: SparkSession, begun: Path, tmp_path: Path, kind: str, act: str) -> None:
    urls = [str(tmp_path / name) for name in ("here", "spark")]
    for url in urls:
        shutil.copytree(begun / kind, url)
    here, there = PortableDeltaTable.forPath(urls[0]), DeltaTable.forPath(spark, urls[1])
    before = alluvium.open(urls[0])
    told = [ACTS[act](table.optimize()) for table in (here, there)]
    answers = [told[0].to_pylist()[0]["metrics"], told[1].collect()[0]["metrics"].asDict(recursive=True)]
    other = {"filesAdded", "startTimeMs", "endTimeMs", "totalClusterParallelism"}
    said = [{k: v for k, v in answer.items() if k not in other} for answer in answers]
    assert said[0] == said[1]
    views = [alluvium.open(url) for url in urls]
    columns = ["*", "_row_id", "_row_commit_version"] if kind == "all" else ["*"]
    rows = [sorted(map(repr, view.to_arrow(columns).to_pylist())) for view in (before, *views)]
    assert rows[0] == rows[1] == rows[2]
    shown = []
    for view in views:
        newest = view.history(1)[0]
        metrics, parameters = newest["operationMetrics"], newest["operationParameters"]
        assert isinstance(metrics, dict) and isinstance(parameters, dict)
        kept = {k: v for k, v in metrics.items() if k not in _SIZES}
        # Catalyst prints conditions in its own way.
        named = {k: v for k, v in parameters.items() if k != "predicate"}
        shown.append((newest["operation"], kept, named, newest["isBlindAppend"], newest["isolationLevel"]))
    assert shown[0] == shown[1]
    files = [sorted((repr(f["partition"]), f["num_rows"]) for f in v.files().to_pylist()) for v in views]
    assert files[0] == files[1]
    gone = [set(before.files()["path"].to_pylist()) - set(v.files()["path"].to_pylist()) for v in views]
    assert gone[0] == gone[1]
    bounds = [{n: repr((b.min, b.max)) for n, b in v.bounds().items()} for v in views]
    assert bounds[0] == bounds[1]
    assert sorted(map(repr, alluvium.read(spark, urls[0]).collect())) == sorted(
        map(repr, alluvium.read(spark, urls[1]).collect())
    )


def test_both_would_do_the_same(spark: SparkSession, begun: Path) -> None:
    url = str(begun / "all")
    told = [
        table.optimize().executeCompaction(dry_run=True)
        for table in (PortableDeltaTable.forPath(url), DeltaTable.forPath(spark, url))
    ]
    first, second = (one for one in told if isinstance(one, Preview))
    assert (first.rewritten, first.operation.metrics) == (second.rewritten, second.operation.metrics)

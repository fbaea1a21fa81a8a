"""explain of DataFrames on a classic session, whichever lane reads what is below them."""

from __future__ import annotations

from pathlib import Path

import pytest

import alluvium
from alluvium.errors import InvalidRequest

pytestmark = pytest.mark.spark


def test_scans_of_python_workers_are_told_with_their_reason(spark, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    alluvium.write(spark.range(0, 10, 1, 1), url)
    alluvium.write(spark.range(10, 20, 1, 1), url, mode="append")
    workers = alluvium.read(spark, url, lane="python", where="id >= 15")
    native, by_workers = alluvium.explain(workers.join(alluvium.read(spark, url), "id"))
    assert (native.lane, native.files) == ("native", 2)
    assert (by_workers.lane, by_workers.files, by_workers.filters) == ("python", 1, ("id >= 15",))
    assert (by_workers.url, by_workers.version) == (native.url, native.version) == (f"file:{url}", "1")
    assert by_workers.skipped["statistics"] == 1
    assert "asked for" in by_workers.why


def test_frames_without_our_tables(spark, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "plain"))
    with pytest.raises(InvalidRequest) as caught:
        alluvium.explain(spark.read.parquet(str(tmp_path / "plain")))
    assert caught.value.code == "nothing-to-explain"

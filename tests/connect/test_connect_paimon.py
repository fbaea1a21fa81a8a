"""Paimon tables written over Spark Connect: the server's own Parquet writer, the client's snapshots."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

import alluvium
from alluvium.errors import CommitConflict, InvalidRequest

pytestmark = pytest.mark.connect


def test_create_append_overwrite(connect, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    df = connect.createDataFrame(
        [(1, "a/b", dt.date(2024, 1, 2)), (2, None, None), (3, "", None)], "k int, p string, d date"
    )
    assert alluvium.write(df, url, format="paimon", partition_by=["p", "d"]).version == 1
    alluvium.write(df.where("k = 2"), url, format="paimon", mode="overwrite", partitionOverwriteMode="dynamic")
    alluvium.write(df.where("k = 1"), url, format="paimon", mode="append")
    found = alluvium.open(url)
    assert sorted(tuple(row.values()) for row in found.to_arrow().to_pylist()) == sorted(
        [(1, "a/b", dt.date(2024, 1, 2)), (1, "a/b", dt.date(2024, 1, 2)), (2, None, None), (3, "", None)]
    )
    assert found.system("snapshots")["commit_kind"].to_pylist() == ["APPEND", "OVERWRITE", "APPEND"]
    assert not list(Path(url).rglob("_SUCCESS"))


def test_buckets_need_a_jvm(connect, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    with pytest.raises(InvalidRequest) as caught:
        alluvium.write(connect.range(3), url, format="paimon", bucket=2, **{"bucket-key": "id"})
    assert caught.value.code == "no-jvm"
    assert not Path(url).exists()


def test_an_overwrite_by_a_frame_of_an_older_state(connect, tmp_path: Path) -> None:
    """What came since would be gone; who asked for that state is taken at their word."""
    url = str(tmp_path / "t")
    alluvium.write(connect.range(2), url, format="paimon")
    seen, named = alluvium.read(connect, url), alluvium.read(connect, url, version=1)
    alluvium.write(connect.range(2, 3), url, format="paimon", mode="append")
    with pytest.raises(CommitConflict) as caught:
        alluvium.write(seen.where("id > 0"), url, format="paimon", mode="overwrite")
    assert caught.value.code == "concurrent-append"
    again = alluvium.read(connect, url).where("id > 0")
    alluvium.write(again, url, format="paimon", mode="overwrite")
    assert sorted(alluvium.open(url).to_arrow()["id"].to_pylist()) == [1, 2]
    alluvium.write(named, url, format="paimon", mode="overwrite")
    assert sorted(alluvium.open(url).to_arrow()["id"].to_pylist()) == [0, 1]

"""Rows whose time has passed (`record-level.expire-time`): both engines read them until a compaction leaves them out."""

from __future__ import annotations

import datetime as dt
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_rows import append, open_target
from reference_engine import NEEDS_PAIMON
from test_paimon_life import Java

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.storage.open import open_store

pytestmark = [*NEEDS_PAIMON, pytest.mark.spark]


def value(kind: pa.DataType, seconds: int | None, is_milli: bool) -> Any:
    if seconds is None:
        return None
    if pa.types.is_timestamp(kind):
        return dt.datetime.fromtimestamp(seconds, dt.timezone.utc).replace(tzinfo=dt.timezone.utc if kind.tz else None)
    return seconds * 1000 if is_milli else seconds


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
@pytest.mark.parametrize(
    ("kind", "is_milli"),
    [
        (pa.int32(), False),
        (pa.int64(), False),
        (pa.int64(), True),
        (pa.timestamp("ms"), False),
        (pa.timestamp("us", "UTC"), False),
    ],
    ids=["int", "seconds", "millis", "timestamp", "instant"],
)
def test_both_leave_the_same_rows(spark, tmp_path: Path, kind: pa.DataType, is_milli: bool, engine: str) -> None:
    url, now = str(tmp_path / "t"), int(time.time())
    options = {"bucket": "1", "record-level.expire-time": "1 h", "record-level.time-field": "t", "merge-engine": engine}
    PaimonTable.create(url, pa.schema([("k", pa.int32()), ("t", kind)]), (), ["k"], options)
    # Old ones, new ones, one without a time, one that has become old, and one that has become new.
    for batch in ([(1, -7200), (2, -60), (3, None), (4, -60), (5, -7200)], [(4, -7200), (5, -60), (6, 7200)]):
        rows = [{"k": k, "t": value(kind, None if s is None else now + s, is_milli)} for k, s in batch]
        append(open_target(open_store(url)), rows)
    shutil.copytree(url, tmp_path / "java")
    java, own = Java(tmp_path, tmp_path / "java"), Java(tmp_path, tmp_path / "t")
    java.reads([1, 2, 3, 4, 5, 6])
    java.does(compact={"full": True})
    java.run()
    left = sorted(alluvium.open(str(tmp_path / "java")).to_arrow()["k"].to_pylist())
    assert 1 not in left and {2, 5, 6} <= set(left)
    assert sorted(alluvium.open(url).to_arrow()["k"].to_pylist()) == [1, 2, 3, 4, 5, 6]
    PaimonTable.forPath(url).compact(spark=spark)
    assert sorted(alluvium.open(url).to_arrow()["k"].to_pylist()) == left
    own.reads(left)
    own.run()

"""Columns of many frames: found in few questions to the JVM, the oldest forgotten."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from alluvium.spark.statements.own_columns import _FRAMES, OwnColumns

pytestmark = pytest.mark.spark


def test_the_oldest_frames_are_forgotten(spark):
    own = OwnColumns()
    frames = [spark.range(1) for _ in range(2 * _FRAMES + 2)]
    for frame in frames:
        own.remember(frame)
    names = [str(own.by_name(spark, frame["id"] + 1, ("t",))) for frame in (frames[_FRAMES], frames[-3], frames[-1])]
    assert all("t.id" in name for name in names), names
    given = frames[0]["id"] + 1
    assert own.by_name(spark, given, ("t",)) is given
    both = own.by_name(spark, (frames[-1]["id"] == frames[-4]["id"]) & (frames[-1].alias("x")["x.id"] > 0), ("t",))
    assert str(both).count("t.id") == 3
    for other in ("id", sf.lit(1), sf.col("id"), spark.range(1)["id"]):
        assert own.by_name(spark, other, ("t",)) is other

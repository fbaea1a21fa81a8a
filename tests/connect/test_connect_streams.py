"""Streams of tables over Spark Connect are refused, by an error that says what works."""

from __future__ import annotations

from pathlib import Path

import pytest

import alluvium
from alluvium.errors import UnsupportedFeature


def test_they_are_refused_by_name(connect, tmp_path: Path) -> None:
    alluvium.enable(connect)
    try:
        with pytest.raises(UnsupportedFeature) as read:
            connect.readStream.format("delta").load(str(tmp_path))
        writer = connect.readStream.format("rate").load().writeStream.format("delta")
        with pytest.raises(UnsupportedFeature) as written:
            writer.option("checkpointLocation", str(tmp_path / "cp")).start(str(tmp_path / "t"))
        for caught in (read, written):
            assert caught.value.code == "no-jvm-for-streams"
            assert caught.value.hint is not None
            assert "follow" in caught.value.hint
    finally:
        alluvium.disable(connect)
    assert connect.readStream.format("rate").load().isStreaming

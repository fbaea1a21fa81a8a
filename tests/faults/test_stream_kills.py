"""A part of `scripts/stream_kills.py`: drivers of streaming queries that are killed with their JVM lose nothing."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path

import pytest

import alluvium

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
#: `ALLUVIUM_STREAM_KILLS=200`: so many queries, of all kinds.
KILLS = int(os.environ.get("ALLUVIUM_STREAM_KILLS", "2"))
#: What the suite plays: with this seed all four die with their first driver.
FEW = ("stateful", "complete", "merge", "paimon-1")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_killed_drivers_lose_and_double_nothing(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    kills, driver = (importlib.import_module(name) for name in ("stream_kills", "stream_driver"))
    names = FEW if KILLS == 2 else tuple(driver.QUERIES)
    alluvium.enable(spark)
    try:
        # The session that is there plays the end: another JVM would start for as long as all of it takes.
        folder = tmp_path / "kills"
        wrong = kills.play(folder, KILLS, 4, names=names, finish=lambda at, which: driver.finish(spark, at, which))
    finally:
        alluvium.disable(spark)
    assert wrong == []
    assert json.loads((folder / "kills.json").read_text())["killed"] >= KILLS

"""A part of `scripts/stream_kills.py`: drivers of streaming queries that are killed with their JVM lose nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "stream_kills.py"
#: `ALLUVIUM_STREAM_KILLS=200`: so many.
KILLS = os.environ.get("ALLUVIUM_STREAM_KILLS", "2")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_killed_drivers_lose_and_double_nothing(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), str(tmp_path / "kills"), "--kills", KILLS, "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{KILLS} kills" in done.stdout

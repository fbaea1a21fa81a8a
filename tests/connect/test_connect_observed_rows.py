"""Whoever observes rows of a Connect session is told of them when they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from observed_rows import WAYS, play

pytestmark = pytest.mark.connect


@pytest.mark.parametrize("way", WAYS)
def test_who_observes_rows_is_told(connect, tmp_path: Path, way: str) -> None:
    play(connect, tmp_path, WAYS[way])

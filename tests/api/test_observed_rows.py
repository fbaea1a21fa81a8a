"""Whoever observes rows (`df.observe`) is told of them when they are written, by whichever session and writer."""

from __future__ import annotations

from pathlib import Path

import pytest
from observed_rows import WAYS, play, play_refused

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("way", WAYS)
def test_who_observes_rows_is_told(spark, tmp_path: Path, way: str) -> None:
    play(spark, tmp_path, WAYS[way])


def test_who_observes_a_job_that_fails_does_not_wait_for_ever(spark, tmp_path: Path) -> None:
    play_refused(spark, tmp_path)

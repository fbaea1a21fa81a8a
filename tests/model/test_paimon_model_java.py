"""The same sequences on Paimon tables by Alluvium without Spark and by Paimon's Java in turns; Java reads what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from reference_engine import NEEDS_PAIMON

from model.paimon.engines import JavaEngine
from model.paimon.python_engine import PaimonPython
from model.player import Counts, Engine, make_sequence, play

pytestmark = NEEDS_PAIMON
STEPS = 12


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, Engine]]:
    """One JVM for all sequences."""
    java = JavaEngine()
    yield {"python": PaimonPython(), "java": java}
    java.close()


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_random_verbs_by_java_in_turns(engines: dict[str, Engine], tmp_path: Path, seed: int) -> None:
    counts = Counts()
    sequence = make_sequence(seed, list(engines), STEPS, format="paimon")
    play(sequence, engines, tmp_path, counts, {"java": engines["java"]})
    assert counts.steps + counts.skipped == STEPS + 1
    assert any(name.startswith("java: ") for name in counts.done)

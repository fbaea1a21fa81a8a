"""The same sequences on Paimon tables by Alluvium without Spark and by Paimon's Java in turns; Java reads what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from reference_engine import NEEDS_PAIMON

from alluvium.paimon.terms.spec import SnapshotDocument
from alluvium.paimon.view import changes
from model.paimon.engines import JavaEngine
from model.paimon.python_engine import PaimonPython
from model.player import Counts, Engine, Failure, make_sequence, play

pytestmark = NEEDS_PAIMON
STEPS = 12


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, Engine]]:
    """One JVM for all sequences."""
    java = JavaEngine()
    yield {"python": PaimonPython(), "java": java}
    java.close()


#: Of a table whose changelog is looked up, of one whose first rows stay, and of one that full compactions tell of.
LOOKED_UP, FIRST, IN_FULL = 26, 356, 200


@pytest.mark.parametrize("seed", [1, 2, 3, 4, LOOKED_UP, FIRST, IN_FULL])
def test_random_verbs_by_java_in_turns(engines: dict[str, Engine], tmp_path: Path, seed: int) -> None:
    counts = Counts()
    sequence = make_sequence(seed, list(engines), STEPS, format="paimon")
    play(sequence, engines, tmp_path, counts, {"java": engines["java"]})
    assert counts.steps + counts.skipped == STEPS + 1
    assert any(name.startswith("java: ") for name in counts.done)


@pytest.mark.parametrize(("seed", "words"), [(LOOKED_UP, "changes"), (IN_FULL, "a full compaction tells nothing of")])
def test_a_changelog_that_is_read_in_part_is_caught(
    engines: dict[str, Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, words: str
) -> None:
    real = changes._list_of

    def fewer(document: SnapshotDocument, mode: str, kinds: Sequence[str]) -> str | None:
        return None if mode == "changelog" and document.id > 2 else real(document, mode, kinds)

    monkeypatch.setattr(changes, "_list_of", fewer)
    with pytest.raises(Failure, match=words):
        play(make_sequence(seed, list(engines), STEPS, format="paimon"), engines, tmp_path, Counts())

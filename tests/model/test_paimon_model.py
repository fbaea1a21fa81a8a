"""Random sequences of verbs on Paimon tables without Spark, and that the model catches each of some deliberate defects."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.paimon import engines
from model.paimon.python_engine import PaimonPython
from model.paimon.sabotage import DEFECTS
from model.player import Counts, Failure, make_sequence, play
from model.script import Script, Step
from model.state import ID, Column

ENGINES = {"python": PaimonPython()}
STEPS = 12
#: The seed whose sequence meets the defect: the first that does (`make torture FORMAT=paimon ARGS=--defects`).
MEETS = {
    "lost_remove": 2,
    "doubled_append": 1,
    "vector_off_by_one": 2,
    "stale_read": 1,
    "numbers_from_the_start": 7,
    "manifest_left_out": 1,
    "tag_forgotten": 1,
    "ids_from_the_start": 2,
    "rows_come_back": 3,
    "consumer_forgotten": 11,
}
#: Of which verbs the sequence is made, where those of all rarely meet the defect.
MADE_OF = {"consumer_forgotten": ("append", "set_consumer", "expire")}


@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 7, 22])
def test_random_verbs_do_what_the_model_says(tmp_path: Path, seed: int) -> None:
    counts = Counts()
    play(make_sequence(seed, ["python"], STEPS, format="paimon"), ENGINES, tmp_path, counts)
    assert counts.steps + counts.skipped == STEPS + 1 and counts.steps > STEPS // 2


def test_manifests_that_are_compacted_before_an_append_keep_the_schema_behind_a_rename(tmp_path: Path) -> None:
    """Seed 20014: the append comes late, behind another writer's snapshot, which has the names of the one before."""
    columns = (Column(ID, ID, "long"), Column("p", "p", "int"), Column("v", "v", "string"), Column("n", "n", "int"))
    verbs = (("append", 1), ("append", 2), ("rename_column", 3), ("append", 7))
    steps = tuple(Step(verb, "python", seed) for verb, seed in verbs)
    play(Script(1, columns, (), (), (), "python", False, steps, "paimon", (ID,)), ENGINES, tmp_path, Counts())


@pytest.mark.long
@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    DEFECTS[name](monkeypatch)
    sequence = make_sequence(MEETS[name], ["python"], STEPS, MADE_OF.get(name), format="paimon")
    with pytest.raises(Failure) as caught:
        play(sequence, ENGINES, tmp_path, Counts())
    # A defect that does not even run would be caught by anybody.
    assert not isinstance(caught.value.cause, TypeError)


def test_both_kinds_of_tables_are_played() -> None:
    made = [make_sequence(seed, ["python"], 5, format="paimon") for seed in range(1, 30)]
    assert made[0] == make_sequence(1, ["python"], 5, format="paimon")
    assert {bool(script.keys) for script in made} == {bool(script.partition) for script in made} == {True, False}


def test_who_is_not_installed_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engines.is_missing("python") is None
    monkeypatch.setattr(engines, "REFERENCE", tmp_path)
    assert "not installed" in (engines.is_missing("java") or "")
    assert "not installed" in (engines.is_missing("pypaimon") or "")

"""Random sequences of verbs without Spark, and what the model is worth: it catches each of some deliberate defects."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.engines.python_engine import PythonEngine
from model.observe import before_feed
from model.player import Counts, Failure, make_sequence, play, shrink
from model.sabotage import DEFECTS
from model.state import ID, Column, Version, World

ENGINES = {"python": PythonEngine()}
#: So many sequences catch each of the defects, and are right without them (`make torture` plays many more).
SEQUENCES, STEPS = 8, 12
#: From which seed on, where the first ones do not happen to meet the defect, which would only take time.
FIRST = {"change_row_left_out": 4, "restore_keeps_a_file": 7}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 5))
def test_random_verbs_do_what_the_model_says(tmp_path: Path, seed: int) -> None:
    counts = Counts()
    play(make_sequence(seed, ["python"], STEPS), ENGINES, tmp_path, counts)
    assert counts.steps + counts.skipped == STEPS + 1 and counts.steps > STEPS // 2


def first_caught(first: int, folder: Path) -> int | None:
    """The first of `SEQUENCES` seeds whose sequence fails."""
    for seed in range(first, first + SEQUENCES):
        try:
            play(make_sequence(seed, ["python"], STEPS), ENGINES, folder, Counts())
        except Failure:
            return seed
    return None


@pytest.mark.long
@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    DEFECTS[name](monkeypatch)
    assert first_caught(FIRST.get(name, 1), tmp_path) is not None


def test_a_failing_sequence_is_shrunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DEFECTS["lost_remove"](monkeypatch)
    with pytest.raises(Failure) as caught:
        play(make_sequence(1, ["python"], STEPS), ENGINES, tmp_path, Counts())
    least = shrink(caught.value, ENGINES, tmp_path, tries=20)
    assert least.kind == caught.value.kind
    assert len(least.sequence.steps) <= 3
    # Its calls tell what to do by hand.
    assert least.calls[0]["verb"] == "create" and len(least.calls) <= 4


def test_a_feed_goes_back_to_where_column_mapping_was_dropped() -> None:
    """Seed 20061: files before it have columns under other names, and both engines refuse the range."""
    named, feeds = {"delta.columnMapping.mode": "name"}, {"delta.enableChangeDataFeed": "true"}
    columns = (Column(ID, ID, "long"),)
    plain, mapped = Version(columns, {}, feeds), Version(columns, {}, named | feeds)
    world = World("t", versions=dict(enumerate([mapped, mapped, plain, plain])), newest=3)
    assert before_feed(world) == 2
    # Switched on it leaves names as they are.
    world.versions |= {4: mapped}
    world.newest = 4
    assert before_feed(world) == 2
    world.versions[1] = world.versions[0] = plain
    assert before_feed(world) == 0


def test_a_seed_is_a_sequence() -> None:
    assert make_sequence(5, ["python", "spark"], 30) == make_sequence(5, ["python", "spark"], 30)
    assert make_sequence(5, ["python"], 30) != make_sequence(6, ["python"], 30)

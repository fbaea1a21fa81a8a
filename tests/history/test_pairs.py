"""Two acts that are made ready on one version, then committed one after the other: each pair, in both orders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from history.acts import Act, draw
from history.judge import Judge
from history.writers.alluvium_writer import VERBS, AlluviumWriter, make_table
from history.writers.loop import done

ISOLATIONS = ("WriteSerializable", "Serializable")
#: Whose commit comes first, by verb; which verbs are refused behind it, where both are about the same rows or files.
REFUSED = {
    "append": set[str](),
    "add": {"add", "move", "collect"},
    "move": {"add", "move", "collect"},
    "stamp": {"stamp", "drop", "collect", "count", "compact"},
    "drop": {"stamp", "drop", "collect", "count", "compact"},
    "collect": {"add", "move", "stamp", "drop", "collect", "count", "compact"},
    "count": set[str](),
    "compact": {"stamp", "drop", "collect", "compact"},
    "describe": set(VERBS),
}
#: Which are played again on the strictest table, whose rows are deleted by vectors.
AGAIN = {"append", "stamp", "collect"}
#: What else is refused behind an append where it may not be put in front of it.
STRICTLY = {"stamp", "drop", "collect", "count"}


class ReadyWriter(AlluviumWriter):
    """Acts on the version that it was made at."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._base = load_snapshot(self._store)

    def _newest(self) -> Snapshot:
        return self._base


def first(verb: str) -> Act:
    return Act(1, 3, verb, a=1, b=3, amount=3, rest=1)


def second(verb: str) -> Act:
    return Act(2, 3, verb, a=1, b=2, amount=2, rest=1)


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {isolation: make_base(tmp_path_factory.mktemp("pairs"), isolation) for isolation in ISOLATIONS}


def make_base(root: Path, isolation: str) -> Path:
    vectors = "true" if isolation == "Serializable" else "false"
    make_table(str(root / "table"), {"delta.isolationLevel": isolation, "delta.enableDeletionVectors": vectors})
    writer = AlluviumWriter(str(root / "table"))
    for act in (Act(1, 1, "append", amount=7), Act(2, 1, "append", amount=7)):
        assert done(writer, act) == "done"
    (root / "notes").mkdir()
    return root


@pytest.mark.long
@pytest.mark.parametrize(
    ("isolation", "verb"),
    [*((ISOLATIONS[0], verb) for verb in sorted(VERBS)), *((ISOLATIONS[1], verb) for verb in sorted(AGAIN))],
)
def test_what_is_committed_behind_another_act_follows_from_it(
    bases: dict[str, Path], isolation: str, verb: str, tmp_path: Path
) -> None:
    refused = set()
    for behind in sorted(VERBS):
        root = tmp_path / behind
        shutil.copytree(bases[isolation], root)
        late = ReadyWriter(str(root / "table"))
        words = [done(AlluviumWriter(str(root / "table")), first(verb)), done(late, second(behind))]
        assert words[0] == "done"
        assert words[1] in ("done", "conflict")
        for act, word in zip((first(verb), second(behind)), words, strict=True):
            (root / f"notes/{act.writer}").write_text(f"+ 1\n= 1 done\n+ {act.n}\n= {act.n} {word}\n")
        verdict = Judge(root / "table", root / "notes", {1: "first", 2: "second"}).judge()
        assert verdict.problems == [], behind
        refused |= {behind} if words[1] == "conflict" else set()
    strictly = STRICTLY if isolation == "Serializable" and verb == "append" else set()
    assert refused == REFUSED[verb] | strictly


def test_an_act_follows_from_its_seed() -> None:
    drawn = [draw(7, 3, n, VERBS) for n in range(200)]
    assert drawn == [draw(7, 3, n, VERBS) for n in range(200)]
    assert {act.verb for act in drawn} == VERBS
    assert draw(8, 3, 0, frozenset({"append"})).verb == "append"

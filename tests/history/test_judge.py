"""What the judge of histories sees: a history that is right, and one defect of each kind in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alluvium.delta.commit.port import DeltaPort
from history.acts import Act, act_of, effect, first_rows
from history.judge import Judge, Verdict
from history.writers.alluvium_writer import AlluviumWriter, make_table
from history.writers.loop import done

ACTS = (
    Act(1, 1, "append", amount=3, rest=1),
    Act(2, 1, "append", amount=2),
    Act(1, 2, "add", a=1, amount=5),
    Act(2, 2, "move", a=1, b=3, amount=7),
    Act(1, 3, "stamp", rest=0, amount=2),
    Act(2, 3, "count", rest=1),
    Act(2, 4, "append"),
    Act(1, 4, "compact"),
    Act(2, 5, "collect", a=4, rest=1),
    Act(1, 5, "describe"),
    Act(2, 6, "drop", rest=0),
)


def play(root: Path, acts: tuple[Act, ...], properties: dict[str, str]) -> None:
    """Acts one after the other, noted as writers note them."""
    make_table(str(root / "table"), properties)
    (root / "notes").mkdir()
    writer = AlluviumWriter(str(root / "table"))
    for act in acts:
        with open(root / "notes" / str(act.writer), "a") as file:
            file.write(f"+ {act.n}\n= {act.n} {done(writer, act)}\n")


@pytest.fixture(scope="module", params=[{}, {"delta.enableDeletionVectors": "true"}], ids=["copied", "vectors"])
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("history")
    play(root, ACTS, {"delta.checkpointInterval": "4", **request.param})
    return root


def judged(root: Path) -> Verdict:
    return Judge(root / "table", root / "notes", {1: "python", 2: "python"}).judge()


def test_a_history_that_is_right(history: Path) -> None:
    verdict = judged(history)
    assert verdict.problems == []
    assert verdict.commits == {f"python: {act.verb}": 1 for act in ACTS} | {"python: append": 3}
    assert verdict.told == {"python: done": len(ACTS)}
    assert (verdict.reordered, verdict.rebased) == (0, 0)


Actions = list[dict[str, Any]]
#: Ends the name of a file that stands a second time.
COPY = ".copy"


def lost_remove(actions: Actions) -> None:
    del actions[next(n for n, action in enumerate(actions) if "remove" in action)]


def doubled_append(actions: Actions) -> None:
    file = next(action for action in actions if "add" in action)
    actions.append({"add": {**file["add"], "path": file["add"]["path"] + COPY}})


def false_claim(actions: Actions) -> None:
    actions[0]["commitInfo"]["readVersion"] = 1


def another_act(actions: Actions) -> None:
    note = act_of(actions[0]["commitInfo"]["userMetadata"])
    actions[0]["commitInfo"]["userMetadata"] = Act(2, 9, note.verb, note.a, note.b, note.amount + 1, note.rest).note


def said_twice(actions: Actions) -> None:
    actions[0]["commitInfo"]["userMetadata"] = ACTS[0].note


def nobodys(actions: Actions) -> None:
    del actions[0]["commitInfo"]["userMetadata"]


def false_count(actions: Actions) -> None:
    add = next(action["add"] for action in actions if "add" in action)
    add["stats"] = json.dumps({**json.loads(add["stats"]), "numRecords": 9})


@pytest.mark.parametrize(
    ("version", "damage", "told"),
    [
        (3, lost_remove, "stands twice"),
        (2, doubled_append, "stands twice"),
        (9, false_claim, "does not follow from version 1"),
        (3, another_act, "does not follow from version 2"),
        (2, said_twice, "stands at version 1 already"),
        (4, nobodys, "nobody says so"),
        (6, false_count, "numRecords"),
        (8, lost_remove, "stands twice"),
    ],
)
def test_each_defect_is_seen(
    history: Path, tmp_path: Path, version: int, damage: Callable[[Actions], None], told: str
) -> None:
    root = tmp_path / "damaged"
    shutil.copytree(history, root)
    file = root / f"table/_delta_log/{version:020}.json"
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    damage(actions)
    file.write_text("\n".join(map(json.dumps, actions)))
    for add in (action["add"] for action in actions if "add" in action):
        if not (root / "table" / add["path"]).exists():
            shutil.copy(root / "table" / add["path"].removesuffix(COPY), root / "table" / add["path"])
    for beside in file.parent.glob("*.c*"):
        beside.unlink()
    assert told in "\n".join(judged(root).problems)


def test_what_writers_say_is_compared(history: Path, tmp_path: Path) -> None:
    root = tmp_path / "noted"
    shutil.copytree(history, root)
    with open(root / "notes/1", "a") as file:
        file.write("+ 6\n= 6 done\n+ 3\n= 3 conflict\n+ 8\n= 8 error: Oops: it\n+ 7")
    problems = judged(root).problems
    assert len(problems) == 3
    assert "act 8 of writer 1 (python): error: Oops: it" in problems
    assert "act 6 of writer 1 (python) was done, and is lost" in problems
    assert "act 3 of writer 1 (python): conflict, but version 5" in problems


def test_what_is_committed_without_a_row_may_be_called_nothing(history: Path, tmp_path: Path) -> None:
    """As delta-spark does with a statement that meets no row."""
    root = tmp_path / "idle"
    shutil.copytree(history, root)
    with open(root / "notes/1", "a") as file:
        file.write("+ 5\n= 5 nothing\n")
    assert judged(root).problems == []
    with open(root / "notes/2", "a") as file:
        file.write("+ 6\n= 6 nothing\n")
    assert judged(root).problems == ["act 6 of writer 2 (python): nothing, but version 11"]


def test_checkpoints_and_checksums_are_compared(history: Path, tmp_path: Path) -> None:
    root = tmp_path / "beside"
    shutil.copytree(history, root)
    log = root / "table/_delta_log"
    shutil.copy(log / f"{4:020}.checkpoint.parquet", log / f"{8:020}.checkpoint.parquet")
    assert "version 8: the checkpoint has" in judged(root).problems[0]
    (log / f"{8:020}.checkpoint.parquet").unlink()
    shutil.copy(log / f"{3:020}.crc", log / f"{6:020}.crc")
    assert "version 6: the checksum tells" in judged(root).problems[0]


class LateWriter(AlluviumWriter):
    """Between what it reads and its commit another act stands."""

    def __init__(self, url: str, between: Act) -> None:
        super().__init__(url)
        self._between, self._other = between, AlluviumWriter(url)

    def _count(self, act: Act, snapshot: Any, target: Any) -> None:
        self._other(self._between)
        super()._count(act, snapshot, target)

    def _add(self, act: Act, snapshot: Any, target: Any) -> None:
        self._other(self._between)
        super()._add(act, snapshot, target)

    _stamp = _add


@pytest.mark.parametrize(
    ("isolation", "told", "reordered"), [("WriteSerializable", "done", 1), ("Serializable", "conflict", 0)]
)
def test_a_count_beside_an_append(tmp_path: Path, isolation: str, told: str, reordered: int) -> None:
    play(tmp_path, (), {"delta.isolationLevel": isolation})
    between, count = Act(1, 1, "append", amount=3, rest=1), Act(2, 1, "count", rest=1)
    word = done(LateWriter(str(tmp_path / "table"), between), count)
    (tmp_path / "notes/1").write_text("+ 1\n= 1 done\n")
    (tmp_path / "notes/2").write_text(f"+ 1\n= 1 {word}\n")
    assert word == told
    verdict = judged(tmp_path)
    assert (verdict.problems, verdict.reordered) == ([], reordered)


@pytest.mark.parametrize("late", [Act(2, 1, "add", a=1), Act(2, 1, "count", rest=1)], ids=lambda act: act.verb)
def test_without_rules_of_conflict_the_judge_objects(
    late: Act, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The defect that all of this is for."""
    monkeypatch.setattr(DeltaPort, "conflicts", lambda *_: ())
    begin = (Act(1, 1, "append", amount=3, rest=1),)
    play(tmp_path, begin, {})
    between = Act(1, 2, "add", a=1) if late.verb == "add" else Act(1, 2, "drop", rest=1)
    assert done(LateWriter(str(tmp_path / "table"), between), late) == "done"
    assert judged(tmp_path).problems


def test_an_effect_is_a_function_of_the_state() -> None:
    state = {**first_rows(), ("e", 5): (10, "1:1"), ("e", 6): (20, "1:1")}
    assert effect(Act(3, 4, "collect", a=1, rest=0), state) == {("e", 5): None, ("a", 1): (1010, "3:4")}
    assert effect(Act(3, 4, "collect", a=1, rest=3), state) == {}
    assert effect(Act(3, 4, "count", rest=1), state) == {("c", 300_000_040): (1, "3:4")}

"""What the suite notices: mutants.py [ROOM ...] makes small changes of the code, one at a time, and runs the tests.

    .venv/bin/python scripts/mutants.py --each 20 --seed 7            twenty changes of each room, drawn by a seed
    .venv/bin/python scripts/mutants.py paimon --each 40 --seed 7     of one room
    .venv/bin/python scripts/mutants.py delta/upkeep paimon/write     of rooms within a room
    .venv/bin/python scripts/mutants.py --at paimon/commit/assemble.py:134   every change of a line
    .venv/bin/python scripts/mutants.py --seed 7 --map m.json --verdicts v.json --minutes 8   goes on where it ended

A change (`small_changes.py`) is made in a copy of `src`; the sources stay as they are. Its judges are the tests without
a JVM that call the changed function (`callers.py`), the nearest first, of those the quick ones; the first failure ends
it, if the same tests pass without the change. Who calls what is asked once (`--map FILE` keeps the answers for the next
call); files that fail without a change judge nothing, and are named. A first round tries each change with `--patience`
seconds of tests, a second one tries those that are left with all the others. What survives both is noticed by no test
without a JVM, and is to be judged by hand: some changes make no difference to anybody.

Why no library: mutmut (3.8) rewrites modules into trampolines that live beside the sources and runs the project's tests
in its own layout; cosmic-ray (8.7) runs one command for all changes and starts an interpreter for each, which is two
seconds of imports here; neither draws a sample by rooms, nor knows Arrow's functions, in which most comparisons of this
project are written. Here each run forks from a process that has imported the libraries.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from callers import Callers, Test, find_callers, judges
from changed_copy import NO_TESTS, PACKAGE, ROOT, Copy, place_of_tables
from small_changes import Change, changes_of

#: Rooms without a JVM; what else stands above them (commands, api, spark, cli) is tested with Spark.
ROOMS = ("delta", "paimon", "expr", "codecs", "commit", "storage", "portable", "plan", "schema", "commands/rows_here")
#: What only a JVM can run stands in such a room all the same.
NEEDS_JVM = frozenset({"storage/stores/hadoop.py"})
#: Of tests that are run together: most changes are noticed by the first few.
_FIRST_SECONDS, _MOST_SECONDS, _FIRST_FILES = 2.0, 40.0, 4
#: What a changed loop may take before it is taken for endless, beside four times what its tests do.
_SECONDS = 30


# --- judgement ------------------------------------------------------------------------------------------------------


class Chosen:
    """A plugin of pytest: some tests of the files that are collected."""

    def __init__(self, tests: Sequence[Test]) -> None:
        self._names = {test.name for test in tests}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._names]


def judged_by(change: Change, callers: Callers) -> list[Test]:
    """The tests that call the changed function: the nearest first, of those the quick ones."""
    if change.function:
        reaching = callers.functions.get(f"{change.path}:{change.function}", [])
    else:
        # What a module says when it is imported: who calls it, or whoever imports it by name.
        name = f"alluvium.{change.path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
        modules = [str(path.relative_to(ROOT / PACKAGE)) for path in (ROOT / PACKAGE).rglob("*.py")]
        importing = [path for path in modules if name in (ROOT / PACKAGE / path).read_text()]
        files = {file for file in {test.file for test in callers.tests} if name in (ROOT / file).read_text()}
        reaching = callers.of_modules([change.path, *importing])
        reaching = list(dict.fromkeys([*reaching, *(test for test in callers.tests if test.file in files)]))
    return sorted(reaching, key=lambda test: (distance(change.path, test.file), test.seconds))


def distance(module: str, file: str) -> int:
    """How far tests are from a module: 0 mirrors it, then its folder, its room, others."""
    folder, stem = str(Path(module).parent), Path(module).stem
    own = str(Path(file).parent.relative_to("tests"))
    if own.split("/")[0] != module.split("/")[0]:
        return 3
    if Path(file).stem in (f"test_{stem}", f"test_{stem}s"):
        return 0
    return 1 if own == folder else 2


def portions(tests: Sequence[Test]) -> Iterator[list[Test]]:
    """The tests in the same order: a few first, which most changes do not outlive, then twice as many, and so on."""
    seconds, most_files = _FIRST_SECONDS, _FIRST_FILES
    portion: list[Test] = []
    files: set[str] = set()
    for test in tests:
        if seconds <= 0 or len(files | {test.file}) > most_files:
            yield portion
            portion, files, most_files = [], set(), 2 * most_files
            seconds = min(_FIRST_SECONDS * most_files / _FIRST_FILES, _MOST_SECONDS)
        portion.append(test)
        files.add(test.file)
        seconds -= test.seconds
    if portion:
        yield portion


class Judge:
    """Tries changes against the tests that call what is changed.

    Args:
        place: Where a change is made.
        callers: Who calls what.
        patience: Seconds of tests of the first round.
    """

    def __init__(self, place: Copy, callers: Callers, patience: float) -> None:
        self._place, self._callers, self._patience = place, callers, patience

    def verdict(self, change: Change, *, second: bool) -> str:
        """Of the first round, or of the second one.

        Returns:
            `caught`; `endless`: caught, too; `UNREACHED`: no test calls the function; `LEFT`: for the second round;
            `SURVIVED` both.
        """
        rounds: tuple[list[list[Test]], list[list[Test]]] = ([], [])
        spent = 0.0
        for portion in portions(judged_by(change, self._callers)):
            rounds[spent >= self._patience].append(portion)
            spent += sum(test.seconds for test in portion)
        source = (ROOT / PACKAGE / change.path).read_bytes()
        changed = source[: change.start] + change.text.encode() + source[change.end :]
        for tests in rounds[second]:
            while tests:
                self._place.put(change.path, changed)
                code, output = self._run(tests)
                self._place.restore(change.path)
                if code in (0, NO_TESTS):
                    break
                failed = [test for test in tests if f"FAILED {test.name}" in output] or tests
                if self._run(failed)[0] == 0:
                    return "endless" if code is None else "caught"
                # Who fails without the change as well does not judge it.
                tests = [test for test in tests if test not in failed]
        if not any(rounds):
            return "UNREACHED"
        return "LEFT" if rounds[1] and not second else "SURVIVED"

    def _run(self, tests: Sequence[Test]) -> tuple[int | None, str]:
        usual = sum(test.seconds for test in tests)
        files = list(dict.fromkeys(test.file for test in tests))
        return self._place.run(files, _SECONDS + 4 * usual, Chosen(tests))


def drawn(rooms: Sequence[str], each: int, seed: int) -> list[Change]:
    """Some changes of each room: a place by lot, then what is done there."""
    errors = error_names()
    found = []
    for room in rooms:
        places: list[list[Change]] = []
        for path in sorted((ROOT / PACKAGE / room).rglob("*.py")):
            name = str(path.relative_to(ROOT / PACKAGE))
            places += [] if name in NEEDS_JVM else changes_of(name, path.read_bytes(), errors)
        lot = random.Random(f"{seed} {room}")
        found += [lot.choice(options) for options in lot.sample(places, min(each, len(places)))]
    return found


def in_turn(changes: Sequence[Change]) -> list[Change]:
    """One of each room by turns."""
    count: collections.Counter[str] = collections.Counter()
    turns = []
    for change in changes:
        turns.append(count[change.room])
        count[change.room] += 1
    return [change for _, change in sorted(zip(turns, changes, strict=True), key=lambda pair: pair[0])]


def at_lines(lines: Sequence[str]) -> list[Change]:
    """Every change of some lines (`path:line`)."""
    found = []
    for line in lines:
        path, _, number = line.rpartition(":")
        places = changes_of(path, (ROOT / PACKAGE / path).read_bytes(), error_names())
        found += [change for options in places for change in options if change.line == int(number)]
    return found


def error_names() -> frozenset[str]:
    tree = ast.parse((ROOT / PACKAGE / "errors.py").read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name != "Conflict")


def is_room(name: str) -> bool:
    """Whether changes can be drawn of it: one of `ROOMS`, or a folder within."""
    return any(f"{name}/".startswith(f"{room}/") for room in ROOMS) and (ROOT / PACKAGE / name).is_dir()


def told(change: Change) -> str:
    source = (ROOT / PACKAGE / change.path).read_bytes()
    before = " ".join(source[change.start : change.end].decode().split())
    return f"{change.path}:{change.line}  {change.kind}: {before[:90]}  ->  {change.text[:90]}"


def table(verdicts: Sequence[tuple[Change, str]], rooms: Sequence[str]) -> str:
    lines = [f"{'room':<20}  changes  caught  endless  survived  unreached  noticed"]
    asked = {change: next((r for r in rooms if change.path.startswith(f"{r}/")), change.room) for change, _ in verdicts}
    rows = collections.Counter((asked[change], verdict) for change, verdict in verdicts)
    for room in (*dict.fromkeys(asked.values()), "all"):
        verdict = {v: sum(n for (r, w), n in rows.items() if w == v and room in (r, "all"))
                   for v in ("caught", "endless", "SURVIVED", "UNREACHED")}  # fmt: skip
        count = sum(verdict.values())
        share = (verdict["caught"] + verdict["endless"]) / count if count else 1
        numbers = "  ".join(f"{n:>{width}}" for n, width in zip(verdict.values(), (6, 7, 8, 9), strict=True))
        lines.append(f"{room:<20}  {count:>7}  {numbers}  {share:>6.0%}")
    return "\n".join(lines)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rooms", nargs="*", help=f"of {', '.join(ROOMS)}, or folders within; all by default")
    parser.add_argument("--each", type=int, default=10, help="how many changes of each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at", action="append", default=[], metavar="PATH:LINE", help="every change of a line")
    parser.add_argument("--map", type=Path, metavar="FILE", help="who calls what: read where it is there, else written")
    parser.add_argument(
        "--by", action="append", default=[], metavar="FOLDER", help="tests of these folders alone judge"
    )
    parser.add_argument(
        "--verdicts", type=Path, metavar="FILE", help="what was judged, which the next call goes on from"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="ends after so long, room by room in turn")
    parser.add_argument("--patience", type=float, default=20, metavar="SECONDS", help="of tests in the first round")
    parser.add_argument("--list", action="store_true", help="show the changes and run nothing")
    given = parser.parse_args(words)
    until = time.monotonic() + 60 * given.minutes
    if unknown := [room for room in given.rooms if not is_room(room)]:
        parser.error(f"no room without a JVM: {', '.join(unknown)}")
    changes = at_lines(given.at) if given.at else drawn(given.rooms or ROOMS, given.each, given.seed)
    if given.list:
        print("\n".join(map(told, changes)))
        return 0
    with tempfile.TemporaryDirectory(prefix="alluvium-mutants-", dir=place_of_tables()) as scratch:
        callers = find_callers(judges(given.by or ["tests"]), Path(scratch) / "noting", given.map)
        place = Copy(Path(scratch) / "changed")
        judge = Judge(place, callers, given.patience)
        kept = given.verdicts
        known: dict[str, str] = json.loads(kept.read_text()) if kept and kept.exists() else {}
        for second in (False, True):
            for change in in_turn(changes):
                if time.monotonic() > until or known.get(change.key) != ("LEFT" if second else None):
                    continue
                known[change.key] = verdict = judge.verdict(change, second=second)
                print(f"{verdict:<9}  {told(change)}", flush=True)
                if kept:
                    kept.write_text(json.dumps(known, indent=1))
    verdicts = [(change, known[change.key]) for change in changes if known.get(change.key, "LEFT") != "LEFT"]
    print(f"\n{table(verdicts, given.rooms)}\n{len(changes) - len(verdicts)} are still to be judged", flush=True)
    return int(any(verdict.isupper() for _, verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What the suite notices: mutants.py [ROOM ...] makes small changes of the code, one at a time, and runs the tests.

    .venv/bin/python scripts/mutants.py --each 20 --seed 7            twenty changes of each room, drawn by a seed
    .venv/bin/python scripts/mutants.py paimon --each 40 --seed 7     of one room
    .venv/bin/python scripts/mutants.py delta/upkeep paimon/write     of rooms within a room
    .venv/bin/python scripts/mutants.py --at paimon/commit/assemble.py:134   every change of a line
    .venv/bin/python scripts/mutants.py --seed 7 --map m.json --verdicts v.json --minutes 8   goes on where it ended

A change (`small_changes.py`) is made in a copy of `src`; the sources stay as they are. Its judges are tests without a
JVM: first the files of tests that mirror the module, then those of its room that call the changed function, then all
others that do. The first failure ends it. Who calls what is asked once, by running each file of tests alone with every
function taking note (`--map FILE` keeps the answers for the next call); files that fail without a change judge nothing,
and are named. What survives is to be judged by hand: some changes make no difference to anybody.

Why no library: mutmut (3.8) rewrites modules into trampolines that live beside the sources and runs the project's tests
in its own layout; cosmic-ray (8.7) runs one command for all changes and starts an interpreter for each, which is two
seconds of imports here; neither draws a sample by rooms, nor knows Arrow's functions, in which most comparisons of this
project are written. Here each run forks from a process that has imported the libraries.
"""

from __future__ import annotations

import argparse
import ast
import collections
import compileall
import hashlib
import json
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro  # noqa: F401 - imported before the fork
import hypothesis.strategies  # noqa: F401 - imported before the fork
import msgspec  # noqa: F401 - imported before the fork
import numpy as np  # noqa: F401 - imported before the fork
import pyarrow.compute
import pyarrow.dataset
import pyarrow.orc
import pyarrow.parquet  # noqa: F401 - imported before the fork
import pytest
import sqlglot  # noqa: F401 - imported before the fork
from hypothesis import settings

from small_changes import Change, changes_of

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/alluvium")
#: Rooms without a JVM; what else stands above them (commands, api, spark, cli) is tested with Spark.
ROOMS = ("delta", "paimon", "expr", "codecs", "commit", "storage", "portable", "plan", "schema", "commands/rows_here")
#: What only a JVM can run stands in such a room all the same.
NEEDS_JVM = frozenset({"storage/stores/hadoop.py"})
#: The tests of `make test-fast`; those of its text and layout judge the sources, not the copy.
MARKS = "not spark and not connect and not cluster and not interop and not conformance and not slow"
NO_JUDGES = ("architecture", "docs", "interop", "spark", "connect", "cluster", "conformance", "conformance_paimon")
#: pytest: nothing was collected.
NO_TESTS = 5
#: Of tests that are run together: what notices a change often stands in the first of them.
_AT_ONCE_SECONDS = 10
#: What a changed loop may take before it is taken for endless, and what it may ask of memory.
SECONDS, MEMORY_BYTES = 60, 12 << 30


# --- the copy, and runs of tests in it -----------------------------------------------------------------------------


class Copy:
    """A copy of the sources in which one change stands at a time.

    Args:
        folder: Where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changes = 0
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))

    def compile(self) -> None:
        """Keeps the compiled forms of unchanged modules; runs write none."""
        compileall.compile_dir(self._folder / "src", quiet=1)

    def put(self, path: str, source: bytes) -> None:
        """Changes a module; its compiled form is told by the time."""
        place = self._folder / PACKAGE / path
        self._changes += 1
        place.write_bytes(source)
        os.utime(place, (self._changes, self._changes))

    def restore(self, path: str) -> None:
        origin = ROOT / PACKAGE / path
        shutil.copy2(origin, self._folder / PACKAGE / path)

    def run(self, files: Sequence[str], seconds: float, plugin: object = None) -> tuple[int | None, str]:
        """pytest's exit code and its output; None: it took too long."""
        output = self._folder / "output.txt"
        child = os.fork()
        if not child:
            self._be_pytest(files, output, [] if plugin is None else [plugin])
        code = wait_for(child, seconds)
        return code, output.read_text(errors="replace") if output.exists() else ""

    def _be_pytest(self, files: Sequence[str], output: Path, plugins: list[object]) -> None:
        """In the child; never returns."""
        code = 99
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            sink = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(sink, stream)
            os.chdir(ROOT)
            sys.dont_write_bytecode = True
            # The project's root as well, which `python -m` puts there: processes of tests find their modules by it.
            sys.path[:0] = [str(self._folder / "src"), str(ROOT)]
            os.environ["PYTHONPATH"] = str(self._folder / "src")
            # Examples that break a changed source are none for the real one.
            os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(self._folder / "hypothesis")
            fixed = ("-x", "-q", "-p", "no:cacheprovider", "-m", MARKS, "--hypothesis-seed=0", "--tb=line")
            code = int(pytest.main([*fixed, f"--basetemp={self._folder / 'tmp'}", *files], [*plugins, Unshrunk()]))
            sys.stdout.flush()
        finally:
            os._exit(code)


def wait_for(child: int, seconds: float) -> int | None:
    """The exit code of a child; None: it was ended, with those it had started."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


# --- who calls what --------------------------------------------------------------------------------------------------

#: Written at the top of each module of the copy; the set is one for the process.
_NOTE = "import sys as _sys; _was_called = _sys.__dict__.setdefault('_alluvium_reached', set())"


def with_notes(path: str, source: str) -> bytes:
    """The module, whose functions take note of being called, under the lines where they stand in the original."""
    tree = ast.parse(source)
    lines = source.encode().splitlines(keepends=True)
    starts: dict[int, list[tuple[int, str]]] = collections.defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]
            number = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))])
            starts[number].append((first.col_offset, f"_was_called.add('{path}:{node.lineno}')"))
    body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
    rest = body[1:] if ast.get_docstring(tree) is not None else body
    if not rest:
        return source.encode()
    decorators = getattr(rest[0], "decorator_list", [])
    top = min([rest[0].lineno, *(d.lineno for d in decorators)])
    for number, notes in starts.items():
        for column, note in notes:
            line = lines[number - 1]
            # A compound statement cannot follow a semicolon: notes get a line of their own where there is one.
            between = b"; " if line[:column].strip() else b"\n" + line[:column]
            lines[number - 1] = line[:column] + note.encode() + between + line[column:]
    lines[top - 1] = _NOTE.encode() + b"\n" + lines[top - 1]
    return b"".join(lines)


class Reached:
    """A plugin of pytest that writes down, at the end, which functions were called."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def pytest_sessionfinish(self) -> None:
        self._place.write_text(json.dumps(sorted(sys.__dict__.get("_alluvium_reached", ()))))


class Unshrunk:
    """A plugin of pytest: an example that fails is enough, however large. To make it small takes up to five minutes."""

    def pytest_sessionstart(self) -> None:
        usual = settings()
        settings.register_profile(
            "unshrunk", usual, phases=[p for p in usual.phases if p.name not in ("shrink", "explain")]
        )
        settings.load_profile("unshrunk")


def judges(folders: Sequence[str]) -> list[str]:
    """All files of tests that may judge, of some folders."""
    files = (path.relative_to(ROOT) for folder in folders for path in sorted((ROOT / folder).rglob("test_*.py")))
    return [str(path) for path in files if path.parts[1] not in NO_JUDGES]


@dataclass(frozen=True)
class Callers:
    """Of each function (`path:line`) the files of tests that call it; of each file how long it takes."""

    files: dict[str, list[str]]
    seconds: dict[str, float]


def digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()


def find_callers(tests: Sequence[str], folder: Path, kept: Path | None) -> Callers:
    """Runs each file of tests alone, in a copy whose functions take note.

    Args:
        tests: The files.
        folder: For the copy.
        kept: The answers of earlier calls, which gets those of this one at once: of files that were changed since.
    """
    known: dict[str, Any] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    noting = Copy(folder)
    modules = sorted((ROOT / PACKAGE).rglob("*.py"))
    for path in modules:
        name = path.relative_to(ROOT / PACKAGE)
        (folder / PACKAGE / name).write_bytes(with_notes(str(name), path.read_text()))
    noting.compile()
    sources = digest(*modules)
    found = Callers(collections.defaultdict(list), {})
    for test in tests:
        key = [sources, digest(ROOT / test)]
        if known.get(test, {}).get("key") != key:
            known[test] = {"key": key, **asked(noting, test, folder / "reached.json")}
            if kept:
                kept.with_suffix(".new").write_text(json.dumps(known))
                kept.with_suffix(".new").replace(kept)
        if known[test]["functions"]:
            found.seconds[test] = known[test]["seconds"]
        for function in known[test]["functions"]:
            found.files[function].append(test)
    seconds = sum(found.seconds.values())
    print(f"{len(found.seconds)} files of tests, {seconds:.0f} s, call {len(found.files)} functions", flush=True)
    return found


def asked(noting: Copy, test: str, place: Path) -> dict[str, Any]:
    """What one file of tests calls, and how long it takes; nothing, if it fails."""
    started = time.monotonic()
    place.write_text("[]")
    code, output = noting.run([test], 600, Reached(place))
    if code not in (0, NO_TESTS):
        print(f"fails alone, and judges nothing: {test}\n{output[-1500:]}", flush=True)
    functions = json.loads(place.read_text()) if code == 0 else []
    return {"seconds": time.monotonic() - started, "functions": functions}


# --- judgement -------------------------------------------------------------------------------------------------------


def judged_by(change: Change, callers: Callers) -> list[list[str]]:
    """The files that mirror the module, and the others: of the room first, the quick ones first; a few, then more."""
    stem = Path(change.path).stem
    reaching = callers.files.get(f"{change.path}:{change.function}", []) if change.function else list(callers.seconds)
    room = f"tests/{change.room}/"
    if not change.function:
        # What a module says when it is imported: its room is asked, and whoever imports it by name.
        name = f"alluvium.{change.path.removesuffix('.py').replace('/', '.')}"
        reaching = [f for f in reaching if f.startswith(room) or name in (ROOT / f).read_text()]
    ordered = sorted(reaching, key=lambda f: (not f.startswith(room), callers.seconds[f]))
    mirrored = [f for f in ordered if f.startswith(room) and Path(f).stem in (f"test_{stem}", f"test_{stem}s")]
    groups, others = [mirrored], [f for f in ordered if f not in mirrored]
    while others:
        # To collect them all takes longer than most changes live.
        count = 3 * len(groups)
        groups.append(others[:count])
        others = others[count:]
    return [group for group in groups if group]


def in_parts(groups: Sequence[list[str]], callers: Callers) -> Iterator[list[str]]:
    """The same files in the same order, so many at once as take no longer than `_AT_ONCE_SECONDS`."""
    for group in groups:
        part: list[str] = []
        for file in group:
            if part and sum(callers.seconds[f] for f in (*part, file)) > _AT_ONCE_SECONDS:
                yield part
                part = []
            part.append(file)
        yield part


def judge(change: Change, place: Copy, callers: Callers, patience: float = math.inf) -> str:
    """`caught`, `endless` (caught, too), `SURVIVED`, or `UNREACHED`: no test calls the function.

    Args:
        change: What is changed.
        place: Where.
        callers: Who calls what.
        patience: Seconds of tests after which a change that none of them has noticed is taken for survived.
    """
    begun = time.monotonic()
    source = (ROOT / PACKAGE / change.path).read_bytes()
    place.put(change.path, source[: change.start] + change.text.encode() + source[change.end :])
    try:
        found = "UNREACHED"
        for files in in_parts(judged_by(change, callers), callers):
            usual = sum(callers.seconds[file] for file in files)
            code, _ = place.run(files, SECONDS + 4 * usual)
            if code is None:
                return "endless"
            if code not in (0, NO_TESTS):
                return "caught"
            found = "SURVIVED"
            if time.monotonic() - begun > patience:
                break
        return found
    finally:
        place.restore(change.path)


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
    parser.add_argument("--patience", type=float, default=math.inf, metavar="SECONDS", help="of tests for a change")
    parser.add_argument("--list", action="store_true", help="show the changes and run nothing")
    given = parser.parse_args(words)
    until = time.monotonic() + 60 * given.minutes
    if unknown := [room for room in given.rooms if not is_room(room)]:
        parser.error(f"no room without a JVM: {', '.join(unknown)}")
    changes = at_lines(given.at) if given.at else drawn(given.rooms or ROOMS, given.each, given.seed)
    if given.list:
        print("\n".join(map(told, changes)))
        return 0
    with tempfile.TemporaryDirectory(prefix="alluvium-mutants-") as scratch:
        callers = find_callers(judges(given.by or ["tests"]), Path(scratch) / "noting", given.map)
        place = Copy(Path(scratch) / "changed")
        place.compile()
        kept = given.verdicts
        known: dict[str, str] = json.loads(kept.read_text()) if kept and kept.exists() else {}
        for change in in_turn(changes):
            if change.key in known:
                continue
            if time.monotonic() > until:
                break
            known[change.key] = verdict = judge(change, place, callers, given.patience)
            print(f"{verdict:<9}  {told(change)}", flush=True)
            if kept:
                kept.write_text(json.dumps(known, indent=1))
    verdicts = [(change, known[change.key]) for change in changes if change.key in known]
    print(f"\n{table(verdicts, given.rooms)}\n{len(changes) - len(verdicts)} are still to be judged", flush=True)
    return int(any(verdict.isupper() for _, verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The whole test suite in phases: test.py [PHASE ...] [PATH ...] (`make test`). Runs inside `.venv`.

Paths below `tests/` choose a room: the phases (those named, or all) then play nothing but what they have there.

Two phases at a time, each on its own share of the cores: where a process and its JVM may run on two, each of the
thousands of calls between them wakes the other core, and takes a virtual machine four times as long (220 us against
59). Every phase runs even if an earlier one failed, so that one run tells everything; what a phase prints is shown when
it ends, the summary and the totals of all stand at the end. The exit code is 1 if any failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEWEST = ROOT / ".venv" / "bin"
OLDEST = ROOT / ".venv-spark40" / "bin"

#: Whether each phase plays every variant of each test.
PLAYS_ALL = os.environ.get("ALLUVIUM_VARIANTS") == "all"
#: Whose variants the newest and the oldest Spark share. Tests without any are played by the newest, and where they ask
#: for what users see, every third by the oldest: what is about Spark itself stands in the other folder.
BY_SPARK = ("tests/api", "tests/spark")
THIRD_BY_OLDEST = ("tests/api",)

#: pytest finds its settings, and names tests, as if it stood in the project's folder.
AS_FROM_ROOT = ("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT))
#: pytest: "no tests were collected", which is no failure of a phase whose tests do not exist.
NO_TESTS = 5

#: Where compiled modules are kept from run to run. Half of a start of pytest is compiling where a machine says
#: PYTHONDONTWRITEBYTECODE; nothing of it lies beside the sources.
COMPILED = ROOT / ".venv" / "compiled"
#: What the JVMs of each environment map instead of loading it class by class (`class_archive.py`).
CLASSES = {NEWEST: COMPILED / "spark-newest.jsa", OLDEST: COMPILED / "spark-oldest.jsa"}
#: A file system in memory, and how much must be free there: an fsync takes milliseconds on a disk, and the tests
#: make tens of thousands of small tables (400 MB without a JVM).
MEMORY, MEMORY_BYTES = Path("/dev/shm"), 4 << 30
#: One process of pytest a core, up to so many; each collects all tests, so that more of them soon save nothing.
MOST_WORKERS = 8


@dataclass(frozen=True)
class Phase:
    """One command of the suite.

    Attributes:
        name: What it is called on the command line and in the summary.
        command: What runs, from the project's root.
        paths: What of the tests it plays; none: all.
        is_pytest: Whether its results can be counted by JUnit XML.
        spreads: Whether a process on each core of its lane shares its tests.
    """

    name: str
    command: tuple[str, ...]
    paths: tuple[str, ...] = ()
    is_pytest: bool = False
    spreads: bool = False

    def within(self, rooms: Sequence[str]) -> Phase | None:
        """What it plays of some rooms; None: nothing."""
        own = [Path(path) for path in self.paths]
        chosen = [
            str(max(path, room, key=lambda p: len(p.parts)))
            for room in map(Path, rooms)
            for path in own or [room]
            if path.is_relative_to(room) or room.is_relative_to(path)
        ]
        return replace(self, paths=tuple(chosen)) if chosen and self.is_pytest else None


@dataclass(frozen=True)
class Outcome:
    """How a phase went; `counts` are passed, failed (errors too), skipped; `modules` are seconds of each."""

    phase: Phase
    code: int
    seconds: float
    counts: tuple[int, int, int] = (0, 0, 0)
    modules: Mapping[str, float] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return self.code not in (0, NO_TESTS) if self.phase.is_pytest else self.code != 0


def pytest_phase(
    name: str,
    marks: str,
    *paths: str,
    bin: Path = NEWEST,
    turn: str | None = None,
    shared: Sequence[str] = (),
    third: Sequence[str] = (),
) -> Phase:
    """A phase of tests; of those in the `shared` folders it plays the variants whose `turn` it is, of the tests without
    variants in the `third` ones every third.
    """
    command = (str(bin / "python"), "-m", "pytest", "-q", "-m", marks)
    if turn is not None and not PLAYS_ALL:
        command = (*command, f"--variants={turn}", *(f"--variants-of={folder}" for folder in shared))
        command = (*command, *(("--turns=1/3", *(f"--turns-of={folder}" for folder in third)) if third else ()))
    return Phase(name, command, paths, is_pytest=True)


#: The tests without a JVM, but for those that take minutes.
UNIT = "not spark and not connect and not cluster and not interop and not conformance and not slow"


def unit_phase(name: str, marks: str, *more: str) -> Phase:
    """Tests without a JVM."""
    phase = pytest_phase(name, marks)
    return replace(phase, command=(*phase.command, *more), spreads=True)


PHASES = (
    Phase("lint", ("scripts/lint.sh", str(NEWEST))),
    unit_phase("unit", UNIT),
    pytest_phase(
        "slow",
        "slow and not spark and not connect and not cluster and not interop and not conformance",
        turn="0/2",
        shared=("tests/faults",),
    ),
    Phase("classes", (str(NEWEST / "python"), "scripts/class_archive.py", str(CLASSES[NEWEST]))),
    Phase("classes40", (str(OLDEST / "python"), "scripts/class_archive.py", str(CLASSES[OLDEST]))),
    Phase("wheel", ("scripts/wheel_check.sh", str(NEWEST / "python"))),
    # The tables made by others too: in a JVM of their own they would have what this one has compiled compiled again.
    pytest_phase(
        "spark",
        "(spark or conformance) and not cluster and not interop and not connect",
        turn="0/2",
        shared=(*BY_SPARK, "tests/conformance_paimon/test_skipping.py"),
    ),
    pytest_phase("cluster", "cluster and not interop and not conformance", "tests/cluster"),
    pytest_phase(
        "spark40",
        "spark and not cluster and not interop and not conformance and not slow",
        *BY_SPARK,
        bin=OLDEST,
        turn="1/2",
        shared=BY_SPARK,
        third=THIRD_BY_OLDEST,
    ),
    # The tables that it leaves out are read by the other lanes. (To collect all tests takes 15 s, and where those of a
    # kind stand is looked after by tests/conftest.py.)
    pytest_phase("connect", "connect", "tests/connect", "tests/conformance", turn="0/2", shared=("tests/conformance",)),
    pytest_phase("interop", "interop and not conformance"),
)


#: Only by its name (`make test-fast`): each test that `unit` has, with one set of its parameters, but for the few that
#: take long.
FAST = unit_phase("fast", f"{UNIT} and not long", "--one-variant")

#: What others start with, then the long ones first, so that the two lanes end together; what is not named here follows.
LONG_FIRST = (
    "lint",
    "classes",
    "classes40",
    "spark",
    "interop",
    "spark40",
    "connect",
    "unit",
    "slow",
    "cluster",
)
LANES = 2

#: How many of the longest modules the summary names: where time can be saved.
SHOWN_MODULES = 25

_printing = threading.Lock()


def count(results: ET.Element) -> tuple[int, int, int]:
    """Passed, failed and skipped tests of a JUnit XML report."""
    passed = failed = skipped = 0
    for suite in results.iter("testsuite"):
        bad = int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
        left_out = int(suite.get("skipped", "0"))
        failed += bad
        skipped += left_out
        passed += int(suite.get("tests", "0")) - bad - left_out
    return passed, failed, skipped


def seconds_of_modules(results: ET.Element) -> dict[str, float]:
    """What each module of a JUnit XML report took, with what was set up for its tests."""
    found: dict[str, float] = {}
    for case in results.iter("testcase"):
        # A test in a class has the class's name behind its module's.
        module = ".".join(part for part in case.get("classname", "").split(".") if not part.startswith("Test"))
        found[module] = found.get(module, 0.0) + float(case.get("time", "0"))
    return found


def place_of(phase: Phase) -> Path | None:
    """Where its tables go; None: where all temporary files do."""
    if phase.is_pytest and MEMORY.is_dir() and os.access(MEMORY, os.W_OK):
        return MEMORY if shutil.disk_usage(MEMORY).free >= MEMORY_BYTES else None
    return None


def environment(phase: Phase, tables: str) -> dict[str, str]:
    """The variables of a phase."""
    # A Spark of the machine must not stand in for the one of the environment.
    left_out = ("SPARK_HOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    env.setdefault("PYTHONPYCACHEPREFIX", str(COMPILED))
    archive = CLASSES.get(Path(phase.command[0]).parent)
    if archive is not None and phase.is_pytest:
        # Where it is missing, or another JVM's, nobody is told and nothing is different.
        env.setdefault("SPARK_SUBMIT_OPTS", f"-XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off")
    return {**env, "TMPDIR": tables} if phase.is_pytest else env


def workers(phase: Phase) -> tuple[str, ...]:
    """Arguments of pytest: a process on each of this thread's cores; whoever has done its part takes of the others'."""
    count = min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    return (f"-n{count}", "--dist=worksteal") if phase.spreads and count > 1 else ()


def run(phase: Phase, scratch: Path) -> Outcome:
    report, output = scratch / f"{phase.name}.xml", scratch / f"{phase.name}.txt"
    # What is written where a process stands (a warehouse) is its own: phases side by side never meet.
    place, command = ROOT, phase.command
    if phase.is_pytest:
        place = scratch / phase.name
        place.mkdir()
        paths = [str(ROOT / path) for path in phase.paths or ("tests",)]
        command = (*command, *paths, *workers(phase), *AS_FROM_ROOT, f"--junitxml={report}")
    started = time.monotonic()
    with output.open("wb") as sink, tempfile.TemporaryDirectory(prefix=scratch.name, dir=place_of(phase)) as tables:
        code = subprocess.run(
            command,
            cwd=place,
            env=environment(phase, tables),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
        ).returncode
    with _printing:
        print(f"\n=== {phase.name} ===\n{output.read_text(errors='replace')}", flush=True)
    # pytest writes none where it died.
    results = ET.parse(report).getroot() if report.exists() else ET.Element("testsuites")
    return Outcome(phase, code, time.monotonic() - started, count(results), seconds_of_modules(results))


def run_lanes(phases: Sequence[Phase], scratch: Path) -> list[Outcome]:
    """The outcomes, in the order of the phases."""
    order = {name: place for place, name in enumerate(LONG_FIRST)}
    waiting = deque(sorted(phases, key=lambda phase: order.get(phase.name, len(order))))
    # `fast` is waited for: all cores are its own, once lint is done.
    cores, lanes = sorted(os.sched_getaffinity(0)), 1 if FAST in phases else min(LANES, len(waiting))

    def lane(number: int) -> list[Outcome]:
        # Of this thread, and of what it starts.
        os.sched_setaffinity(0, cores[number::lanes] or cores)
        found = []
        while True:
            try:
                phase = waiting.popleft()
            except IndexError:
                return found
            found.append(run(phase, scratch))

    with ThreadPoolExecutor(LANES) as pool:
        running = [pool.submit(lane, number) for number in range(lanes)]
        outcomes = [outcome for future in running for outcome in future.result()]
    return sorted(outcomes, key=lambda outcome: phases.index(outcome.phase))


def summary(outcomes: Sequence[Outcome]) -> str:
    lines = ["", "phase         passed  failed  skipped  seconds"]
    for outcome in outcomes:
        passed, failed, skipped = outcome.counts
        numbers = f"{passed:>6}  {failed:>6}  {skipped:>7}" if outcome.phase.is_pytest else " " * 23
        verdict = "FAILED" if outcome.failed else ""
        lines.append(f"{outcome.phase.name:<12}  {numbers}  {outcome.seconds:>7.1f}  {verdict}".rstrip())
    longest = sorted(
        ((seconds, module, o.phase.name) for o in outcomes for module, seconds in o.modules.items()), reverse=True
    )
    lines += ["", "longest modules                                             phase        seconds"]
    lines += [f"{module:<58}  {phase:<12} {seconds:>7.1f}" for seconds, module, phase in longest[:SHOWN_MODULES]]
    # A phase without a count, or one that died before counting, stands as one result.
    passed = sum(o.counts[0] or (not o.phase.is_pytest and not o.failed) for o in outcomes)
    failed = sum(o.counts[1] or o.failed for o in outcomes)
    skipped = sum(o.counts[2] for o in outcomes)
    return "\n".join([*lines, "", f"{passed} passed, {failed} failed, {skipped} skipped"])


def main(arguments: Sequence[str]) -> int:
    known = {phase.name: phase for phase in (*PHASES, FAST)}
    rooms = [name for name in arguments if name not in known and (ROOT / name.partition("::")[0]).exists()]
    names = [name for name in arguments if name not in rooms]
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no phase and no path: {', '.join(unknown)}; phases: {', '.join(known)}", file=sys.stderr)
        return 2
    phases = [known[name] for name in names] if names else list(PHASES)
    if rooms:
        phases = [part for phase in phases if (part := phase.within(rooms)) is not None]
    with tempfile.TemporaryDirectory(prefix="alluvium-test-") as scratch:
        outcomes = run_lanes(phases, Path(scratch))
    print(summary(outcomes), flush=True)
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

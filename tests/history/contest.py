"""Starts writers on one table, kills and replaces them at random instants, and has what they left judged."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from open_readers import READERS
from reference_engine import ENGINES, REFERENCE

import alluvium
from history.judge import Judge, Verdict
from history.writers.alluvium_writer import make_table

TESTS = Path(__file__).parents[1]
DAY_S = 86_400
#: Of which kinds a JVM is part: seconds to start, so they are killed less often, and have longer to begin.
WITH_JVM = frozenset({"spark", "delta-spark"})
#: How long writers have to end what they do, once the contest is over; and to come to its beginning, each with a JVM
#: longer by so much: on one core they start one after the other, and have tried each verb before it begins.
END_S = BEGIN_S = 60
BEGIN_JVM_S = 60
#: delta-rs is ten times as quick as others on such a table: it pauses, so that they get to work, too.
PAUSES_S = {"deltalake": 0.25}


@dataclass(frozen=True)
class Contest:
    """What is played.

    Attributes:
        seed: Of acts, of clocks, and of who is killed when; not of who is faster.
        kinds: One writer each.
        commits: So many, and it is over.
        seconds: Or so long.
        properties: Of the table.
        pause_s: Between two acts of a writer without a JVM, beside what `PAUSES_S` says: an act by Spark takes a second.
        kill_s: Somebody is killed after at most so long.
    """

    seed: int
    kinds: Sequence[str]
    commits: int
    seconds: float
    properties: dict[str, str] = field(default_factory=dict)
    pause_s: float = 0.0
    kill_s: float = 1.0


@dataclass
class Outcome:
    """How it went."""

    versions: int
    kills: int
    seconds: float
    verdict: Verdict
    alone: list[str]


def hold(contest: Contest, folder: Path) -> Outcome:
    """Plays a contest in a folder, which it leaves as it is.

    Raises:
        AssertionError: The folder is not empty.
    """
    table, notes = folder / "table", folder / "notes"
    notes.mkdir(parents=True)
    # No log entry is to go, whatever clocks say: the judge reads all of them.
    fixed = {"delta.enableExpiredLogCleanup": "false", "delta.checkpointInterval": "20"}
    make_table(str(table), {**fixed, **contest.properties})
    writers = _Writers(contest, folder, _preload(folder))
    try:
        writers.begin()
        began = time.monotonic()
        writers.play(began + contest.seconds)
    finally:
        writers.end()
    kinds = dict(enumerate(contest.kinds, 1))
    verdict = Judge(table, notes, kinds).judge()
    return Outcome(writers.newest, writers.kills, time.monotonic() - began, verdict, writers.alone)


class _Writers:
    """The writers, while they run."""

    def __init__(self, contest: Contest, folder: Path, preload: str | None) -> None:
        self._contest, self._folder, self._preload = contest, folder, preload
        self._log = folder / "table" / "_delta_log"
        self._chance = random.Random(contest.seed)
        self._wrong = [self._chance.choice((0, -400, 90, 3, -1)) * DAY_S for _ in contest.kinds]
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self.kills = 0
        self.newest = 0
        #: Writers that ended without being killed, and how.
        self.alone: list[str] = []

    def begin(self) -> None:
        """All of them begin together."""
        writers = range(1, len(self._contest.kinds) + 1)
        for writer in writers:
            self._start(writer)
        until = time.monotonic() + BEGIN_S + BEGIN_JVM_S * sum(kind in WITH_JVM for kind in self._contest.kinds)
        while time.monotonic() < until and not all(self._ready(writer).exists() for writer in writers):
            time.sleep(0.05)
        (self._folder / "notes" / "go").touch()

    def play(self, until_s: float) -> None:
        """Kills somebody now and then, until there are enough commits or time is up."""
        chance, contest = self._chance, self._contest
        while time.monotonic() < until_s and not self.alone:
            time.sleep(chance.uniform(0.02, contest.kill_s))
            while (self._log / f"{self.newest + 1:020}.json").exists():
                self.newest += 1
            if self.newest >= contest.commits:
                return
            self._move_times()
            self._kill_one()

    def _kill_one(self) -> None:
        """One of those who have got to work; of who takes long to come, one time of ten."""
        chance = self._chance
        writer = chance.randint(1, len(self._contest.kinds))
        spared = self._contest.kinds[writer - 1] in WITH_JVM and chance.random() > 0.1
        self._look_for_ended()
        if spared or not self._seasoned(writer).exists():
            return
        process = self._running[writer]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.kills += 1
        self._start(writer)

    def _look_for_ended(self) -> None:
        for writer, process in self._running.items():
            if process.poll() is not None:
                self.alone.append(f"writer {writer} ended by itself: {process.returncode}, see {writer}.log")

    def _start(self, writer: int) -> None:
        kind = self._contest.kinds[writer - 1]
        self._seasoned(writer).unlink(missing_ok=True)
        run = [str(python_of(kind)), "-m", "history.writers.run", kind, str(self._folder / "table")]
        pause_s = 0.0 if kind in WITH_JVM else self._contest.pause_s + PAUSES_S.get(kind, 0)
        run += [str(self._folder / "notes"), str(self._contest.seed), str(writer), str(pause_s)]
        with (self._folder / f"{writer}.log").open("ab") as log:
            self._running[writer] = subprocess.Popen(
                run, env=self._environment(kind, self._wrong[writer - 1]), stdout=log, stderr=log,
                start_new_session=True, cwd=self._folder,
            )  # fmt: skip

    def _environment(self, kind: str, wrong_s: int) -> dict[str, str]:
        theirs = kind in ("deltalake", "delta-spark")
        found = {k: v for k, v in os.environ.items() if not (theirs and k.startswith(("SPARK_", "PYSPARK_")))}
        source = ENGINES if theirs else Path(alluvium.__file__).parents[1]
        found["PYTHONPATH"] = os.pathsep.join(map(str, (source, TESTS, TESTS / "support")))
        found["REFERENCE_DIR"] = str(REFERENCE)
        # Who is killed starts again: modules are compiled once, whatever the machine says.
        found.pop("PYTHONDONTWRITEBYTECODE", None)
        found.setdefault("PYTHONPYCACHEPREFIX", str(self._folder / "compiled"))
        if self._preload is not None:
            found |= {"LD_PRELOAD": self._preload, "WRONG_BY_S": str(wrong_s)}
        return found

    def _move_times(self) -> None:
        """The store's clock is no better: when a commit was written is told wrongly, by up to a year."""
        file = self._log / f"{self._chance.randint(0, self.newest):020}.json"
        moment = time.time() + self._chance.randint(-365, 365) * DAY_S
        os.utime(file, (moment, moment))

    def end(self) -> None:
        """Lets them end their acts; who does not is killed."""
        (self._folder / "notes" / "stop").touch()
        until = time.monotonic() + (END_S if self._contest.commits <= self.newest else 5)
        for process in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        while (self._log / f"{self.newest + 1:020}.json").exists():
            self.newest += 1

    def _ready(self, writer: int) -> Path:
        return self._folder / "notes" / f"ready-{writer}"

    def _seasoned(self, writer: int) -> Path:
        return self._folder / "notes" / f"seasoned-{writer}"


def python_of(kind: str) -> Path:
    """Whose Python runs a kind of writer."""
    if kind == "deltalake":
        return READERS / "bin/python"
    return REFERENCE / "venv/bin/python" if kind == "delta-spark" else Path(sys.executable)


def _preload(folder: Path) -> str | None:
    """What makes clocks wrong; None where there is no compiler: then they are right."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "wrong_clock.so"
    source = Path(__file__).with_name("wrong_clock.c")
    run = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(run, check=True)
    return str(library)

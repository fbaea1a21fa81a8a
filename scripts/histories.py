"""Writers of several kinds on one table, killed at random, with clocks that disagree: is it a serial order?

    histories.py [--minutes 5] [--writers python:5,deltalake:2,spark:1] [--commits 400] [--seed 1] [--state .torture]

`make histories`. Contest after contest, each on a table of its own, drawn by its seed: isolation, features that all of
its writers know, clocks. `--state` keeps the next seed and the counts, so that a later call goes on there; `--counts`
prints them. The table, the notes and the log of each writer of a contest in which something was wrong stay beside it.
The exit code is 1 if any was. Acts, clocks and kills follow from the seed; who is faster does not, so that what a seed
has found may not come again.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "support")]

from history.contest import WITH_JVM, Contest, Outcome, hold  # noqa: E402  # found by the path above
from history.writers.run import KINDS  # noqa: E402

#: A contest that has not come to its commits by then is over: so long for each.
SECONDS_A_COMMIT = 1.5
#: What delta-rs does not write.
RICH = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
}
_COUNTS = ("contests", "versions", "kills", "reordered", "rebased")


def main() -> int:
    """Plays until the time is over."""
    asked = _parse()
    kinds = [kind for word in asked.writers.split(",") for kind in _several(word)]
    name = "+".join(f"{count}-{kind}" for kind, count in Counter(kinds).items())
    state_file = asked.state / f"histories-{name}.json"
    state = _load(state_file, asked.seed)
    if asked.counts:
        print(_told(state))
        return 0
    # Whoever ends the player ends its writers.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    until, failed = time.monotonic() + asked.minutes * 60, 0
    while time.monotonic() < until and failed < asked.failures:
        pace_s = asked.pace if WITH_JVM & {*kinds} else 0.0
        contest = draw(state["next_seed"], kinds, asked.commits, until - time.monotonic(), pace_s)
        folder = Path(tempfile.mkdtemp(prefix="history-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        outcome = hold(contest, folder)
        problems = [*outcome.alone, *outcome.verdict.problems]
        if problems:
            failed += 1
            kept = asked.state / f"{name}-{contest.seed}-{time.time_ns()}"
            shutil.copytree(folder, kept)
            print(f"seed {contest.seed}, {kept}: {len(problems)}, such as", *problems[:5], sep="\n  ", flush=True)
        shutil.rmtree(folder)
        _add(state, outcome, problems)
        state["next_seed"] += 1
        _save(state_file, state)
        print(f"seed {contest.seed}: {outcome.versions} commits, {outcome.kills} kills", flush=True)
    print(_told(state))
    return 1 if failed else 0


def draw(seed: int, kinds: Sequence[str], commits: int, seconds: float, pace_s: float) -> Contest:
    """A contest of its own for each seed."""
    chance = random.Random(seed)
    properties = {"delta.isolationLevel": chance.choice(["Serializable", "WriteSerializable"])}
    if "deltalake" not in kinds and chance.random() < 0.5:
        properties |= RICH
    kill_s = chance.choice([0.5, 1, 3])
    seconds = min(seconds, commits * SECONDS_A_COMMIT)
    return Contest(seed, kinds, commits, seconds, properties, pause_s=pace_s, kill_s=kill_s)


def _several(word: str) -> list[str]:
    kind, _, count = word.partition(":")
    if kind not in KINDS:
        raise SystemExit(f"no such writer: {kind}; there are {', '.join(KINDS)}")
    return [kind] * int(count or 1)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--writers", default="python:8", help=f"of {', '.join(KINDS)}, and how many of each")
    parser.add_argument(
        "--pace", type=float, default=1.0, help="so long rests a writer without a JVM, where others have one (seconds)"
    )
    parser.add_argument("--commits", type=int, default=400, help="of each contest")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failures", type=int, default=5, help="stop after so many")
    parser.add_argument("--state", type=Path, default=Path(".torture"))
    parser.add_argument("--counts", action="store_true", help="print the counts so far, play nothing")
    return parser.parse_args()


def _load(file: Path, seed: int) -> dict[str, Any]:
    if file.exists():
        state: dict[str, Any] = json.loads(file.read_text())
        return state
    return {
        "next_seed": seed, "seconds": 0.0, "commits": {}, "told": {}, "problems": [], **dict.fromkeys(_COUNTS, 0)
    }  # fmt: skip


def _save(file: Path, state: dict[str, Any]) -> None:
    """At once: a run that is killed goes on where it was."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(state, indent=1))
    beside.replace(file)


def _add(state: dict[str, Any], outcome: Outcome, problems: Sequence[str]) -> None:
    verdict = outcome.verdict
    seen = (1, outcome.versions, outcome.kills, verdict.reordered, verdict.rebased)
    for name, count in zip(_COUNTS, seen, strict=True):
        state[name] += count
    state["seconds"] += outcome.seconds
    for name in ("commits", "told"):
        state[name] = dict(Counter(state[name]) + getattr(verdict, name))
    state["problems"] += problems


def _told(state: dict[str, Any]) -> str:
    """Tables of what stands in the logs, and of what became of acts, by kind of writer."""
    head = ", ".join(f"{state[name]} {name}" for name in _COUNTS)
    lines = [f"{head}, {len(state['problems'])} problems, {state['seconds'] / 60:.1f} minutes"]
    for name in ("commits", "told"):
        counts = Counter({(*key.split(": ", 1),): count for key, count in state[name].items()})
        kinds, words = (sorted({key[place] for key in counts}) for place in (0, 1))
        lines += [f"{name:<12}" + "".join(f"{kind:>13}" for kind in kinds)]
        lines += [f"{word:<12}" + "".join(f"{counts[kind, word]:>13}" for kind in kinds) for word in words]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

"""Kills the driver of streaming queries again and again, and looks whether a row was lost or came twice.

    python scripts/stream_kills.py /tmp/kills --kills 200 --seed 7

A driver runs five of the queries of `stream_driver.py` at once (rows as they are, without duplicates, counted, changes,
of two tables, joined, merged by `foreachBatch`, into a Paimon table that forgets its snapshots at once), while their
sources grow; at a random instant it and its JVM get SIGKILL, so that each query that has begun a batch in this life is
killed. Every fifth driver is delta-spark's, where that is installed: checkpoints change hands. What was counted so far
stays in the folder: called again, it goes on until there are as many killed queries as asked for. At the end the
queries run to their end, and what they wrote is compared with the sources by rows, transactions and offsets.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import alluvium
from stream_driver import KEYS, QUERIES, target_of

DRIVER = Path(__file__).resolve().with_name("stream_driver.py")
#: Of the reference engine, where `../shared/reference/setup` has put it.
REFERENCE = Path(os.environ.get("REFERENCE_DIR", Path.home() / ".cache" / "alluvium-reference")) / "venv/bin/python"
#: Every which driver is the reference's.
EVERY = 5
#: How many queries a driver runs.
AT_ONCE = 5
#: How long a driver may take to its first batches.
PATIENCE_S = 400


def offsets_of(folder: Path, name: str, log: str = "offsets") -> set[int]:
    """The batches that a query's checkpoint has in one of its logs."""
    with suppress(FileNotFoundError):
        return {int(p.name) for p in (folder / f"{name}-checkpoint" / log).iterdir() if p.name.isdigit()}
    return set()


@contextmanager
def driver(
    folder: Path, names: Sequence[str], *more: str, python: str = sys.executable
) -> Iterator[subprocess.Popen[bytes]]:
    """A driver, in a group of its own: killed at the end with its JVM, and with the player."""
    command = [python, str(DRIVER), str(folder), ",".join(names), *more]
    # The reference has its own packages, and must not find this project's.
    env = {k: v for k, v in os.environ.items() if python == sys.executable or k != "PYTHONPATH"}
    with (folder / "driver.log").open("ab") as log:
        process = subprocess.Popen(command, start_new_session=True, stdout=log, stderr=log, env=env)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def kill_once(folder: Path, names: Sequence[str], chance: random.Random, python: str) -> Counter[str]:
    """Lets the queries run until all have begun something, or one has and time is up; what was killed."""
    before = {name: max(offsets_of(folder, name), default=-1) for name in names}

    def begun() -> list[str]:
        return [name for name in names if max(offsets_of(folder, name), default=-1) > before[name]]

    wanted = chance.randint((len(names) + 1) // 2, len(names))
    with driver(folder, names, python=python) as process:
        until = time.monotonic() + PATIENCE_S
        while len(begun()) < wanted and time.monotonic() < until:
            if process.poll() is not None:
                raise SystemExit(f"the driver ended by itself, see {folder / 'driver.log'}")
            # Not more often: whoever looks takes time from those who are looked at.
            time.sleep(0.1)
        time.sleep(chance.uniform(0, 2))
    killed = begun()
    amid = [name for name in killed if offsets_of(folder, name) - offsets_of(folder, name, "commits")]
    return Counter({"drivers": 1, "killed": len(killed), "amid": len(amid), **{f"{name} killed": 1 for name in killed}})


def judge(folder: Path, names: Sequence[str]) -> list[str]:
    """What is wrong with what the queries wrote, after they have run to their end."""
    wrong = []
    for name in names:
        wrong += [f"{name}: {problem}" for problem in JUDGES.get(name, _judge_rows)(folder, name)]
        if QUERIES[name].format == "delta":
            wrong += [f"{name}: {problem}" for problem in _judge_batches(folder, name)]
    return wrong


def written(folder: Path, source: str = "source") -> int:
    """How many rows a source has: 0, 1, 2 and so on."""
    return int(sum(alluvium.open(str(folder / source)).files()["num_rows"].to_pylist()))


def _compare(found: Counter[object], wanted: Counter[object]) -> list[str]:
    lost, more = wanted - found, found - wanted
    if not lost and not more:
        return []
    return [f"{lost.total()} rows lost ({list(lost)[:3]}), {more.total()} too many ({list(more)[:3]})"]


def _judge_rows(folder: Path, name: str) -> list[str]:
    rows = alluvium.open(str(target_of(folder, name))).to_arrow()
    wanted = set(range(written(folder)))
    if name == "several":
        wanted |= {-1 - n for n in range(written(folder, "second"))}
    if name == "joined":
        wanted &= set(range(written(folder, "second")))
    counts = set(rows["count"].to_pylist()) - {1} if name == "complete" else set()
    return [*_compare(Counter(rows["id"].to_pylist()), Counter(wanted)), *(f"counted {n} times" for n in counts)]


def _judge_feed(folder: Path, name: str) -> list[str]:
    rows = alluvium.open(str(folder / name)).to_arrow().select(["id", "v", "kind", "version"]).to_pylist()
    columns = ["id", "v", "_change_type", "_commit_version"]
    changes = alluvium.open(str(folder / "changes")).changes(0).select(columns).to_pylist()
    return _compare(Counter(tuple(r.values()) for r in rows), Counter(tuple(r.values()) for r in changes))


def _judge_merge(folder: Path, name: str) -> list[str]:
    view = alluvium.open(str(folder / name))
    found = Counter({row["k"]: row["n"] for row in view.to_arrow().to_pylist()})
    return _compare(found, Counter(n % KEYS for n in range(written(folder))))


def _judge_paimon(folder: Path, name: str) -> list[str]:
    view = alluvium.open(str(target_of(folder, name)))
    rows = view.to_arrow(where=f"writer = {name[-1]}")
    kept = view.system("snapshots").num_rows
    problems = _compare(Counter(rows["id"].to_pylist()), Counter(range(written(folder))))
    return [*problems, *(["no snapshot has expired"] if kept == view.version > 2 else [])]


JUDGES: dict[str, Callable[[Path, str], list[str]]] = {
    "feed": _judge_feed,
    "merge": _judge_merge,
    "paimon-1": _judge_paimon,
    "paimon-2": _judge_paimon,
}


def _judge_batches(folder: Path, name: str) -> list[str]:
    """Whether each batch was committed once, in its order."""
    view = alluvium.open(str(target_of(folder, name)))
    epochs = [int(h["operationParameters"]["epochId"]) for h in view.history()]
    problems = []
    if epochs != sorted(set(epochs), reverse=True):
        problems.append(f"batches were committed in the order {epochs[::-1]}")
    if max(offsets_of(folder, name)) != max(view.txns.values()):
        problems.append(f"the last offset is {max(offsets_of(folder, name))}, the last transaction {view.txns}")
    return problems


def finish_apart(folder: Path, names: Sequence[str]) -> None:
    """Runs the queries to their end in a process of its own."""
    with driver(folder, names, "--to-the-end") as process:
        if process.wait() != 0:
            raise SystemExit(f"the last run failed, see {folder / 'driver.log'}")


def play(
    folder: Path,
    kills: int,
    seed: int,
    seconds: float = float("inf"),
    names: Sequence[str] = tuple(QUERIES),
    finish: Callable[[Path, Sequence[str]], None] = finish_apart,
) -> list[str]:
    """Kills until there are so many queries killed, or time is up; what is wrong then."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "kills.json"
    done: Counter[str] = Counter(json.loads(kept.read_text()) if kept.exists() else {})
    end = time.monotonic() + seconds
    while done["killed"] < kills and time.monotonic() < end:
        number = done["drivers"]
        handed = [name for name in names if QUERIES[name].changes_hands]
        is_reference = number % EVERY == EVERY - 1 and REFERENCE.exists() and handed
        python, among = (str(REFERENCE), handed) if is_reference else (sys.executable, list(names))
        # Not all at once: what starts them all is seldom killed amid a batch.
        chance = random.Random(f"{seed} {number}")
        found = kill_once(folder, chance.sample(among, min(AT_ONCE, len(among))), chance, python)
        done += found + Counter({"by delta-spark": found["killed"] if is_reference else 0})
        kept.write_text(json.dumps(done))
        print(f"{done['killed']} queries killed with {done['drivers']} drivers", flush=True)
    finish(folder, names)
    wrong = judge(folder, names)
    print(f"{json.dumps(done)}, {written(folder)} rows, seed {seed}")
    print("\n".join(wrong) or "no row lost, none twice, each batch committed once")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="tables, checkpoints and counts")
    parser.add_argument("--kills", type=int, default=100, help="how many killed queries, with those of earlier calls")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no more kills after so long")
    parser.add_argument("--queries", default=",".join(QUERIES), help="which, by commas")
    given = parser.parse_args()
    # Whoever ends the player ends its driver.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    return len(play(given.folder, given.kills, given.seed, given.seconds, given.queries.split(",")))


if __name__ == "__main__":
    sys.exit(main())

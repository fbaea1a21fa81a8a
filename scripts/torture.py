"""Plays random sequences of all verbs by random engines for a while (`make torture`), and tells what was found.

    torture.py [--minutes 5] [--engines python,spark,delta-spark,deltalake] [--seed 1] [--length 25] [--state .torture]
    torture.py --format paimon [--engines python,pypaimon,java] [--having merge-engine=first-row] ...

Each sequence follows from its seed. `--state` keeps the next seed, the counts and every failure, shrunk, as JSON: a
later call goes on there, and `--counts` prints them. `--defects` tells which seed catches each of some deliberate
defects. The exit code is 1 if any sequence failed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "support")]

from model.engines.sessions import engines_named  # noqa: E402  # found by the path above
from model.paimon.engines import is_missing, paimon_engines  # noqa: E402
from model.paimon.sabotage import DEFECTS as PAIMON_DEFECTS  # noqa: E402
from model.player import Counts, Failure, make_sequence, play, shrink  # noqa: E402
from model.sabotage import DEFECTS  # noqa: E402
from model.script import Script  # noqa: E402


def main() -> int:
    """Plays until the time is over."""
    asked = _parse()
    names = asked.engines.split(",")
    is_delta = asked.format == "delta"
    state_file = asked.state / f"{'' if is_delta else 'paimon-'}{'+'.join(names)}.json"
    state = _load(state_file, asked.seed)
    if asked.counts:
        print(_told(state))
        return 0
    if asked.defects:
        return _catch_defects(asked.format)
    if not is_delta:
        names = _installed(names)
    engines = engines_named(names) if is_delta else paimon_engines(names)
    readers = {name: engine for name, engine in engines.items() if getattr(engine, "reads", False)}
    folder = Path(tempfile.mkdtemp(prefix="torture-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    until, failed = time.monotonic() + asked.minutes * 60, 0
    try:
        while time.monotonic() < until and failed < asked.failures:
            counts = Counts()
            began = time.monotonic()
            try:
                sequence = make_sequence(state["next_seed"], list(engines), asked.length, format=asked.format)
                if not _has(sequence, asked.having):
                    state["next_seed"] += 1
                    continue
                play(sequence, engines, folder, counts, readers)
            except Failure as failure:
                failed += 1
                least = shrink(failure, engines, folder, asked.shrink, readers)
                state["found"].append(_of_failure(least))
                print(f"seed {state['next_seed']}: {least.kind}: {str(least.cause)[:600]}", flush=True)
            state["next_seed"] += 1
            state["seconds"] += time.monotonic() - began
            _add(state, counts)
            _save(state_file, state)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(_told(state))
    return 1 if failed else 0


def _has(sequence: Script, having: str | None) -> bool:
    name, _, value = (having or "").partition("=")
    return having is None or dict(sequence.properties).get(name) == value


def _installed(names: list[str]) -> list[str]:
    """Those that can play here; of each other one it is said why not."""
    why = {name: is_missing(name) for name in names}
    for name, reason in why.items():
        if reason is not None:
            print(f"skipped: {name}: {reason}", flush=True)
    return [name for name in names if why[name] is None]


def _catch_defects(format: str) -> int:
    """As the suite plays them, from seed 1 on; 1 if one is missed."""
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, switch_on in (DEFECTS if format == "delta" else PAIMON_DEFECTS).items():
            with pytest.MonkeyPatch.context() as patch:
                switch_on(patch)
                found = _first_failure(Path(folder), format)
            missed += found is None
            told = "missed" if found is None else f"seed {found.sequence.seed}, step {found.at}: {found.kind}"
            print(f"{name:<28}{told}", flush=True)
    return 1 if missed else 0


def _first_failure(folder: Path, format: str, most: int = 24) -> Failure | None:
    engines = engines_named(["python"]) if format == "delta" else paimon_engines(["python"])
    for seed in range(1, most + 1):
        try:
            play(make_sequence(seed, ["python"], 12, format=format), engines, folder, Counts())
        except Failure as failure:
            return failure
    return None


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--engines", default="python")
    parser.add_argument("--format", choices=["delta", "paimon"], default="delta")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--having", help="only tables that are made with this property, as in name=value")
    parser.add_argument("--length", type=int, default=25)
    parser.add_argument("--failures", type=int, default=20, help="stop after so many")
    parser.add_argument("--shrink", type=int, default=60, help="sequences that are tried to shrink one that failed")
    parser.add_argument("--state", type=Path, default=Path(".torture"))
    parser.add_argument("--defects", action="store_true", help="which seed catches each deliberate defect")
    parser.add_argument("--counts", action="store_true", help="print the counts so far, play nothing")
    return parser.parse_args()


def _load(file: Path, seed: int) -> dict[str, Any]:
    if file.exists():
        state: dict[str, Any] = json.loads(file.read_text())
        return state
    return {
        "next_seed": seed,
        "seconds": 0.0,
        "sequences": 0,
        "steps": 0,
        "failures": 0,
        "done": {},
        "refused": {},
        "found": [],
    }


def _save(file: Path, state: dict[str, Any]) -> None:
    """At once: a run that is killed goes on where it was."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(state, indent=1, default=str))
    beside.replace(file)


def _add(state: dict[str, Any], counts: Counts) -> None:
    for name in ("sequences", "steps", "failures"):
        state[name] += getattr(counts, name)
    for name in ("done", "refused"):
        state[name] = dict(Counter(state[name]) + getattr(counts, name))


def _of_failure(failure: Failure) -> dict[str, Any]:
    return {
        "kind": failure.kind,
        "message": str(failure),
        "sequence": failure.sequence.as_dict(),
        "calls": failure.calls,
    }


def _told(state: dict[str, Any]) -> str:
    """A table of verbs by engine."""
    done = Counter(state["done"])
    engines = sorted({key.split(": ")[0] for key in done})
    verbs = sorted({key.split(": ")[1] for key in done})
    told = ", ".join(f"{state[name]} {name}" for name in ("sequences", "steps", "failures"))
    head = f"{told}, {state['seconds'] / 60:.1f} minutes"
    rows = [f"{'':<18}" + "".join(f"{engine:>13}" for engine in engines)]
    rows += [f"{verb:<18}" + "".join(f"{done[f'{engine}: {verb}']:>13}" for engine in engines) for verb in verbs]
    total = (sum(n for key, n in done.items() if key.startswith(f"{engine}: ")) for engine in engines)
    rows.append(f"{'all':<18}" + "".join(f"{n:>13}" for n in total))
    rows += [f"refused {n:>5}  {what}" for what, n in sorted(Counter(state["refused"]).items())]
    return "\n".join([head, *rows])


if __name__ == "__main__":
    sys.exit(main())

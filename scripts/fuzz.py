"""Fuzzing by coverage: Atheris (libFuzzer) over everything that reads bytes from outside. Not part of the suite.

    make fuzz                                             all targets, five minutes
    .venv/bin/python scripts/fuzz.py run --target avro-container --inputs 100000
    .venv/bin/python scripts/fuzz.py report               what has been played so far
    .venv/bin/python scripts/fuzz.py play TARGET FILE     one input again

Each target runs in a process of its own, whose memory and time an input are bounded. Inputs that reach new code are
kept in the state, from which the next run goes on; what fails is kept there once a place (`findings/`).
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), *(str(ROOT / "tests" / part) for part in ("support", "interop", ""))]

#: Seconds that one input may take, and memory of a process: beyond them is a finding.
TIMEOUT_S, MEMORY_MB = 30, 2048
#: Frames by which a finding is known again.
_FRAMES = 3
#: What libFuzzer tells while it runs, and at the end.
_STATUS = re.compile(rb"#(\d+)\s+(?:DONE|pulse|REDUCE|NEW|INITED|RELOAD)?.*?cov: (\d+) ft: (\d+) corp: (\d+)")
_TOTAL = re.compile(rb"stat::number_of_executed_units:\s+(\d+)")
WHOLE_TABLES = "paimon-tables"
#: Parts of the library that read nothing, but are loaded by those that do.
NOT_READERS = [f"alluvium.{room}" for room in ("spark", "commands", "cli", "commit", "plan", "errors")]


# -- one target, in its own process -----------------------------------------------------------------------------------


def child(name: str, state: Path, runs: int, seconds: int, seed: int) -> int:
    """Plays one target; libFuzzer ends the process."""
    import atheris  # noqa: PLC0415 - nobody else needs it

    # The library alone is instrumented, and before anything of it is loaded.
    with atheris.instrument_imports(include=["alluvium"], exclude=NOT_READERS):
        targets = __import__("fuzz_targets")
        target = targets.make_target(name)
    corpus, findings = state / "corpus" / name, state / "findings"
    for data in target.seeds:
        (corpus / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)
    longest = max(targets.MAX_BYTES, *map(len, target.seeds))
    known = {path.name.partition("-")[2].partition(".")[0] for path in findings.glob(f"{name}/crash-*")}

    def one_input(data: bytes) -> None:
        try:
            target.play(data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a foreign exception is what is looked for
            keep(error, data, findings / name, known)

    options = [
        sys.argv[0], str(corpus), f"-runs={runs}", f"-max_total_time={seconds}", f"-max_len={longest}", f"-seed={seed}",
        f"-timeout={TIMEOUT_S}", f"-rss_limit_mb={MEMORY_MB}", f"-artifact_prefix={findings / name}/",
        "-print_final_stats=1", "-reload=0", "-len_control=20",
    ]  # fmt: skip
    atheris.Setup(options, one_input, custom_mutator=mutator(atheris, targets))
    atheris.Fuzz()
    return 0


def mutator(atheris: Any, targets: Any) -> Callable[[bytes, int, int], bytes]:
    """JSON and footers are sometimes changed as what they are, all else as libFuzzer does."""

    def change(data: bytes, max_size: int, seed: int) -> bytes:
        if seed % 3 == 0:
            made = targets.structural(data, seed)
            if made is not None and len(made) <= max_size:
                return bytes(made)
        return bytes(atheris.Mutate(data, max_size))

    return change


def keep(error: BaseException, data: bytes, folder: Path, known: set[str]) -> None:
    """Writes the input and the traceback of a finding that is new, or a shorter input of one that is known."""
    traceback = __import__("traceback")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/src/alluvium/" in frame.filename] or frames
    place = " < ".join(f"{Path(frame.filename).name}:{frame.name}" for frame in reversed(own[-_FRAMES:]))
    mark = hashlib.sha1(f"{type(error).__name__} {place}".encode(), usedforsecurity=False).hexdigest()[:12]
    path = folder / f"crash-{mark}"
    if mark in known and path.exists() and path.stat().st_size <= len(data):
        return
    known.add(mark)
    path.write_bytes(data)
    told = "".join(traceback.format_exception(type(error), error, error.__traceback__)[-40:])
    path.with_suffix(".txt").write_text(f"{type(error).__name__} {place}\n{told[-6000:]}", errors="backslashreplace")


# -- all targets ------------------------------------------------------------------------------------------------------


def run(asked: argparse.Namespace) -> int:
    targets = __import__("fuzz_targets")
    names = asked.target or [*targets.NAMES, WHOLE_TABLES]
    unknown = set(names) - {*targets.NAMES, WHOLE_TABLES}
    if unknown:
        print(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join([*targets.NAMES, WHOLE_TABLES])}")
        return 2
    state = Path(asked.state)
    seconds = max(int(asked.minutes * 60 * asked.jobs / len(names)), 1) if asked.minutes else 0
    inputs = 0 if asked.inputs is None else max(asked.inputs // len(names), 1)
    if not seconds and not inputs:
        seconds = max(int(5 * 60 * asked.jobs / len(names)), 1)
    state.mkdir(parents=True, exist_ok=True)
    (state / ".gitignore").write_text("*\n")

    def play(name: str) -> None:
        for folder in ("corpus", "findings"):
            (state / folder / name).mkdir(parents=True, exist_ok=True)
        seed = asked.seed or random.SystemRandom().randrange(1, 1 << 31)
        told = (play_tables if name == WHOLE_TABLES else play_target)(name, state, inputs, seconds, seed)
        with (state / "runs.jsonl").open("a") as log:
            log.write(json.dumps({"target": name, "seed": seed, **told}) + "\n")
        rate = told["inputs"] / max(told["seconds"], 0.01)
        print(f"{name}: {told['inputs']} inputs, {rate:.0f}/s, cov {told['cov']}, corpus {told['corpus']}", flush=True)

    with ThreadPoolExecutor(asked.jobs) as pool:
        list(pool.map(play, names))
    return report(asked)


def play_target(name: str, state: Path, inputs: int, seconds: int, seed: int) -> dict[str, int | float]:
    """Runs one target until its inputs or its time are used up; after a crash of the process it goes on."""
    began, left, cov, corpus = time.monotonic(), inputs, 0, 0
    end = began + seconds if seconds else None
    played = 0
    while (not inputs or left > 0) and (end is None or time.monotonic() < end - 1):
        more = [str(max(int(end - time.monotonic()), 1)) if end else "0", str(left if inputs else -1), str(seed)]
        ended = subprocess.run(
            [sys.executable, __file__, "child", name, str(state), *more], capture_output=True, check=False,
            env={**os.environ, "ALLUVIUM_FUZZING": "1"},
        )  # fmt: skip
        seen = _STATUS.findall(ended.stderr)
        count = max([int(n) for n, *_ in seen] + [int(n) for n in _TOTAL.findall(ended.stderr)] + [0])
        if seen:
            cov, corpus = int(seen[-1][1]), int(seen[-1][3])
        played += count
        left -= count
        seed += 1
        if ended.returncode == 0:
            break
        keep_end(state / "findings" / name, ended.stderr, seed)
        if not count:
            print(f"{name} does not begin:\n{ended.stderr[-1500:].decode(errors='replace')}")
            break
    return {"inputs": played, "seconds": round(time.monotonic() - began, 1), "cov": cov, "corpus": corpus}


def keep_end(folder: Path, stderr: bytes, seed: int) -> None:
    """What ended a process: libFuzzer wrote the input (of a crash, a hang, too much memory); named by its cause."""
    lines = stderr.decode(errors="replace").splitlines()
    told = [line for line in lines if "Check failed" in line] or [line for line in lines if "ERROR: libFuzzer" in line]
    cause = re.sub(r"[0-9]+", "", told[0] if told else "ended")
    mark = hashlib.sha1(cause.encode(), usedforsecurity=False).hexdigest()[:12]
    for path in folder.glob("*-" + "?" * 40):
        path.replace(folder / f"{path.name.partition('-')[0]}-{mark}")
        (folder / f"{path.name.partition('-')[0]}-{mark}.txt").write_text("\n".join([cause, *lines[-40:]]))
        return
    (folder / f"ended-{seed}.txt").write_text("\n".join(lines[-60:]))


def play_again(asked: argparse.Namespace) -> int:
    """Plays files, and tells of each what became of it; where it crashes or hangs, from where."""
    target = __import__("fuzz_targets").make_target(asked.target)
    faulthandler.enable()
    for name in asked.file:
        faulthandler.dump_traceback_later(TIMEOUT_S, exit=True)
        print(f"{name}: {target.play(Path(name).read_bytes())}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    return 0


def play_tables(name: str, state: Path, inputs: int, seconds: int, seed: int) -> dict[str, int | float]:
    """Random damage to whole tables of Paimon, without coverage."""
    began = time.monotonic()
    script = ROOT / "tests" / "support" / "fuzz_paimon.py"
    first, played = seed, 0
    while (not inputs or played < inputs) and (not seconds or time.monotonic() - began < seconds):
        left = seconds - (time.monotonic() - began)
        limits = ["--count", str(inputs - played)] if inputs else ["--seconds", str(left)]
        ended = subprocess.run(
            [sys.executable, str(script), "--first", str(first), *limits], capture_output=True, text=True, check=False
        )
        begun = 0
        for line in ended.stdout.splitlines():
            said = json.loads(line)
            begun += "outcome" not in said
            if str(said.get("outcome", "")).startswith("FOREIGN"):
                last = "\n".join(said["told"][-1].splitlines()[-9:])
                mark = hashlib.sha1(last.encode(), usedforsecurity=False).hexdigest()
                (state / "findings" / name / f"crash-{mark[:12]}.txt").write_text(json.dumps(said, indent=1))
        played, first = played + begun, first + begun
        if ended.returncode == 0:
            break
        (state / "findings" / name / f"ended-{first}.txt").write_text(ended.stderr[-6000:])
        if not begun:
            break
    return {"inputs": played, "seconds": round(time.monotonic() - began, 1), "cov": 0, "corpus": 0}


def report(asked: argparse.Namespace) -> int:
    """A line a target: inputs played, corpus, edges covered, findings, hours; then the sums."""
    state = Path(asked.state)
    log = state / "runs.jsonl"
    inputs: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    cov: Counter[str] = Counter()
    for line in log.read_text().splitlines() if log.exists() else []:
        said = json.loads(line)
        name = said["target"]
        inputs[name] += said["inputs"]
        seconds[name] += said["seconds"]
        cov[name] = max(cov[name], said["cov"])
    print(f"{'target':<26}{'inputs':>12}{'corpus':>8}{'edges':>8}{'found':>7}{'hours':>8}{'per s':>8}")
    total = 0
    for name in sorted(inputs):
        found = found_in(state, name)
        total += found
        corpus = len(list((state / "corpus" / name).glob("*")))
        rate, hours = inputs[name] / max(seconds[name], 0.01), seconds[name] / 3600
        print(f"{name:<26}{inputs[name]:>12,}{corpus:>8}{cov[name]:>8}{found:>7}{hours:>8.2f}{rate:>8.0f}")
    hours = sum(seconds.values()) / 3600
    print(f"{'all':<26}{sum(inputs.values()):>12,}{'':>8}{sum(cov.values()):>8}{total:>7}{hours:>8.2f}")
    return 1 if total else 0


def found_in(state: Path, name: str) -> int:
    """How many different findings a target has."""
    folder = state / "findings" / name
    marks = {path.name.partition(".")[0] for path in folder.glob("*") if not path.name.startswith("ended-")}
    return len(marks)


def main() -> int:
    if sys.argv[1:2] == ["child"]:
        name, state, seconds, runs, seed = sys.argv[2:]
        del sys.argv[1:]
        return child(name, Path(state), int(runs), int(seconds), int(seed))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    running = verbs.add_parser("run", help="play inputs")
    running.add_argument("--target", action="append", help="one of the targets; again for more (all)")
    running.add_argument("--inputs", type=int, help="of all targets together, where --minutes does not end it before")
    running.add_argument("--minutes", type=float, help="for all targets together (5)")
    running.add_argument("--jobs", type=int, default=1, help="targets at a time (1)")
    running.add_argument("--seed", type=int, help="of the first input (random)")
    for verb in (running, verbs.add_parser("report", help="what has been played")):
        verb.add_argument("--state", default=str(ROOT / ".fuzz"), help="corpus, findings and counts (.fuzz)")
    again = verbs.add_parser("play", help="play files again")
    again.add_argument("target")
    again.add_argument("file", nargs="+")
    asked = parser.parse_args()
    return {"run": run, "report": report, "play": play_again}[asked.verb](asked)


if __name__ == "__main__":
    sys.exit(main())

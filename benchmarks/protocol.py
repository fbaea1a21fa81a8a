"""The talk between the bench and its workers: one JSON object a line, a request in, an answer out.

A worker is a process of one engine that stays warm between requests, so that rounds of different engines can be
interleaved. A request may carry two others, `before` and `after`, which are done without taking the time; the answer of
`after` is then what is checked. This module must run on the Python of every engine: standard library only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

#: A verb does the work of a request and returns something to check (rows, a sum); the server takes the time.
Verb = Callable[[Mapping[str, Any]], object]


def serve(verbs: Mapping[str, Verb], versions: Callable[[], Mapping[str, str]]) -> None:
    """The worker's loop: answers requests from standard input until it ends."""
    # whatever libraries print must not get into the answers
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    print(json.dumps({"ready": versions()}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(_answer(verbs, json.loads(line))), file=answers, flush=True)


def _answer(verbs: Mapping[str, Verb], request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        if "before" in request:
            verbs[request["before"]["do"]](request["before"])
        cpu, started = _cpu_seconds(), time.perf_counter()
        check = verbs[request["do"]](request)
        seconds, cpu = time.perf_counter() - started, _cpu_seconds() - cpu
        if "after" in request:
            check = verbs[request["after"]["do"]](request["after"])
    except Exception:  # noqa: BLE001 - told to the bench, which stops
        return {"error": traceback.format_exc()}
    return {"seconds": seconds, "cpu": cpu, "check": check, "peak_mb": _peak_mb()}


def _cpu_seconds() -> float:
    """What the process and its descendants (the JVM is one) have computed: on a busy machine the truer measure."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except OSError:
            continue  # it has ended
        fields = text.rsplit(")", 1)[1].split()
        pid = int(path.parent.name)
        # With what children that have ended took, as their parent waited for them.
        parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    return sum(n for pid, n in ticks.items() if _descends(pid, os.getpid(), parents)) / os.sysconf("SC_CLK_TCK")


def _descends(pid: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    while pid != ancestor and pid in parents:
        pid = parents[pid]
    return pid == ancestor


def _peak_mb() -> float:
    """The process's own peak of resident memory.

    Not `ru_maxrss`: Linux carries it over `exec`, so that a worker would report the peak of the bench that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


class WorkerFailed(Exception):
    """A worker died or could not do its work; the message holds what it said."""


class Worker:
    """The bench's end of a worker process."""

    def __init__(self, name: str, python: Path, script: Path, env: Mapping[str, str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("a", encoding="utf-8") as errors:
            self._process = subprocess.Popen(
                [str(python), str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **env, "PYTHONPATH": os.pathsep.join(_paths(env))},
            )
        self.versions: dict[str, str] = self._receive()["ready"]

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a request and waits for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._receive()
        if "error" in answer:
            raise WorkerFailed(f"{self.name} failed at {request}:\n{answer['error']}")
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        # A JVM that was started before `serve` prints into the same pipe.
        while line and not line.startswith("{"):
            line = self._process.stdout.readline()
        if not line:
            tail = self._log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise WorkerFailed(f"{self.name} ended (exit code {self._process.wait()}):\n{tail}")
        return json.loads(line)  # type: ignore[no-any-return]


def _paths(env: Mapping[str, str]) -> list[str]:
    """This folder, for `import protocol`, and what the engine needs beside it."""
    return [str(Path(__file__).resolve().parent), *filter(None, [env.get("PYTHONPATH")])]

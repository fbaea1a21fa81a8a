"""Engines in processes of their own, which stay as long as they are asked: the reference kit's, and ours over Connect."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from reference_engine import ENGINES, REFERENCE

import alluvium
from model.engines.refused import Refused

TESTS = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("worker.py")

#: What an engine does not do, by words of its own, and why: each is its own affair. Anything else is a failure.
KNOWN: dict[str, tuple[str, ...]] = {
    "delta-spark": (
        "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
        "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
        "DELTA_FEATURE_DROP",
    ),
    "deltalake": ("",),
    "connect": ("DELTA_FEATURE_DROP",),
}


def is_installed() -> bool:
    return (REFERENCE / "venv/bin/python").exists() and (ENGINES / "engines.py").exists()


class ReferenceFailed(Exception):
    """An engine failed where nothing is known that it may not do."""


class ReferenceEngine:
    """A process that carries calls out."""

    def __init__(self, name: str, verbs: frozenset[str], known: tuple[str, ...]) -> None:
        self.name, self._verbs, self._known, self._calls = name, verbs, known, 0
        #: Whether it reads every table that the others write.
        self.reads = name != "deltalake"
        #: Whether its change feed tells updates as such; delta-rs leaves some to be told by the files that went and came.
        self.tells_kinds = name != "deltalake"
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        is_ours = name == "connect"
        places = [Path(alluvium.__file__).parents[1] if is_ours else ENGINES, TESTS, TESTS / "support"]
        environment |= {"PYTHONPATH": os.pathsep.join(map(str, places)), "REFERENCE_DIR": str(REFERENCE)}
        python = sys.executable if is_ours else str(REFERENCE / "venv/bin/python")
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # open as long as the process writes to it
        self._process = subprocess.Popen(
            [python, str(WORKER), name],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
        )  # fmt: skip
        self._receive()

    def can(self, call: dict[str, Any], constrained: bool) -> bool:
        # Deep clones, and clones into a table that is there, are refused by delta-spark; delta-rs has none.
        is_ours = call["verb"] == "clone" and (call["replace"] or not call["shallow"])
        return call["verb"] in self._verbs and not is_ours

    def do(self, url: str, call: dict[str, Any]) -> None:
        self._calls += 1
        answer = self._ask({"do": call, "url": url, "by_sql": self._calls % 2 == 0})
        if "error" not in answer:
            return
        for words in self._known:
            if words in answer["error"]:
                raise Refused(words or answer["error"][:60])
        raise ReferenceFailed(f"{self.name}: {answer['error']}")

    def rows(self, url: str, version: int) -> list[dict[str, Any]]:
        return self._read(url, rows=version) or []

    def changes(self, url: str, start: int) -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] | None = self._read(url, changes=start)
        return found

    def streamed(self, url: str, start: int | None = None) -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] | None = self._read(url, streamed=start)
        return found

    def row_ids(self, url: str, name: str) -> dict[int, tuple[int, int]] | None:
        found = self._read(url, row_ids=name)
        return None if found is None else {key: (row_id, version) for key, row_id, version in found}

    def _read(self, url: str, **what: Any) -> Any:
        answer = self._ask({**what, "url": url})
        if "error" in answer:
            raise ReferenceFailed(f"{self.name} reads {what}: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._receive()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A JVM that starts prints, too.
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        self._errors.seek(0)
        raise ReferenceFailed(f"{self.name} has ended: {self._errors.read()[-3000:]}")

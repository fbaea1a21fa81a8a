"""The reference engines as judges, in an environment of their own, asked by jobs (tests/interop/reference_server.py)."""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

REFERENCE = Path(os.environ.get("REFERENCE_DIR", Path.home() / ".cache/alluvium-reference"))
ENGINES = Path(os.environ.get("ALLUVIUM_REFERENCE", Path(__file__).parents[3] / "shared/reference"))
SERVER = Path(__file__).parents[1] / "interop" / "reference_server.py"

#: Marks of a test module that asks it.
NEEDS_REFERENCE = [
    pytest.mark.interop,
    pytest.mark.spark,
    pytest.mark.skipif(
        not (REFERENCE / "venv/bin/python").exists() or not (ENGINES / "engines.py").exists(),
        reason="delta-spark is not installed: ../shared/reference/setup installs it",
    ),
]

#: The same of Paimon's Java.
NEEDS_PAIMON = [
    pytest.mark.interop,
    pytest.mark.spark,
    pytest.mark.skipif(
        not list((REFERENCE / "jars").glob("paimon-bundle-*.jar")) or not (ENGINES / "paimon_java.py").exists(),
        reason="Paimon Java is not installed: ../shared/reference/setup installs it",
    ),
]


class _Engine:
    """A process that answers all tests of this one: delta-spark's JVM takes half a minute to start and to warm up."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ENGINES), "REFERENCE_DIR": str(REFERENCE)}
        # The project's own Spark and its settings must not leak into the other engine's session.
        for name in [n for n in environment if n.startswith(("SPARK_", "PYSPARK_"))]:
            del environment[name]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 # open as long as the process writes to it
        self._process = subprocess.Popen(
            [str(REFERENCE / "venv/bin/python"), str(SERVER)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        atexit.register(self.close)

    def ask(self, request: dict[str, str]) -> None:
        """Has a request answered.

        Raises:
            AssertionError: The process has ended.
        """
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pytest.fail(self._last_words())
        # Spark itself may print, too.
        if not any(line.startswith("@@ done") for line in process.stdout):
            pytest.fail(self._last_words())

    def _last_words(self) -> str:
        _engine.cache_clear()
        self._errors.seek(0)
        return f"the reference's process has ended: {self._errors.read()[-3000:]}"

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()


@functools.cache
def _engine() -> _Engine:
    return _Engine()


def judge(folder: Path, jobs: list[dict], script: str = "reference_jobs") -> list[dict]:
    """The answers to jobs, delta-spark's in one session of their own: `result`, `error`."""
    paths = {"jobs": str(folder / "jobs.json"), "results": str(folder / "results.json")}
    Path(paths["jobs"]).write_text(json.dumps(jobs))
    _engine().ask({"script": script, **paths})
    answers: list[dict] = json.loads(Path(paths["results"]).read_text())
    return answers


def paimon(folder: Path, *jobs: dict[str, object]) -> list:
    """Has Paimon do jobs (tests/interop/paimon_jobs.py); what each was answered.

    Raises:
        AssertionError: It failed at one.
    """
    answers = judge(folder, list(jobs), "paimon_jobs")
    assert [answer["error"] for answer in answers] == [None] * len(jobs)
    return [answer["result"] for answer in answers]

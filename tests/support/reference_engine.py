"""The reference engine as a judge: delta-spark in an environment of its own, asked by jobs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

REFERENCE = Path(os.environ.get("REFERENCE_DIR", Path.home() / ".cache/alluvium-reference"))
ENGINES = Path(os.environ.get("ALLUVIUM_REFERENCE", Path(__file__).parents[3] / "shared/reference"))
JOBS = Path(__file__).parents[1] / "interop" / "reference_jobs.py"

#: Marks of a test module that asks it.
NEEDS_REFERENCE = [
    pytest.mark.interop,
    pytest.mark.spark,
    pytest.mark.skipif(
        not (REFERENCE / "venv/bin/python").exists() or not (ENGINES / "engines.py").exists(),
        reason="delta-spark is not installed: ../shared/reference/setup installs it",
    ),
]


def judge(tmp_path: Path, jobs: list[dict]) -> list[dict]:
    """delta-spark's results for the jobs, in one session of its own."""
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    command = [
        str(REFERENCE / "venv/bin/python"),
        str(JOBS),
        str(tmp_path / "jobs.json"),
        str(tmp_path / "results.json"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ENGINES), "REFERENCE_DIR": str(REFERENCE)}
    # The project's own Spark and its settings must not leak into the other engine's session.
    for name in (
        "SPARK_HOME",
        "PYSPARK_GATEWAY_PORT",
        "PYSPARK_GATEWAY_SECRET",
        "PYSPARK_PYTHON",
        "PYSPARK_DRIVER_PYTHON",
    ):
        environment.pop(name, None)
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=540)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads((tmp_path / "results.json").read_text())

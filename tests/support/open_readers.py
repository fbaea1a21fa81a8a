"""Other readers of Delta tables, deltalake and DuckDB, in an environment of their own (scripts/install.sh readers)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

READERS = Path(os.environ.get("READERS_DIR", Path.home() / ".cache/alluvium-readers"))
SCRIPTS = Path(__file__).parents[1] / "interop"

#: Marks of a test module that asks them. The stamp stands there when everything was installed.
NEEDS_READERS = [
    pytest.mark.interop,
    pytest.mark.skipif(
        not list(READERS.glob(".installed-*")),
        reason="deltalake and DuckDB are not installed: scripts/install.sh readers installs them",
    ),
]


def run_script(name: str, *arguments: str) -> None:
    """A script of tests/interop, in the readers' Python."""
    command = [str(READERS / "bin/python"), str(SCRIPTS / name), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, (run.stdout[-200:], run.stderr[-3000:])


def ask_readers(out: Path, jobs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What each reader told of each table; the rows are left in Arrow files below the folder `out`."""
    out.mkdir()
    (out / "jobs.json").write_text(json.dumps(jobs))
    run_script("read_openly.py", str(out / "jobs.json"), str(out))
    found: dict[str, Any] = json.loads((out / "told.json").read_text())
    return found

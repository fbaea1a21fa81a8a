"""A copy of the sources that `mutants.py` changes, and runs of tests in it, each of which ends within a time."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import fastavro  # noqa: F401 - imported before the fork
import hypothesis.strategies  # noqa: F401 - imported before the fork
import msgspec  # noqa: F401 - imported before the fork
import numpy as np  # noqa: F401 - imported before the fork
import pyarrow.compute
import pyarrow.dataset
import pyarrow.orc
import pyarrow.parquet  # noqa: F401 - imported before the fork
import pytest
import sqlglot  # noqa: F401 - imported before the fork
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("src/alluvium")
#: The tests without a JVM that do not take minutes; as in `test.py`.
MARKS = "not spark and not connect and not cluster and not interop and not conformance and not slow"
#: pytest: nothing was collected.
NO_TESTS = 5
#: What a changed loop may ask of memory.
MEMORY_BYTES = 12 << 30
#: A file system in memory, and how much must be free there for the tables of tests (see `test.py`).
TABLES, TABLES_BYTES = Path("/dev/shm"), 4 << 30


def place_of_tables() -> Path | None:
    """Where temporary files are quick; None: where all of them go."""
    writable = TABLES.is_dir() and os.access(TABLES, os.W_OK)
    return TABLES if writable and shutil.disk_usage(TABLES).free >= TABLES_BYTES else None


class Copy:
    """A copy of the sources in which one change stands at a time.

    Args:
        folder: Where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changes = 0
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))

    def put(self, path: str, source: bytes) -> None:
        """Changes a module; its compiled form is told by the time."""
        place = self._folder / PACKAGE / path
        self._changes += 1
        place.write_bytes(source)
        os.utime(place, (self._changes, self._changes))

    def restore(self, path: str) -> None:
        origin = ROOT / PACKAGE / path
        shutil.copy2(origin, self._folder / PACKAGE / path)

    def run(self, files: Sequence[str], seconds: float, *plugins: object) -> tuple[int | None, str]:
        """pytest's exit code and its output; None: it took too long."""
        output = self._folder / "output.txt"
        child = os.fork()
        if not child:
            self._be_pytest(files, output, plugins)
        code = wait_for(child, seconds)
        return code, output.read_text(errors="replace") if output.exists() else ""

    def _be_pytest(self, files: Sequence[str], output: Path, plugins: Sequence[object]) -> None:
        """In the child; never returns."""
        code = 99
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            sink = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(sink, stream)
            os.chdir(ROOT)
            # What is compiled is for the runs that follow: of the copy, and of the tests.
            sys.dont_write_bytecode = False
            sys.pycache_prefix = str(self._folder / "compiled")
            # The project's root as well, which `python -m` puts there: processes of tests find their modules by it.
            sys.path[:0] = [str(self._folder / "src"), str(ROOT)]
            os.environ["PYTHONPATH"] = str(self._folder / "src")
            os.environ["TMPDIR"] = str(self._folder)
            # Examples that break a changed source are none for the real one.
            os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(self._folder / "hypothesis")
            fixed = ("-x", "-q", "-p", "no:cacheprovider", "-m", MARKS, "--hypothesis-seed=0", "--tb=line")
            code = int(pytest.main([*fixed, f"--basetemp={self._folder / 'tmp'}", *files], [*plugins, Unshrunk()]))
            sys.stdout.flush()
        finally:
            os._exit(code)


def wait_for(child: int, seconds: float) -> int | None:
    """The exit code of a child; None: it was ended, with those it had started."""
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
    except BaseException:
        end(child)
        raise
    end(child)
    return None


def end(child: int) -> None:
    """Ends a child and those that it has started."""
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)


class Unshrunk:
    """A plugin of pytest: an example that fails is enough, however large. To make it small takes up to five minutes."""

    def pytest_sessionstart(self) -> None:
        usual = settings()
        settings.register_profile(
            "unshrunk", usual, phases=[p for p in usual.phases if p.name not in ("shrink", "explain")]
        )
        settings.load_profile("unshrunk")

"""Fixtures for all tests. The Spark session is made when the first test asks for it, one a process."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import jvm
import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ("variants",)

# How long an example takes says how busy the machine is; texts that must not hang are timed by their own tests.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# Programs that tests start, as users write them, start JVMs of their own: those too get no second compiler.
os.environ.setdefault("JAVA_TOOL_OPTIONS", jvm.OPTIONS)

HAS_SPARK = importlib.util.find_spec("pyspark") is not None

# Modules of Spark tests import pyspark at their top: without it they cannot even be collected.
HAS_CONNECT = HAS_SPARK and importlib.util.find_spec("grpc") is not None
collect_ignore_glob = [
    *([] if HAS_SPARK else ["spark/*", "cluster/*", "commands/*"]),
    *([] if HAS_CONNECT else ["connect/*"]),
]


#: Where alone `make test` looks for tests of a kind: to collect all takes longer than some of them do.
STAND_IN = {"connect": ("connect", "conformance"), "cluster": ("cluster",)}


#: The marks of a whole module, and those that a phase leaves out.
_OF_MODULE = re.compile(r"^pytestmark = .*", re.MULTILINE)
_LEFT_OUT = re.compile(r"not (\w+)")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules all of whose tests a phase leaves out are not even imported: a third of the time before its first test."""
    chosen = config.getoption("markexpr")
    if not chosen or " or " in chosen or not collection_path.name.startswith("test_"):
        return None
    marks = _OF_MODULE.search(collection_path.read_text(encoding="utf-8"))
    left_out = _LEFT_OUT.findall(chosen)
    return True if marks and any(f"pytest.mark.{name}" in re.split(r"[^\w.]", marks[0]) for name in left_out) else None


class _MarkByFixture:
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Who asks for a session needs a JVM, whether or not the test says so: `-m "not spark"` has none."""
        for item in items:
            for name in ("spark", "connect"):
                if name in getattr(item, "fixturenames", ()) and not item.get_closest_marker(name):
                    item.add_marker(name)
            _check_place(item)


def _check_place(item: pytest.Item) -> None:
    room = item.path.relative_to(Path(__file__).parent).parts[0]
    for name, rooms in STAND_IN.items():
        if item.get_closest_marker(name) and room not in rooms:
            raise pytest.UsageError(f"{item.nodeid} is marked {name!r}: such tests stand in tests/{rooms[0]}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_MarkByFixture())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A process has a classic session or one of Connect; where both kinds were asked for, those of Connect wait."""
    if all(any(item.get_closest_marker(mark) for item in items) for mark in ("spark", "connect")):
        for item in items:
            if item.get_closest_marker("connect"):
                item.add_marker(pytest.mark.skip(reason="needs a process without a classic session: pytest -m connect"))


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not look at it again and again, nor so often.

    A fifth of the tests without a JVM was spent so.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _make_workers_like_this_process() -> None:
    """Python workers run this interpreter, and find the package where this process does."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    source = os.path.dirname(os.path.dirname(importlib.import_module("alluvium").__file__ or ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in (source, os.environ.get("PYTHONPATH")) if p)


@pytest.fixture(scope="session")
def connect() -> Iterator[SparkSession]:
    """A session of Spark Connect in UTC; its server is a JVM of this process, nothing of ours in it."""
    pytest.importorskip("grpc", reason="Spark Connect's packages are not installed: pip install 'alluvium[connect]'")
    sql = pytest.importorskip("pyspark.sql")
    _make_workers_like_this_process()
    # The port of a local server is always the same, and a client of one asks nobody which: two test runs would meet.
    builder = importlib.import_module("pyspark.sql.connect.client").DefaultChannelBuilder
    port = _free_port()
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(builder, "default_port", staticmethod(lambda: port))
    session = (
        sql.SparkSession.builder.remote("local[2]")
        .config("spark.connect.grpc.binding.port", str(port))
        .config("spark.driver.extraJavaOptions", jvm.OPTIONS)
        .config("spark.buffer.pageSize", jvm.PAGE_BYTES)
        .config(map=jvm.NO_CALL_SITES)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "OFF")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    # The server is this process's own.
    jvm.lighten(importlib.import_module("pyspark").SparkContext._active_spark_context)
    yield session
    session.stop()
    monkeypatch.undo()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local session in UTC."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'alluvium[spark]'")
    _make_workers_like_this_process()
    session = (
        sql.SparkSession.builder.config(map=jvm.settings(importlib.import_module("pyspark").__version__))
        .master("local[2]")
        .appName("alluvium-tests")
        .config("spark.ui.enabled", "false")
        # Of more stages than this those go first that were skipped, however new: a test counts rows by stage.
        .config("spark.ui.retainedStages", "100000")
        .config("spark.driver.extraJavaOptions", jvm.OPTIONS)
        .config("spark.buffer.pageSize", jvm.PAGE_BYTES)
        .config("spark.ui.showConsoleProgress", "false")
        # Not where the process stands: what a killed run left there would be in the way of the next.
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    jvm.lighten(session.sparkContext)
    yield session
    session.stop()

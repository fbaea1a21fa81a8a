"""The same DELETE, UPDATE and MERGE in both engines: equal rows, feeds, row ids, schemas and histories after each step."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from reference_engine import ENGINES, NEEDS_REFERENCE, REFERENCE

import alluvium

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from dml_views import step_differences  # noqa: E402
from run_dml import SCRIPTS, play  # noqa: E402

pytestmark = [*NEEDS_REFERENCE, pytest.mark.timeout(1500)]

TABLES = [f"{name}-{table}" for name, script in SCRIPTS.items() for table in script.tables]

#: Where we differ and mean to: on which tables, at what, and why. Each must still be met somewhere.
KNOWN: tuple[tuple[str, str, str], ...] = ()


@pytest.fixture(scope="module")
def told(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    root = tmp_path_factory.mktemp("dml")
    # The project's own Spark and its settings must not leak into the other engine's session.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    environment |= {"PYTHONPATH": str(ENGINES), "REFERENCE_DIR": str(REFERENCE)}
    command = [str(REFERENCE / "venv/bin/python"), str(HERE / "run_dml.py"), str(root / "theirs"), str(root / "t.json")]
    alluvium.enable(spark)
    try:
        ours = play(spark, alluvium, root / "ours")
    finally:
        alluvium.disable(spark)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1400)
    assert done.returncode == 0, done.stderr[-3000:]
    return root, ours, json.loads((root / "t.json").read_text())


@pytest.fixture(scope="module")
def found(told: tuple[Path, dict[str, Any], dict[str, Any]]) -> dict[str, list[str]]:
    root, ours, theirs = told
    return {
        table: list(step_differences(root / "ours" / table, root / "theirs" / table, ours[table], theirs[table]))
        for table in TABLES
    }


@pytest.mark.parametrize("table", TABLES)
def test_both_engines_leave_the_same_table(found: dict[str, list[str]], table: str) -> None:
    unknown = [
        line for line in found[table] if not any(re.search(t, table) and re.search(what, line) for t, what, _ in KNOWN)
    ]
    assert unknown == []


def test_what_is_known_to_differ_still_does(found: dict[str, list[str]]) -> None:
    lines = [(table, line) for table, differences in found.items() for line in differences]
    assert [k for k in KNOWN if not any(re.search(k[0], t) and re.search(k[1], line) for t, line in lines)] == []


@pytest.mark.parametrize("table", TABLES)
def test_ours_are_refused_in_our_words(told: tuple[Path, dict[str, Any], dict[str, Any]], table: str) -> None:
    errors = [step["error"] for step in told[1][table] if step["error"] is not None]
    ours = (*(name for name, kind in vars(alluvium.errors).items() if isinstance(kind, type)), "Wrong", "NotATable")
    assert [error for error in errors if not error.startswith(ours)] == []

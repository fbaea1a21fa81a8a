"""A small part of `make histories`: writers on one table, killed at random, leave the history of a serial order."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import alluvium
from history.acts import Act
from history.contest import Contest, hold, python_of
from history.replay import Broken, Log
from history.writers.alluvium_writer import AlluviumWriter, make_table
from history.writers.run import practise

#: Of `make histories` play hundreds of times as many.
COMMITS = 40


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_killed_writers_leave_a_serial_order(tmp_path: Path) -> None:
    kinds = ["python", "python", "python"]
    if python_of("deltalake").exists():
        kinds.append("deltalake")
    outcome = hold(Contest(1, kinds, COMMITS, 100, kill_s=0.7), tmp_path / "contest")
    assert outcome.alone == []
    assert outcome.verdict.problems == []
    assert sum(outcome.verdict.commits.values()) == outcome.versions


def test_practice_leaves_the_table_as_it_is(tmp_path: Path) -> None:
    make_table(str(tmp_path / "table"), {})
    practised: list[str] = []

    class Watched(AlluviumWriter):
        def __call__(self, act: Act) -> None:
            practised.append(act.verb)
            super().__call__(act)

    practise(Watched, tmp_path / "table", 1, frozenset({"drop", "append"}))
    assert practised == ["append", "drop"]
    assert alluvium.open(str(tmp_path / "table")).version == 0
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


_TWO_COMPACTIONS = """
import sys, pyarrow as pa
from deltalake import DeltaTable, write_deltalake
rows = pa.table({"p": ["e"], "id": [1], "v": [1], "last": ["1:1"]})
for _ in range(3):
    write_deltalake(sys.argv[1], rows, mode="append", partition_by="p")
one, other = DeltaTable(sys.argv[1]), DeltaTable(sys.argv[1])
one.optimize.compact()
other.optimize.compact()
"""


@pytest.mark.interop
@pytest.mark.skipif(
    not python_of("deltalake").exists(), reason="deltalake is not installed: scripts/install.sh readers"
)
def test_two_compactions_of_delta_rs(tmp_path: Path) -> None:
    """Why its writers have none here. Where this fails, they can have it back (`writers/deltalake_writer.py`)."""
    table = str(tmp_path / "table")
    subprocess.run([str(python_of("deltalake")), "-c", _TWO_COMPACTIONS, table], check=True, timeout=60)
    assert alluvium.open(table).to_arrow().num_rows == 6
    with pytest.raises(Broken, match="remove of a file that is not there"):
        list(Log(tmp_path / "table").versions())

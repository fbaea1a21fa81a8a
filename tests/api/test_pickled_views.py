"""Views cross the boundaries of processes: what a pool of workers is handed."""

from __future__ import annotations

import pickle
from pathlib import Path

from paimon_tables import write_readings
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.storage.open import open_store


def test_a_delta_table(tmp_path: Path) -> None:
    commit_rows(open_target(open_store(str(tmp_path / "t"))), [1, 2, 3])
    t = alluvium.open(str(tmp_path / "t"))
    copy = pickle.loads(pickle.dumps(t))
    assert copy.to_arrow() == t.to_arrow() and copy.to_arrow().num_rows == 3
    assert copy.refresh().version == 0


def test_a_paimon_table(tmp_path: Path) -> None:
    write_readings(tmp_path / "readings")
    t = alluvium.open(str(tmp_path / "readings"))
    copy = pickle.loads(pickle.dumps(t))
    assert copy.to_arrow() == t.to_arrow() and copy.to_arrow().num_rows > 0

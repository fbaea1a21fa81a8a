"""A version as a source of plans; no JVM."""

from __future__ import annotations

from pathlib import Path

from plain_writer import commit_rows, open_target

from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.storage.open import open_store


def test_who_judges_all_rows_passes_over_no_file(tmp_path: Path) -> None:
    store = open_store(tmp_path / "t")
    commit_rows(open_target(store), [1])
    plain = DeltaSource(load_snapshot(store))
    exact = DeltaSource(load_snapshot(store), is_exact=True)
    assert [[part.is_exact for part in one.plan_scan().parts] for one in (plain, exact)] == [[False], [True]]
    # Engines keep one relation of those that are equal.
    assert plain.identity != exact.identity

"""Progress on long work: a bar on the terminal, or the caller's own function."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import alluvium
from alluvium.api.delta.maintenance import convert_table, vacuum_table


def folder(root: Path, files: int) -> str:
    for n in range(files):
        pq.write_table(pa.table({"id": [n]}), root / f"f{n}.parquet")
    return str(root)


def test_a_conversion_tells_of_footers(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    with alluvium.progress(lambda *how_far: heard.append(how_far)):
        convert_table(folder(tmp_path, 25))
    assert [done for what, done, total in heard if what == "footers read" and total == 25][-1] == 25


def test_bars_come_for_much_work_alone_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    few, many = tmp_path / "few", tmp_path / "many"
    few.mkdir()
    many.mkdir()
    with alluvium.progress():
        convert_table(folder(few, 3))
    assert screen.getvalue() == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    with alluvium.progress():
        convert_table(folder(many, 30))
    assert "footers read" in screen.getvalue()
    # The cursor is shown again.
    assert screen.getvalue().rfind("\x1b[?25h") > screen.getvalue().rfind("\x1b[?25l")


def test_a_vacuum_tells_of_deleted_files(tmp_path: Path) -> None:
    url = folder(tmp_path, 3)
    convert_table(url)
    old = tmp_path / "left.parquet"
    pq.write_table(pa.table({"id": [1]}), old)
    # Of the millisecond in which the VACUUM begins it would be too young.
    os.utime(old, (0, 0))
    heard: list[tuple[str, int, int]] = []
    with alluvium.progress(lambda *how_far: heard.append(how_far)):
        vacuum_table(url, 0.0, checks=False)
    assert ("deleted files", 1, 1) in heard
    assert not old.exists()

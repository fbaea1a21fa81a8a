"""OPTIMIZE without Spark that fails leaves no file behind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from sessionless import refused, table_of

import alluvium
from alluvium.errors import StorageError
from alluvium.portable.writing.files import FilesInTheMaking


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


def test_files_of_bins_that_were_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(tmp_path / "t")
    for number in range(6):
        alluvium.write(pa.table({"id": [number], "p": [number % 2]}), url, mode="append", partition_by=["p"])
    before, finish, done = files(tmp_path), FilesInTheMaking.finish, []

    def full(self: FilesInTheMaking) -> object:
        if done:
            raise StorageError("the disk is full", code="storage-failure")
        done.extend(finish(self))
        return done

    monkeypatch.setattr(FilesInTheMaking, "finish", full)
    assert refused(lambda: table_of(url).optimize().executeCompaction()).code == "storage-failure"
    assert len(done) == 1 and files(tmp_path) == before
    monkeypatch.undo()
    table_of(url).optimize().executeCompaction()
    assert sorted(alluvium.open(url).to_arrow()["id"].to_pylist()) == list(range(6))

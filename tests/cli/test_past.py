"""`alluvium versions`, `restore`, `generate`, `upgrade`: what they print, and what they do."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from plain_writer import commit_rows, open_target
from vacuumed_tables import overwritten

import alluvium
from alluvium.api.delta.maintenance import vacuum_table
from alluvium.cli.app import main
from alluvium.storage.open import open_store


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            main([*map(str, arguments)])
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return (code, *capsys.readouterr())

    return call


def test_versions_that_can_be_read_and_after_vacuum(run, tmp_path: Path) -> None:
    overwritten(tmp_path)
    code, out, _ = run("versions", tmp_path, "--format", "json")
    told = json.loads(out)
    assert code == 0 and [(row["version"], row["readable"]) for row in told] == [(n, True) for n in (3, 2, 1, 0)]
    vacuum_table(str(tmp_path), 0, checks=False)
    code, out, _ = run("versions", tmp_path, "--limit", "2")
    assert code == 0 and "can be read" in out and "2" in out
    readable = alluvium.open(str(tmp_path)).readable_versions().column("readable").to_pylist()
    assert f"{sum(readable)} version" in out


def test_an_older_version_comes_back(run, tmp_path: Path) -> None:
    store = open_store(tmp_path)
    commit_rows(open_target(store), [1])
    commit_rows(open_target(store), [2])
    assert "would come back, 1 file" in " ".join(run("restore", tmp_path, "--version", 0, "--dry-run")[1].split())
    assert alluvium.open(str(tmp_path)).version == 1
    code, out, _ = run("restore", tmp_path, "-v", 0)
    assert code == 0 and out.startswith("version 2: 0 files of")
    assert alluvium.open(str(tmp_path)).to_arrow()["id"].to_pylist() == [1]
    assert "the newest" in run("restore", tmp_path, "-v", 2)[1]
    assert json.loads(run("restore", tmp_path, "-v", 1, "-f", "json")[1])["numRestoredFiles"] == 1
    code, _, err = run("restore", tmp_path)
    assert code == 2 and "a version or a timestamp" in err


def test_a_restore_that_would_be_refused_says_so(run, tmp_path: Path) -> None:
    overwritten(tmp_path)
    vacuum_table(str(tmp_path), 0, checks=False)
    code, out, _ = run("restore", tmp_path, "-v", 0, "--dry-run")
    assert code == 0 and "it would be refused: " in out
    assert json.loads(run("restore", tmp_path, "-v", 0, "--dry-run", "-f", "json")[1])["missing"]
    assert run("restore", tmp_path, "-v", 0)[0] == 2


def test_manifests(run, tmp_path: Path) -> None:
    commit_rows(open_target(open_store(tmp_path)), [1])
    code, out, _ = run("generate", tmp_path)
    assert (code, out.strip()) == (0, "the manifests list the files of version 0")
    (line,) = (tmp_path / "_symlink_format_manifest" / "manifest").read_text().splitlines()
    assert os.path.exists(line.removeprefix("file:"))
    assert json.loads(run("generate", tmp_path, "-f", "json")[1]) == {"version": 0}


def test_an_upgrade_tells_before_who_could_still_read(run, tmp_path: Path) -> None:
    commit_rows(open_target(open_store(tmp_path)), [1])
    code, out, _ = run("upgrade", tmp_path, 2, 5, "--dry-run")
    assert code == 0 and "nothing was written" in out and "can be read by: delta-spark" in out
    code, out, _ = run("upgrade", tmp_path, 2, 5, "--dry-run", "-f", "json")
    told = json.loads(out)
    assert told["version"] == 0 and [note.partition(":")[0] for note in told["notes"]] == [
        "can be read by",
        "can be written by",
    ]
    assert alluvium.open(str(tmp_path)).protocol.min_writer_version == 2
    assert run("upgrade", tmp_path, 2, 5)[:2] == (0, "version 1\n")
    assert alluvium.open(str(tmp_path)).protocol.min_writer_version == 5
    assert run("upgrade", tmp_path, 2, 5)[:2] == (0, "nothing to do\n")
    assert run("upgrade", tmp_path, 1, 2, "--dry-run")[:2] == (0, "nothing to do\n")
    code, _, err = run("upgrade", tmp_path, 9, 9)
    assert code == 2 and "invalid-property" in err

"""`alluvium vacuum`: what it prints, and that it deletes what it said."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from vacuumed_tables import files_of, live, overwritten

from alluvium.api.delta.maintenance import clone_table
from alluvium.cli.app import main

NOW = ("--retention-hours", "0", "--no-check")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            main(["vacuum", *map(str, arguments)])
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return (code, *capsys.readouterr())

    return call


def test_a_dry_run_says_what_would_go_and_what_would_be_lost(run, tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    before = files_of(tmp_path)
    code, out, _ = run(tmp_path, *NOW, "--dry-run")
    assert code == 0
    assert "3 files of" in out and "unreadable afterwards: versions 0 to 2" in out
    code, out, _ = run(tmp_path, *NOW, "--dry-run", "--format", "json")
    told = json.loads(out)
    assert (told["files"], told["lost_versions"], told["lost_clones"]) == (3, [0, 1, 2], [])
    assert set(told["paths"]) == before - live(store)
    code, out, _ = run(tmp_path, *NOW, "--dry-run", "--format", "csv")
    assert {row["path"] for row in csv.DictReader(io.StringIO(out))} == set(told["paths"])
    assert files_of(tmp_path) == before


def test_a_dry_run_says_which_clones_would_be_lost(run, tmp_path: Path) -> None:
    overwritten(tmp_path / "t")
    for version, name in ((1, "old"), (3, "new")):
        clone_table(str(tmp_path / "t"), str(tmp_path / name), shallow=True, version=version)
    clones = [word for name in ("old", "new") for word in ("--clone", tmp_path / name)]
    code, out, _ = run(tmp_path / "t", *NOW, "--dry-run", *clones, "--format", "json")
    assert code == 0 and [url.rpartition("/")[2] for url in json.loads(out)["lost_clones"]] == ["old"]
    assert "; clones file:" in " ".join(run(tmp_path / "t", *NOW, "--dry-run", *clones)[1].split())
    assert run(tmp_path / "t", *NOW, *clones)[0] == 2


def test_it_deletes_what_no_version_needs(run, tmp_path: Path) -> None:
    store = overwritten(tmp_path)
    (tmp_path / "empty").mkdir()
    assert run(tmp_path)[1].split() == ["0", "files", "of", "0", "B", "deleted,", "1", "empty", "folder", "removed"]
    assert run(tmp_path, *NOW, "--lite")[1].startswith("3 files of ")
    assert files_of(tmp_path) == live(store)
    _, out, _ = run(tmp_path, *NOW, "--format", "json")
    assert json.loads(out) == {"files": 0, "bytes": 0, "directories": 3, "version": 9}


def test_what_is_refused_has_an_exit_code_and_a_hint(run, tmp_path: Path) -> None:
    overwritten(tmp_path)
    before = files_of(tmp_path)
    code, _, err = run(tmp_path, "--retention-hours", "0")
    assert code == 2
    assert "retention-too-short" in err and "--no-check" in err
    assert run(tmp_path, "--retention-hours", "-1")[0] == 2
    assert run(tmp_path / "none")[0] == 2
    assert files_of(tmp_path) == before


def test_a_retention_that_is_no_number_is_refused_and_for_ever_is_for_ever(run, tmp_path: Path) -> None:
    overwritten(tmp_path)
    before = files_of(tmp_path)
    code, _, error = run(tmp_path, "--retention-hours", "nan", "--no-check")
    assert code == 2 and "wrong-type" in error
    code, out, _ = run(tmp_path, "--retention-hours", "inf", "--format", "json")
    assert code == 0 and json.loads(out)["files"] == 0
    assert files_of(tmp_path) == before

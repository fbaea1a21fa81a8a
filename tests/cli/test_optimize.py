"""`alluvium optimize`: the one command that needs Spark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import alluvium
from alluvium.cli.app import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            main(["optimize", *map(str, arguments)])
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return (code, *capsys.readouterr())

    return call


@pytest.mark.spark
def test_it_tells_what_it_would_do_and_does_it(spark, run, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for n in (0, 2):
        df = spark.range(n, n + 2).selectExpr("id", "id % 2 as p").coalesce(1)
        alluvium.write(df, path, mode="append", partition_by=() if n else ["p"])
    code, out, _ = run(path, "--where", "p = 1", "--dry-run")
    assert (code, out.count("part-"), "2 files of" in out) == (0, 2, True)
    code, out, _ = run(path, "--where", "p = 1", "--format", "json")
    assert (code, json.loads(out)["files_removed"], json.loads(out)["files_added"]) == (0, 2, 1)
    code, out, _ = run(path, "--zorder-by", "id")
    assert code == 0 and "3 files of" in out and "became 2 files of" in out
    assert (run(path)[1].strip(), run(path, "--dry-run")[1].strip()) == ("nothing to do", "nothing to do")
    code, out, _ = run(path, "--sort-by", "id", "--format", "json")
    assert (code, json.loads(out)["files_added"]) == (0, 2)
    assert run(path, "--purge")[1].strip() == "nothing to do"
    assert "--full and --sort-by at once" in run(path, "--full", "--sort-by", "id")[2]
    assert "has none" in run(path, "--full")[2]
    code, _, err = run(path, "--where", "id = 1")
    assert code == 2 and "partition column" in err
    assert sorted(alluvium.open(path).to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
    assert spark.range(1).count() == 1, "a session that was there stays"


def test_without_spark_it_says_what_is_missing(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "alluvium.api.delta.optimize.own_session", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    code, _, err = run(tmp_path)
    assert code == 2 and "pip install" in err


def test_without_pyspark_files_are_put_together_all_the_same(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    for n in (0, 2):
        alluvium.write(pa.table({"id": [n, n + 1], "p": [0, 1]}), path, mode="append", partition_by=["p"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    code, out, _ = run(path, "--where", "p = 1", "--dry-run")
    assert (code, out.count("part-"), "2 files of" in out) == (0, 2, True)
    code, out, _ = run(path, "--where", "p = 1", "--format", "json")
    assert (code, json.loads(out)["files_removed"], json.loads(out)["files_added"]) == (0, 2, 1)
    assert run(path, "--purge")[1].strip() == "nothing to do"
    code, out, _ = run(path)
    assert code == 0 and "2 files of" in out and "became 1 file of" in out
    assert sorted(alluvium.open(path).to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
    assert run(path, "--where", "id = 1")[0] == 2

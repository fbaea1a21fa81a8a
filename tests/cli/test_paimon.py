"""The commands on a Paimon table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from paimon_tables import write_readings

from alluvium.cli.app import main


@pytest.fixture
def readings(tmp_path: Path) -> str:
    write_readings(tmp_path / "readings")
    return str(tmp_path / "readings")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    try:
        main([*arguments])
    except SystemExit as end:
        assert not end.code, capsys.readouterr().err
    return capsys.readouterr().out


def parsed(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    return json.loads(printed(capsys, *arguments, "--format", "json"))


def test_show(readings: str, capsys: pytest.CaptureFixture[str]) -> None:
    record = parsed(capsys, "show", readings)
    assert isinstance(record, dict)
    assert (record["format"], record["version"], record["files"], record["rows"]) == ("paimon", 3, 3, 5)
    assert (record["primary_keys"], record["tags"], record["branch"]) == (["sensor"], ["noon"], "main")
    text = printed(capsys, "show", readings)
    assert "bucket=1" in text
    assert "noon" in text


def test_rows_files_and_columns(readings: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert parsed(capsys, "cat", readings, "--columns", "sensor", "--where", "value > 3") == [{"sensor": "c"}]
    assert parsed(capsys, "cat", readings, "--version", "1", "--columns", "sensor") == [
        {"sensor": "a"},
        {"sensor": "b"},
    ]
    assert [f["rows"] if "rows" in f else f["num_rows"] for f in parsed(capsys, "files", readings)] == [2, 2, 1]
    assert [c["column"] for c in parsed(capsys, "schema", readings)] == ["sensor", "place", "value"]
    assert [h["version"] for h in parsed(capsys, "history", readings, "-n", "2")] == [3, 2]


def test_changes_differences_and_system_tables(readings: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = parsed(capsys, "changes", readings, "1", "noon")
    assert [(row["_row_kind"], row["sensor"]) for row in found] == [("+I", "a"), ("+I", "c")]
    difference = parsed(capsys, "diff", readings, "1", "3")
    assert isinstance(difference, dict)
    assert difference["added"]["rows"] == 3
    assert [row["tag_name"] for row in parsed(capsys, "system", readings, "tags")] == ["noon"]


def test_what_only_one_format_has(readings: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["system", readings, "tag"])
    assert end.value.code == 2
    assert "tags" in capsys.readouterr().err

"""What a table's names and cells do to the terminal of whoever looks at it: nothing."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from made_table import make_table
from plain_writer import commit_rows, open_target

from alluvium.cli import app
from alluvium.cli.app import main
from alluvium.cli.escapes import json_printable, may_be_formula, printable
from alluvium.schema.types import STRING, Field, Struct
from alluvium.storage.open import open_store

#: OSC 52 (the clipboard), a title, a C1 control, text turned around, a line drawn over.
EVIL = "a\x1b]52;c;cm0gLXJm\x07\x9b31m\u202etxt\r\u2028z"


ALLUVIUM = (sys.executable, "-c", "from alluvium.cli.app import main; main()")


def acts(text: str) -> set[str]:
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\n\t"}


class Run:
    """One call in this process: its exit code and what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(list(arguments))
        out, err = self._capsys.readouterr()
        return int(caught.value.code or 0), out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("evil") / "t"
    commit_rows(open_target(open_store(str(root))), [1], f"={EVIL}")
    return str(root)


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its column, property and comment are evil."""
    return make_table(tmp_path_factory.mktemp("named"), Struct((Field(EVIL, STRING),)), {EVIL: EVIL})


@pytest.mark.parametrize("verb", ["cat", "history", "files", "show", "schema"])
@pytest.mark.parametrize("how", ["table", "json"])
def test_output(run: Run, table: str, named: str, verb: str, how: str) -> None:
    for url in (table, named):
        code, out, err = run(verb, url, "--format", how)
        assert code == 0, err
        assert not acts(out + err)


def test_json_means_the_same(run: Run, table: str) -> None:
    _, out, _ = run("cat", table, "--format", "json")
    assert json.loads(out) == [{"id": 1, "p": f"={EVIL}"}]


def test_csv_in_a_pipe_is_left_alone_and_formulas_are_told(run: Run, table: str) -> None:
    code, out, err = run("cat", table, "--format", "csv")
    assert code == 0 and EVIL in out
    assert "1 cell may be taken for formulas" in err


@pytest.mark.long
def test_csv_in_a_terminal(table: str) -> None:
    reader, writer = pty.openpty()
    with subprocess.Popen(
        (*ALLUVIUM, "cat", table, "--format", "csv"), stdout=writer, stderr=subprocess.DEVNULL
    ) as child:
        child.wait(60)
    os.close(writer)
    shown = os.read(reader, 65_536).decode().replace("\r\n", "\n")
    os.close(reader)
    assert "\\x1b]52" in shown
    assert not acts(shown)


def test_errors(run: Run, tmp_path: Path) -> None:
    code, out, err = run("show", str(tmp_path / EVIL.replace("/", "")))
    assert (code, out) == (2, "")
    assert not acts(err)


@pytest.mark.long
def test_every_character() -> None:
    all_text = "".join(map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1))))
    assert acts(printable(all_text)) == {"\u200c", "\u200d"}
    quoted = json.dumps(all_text, ensure_ascii=False)
    assert json.loads(json_printable(quoted)) == all_text


def test_a_defect_is_no_finding(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("\x1b[2J")

    monkeypatch.setattr(app, "app", lambda **_: broken())
    with pytest.raises(SystemExit) as caught:
        app.main(["doctor", "x"])
    assert caught.value.code == app.DEFECT
    assert not acts(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "may"),
    [("=1", True), ("@a", True), ("+1+cmd|' /C calc'!A0", True), ("-2+3", True), ("-1.5E-7", False), ("+3", False)],
)
def test_what_a_spreadsheet_may_run(text: str, may: bool) -> None:
    assert may_be_formula(text) is may

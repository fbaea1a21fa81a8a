"""What the README and the guides show is what happens: their code is run, and the output shown compared.

A block ` ```python ` is run; a block ` ```text ` right after it is what it prints (`...` stands for anything). In a
block ` ```console ` the lines that begin with `$ alluvium` are commands, the others their output. `<!-- spark -->`
above a block says that it needs a session. The blocks of a document share one namespace and one directory; outside of the
README, the table of its tour is there, a table `accounts` with a change feed, and `spark` is the session.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from change_table import write_accounts
from flights_table import write_flights
from paimon_tables import write_readings
from sketch_tables import write_visits

import alluvium
from alluvium.cli.app import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCUMENTS = [
    README,
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *sorted((ROOT / "docs" / "features").glob("*.md")),
]

_BLOCK = re.compile(
    r"(?P<spark><!-- spark -->\n)?```(?P<kind>python|console)\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?",
    re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A piece of a document that can be run; `line` is where it begins."""

    kind: str
    code: str
    output: str | None
    spark: bool
    line: int


def blocks_of(text: str) -> list[Block]:
    return [
        Block(m["kind"], m["code"], m["output"], m["spark"] is not None, text.count("\n", 0, m.start("code")) + 1)
        for m in _BLOCK.finditer(text)
    ]


#: What differs from run to run, or from one version of a library to the next, and stays as wide as it is.
_VARYING = {
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "<uuid>",
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+Z)?": "<time>",
    r"\b\d[\d.]* k?B\b": "<size>",
    r'Bytes": "\d+"': 'Bytes": "<size>"',
    r"file:/[^\s)]*/": "file:<directory>/",
}


def plain(text: str) -> str:
    for pattern, name in _VARYING.items():
        text = re.sub(pattern, name, text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"


def ensure_same(expected: str, found: str, where: str) -> None:
    flags = doctest.ELLIPSIS | doctest.DONT_ACCEPT_BLANKLINE
    same = doctest.OutputChecker().check_output(plain(expected), plain(found), flags)
    assert same, f"{where}\n--- the document shows\n{plain(expected)}--- what was printed\n{plain(found)}"


def run_python(block: Block, document: Path, names: dict[str, object]) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        # Lines are counted from the document's beginning, so that a traceback points into it.
        exec(compile("\n" * (block.line - 1) + block.code, str(document), "exec"), names)
    if block.output is not None or printed.getvalue():
        ensure_same(block.output or "", printed.getvalue(), f"{document.name}:{block.line}")


def run_console(block: Block, document: Path) -> None:
    for part in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        program, *arguments = shlex.split(command, comments=True)
        assert program == "alluvium", command
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), contextlib.suppress(SystemExit):
            main(arguments)
        ensure_same(expected, printed.getvalue(), f"{document.name}:{block.line}: {command}")


def run(document: Path, blocks: list[Block], **given: object) -> None:
    names: dict[str, object] = {"__name__": "__main__", **given}
    for block in blocks:
        if block.kind == "console":
            run_console(block, document)
        else:
            run_python(block, document, names)


@pytest.fixture(autouse=True)
def _directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A directory of a short name: what is printed of it must fit into a line."""
    monkeypatch.setenv("COLUMNS", "120")
    with tempfile.TemporaryDirectory() as directory:
        monkeypatch.chdir(directory)
        yield
        monkeypatch.undo()


def write_tables() -> None:
    write_flights("flights")
    write_accounts("accounts")
    write_readings("readings")
    write_visits("visits")


@pytest.mark.long
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.stem)
def test_what_needs_no_spark(document: Path):
    blocks = [b for b in blocks_of(document.read_text(encoding="utf-8")) if not b.spark]
    if not blocks:
        pytest.skip("all of it needs Spark")
    write_tables()
    run(document, blocks)


@pytest.mark.spark
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.stem)
def test_all_of_it(document: Path, spark: SparkSession):
    blocks = blocks_of(document.read_text(encoding="utf-8"))
    if not any(b.spark for b in blocks):
        pytest.skip("none of it needs Spark")
    if document != README:
        write_tables()
    try:
        run(document, blocks, **({} if document == README else {"spark": spark}))
    finally:
        alluvium.disable(spark)


def test_the_tour_has_both_halves():
    blocks = blocks_of(README.read_text(encoding="utf-8"))
    assert sum(b.spark and b.output is not None for b in blocks) >= 3
    assert sum(not b.spark and b.output is not None for b in blocks) >= 3


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.stem)
def test_every_block_is_understood(document: Path):
    """A fence with a typing error would silently not be run."""
    text = document.read_text(encoding="utf-8")
    assert text.count("```python\n") + text.count("```console\n") == len(blocks_of(text))
    outputs = sum(b.output is not None for b in blocks_of(text))
    assert text.count("```text\n") == outputs


@pytest.mark.parametrize(
    "document", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")), ids=lambda d: d.name
)
def test_links_lead_somewhere(document: Path):
    text = document.read_text(encoding="utf-8")
    targets = [t.partition("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in t]
    assert not [t for t in targets if t and not (document.parent / t).exists()]


def codes_in_source() -> set[str]:
    """What is given as `code=` anywhere in the package."""
    keywords = [
        keyword.value
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "code"
    ]
    values = [v for k in keywords for v in ((k.body, k.orelse) if isinstance(k, ast.IfExp) else (k,))]
    return {v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)}


def test_the_guide_to_errors_has_every_code():
    text = (ROOT / "docs" / "guides" / "errors.md").read_text(encoding="utf-8")
    assert not sorted(code for code in codes_in_source() if f"`{code}`" not in text)

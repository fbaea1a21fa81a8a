"""The page that says which test covers which sentence of the protocol tells the truth about the tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "spec-coverage.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ROW = re.compile(r"^\| (?!section|---)(.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def test_the_tests_that_the_page_names_exist() -> None:
    named = set(NAMED.findall(PAGE.read_text(encoding="utf-8")))
    missing = [f"{path}::{name}" for path, name in sorted(named) if name not in functions(ROOT / path)]
    assert len(named) > 50
    assert not missing


def test_every_sentence_has_a_test_or_says_why_not() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    silent = [
        sentence
        for _, sentence, by in rows
        if not NAMED.search(by) and not re.match(r"writer|missing|change data feed", by)
    ]
    assert len(rows) > 60
    assert not silent


def functions(path: Path) -> set[str]:
    if not path.exists():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}

"""What the tests of the architecture look at: the source files, parsed once."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "alluvium"


@dataclass(frozen=True)
class Source:
    """A Python file of the project; `place` is its path from the project's root, for messages."""

    path: Path

    @property
    def place(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.place)

    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """They stand where statements do: expressions, which are most of a tree, are passed over."""
        found: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.append(node)
            for place in ("body", "orelse", "finalbody", "handlers", "cases"):
                inner = getattr(node, place, ())
                waiting += inner if isinstance(inner, list) else ()
        return found


def read_sources(folder: Path) -> list[Source]:
    return [Source(path) for path in sorted(folder.rglob("*.py"))]


@pytest.fixture(scope="session")
def sources() -> list[Source]:
    """All modules of the package."""
    return read_sources(PACKAGE)


@pytest.fixture(scope="session")
def all_sources(sources: list[Source]) -> list[Source]:
    """The package, its tests, benchmarks and scripts."""
    return [*sources, *(source for name in ("tests", "benchmarks", "scripts") for source in read_sources(ROOT / name))]

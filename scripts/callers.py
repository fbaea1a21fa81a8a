"""Which tests call which functions: asked once, by running each file of tests with every function taking note."""

from __future__ import annotations

import ast
import collections
import hashlib
import json
import re
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from changed_copy import NO_TESTS, PACKAGE, ROOT, Copy

#: Tests of text, of layout and of whole engines judge the sources, not the copy, or need a JVM.
NO_JUDGES = ("architecture", "docs", "interop", "spark", "connect", "cluster", "conformance", "conformance_paimon")

#: Written at the top of each module of the copy; the set is one for the process.
_NOTE = "import sys as _sys; _was_called = _sys.__dict__.setdefault('_alluvium_reached', set())"
#: Where the answer is kept, the first test alone would be seen to ask.
_CACHE = re.compile(rb"^(\s*)@(functools\.)?(lru_)?cache\b.*")
_NO_CACHE = rb"\1@__import__('functools').lru_cache(0)"


class Test(NamedTuple):
    """One test: its file, pytest's name of it, and how long it takes."""

    file: str
    name: str
    seconds: float


@dataclass(frozen=True)
class Callers:
    """The tests that may judge, and of each function (`path:line`) those that call it."""

    tests: list[Test] = field(default_factory=list)
    functions: dict[str, list[Test]] = field(default_factory=lambda: collections.defaultdict(list))

    def of_modules(self, paths: Sequence[str]) -> list[Test]:
        """The tests that call any function of some modules."""
        found = (tests for function, tests in self.functions.items() if function.rpartition(":")[0] in paths)
        return list({test: None for tests in found for test in tests})


def with_notes(path: str, source: str) -> bytes:
    """The module, whose functions take note of being called, under the lines where they stand in the original."""
    tree = ast.parse(source)
    lines = [_CACHE.sub(_NO_CACHE, line) for line in source.encode().splitlines(keepends=True)]
    starts: dict[int, list[tuple[int, str]]] = collections.defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]
            number = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))])
            starts[number].append((first.col_offset, f"_was_called.add('{path}:{node.lineno}')"))
    body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
    rest = body[1:] if ast.get_docstring(tree) is not None else body
    if not rest:
        return source.encode()
    decorators = getattr(rest[0], "decorator_list", [])
    top = min([rest[0].lineno, *(d.lineno for d in decorators)])
    for number, notes in starts.items():
        for column, note in notes:
            line = lines[number - 1]
            # A compound statement cannot follow a semicolon: notes get a line of their own where there is one.
            between = b"; " if line[:column].strip() else b"\n" + line[:column]
            lines[number - 1] = line[:column] + note.encode() + between + line[column:]
    lines[top - 1] = _NOTE.encode() + b"\n" + lines[top - 1]
    return b"".join(lines)


class Reached:
    """A plugin of pytest that writes down, at the end, which functions each test of a file has called.

    What importing the file calls, and what a fixture calls that several tests share, is called by all of them.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._called: set[str] = sys.__dict__.setdefault("_alluvium_reached", set())
        self._shared: set[str] = set()
        self._tests: list[tuple[str, float]] = []
        self._functions: dict[str, list[int]] = collections.defaultdict(list)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        own = set(self._called)
        self._called.clear()
        try:
            return (yield)
        finally:
            self._shared |= self._called
            self._called |= own

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._shared |= self._called
        self._called.clear()
        started = time.monotonic()
        try:
            return (yield)
        finally:
            for function in self._called:
                self._functions[function].append(len(self._tests))
            self._tests.append((item.nodeid, round(time.monotonic() - started, 3)))
            self._called.clear()

    def pytest_sessionfinish(self) -> None:
        functions = {**self._functions, **{function: list(range(len(self._tests))) for function in self._shared}}
        self._place.write_text(json.dumps({"tests": self._tests, "functions": functions}))


def judges(folders: Sequence[str]) -> list[str]:
    """All files of tests that may judge, of some folders."""
    files = (path.relative_to(ROOT) for folder in folders for path in sorted((ROOT / folder).rglob("test_*.py")))
    return [str(path) for path in files if path.parts[1] not in NO_JUDGES]


def digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()


def find_callers(files: Sequence[str], folder: Path, kept: Path | None) -> Callers:
    """Runs each file of tests alone, in a copy whose functions take note.

    Args:
        files: Of tests.
        folder: For the copy.
        kept: The answers of earlier calls, a line for a file, which gets those of this one at once: of files that were
            changed since.
    """
    known: dict[str, Any] = {}
    if kept and kept.exists():
        known = {answer["file"]: answer for answer in map(json.loads, kept.read_text().splitlines())}
    modules = sorted((ROOT / PACKAGE).rglob("*.py"))
    sources = digest(*modules)
    keys = {file: [sources, digest(ROOT / file)] for file in files}
    unknown = [file for file in files if known.get(file, {}).get("key") != keys[file]]
    noting = noting_copy(folder, modules) if unknown else None
    for file in unknown:
        assert noting is not None
        known[file] = {"file": file, "key": keys[file], **asked(noting, file, folder / "reached.json")}
        if kept:
            with kept.open("a") as sink:
                sink.write(json.dumps(known[file]) + "\n")
    found = Callers()
    for file in files:
        tests = [Test(file, name, seconds) for name, seconds in known[file]["tests"]]
        found.tests.extend(tests)
        for function, places in known[file]["functions"].items():
            found.functions[function] += [tests[place] for place in places]
    seconds = sum(test.seconds for test in found.tests)
    print(f"{len(found.tests)} tests, {seconds:.0f} s, call {len(found.functions)} functions", flush=True)
    return found


def noting_copy(folder: Path, modules: Sequence[Path]) -> Copy:
    """A copy of the sources whose functions take note."""
    copy = Copy(folder)
    for path in modules:
        name = path.relative_to(ROOT / PACKAGE)
        (folder / PACKAGE / name).write_bytes(with_notes(str(name), path.read_text()))
    return copy


def asked(noting: Copy, file: str, place: Path) -> dict[str, Any]:
    """The tests of a file and what they call; nothing, if one of them fails."""
    place.unlink(missing_ok=True)
    code, output = noting.run([file], 600, Reached(place))
    if code not in (0, NO_TESTS):
        print(f"fails alone, and judges nothing: {file}\n{output[-1500:]}", flush=True)
    found: dict[str, Any] = json.loads(place.read_text()) if code == 0 else {"tests": [], "functions": {}}
    return found

"""`--variants=K/N`: of the parameters of each test those whose turn it is; `--variants-of=FOLDER` says of which tests.

`--turns=K/N --turns-of=FOLDER`: the same of tests below it that have no parameters. `--one-variant`: one set of
parameters of each test. Phases of `make test` share variants between them, or play a part (scripts/test.py); who says
nothing plays all.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("variants")
    group.addoption("--variants", metavar="K/N", help="of the parameters of a test those with the place K modulo N")
    group.addoption("--variants-of", action="append", default=[], metavar="FOLDER", help="only of tests below it")
    group.addoption("--turns", metavar="K/N", help="of tests without parameters those with the place K modulo N")
    group.addoption("--turns-of", action="append", default=[], metavar="FOLDER", help="only of tests below it")
    group.addoption("--one-variant", action="store_true", help="one set of parameters of each test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the variants, and the tests, whose turn it is not."""
    variants, whole = (_Turn.asked(config, what) for what in ("variants", "turns"))
    known: dict[tuple[str, str], dict[str, int]] = {}
    chosen = _one_of_each(items) if config.getoption("one_variant") else {*range(len(items))}
    kept, left = [], []
    for place, item in enumerate(items):
        turn = variants if hasattr(item, "callspec") else whole
        plays = turn is None or not isinstance(item, pytest.Function) or turn.plays(item, known)
        (kept if plays and place in chosen else left).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def _one_of_each(items: list[pytest.Item]) -> set[int]:
    """The places of one variant of each test: not the first of all, so that among many tests no value is left out."""
    tests: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        tests.setdefault(_test_of(item), []).append(place)
    return {places[crc32(test.encode()) % len(places)] for test, places in tests.items()}


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


@dataclass(frozen=True, slots=True)
class _Turn:
    """Which of `count` it is, of the tests below some folders."""

    number: int
    count: int
    folders: tuple[Path, ...]

    @classmethod
    def asked(cls, config: pytest.Config, what: str) -> _Turn | None:
        """What the command line says; None: everybody's turn."""
        if not (chosen := config.getoption(what)):
            return None
        number, count = (int(part) for part in chosen.split("/"))
        return cls(number, count, tuple(config.rootpath / folder for folder in config.getoption(f"{what}_of")))

    def plays(self, item: pytest.Function, known: dict[tuple[str, str], dict[str, int]]) -> bool:
        """Whether it is this test's turn, or it takes none."""
        takes_turns = any(item.path.is_relative_to(folder) for folder in self.folders)
        return not takes_turns or _place(item, known) % self.count == self.number


def _place(item: pytest.Function, known: dict[tuple[str, str], dict[str, int]]) -> int:
    """The same in every phase. With two parameters, pairs alternate as on a chessboard; tests begin with different ones,
    so that no value is left out everywhere.
    """
    test = _test_of(item)
    place = crc32(test.encode())
    for name, value in item.callspec.params.items() if hasattr(item, "callspec") else ():
        values = known.setdefault((test, name), {})
        place += values.setdefault(repr(value), len(values))
    return place

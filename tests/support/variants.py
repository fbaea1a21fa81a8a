"""`--variants=K/N`: of the parameters of each test those whose turn it is; `--variants-of=FOLDER` says of which tests.

`--turns=K/N --turns-of=FOLDER`: the same of tests below it that have no parameters. `--one-variant`: one set of
parameters of each test. Phases of `make test` share variants between them, or play a part (scripts/test.py); who says
nothing plays all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
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
    kept, left = [], []
    for item in items:
        turn = variants if hasattr(item, "callspec") else whole
        plays = turn is None or not isinstance(item, pytest.Function) or turn.plays(item, known)
        (kept if plays else left).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """With `--one-variant` the others are not even made: of 18,000 tests that takes most of the time to collect them."""
    if metafunc.config.getoption("one_variant"):
        make = metafunc.parametrize
        metafunc.parametrize = partial(_of_one_value, make, metafunc.definition.nodeid)  # type: ignore[method-assign]


def _of_one_value(
    make: Callable[..., None], test: str, names: object, values: Iterable[object], *more: object, **said: Any
) -> None:
    """One of a parameter's values, not always the first: among many tests each has its turn."""
    # By it pytest remembers which texts the values of a mark have got.
    said.pop("_param_mark", None)
    all_values = list(values)
    place = crc32(f"{test} {names}".encode()) % max(len(all_values), 1)
    texts = said.get("ids")
    if texts is not None and not callable(texts):
        said["ids"] = list(texts)[place : place + 1]
    make(names, all_values[place : place + 1], *more, **said)


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
    test = item.nodeid.partition("[")[0]
    place = crc32(test.encode())
    for name, value in item.callspec.params.items() if hasattr(item, "callspec") else ():
        values = known.setdefault((test, name), {})
        place += values.setdefault(repr(value), len(values))
    return place

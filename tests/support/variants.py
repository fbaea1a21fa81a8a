"""`--variants=K/N`: of the parameters of each test those whose turn it is; `--variants-of=FOLDER` says of which tests.

`--turns-of=FOLDER`: tests below it that have no parameters take turns, too. Phases of `make test` share variants
between them, or play a part (scripts/test.py); who says nothing plays all.
"""

from __future__ import annotations

from zlib import crc32

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("variants")
    group.addoption("--variants", metavar="K/N", help="of the parameters of a test those with the place K modulo N")
    group.addoption("--variants-of", action="append", default=[], metavar="FOLDER", help="only of tests below it")
    group.addoption("--turns-of", action="append", default=[], metavar="FOLDER", help="tests without parameters, too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the variants whose turn it is not."""
    if not (chosen := config.getoption("variants")):
        return
    turn, turns = (int(number) for number in chosen.split("/"))
    shared = [config.rootpath / folder for folder in config.getoption("variants_of")]
    whole = [config.rootpath / folder for folder in config.getoption("turns_of")]
    known: dict[tuple[str, str], dict[str, int]] = {}
    kept, left = [], []
    for item in items:
        folders = shared if hasattr(item, "callspec") else whole
        takes_turns = isinstance(item, pytest.Function) and any(item.path.is_relative_to(f) for f in folders)
        (left if takes_turns and _place(item, known) % turns != turn else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


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

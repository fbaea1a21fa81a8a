"""Who wants to know is told how far work on many files has come."""

from __future__ import annotations

import logging
import threading

import pytest

from alluvium.storage.parallel import map_parallel
from alluvium.storage.progress import counting, told


def test_each_item_is_told_once_in_order() -> None:
    heard: list[tuple[str, int, int]] = []
    with told(lambda *how_far: heard.append(how_far)):
        squares = map_parallel(lambda n: n * n, range(100), advance=counting("squares", 100))
    assert squares == [n * n for n in range(100)]
    assert heard == [("squares", n, 100) for n in range(1, 101)]


def test_one_after_the_other() -> None:
    heard: list[int] = []
    with told(lambda _, done, __: heard.append(done)):
        map_parallel(str, [1, 2, 3], 1, counting("texts", 3))
    assert heard == [1, 2, 3]


def test_nobody_is_told_after_the_block_or_in_other_threads() -> None:
    heard: list[int] = []
    with told(lambda _, done, __: heard.append(done)):
        other = threading.Thread(target=lambda: counting("other", 1)(1))
        other.start()
        other.join()
    counting("later", 1)(1)
    assert heard == []


def test_a_listener_that_fails_does_not_end_the_work(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    def fail(_: str, done: int, __: int) -> None:
        calls.append(done)
        raise RuntimeError("the terminal is gone")

    with told(fail), caplog.at_level(logging.WARNING, "alluvium"):
        assert map_parallel(str, range(10), advance=counting("texts", 10)) == [str(n) for n in range(10)]
    assert calls == [1]
    assert "the terminal is gone" in caplog.text


def test_items_that_fail_are_not_done() -> None:
    heard: list[int] = []
    with told(lambda _, done, __: heard.append(done)), pytest.raises(ZeroDivisionError):
        map_parallel(lambda n: 1 // n, [1, 0], 1, counting("parts", 2))
    assert heard == [1]


def test_work_of_nothing_is_not_told() -> None:
    heard: list[tuple[str, int, int]] = []
    with told(lambda *how_far: heard.append(how_far)):
        counting("nothing", 0)(1)
        several = counting("some", 10)
    # Who began within the block goes on telling behind it, as many at a time as there were.
    several(3)
    several(0)
    several(7)
    assert heard == [("some", 3, 10), ("some", 3, 10), ("some", 10, 10)]


def test_the_inner_listener_alone_is_told_and_then_the_outer_one_again() -> None:
    outer: list[int] = []
    inner: list[int] = []

    def fail() -> None:
        with told(lambda _, done, __: inner.append(done)):
            counting("inner", 1)(1)
            raise KeyError

    with told(lambda _, done, __: outer.append(done)):
        with pytest.raises(KeyError):
            fail()
        counting("outer", 5)(2)
    assert (outer, inner) == ([2], [1])

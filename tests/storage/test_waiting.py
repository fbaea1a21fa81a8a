"""Requests that another thread makes: answers, errors, and what a library's breakdown becomes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from alluvium.errors import StorageError
from alluvium.storage.waiting import ask_store, start_daemon


class PanicException(BaseException):  # so pyo3 calls a panic of Rust code
    """No `Exception`: whoever catches those lets it pass."""


def asked(request: Callable[[], object], elsewhere: bool) -> object:
    """By the main thread, or by another one."""
    if not elsewhere:
        return ask_store(request, "s3a://bucket/t")
    return start_daemon(lambda: ask_store(request, "s3a://bucket/t"), "other").result()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_answers_and_errors_are_those_of_the_request(elsewhere: bool) -> None:
    assert asked(lambda: 7, elsewhere) == 7

    def fails(error: BaseException) -> Callable[[], object]:
        def request() -> object:
            raise error

        return request

    for error in (ValueError("x"), FileNotFoundError("y"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught:
            asked(fails(error), elsewhere)
        assert caught.value is error
    with pytest.raises(StorageError, match="obstore broke down: index out of range") as broken:
        asked(fails(PanicException("index out of range")), elsewhere)
    assert (broken.value.code, broken.value.url) == ("storage", "s3a://bucket/t")


def test_the_main_thread_waits_for_another() -> None:
    """So that an interruption gets through."""
    names = [asked(lambda: threading.current_thread().name, elsewhere) for elsewhere in (False, True)]
    assert names == ["alluvium-request", "other"]


def test_nobody_waits_at_the_end_for_such_threads() -> None:
    found = start_daemon(lambda: threading.current_thread().daemon, "one")
    assert found.result() is True

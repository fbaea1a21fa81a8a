"""Waiting for a store so that an interruption gets through, and threads that no end of the process waits for.

obstore's calls return when the request is over, and hand no signal to Python before: a store that hangs could not be
left by Ctrl-C. So the main thread lets another make the request, and waits where signals are heard.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from alluvium.errors import StorageError

ResultT = TypeVar("ResultT")


class _Runtime:
    """The process in which obstore's own threads live: they do not survive a fork, and its calls then wait for ever."""

    pid: int | None = None


def start_daemon(work: Callable[[], ResultT], name: str) -> Future[ResultT]:
    """Runs work in a thread that does not keep the process alive."""
    future: Future[ResultT] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 # whoever waits raises it
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def ask_store(request: Callable[[], ResultT], url: str) -> ResultT:
    """What a request to an object store answers.

    Args:
        request: Calls obstore.
        url: Of the store, for errors.

    Raises:
        StorageError: `"forked-process"`: the process was forked after stores had been used in its parent;
            `"storage"`: obstore broke down.
    """
    if _Runtime.pid not in (None, os.getpid()):
        raise StorageError(
            "object stores were used before this process was forked, and their threads were left behind",
            code="forked-process",
            url=url,
            hint="start processes by 'spawn' or 'forkserver' (multiprocessing.set_start_method)",
        )
    _Runtime.pid = os.getpid()
    try:
        if threading.current_thread() is threading.main_thread():
            return start_daemon(request, "alluvium-request").result()
        return request()
    except BaseException as error:
        # A panic of Rust code is no `Exception`.
        if type(error).__name__ != "PanicException":
            raise
        raise StorageError(f"obstore broke down: {error}", code="storage", url=url) from None

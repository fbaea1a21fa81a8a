"""How far long work has come, told to whoever wants to know: files that are looked at, copied, deleted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

log = logging.getLogger("alluvium")

#: Is told what is done ("copied files"), how many are done, and how many there are in all; from any thread, one call
#: at a time.
Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("alluvium-progress", default=None)


@contextmanager
def told(listener: Listener) -> Iterator[None]:
    """Work of this thread, within the block, tells how far it has come."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def counting(what: str, total: int) -> Callable[[int], None]:
    """A function to be called with how many more are done, from any thread; it asks for the listener only now."""
    listener, lock, done = _listener.get(), threading.Lock(), 0
    if listener is None or not total:
        return _nobody

    def advance(count: int) -> None:
        nonlocal done, listener
        with lock:
            done += count
            if listener is None:
                return
            try:
                listener(what, done, total)
            except Exception as error:
                log.warning("nobody is told any more how far the work has come: %s", error, exc_info=error)
                listener = None

    return advance


def _nobody(count: int) -> None:
    """Nobody wants to know."""

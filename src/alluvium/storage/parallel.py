"""Many small requests at once: an ordered map over threads, since what they wait for is the store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from typing import TypeVar

from alluvium.storage.waiting import start_daemon

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

#: Enough to hide the latency of an object store, few enough for its rate limits.
DEFAULT_WORKERS = 16


def map_parallel(
    fn: Callable[[ItemT], ResultT],
    items: Iterable[ItemT],
    workers: int = DEFAULT_WORKERS,
    advance: Callable[[int], None] | None = None,
) -> list[ResultT]:
    """`[fn(item) for item in items]`, run by up to `workers` threads.

    Args:
        fn: Safe to call from several threads.
        items: What to call it with.
        workers: Threads at most; 1 runs in the caller's.
        advance: Is called with 1 for each item that is done, from any thread (`progress.counting`).

    Raises:
        Exception: What `fn` raised for the earliest item that failed. Items not yet begun are not begun any more;
            those under way are waited for, so that nothing runs on behind the caller's back, but for an interruption
            (Ctrl-C), which gets through at once.
    """
    todo = list(items)
    run = fn if advance is None else _counted(fn, advance)
    if workers <= 1 or len(todo) <= 1:
        return [run(item) for item in todo]
    results: list[Future[ResultT]] = [Future() for _ in todo]
    waiting, lock, failed = iter(zip(todo, results, strict=True)), threading.Lock(), threading.Event()

    def work() -> None:
        while not failed.is_set():
            with lock:
                taken = next(waiting, None)
            if taken is None:
                return
            item, result = taken
            try:
                result.set_result(run(item))
            except BaseException as error:  # noqa: BLE001 # raised below, by whoever asked
                failed.set()
                result.set_exception(error)

    threads = [start_daemon(work, "alluvium-storage") for _ in range(min(workers, len(todo)))]
    try:
        wait(threads)
    finally:
        # Also where the wait was interrupted: then nobody waits for what is under way, which a store may hold for long.
        failed.set()
    # Items are taken in order, so that those never begun come after the one that failed.
    return [result.result() for result in results]


def _counted(fn: Callable[[ItemT], ResultT], advance: Callable[[int], None]) -> Callable[[ItemT], ResultT]:
    def run(item: ItemT) -> ResultT:
        done = fn(item)
        advance(1)
        return done

    return run

"""Many small requests at once: an ordered map over threads, since what they wait for is the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

#: Enough to hide the latency of an object store, few enough for its rate limits.
DEFAULT_WORKERS = 16


def map_parallel(
    fn: Callable[[ItemT], ResultT], items: Iterable[ItemT], workers: int = DEFAULT_WORKERS
) -> list[ResultT]:
    """`[fn(item) for item in items]`, run by up to `workers` threads.

    Args:
        fn: Safe to call from several threads.
        items: What to call it with.
        workers: Threads at most; 1 runs in the caller's.

    Raises:
        Exception: What `fn` raised for the earliest item that failed. Items not yet begun are not begun any more;
            those under way are waited for, so that nothing runs on behind the caller's back.
    """
    todo = list(items)
    if workers <= 1 or len(todo) <= 1:
        return [fn(item) for item in todo]
    with ThreadPoolExecutor(min(workers, len(todo)), thread_name_prefix="alluvium-storage") as pool:
        futures = [pool.submit(fn, item) for item in todo]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:  # also on KeyboardInterrupt
            for future in futures:
                future.cancel()
    # In order, a future that was cancelled comes after the failed one: the pool takes items in order.
    return [future.result() for future in futures]

from __future__ import annotations

import threading
import time

import pytest

from alluvium.storage.parallel import map_parallel


def test_results_keep_the_order_of_the_items() -> None:
    def slow_first(item: int) -> int:
        time.sleep(0.02 / (item + 1))
        return item * item

    assert map_parallel(slow_first, range(50), workers=8) == [n * n for n in range(50)]
    assert map_parallel(slow_first, [], workers=8) == []


def test_calls_run_at_once() -> None:
    barrier = threading.Barrier(4, timeout=10)
    assert sorted(map_parallel(lambda _: barrier.wait(), range(4), workers=4)) == [0, 1, 2, 3]


@pytest.mark.parametrize("workers", [1, 4])
def test_the_first_error_is_raised_and_the_rest_is_not_begun(workers: int) -> None:
    begun: list[int] = []

    def fail_at_three(item: int) -> int:
        begun.append(item)
        if item == 3:
            raise KeyError(item)
        time.sleep(0.002)
        return item

    with pytest.raises(KeyError) as caught:
        map_parallel(fail_at_three, range(1000), workers=workers)
    assert caught.value.args == (3,)
    assert len(begun) < 500


def test_of_two_errors_the_earlier_item_counts() -> None:
    barrier = threading.Barrier(2, timeout=10)

    def fail(item: int) -> None:
        barrier.wait()
        time.sleep(0.05 * (1 - item))
        raise ValueError(item)

    with pytest.raises(ValueError) as caught:
        map_parallel(fail, [0, 1], workers=2)
    assert caught.value.args == (0,)


def test_one_worker_stays_in_the_thread_of_the_caller() -> None:
    assert map_parallel(lambda _: threading.current_thread(), range(3), workers=1) == [threading.current_thread()] * 3


def test_a_single_item_stays_there_too_and_several_do_not() -> None:
    here = threading.current_thread()
    assert map_parallel(lambda _: threading.current_thread(), [1]) == [here]
    assert here not in map_parallel(lambda _: threading.current_thread(), [1, 2])


@pytest.mark.parametrize(("workers", "items", "threads"), [(2, 8, 2), (5, 3, 3), (16, 20, 16)])
def test_no_more_threads_than_asked_for_or_needed(workers: int, items: int, threads: int) -> None:
    """As many at once as there may be: who waits for one more waits in vain."""
    barrier, lock = threading.Barrier(threads), threading.Lock()
    now, most, met = 0, 0, 0

    def work(item: int) -> int:
        nonlocal now, most, met
        with lock:
            now += 1
            most = max(most, now)
        if item < threads:
            barrier.wait(timeout=10)
            with lock:
                met += 1
        with lock:
            now -= 1
        return -item

    assert map_parallel(work, iter(range(items)), workers) == [-n for n in range(items)]
    assert (most, met) == (threads, threads)

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from alluvium.delta.streams.admission import Capacity

SIZES = pa.array([5, 5, 5], pa.int64())


def test_everything() -> None:
    capacity = Capacity()
    assert capacity.take(SIZES) == 3
    assert capacity.is_left


def test_files() -> None:
    capacity = Capacity(files=2)
    assert capacity.take(SIZES) == 2
    assert not capacity.is_left


def test_the_file_that_exceeds_the_bytes_is_taken() -> None:
    assert Capacity(size_bytes=6).take(SIZES) == 2
    assert Capacity(size_bytes=5).take(SIZES) == 1
    assert Capacity(size_bytes=1).take(SIZES) == 1


def test_what_must_not_be_parted() -> None:
    capacity = Capacity(files=2)
    assert capacity.take_all(SIZES)
    assert not capacity.take_all(SIZES)
    assert capacity.take_all(SIZES.slice(0, 0))


def beside(sizes: list[int], files: int | None, size_bytes: int | None) -> int:
    """How many files are taken, one after the other, as long as there is room for one more."""
    taken = 0
    for size in sizes:
        if (files is not None and files <= 0) or (size_bytes is not None and size_bytes <= 0):
            break
        files = None if files is None else files - 1
        size_bytes = None if size_bytes is None else size_bytes - size
        taken += 1
    return taken


@pytest.mark.parametrize("seed", range(60))
def test_versions_one_after_the_other_beside_a_loop(seed: int) -> None:
    """What is whole goes in if it fits, or if it is the first; what may be parted, as far as there is room."""
    lot = random.Random(seed)
    files, size_bytes = lot.choice([None, *range(6)]), lot.choice([None, *range(0, 24, 3)])
    capacity = Capacity(files, size_bytes)
    is_begun = False
    for _ in range(6):
        sizes = [lot.choice([0, 1, 3, 6, 9]) for _ in range(lot.randint(0, 4))]
        is_left = (files is None or files > 0) and (size_bytes is None or size_bytes > 0)
        assert (capacity.is_left, capacity.is_begun) == (is_left, is_begun)
        if lot.random() < 0.5:
            taken = beside(sizes, files, size_bytes)
            assert capacity.take(pa.array(sizes, pa.int64())) == taken
        else:
            fits = (files is None or len(sizes) <= files) and (size_bytes is None or sum(sizes) <= size_bytes)
            taken = len(sizes) if fits or not is_begun else 0
            assert capacity.take_all(pa.array(sizes, pa.int64())) == (taken == len(sizes))
        is_begun = is_begun or taken > 0
        files = None if files is None else files - taken
        size_bytes = None if size_bytes is None else size_bytes - sum(sizes[:taken])
        assert (capacity.files, capacity.size_bytes) == (files, size_bytes)


def test_the_first_of_what_must_not_be_parted_is_taken_whatever_it_is() -> None:
    for capacity in (Capacity(files=1), Capacity(size_bytes=1), Capacity(files=0, size_bytes=0)):
        assert capacity.take_all(SIZES.slice(0, 0)) and not capacity.is_begun
        assert capacity.take_all(SIZES) and capacity.is_begun and not capacity.is_left
        assert not capacity.take_all(SIZES.slice(0, 1))
        assert capacity.take(SIZES) == 0
    exact = Capacity(files=3, size_bytes=30)
    assert exact.take(SIZES.slice(0, 1)) == 1
    assert exact.take_all(SIZES.slice(0, 2)) and (exact.files, exact.size_bytes) == (0, 15)

from __future__ import annotations

import pyarrow as pa

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

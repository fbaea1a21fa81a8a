"""A file made of ranges, beside one that is in memory: random reads."""

from __future__ import annotations

import io
import random

import pytest

from alluvium.storage.range_file import RangeFile, open_ranges

DATA = bytes(range(50))


@pytest.mark.parametrize("seed", range(20))
def test_reads_beside_a_file_in_memory(seed: int) -> None:
    chance = random.Random(seed)
    asked: list[tuple[int, int]] = []

    def read_range(start: int, length: int) -> bytes:
        asked.append((start, length))
        return DATA[start : start + length]

    file, plain = RangeFile(read_range, len(DATA)), io.BytesIO(DATA)
    assert file.readable() and file.seekable() and not file.writable()
    for _ in range(30):
        if chance.random() < 0.5:
            whence = chance.choice([io.SEEK_SET, io.SEEK_CUR, io.SEEK_END])
            offset = chance.randrange(60) if whence == io.SEEK_SET else chance.randrange(-20, 20)
            if whence == io.SEEK_CUR and plain.tell() + offset < 0:
                offset = 0
            assert file.seek(offset, whence) == plain.seek(offset, whence)
        else:
            size = chance.choice([0, 1, 7, 100, -1, None])
            before = len(asked)
            found = file.read(size)
            assert found == plain.read(size)
            # One request, and none for nothing.
            assert len(asked) - before == bool(found)
        assert file.tell() == plain.tell()
    file.seek(10)
    assert file.readall() == DATA[10:] and file.readall() == b""
    assert all(length > 0 and start + length <= len(DATA) for start, length in asked)


def test_before_the_beginning_is_the_beginning() -> None:
    file = RangeFile(lambda start, length: DATA[start : start + length], len(DATA))
    assert file.seek(-7, io.SEEK_CUR) == 0
    assert file.seek(-70, io.SEEK_END) == 0
    assert file.read(2) == DATA[:2]


def test_an_answer_that_is_too_short_is_no_hole() -> None:
    """Whoever reads on goes on behind what he got."""
    file = RangeFile(lambda start, length: DATA[start : start + min(length, 3)], len(DATA))
    assert (file.read(10), file.tell(), file.read(10)) == (DATA[:3], 3, DATA[3:6])


def test_arrow_reads_it() -> None:
    native = open_ranges(lambda start, length: DATA[start : start + length], len(DATA))
    native.seek(40)
    assert (native.size(), native.read(), native.read_at(5, 3)) == (50, DATA[40:], DATA[3:8])

"""Decompression up to a bound, of what is damaged, and what it leaves behind."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from alluvium.codecs.inflate import inflated


@pytest.mark.parametrize("codec", ["zstd", "bz2", "gzip"])
@pytest.mark.parametrize("size", [0, 1, 100_000, 3 << 20])
def test_up_to_the_bound(codec: str, size: int) -> None:
    plain = bytes(range(256)) * (size // 256) + bytes(size % 256)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(plain)
    data = bytes(sink.getvalue())
    assert inflated(data, codec, size) == plain
    if size:
        assert inflated(data, codec, size - 1) is None


def test_damage_leaves_no_memory_behind() -> None:
    """pyarrow's `read` leaks the memory of a piece whose reading fails: eight kilobytes that are touched, of a megabyte."""

    def fail(times: int) -> int:
        for _ in range(times):
            with pytest.raises(OSError, match="ZSTD"):
                inflated(b"no such stream", "zstd", 1000)
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = fail(200)
    assert fail(2000) - before < 4 << 20

"""Bounds of integers in runs, beside those that Arrow's writer and the specification's examples have."""

from __future__ import annotations

import io
import random

import numpy as np
import pyarrow as pa
import pytest
from fuzz_footers import orc_stream
from pyarrow import orc

from alluvium.codecs.footers.orc_runs import RunBounds, bounds_of_runs

#: How lengths are drawn, by what they bring writers to.
DRAWN = {
    "direct": lambda numbers, n: [numbers.randrange(numbers.choice((2, 100, 3000))) for _ in range(n)],
    "delta up": lambda numbers, n: sorted(numbers.randrange(2000) for _ in range(n)),
    "delta down": lambda numbers, n: sorted((numbers.randrange(2000) for _ in range(n)), reverse=True),
    "patched": lambda numbers, n: [numbers.choice((1, 2, 200_000 if numbers.random() < 0.03 else 5)) for _ in range(n)],
    "fixed": lambda numbers, n: [7] * n,
    "short": lambda numbers, n: [one for _ in range(n) for one in [numbers.randrange(3)] * numbers.randrange(1, 12)][
        :n
    ],
}


def lengths_written(lengths: list[int]) -> bytes:
    """As Arrow's writer stores the lengths of texts."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(bytes(int(offsets[-1])))]
    values = pa.Array.from_buffers(pa.binary(), len(lengths), buffers)
    sink = io.BytesIO()
    orc.write_table(pa.table({"s": values}), sink, compression="uncompressed", stripe_size=1 << 30)
    return orc_stream(sink.getvalue(), 1, 2)


@pytest.mark.parametrize("drawn", DRAWN)
def test_lengths_by_arrow(drawn: str) -> None:
    numbers = random.Random(1)
    for _ in range(60):
        lengths = DRAWN[drawn](numbers, numbers.choice((1, 2, 3, 9, 100, 511, 512, 513, 2000)))
        data = lengths_written(lengths)
        exact = bounds_of_runs(data, 2, exact=True)
        assert exact == RunBounds(len(lengths), 0, max(lengths), sum(lengths))
        wide = bounds_of_runs(data, 2)
        assert wide.count == exact.count and wide.least == 0
        assert exact.greatest <= wide.greatest < 1 << 26
        assert exact.total <= wide.total <= len(lengths) << 26


@pytest.mark.parametrize(
    ("data", "version", "found"),
    [
        # The examples of the specification.
        ("61 00 07", 1, RunBounds(100, 0, 7, 700)),
        ("61 ff 64", 1, RunBounds(100, 0, 100, 5050)),
        ("fb 02 03 06 07 0b", 1, RunBounds(5, 0, 11, 29)),
        ("0a 27 10", 2, RunBounds(5, 0, 10000, 50000)),
        ("5e 03 5c a1 ab 1e de ad be ef", 2, RunBounds(4, 0, 57005, 23713 + 43806 + 57005 + 48879)),
        (
            "8e 13 2b 21 07 d0 1e 00 14 70 28 32 3c 46 50 5a 64 6e 78 82 8c 96 a0 aa b4 be fc e8",
            2,
            RunBounds(20, 0, 1000000, 1000000 + 2030 + 2000 + sum(range(2020, 2191, 10)) - 2030),
        ),
        ("c6 09 02 02 22 42 42 46", 2, RunBounds(10, 0, 29, 129)),
    ],
)
def test_examples_of_the_specification(data: str, version: int, found: RunBounds) -> None:
    assert bounds_of_runs(bytes.fromhex(data), version, exact=True) == found


def test_signs() -> None:
    # -3 five times; 1, -1, 2 in three bits each; 7, then each 2 less, three times.
    assert bounds_of_runs(b"\x02\x05", 2, is_signed=True) == RunBounds(5, -3, 0, -15)
    packed = b"\x44\x02" + int("010001100" + "0" * 7, 2).to_bytes(2, "big")
    assert bounds_of_runs(packed, 2, is_signed=True, exact=True) == RunBounds(3, -1, 2, 2)
    assert bounds_of_runs(packed, 2, is_signed=True) == RunBounds(3, -4, 3, 9)
    assert bounds_of_runs(b"\x00\xfe\x0e", 1, is_signed=True) == RunBounds(3, 0, 7, 15)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("data", "bound"),
    [
        ("38 ff ff ff ff ff ff ff ff", 2**64 - 1),
        ("7e 00 80 00 00 00 00 00 00 00", 2**63),
        ("c0 02 00 01", -2),
        ("c0 02 80 80 80 80 20 00", 2**33),
        ("c4 02 05 01 e0", -1),
    ],
)
def test_lengths_that_are_none(data: str, bound: int, exact: bool) -> None:
    found = bounds_of_runs(bytes.fromhex(data), 2, exact=exact)
    assert found.least <= bound if bound < 0 else found.greatest >= bound


def test_what_is_damaged() -> None:
    whole = lengths_written(DRAWN["patched"](random.Random(2), 600)) + lengths_written([*range(40), 7])
    for size in range(1, len(whole)):
        for exact in (False, True):
            try:
                found = bounds_of_runs(whole[:size], 2, exact=exact)
            except (ValueError, IndexError):
                continue
            assert found.count < 641
    with pytest.raises(ValueError, match="patch is missing"):
        bounds_of_runs(bytes.fromhex("8e 13 2b 20 07 d0") + bytes(30), 2)

"""Which files are asked for a sample."""

from __future__ import annotations

import pyarrow as pa

from alluvium.commands.optimize.z_order import sampled_bins
from alluvium.delta.upkeep.optimize import Bins


def bins_of(files: int, *counts: int) -> Bins:
    numbers = pa.array([n * len(counts) // files for n in range(files)], pa.int64())
    return Bins(pa.table({"path": [str(n) for n in range(files)]}), numbers, counts)


def test_of_many_small_files_some_are_asked_where_each_bin_becomes_one() -> None:
    found = sampled_bins(bins_of(400, 1), 2_000_000)
    assert found.files["path"].to_pylist() == [str(n) for n in range(0, 400, 6)]
    found = sampled_bins(bins_of(400, 1, 1), 2_000_000)
    assert found.numbers.to_pylist().count(0) == found.numbers.to_pylist().count(1) == 67


def test_else_all_are() -> None:
    for files, rows, counts in (
        (400, 2_000_000, (2,)),
        (400, 2_000_000, (1, 2)),
        (400, 100_000, (1,)),
        (100, 10**9, (1,)),
    ):
        bins = bins_of(files, *counts)
        assert sampled_bins(bins, rows) is bins

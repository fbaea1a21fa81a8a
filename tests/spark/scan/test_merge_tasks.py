"""How sections become tasks."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from alluvium.plan.scan import KeyMerge, ScanPart
from alluvium.schema.types import Struct
from alluvium.spark.scan.merge_tasks import MAX_TASKS, TASK_BYTES, task_ranges

MERGE = KeyMerge("g", ("k",), (), None, "deduplicate")
MB = 1 << 20


def part(sizes: dict[int, int]) -> ScanPart:
    """A file a group."""
    constants = pa.StructArray.from_arrays([pa.array(list(sizes), pa.int64())], names=["g"])
    files = pa.table(
        {"path": ["f"] * len(sizes), "size": pa.array(list(sizes.values()), pa.int64()), "constants": constants}
    )
    return ScanPart("p", files, "parquet", Struct(), ())


@pytest.mark.parametrize("seed", range(20))
def test_every_group_is_in_one_task(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups = sorted(random.choice(1000, 200, replace=False).tolist())
    sizes = {group: int(random.integers(1, 20 * MB)) for group in groups}
    half = dict(list(sizes.items())[::2])
    rest = {group: size for group, size in sizes.items() if group not in half}
    ranges = task_ranges([part(half), part(rest)], MERGE, int(random.integers(1, 40)))
    assert ranges
    assert [group for low, high in ranges for group in groups if low <= group <= high] == groups
    assert all(high < low for (_, high), (low, _) in itertools.pairwise(ranges))
    assert len(ranges) <= MAX_TASKS


def test_small_tables_use_all_cores() -> None:
    assert task_ranges([part(dict.fromkeys(range(8), MB))], MERGE, 4) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert task_ranges([part({7: MB})], MERGE, 4) == [(7, 7)]


def test_where_rows_had_better_move() -> None:
    """One large section would keep one core busy and the others waiting."""
    assert task_ranges([part({0: 10 * TASK_BYTES})], MERGE, 2) == []
    assert task_ranges([part({0: 10 * TASK_BYTES, 1: 1, 2: 1, 3: 1})], MERGE, 4) == []
    assert task_ranges([part(dict.fromkeys(range(500), TASK_BYTES))], MERGE, 200) == []
    assert len(task_ranges([part(dict.fromkeys(range(500), TASK_BYTES))], MERGE, 8)) == MAX_TASKS


def test_nothing_to_read() -> None:
    assert task_ranges([part({})], MERGE, 4) == []

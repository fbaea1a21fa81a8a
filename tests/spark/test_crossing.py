"""Which buckets new keys of a partition get."""

from __future__ import annotations

import pytest

from alluvium.spark.crossing import filled


@pytest.mark.parametrize(
    ("count", "counts", "most", "ranges"),
    [
        (3, {}, 5, [(0, 3, 0)]),
        (7, {}, 3, [(0, 3, 0), (3, 6, 1), (6, 7, 2)]),
        (4, {0: 3, 2: 1}, 3, [(0, 2, 2), (2, 4, 1)]),
        (2, {0: 9}, 3, [(0, 2, 1)]),
        (2, {1: 1}, 3, [(0, 2, 1)]),
        (1, {}, 0, [(0, 1, 0)]),
    ],
)
def test_buckets_that_are_not_full_come_first_then_free_numbers(
    count: int, counts: dict[int, int], most: int, ranges: list[tuple[int, int, int]]
) -> None:
    assert filled(count, counts, most) == ranges

"""The curve: every place once, and each but one step from the next."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from alluvium.delta.upkeep.clustering.hilbert import MOST_COLUMNS, hilbert_places, hilbert_steps


@pytest.mark.parametrize(("columns", "bits"), [(1, 4), (2, 1), (2, 5), (3, 3), (4, 2), (MOST_COLUMNS, 2)])
def test_the_curve_goes_through_all_by_single_steps(columns, bits):
    points = list(product(range(1 << bits), repeat=columns))
    places = hilbert_places(list(zip(*points, strict=True)), bits)
    assert sorted(places) == list(range(len(points)))
    along = [point for _, point in sorted(zip(places, points, strict=True))]
    assert {sum(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in pairwise(along)} == {1}


def test_the_table_holds_a_row_for_each_stand():
    assert [len(hilbert_steps(n).table) >> n for n in range(1, MOST_COLUMNS + 1)] == [1, 4, 12, 32, 80]


def test_no_rows_have_no_places():
    assert hilbert_places([[], []], 10) == []

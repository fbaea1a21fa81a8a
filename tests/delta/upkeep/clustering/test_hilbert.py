"""The curve: every place once, and each but one step from the next."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from alluvium.delta.upkeep.clustering.hilbert import MOST_COLUMNS, hilbert_places, hilbert_steps, wide_steps


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


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
@pytest.mark.parametrize("bits", [7, 10])
def test_a_table_of_several_bits_leads_the_same_way(columns, bits):
    points = [[(n * (37 + 2 * column)) % (1 << bits) for n in range(200)] for column in range(columns)]
    steps, found = wide_steps(columns, bits), []
    width = columns * steps.bits
    for ranks in zip(*points, strict=True):
        stand = place = 0
        for bit in reversed(range(0, bits, steps.bits)):
            code = 0
            for rank in ranks:
                code = code << steps.bits | rank >> bit & (1 << steps.bits) - 1
            step = steps.table[stand << width | code]
            stand, place = step >> width, place << width | step & (1 << width) - 1
        found.append(place)
    assert found == hilbert_places(points, bits)


@pytest.mark.parametrize("columns", range(1, MOST_COLUMNS + 1))
def test_a_table_of_several_bits_takes_as_many_as_fit(columns):
    """The ranks' bits are divided evenly; a table has 16,384 steps at most."""
    stands = len(hilbert_steps(columns).table) >> columns
    for bits in (1, 2, 4, 7, 10, 12):
        found = wide_steps(columns, bits)
        fits = [n for n in range(1, bits + 1) if not bits % n and stands << columns * n <= 1 << 14]
        assert (found.columns, found.bits, len(found.table)) == (columns, max(fits), stands << columns * max(fits))

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.delta.upkeep.z_values import MAX_RANGES, cuts, divided, interleaved, rank_bits


def test_ranks_get_as_many_bits_as_a_number_has_room_for():
    assert [rank_bits(n) for n in (1, 2, 6, 7, 31, 62, 63)] == [10, 10, 10, 8, 2, 1, 0]
    assert 1 << rank_bits(1) == MAX_RANGES


@pytest.mark.parametrize(
    ("values", "ranges", "bounds", "starts"),
    [
        ([], 4, [], [0]),
        ([5, 5, 5], 4, [5], [0, 3]),
        ([3, 1, 2, 4], 4, [2, 3, 4], [0, 1, 2, 3]),
        (["b", "a", "b", "b"], 4, ["b"], [0, 3]),
        ([0, 0, 0, 0, 0, 0, 1, 2], 8, [0, 1, 2], [0, 5, 6, 7]),
        ([None, None, 7, 8], 4, [7, 8], [1, 2, 3]),
        ([None, None], 4, [], [3]),
        ([1.0, float("nan"), float("nan"), float("nan")], 4, [], [3]),
    ],
)
def test_values_are_divided_by_rows(values, ranges, bounds, starts):
    found = divided(values, ranges)
    assert (found.bounds, found.starts) == (bounds, starts)


@given(st.lists(st.none() | st.integers(-5, 5)), st.integers(1, 9))
def test_ranks_keep_the_order_and_fit(values, ranges):
    found = divided(values, ranges)
    ranks = [found.rank(v) for v in (None, *range(-6, 7))]
    assert ranks == sorted(ranks)
    assert max(ranks) < ranges
    assert found.bounds == sorted(set(found.bounds))


def test_a_value_of_most_rows_takes_most_ranges():
    found = divided([0] * 900 + list(range(1, 101)), 100)
    # The ten ranges that are left hold the hundred other values.
    assert (found.rank(0), found.rank(1), found.rank(100), found.rank(50)) == (0, 89, 99, 94)
    assert divided([1.0, 2.0, 3.0, 4.0], 4).rank(float("nan")) == 3


def test_bits_alternate_from_the_highest():
    assert [interleaved((x, y), 1) for x in (0, 1) for y in (0, 1)] == [0, 1, 2, 3]
    assert interleaved((0b11, 0b00), 2) == 0b1010
    assert interleaved((0b01, 0b10, 0b00), 2) == 0b010100


@given(st.integers(0, 1023), st.integers(0, 1023))
def test_different_ranks_have_different_places(x, y):
    place = interleaved((x, y), 10)
    back = [sum((place >> 2 * bit + side & 1) << bit for bit in range(10)) for side in (1, 0)]
    assert back == [x, y]


def test_places_are_cut_into_parts():
    assert cuts(range(100), 4) == [25, 50, 75]
    assert cuts([1], 4) == []
    assert cuts([1, 1, 1, 9], 2) == []
    assert cuts([], 3) == []

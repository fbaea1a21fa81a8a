"""Rows are put into groups and bins as one would by hand, row by row."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from alluvium.delta.upkeep.packing import Packed, grouped, one_bin, sizes_of


def by_hand(keys: list[bytes], sizes: list[int], most: int) -> list[list[int]]:
    bins: list[list[int]] = []
    for key in sorted(set(keys)):
        taken = 0
        for n, place in enumerate(sorted((n for n, k in enumerate(keys) if k == key), key=lambda n: (sizes[n], n))):
            if not n or taken + sizes[place] > most:
                bins.append([])
                taken = 0
            bins[-1].append(place)
            taken += sizes[place]
    return bins


def told(packed: Packed) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in packed.lengths]
    for place, number in zip(packed.order.tolist(), packed.numbers.tolist(), strict=True):
        found[number].append(place)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_bins_are_those_that_are_packed_by_hand(seed: int) -> None:
    chance = random.Random(seed)
    count, most = chance.randrange(40), chance.choice([1, 7, 10, 1 << 60])
    keys = [chance.choice([b"", b"a", b"b", b"\xff"]) for _ in range(count)]
    sizes = [chance.choice([0, 1, 3, 9, 25]) for _ in range(count)]
    found = grouped(pa.array(keys, pa.binary()), np.array(sizes, np.int64)).packed(np.array(sizes, np.int64), most)
    assert told(found) == by_hand(keys, sizes, most)
    assert found.sums(np.array(sizes, np.int64)).tolist() == [sum(sizes[n] for n in one) for one in told(found)]
    assert told(found.at_least(2)) == [one for one in told(found) if len(one) > 1]


def test_rows_as_they_come() -> None:
    sizes = sizes_of(pa.chunked_array([[4, 3], [3], [20, 1]], pa.int64()))
    assert told(one_bin(5).packed(sizes, 7)) == [[0, 1], [2], [3], [4]]
    assert told(one_bin(0).packed(sizes[:0], 7)) == []


def test_a_million_files_take_no_loop_over_them() -> None:
    sizes = np.full(1_000_000, 10, np.int64)
    packed = one_bin(len(sizes)).packed(sizes, 1_000)
    assert len(packed.lengths) == 10_000
    assert packed.lengths.max() == packed.lengths.min() == 100


@pytest.mark.parametrize("seed", range(40))
def test_the_last_two_bins_are_evened_where_the_last_is_small(seed: int) -> None:
    """As by hand: of all cuts the one of which both sides are nearest, and only if neither is small."""
    chance = random.Random(seed)
    sizes = np.array([chance.choice([1, 2, 5, 9]) for _ in range(chance.randrange(1, 15))], np.int64)
    least = chance.choice([1, 4, 8, 12])
    packed = one_bin(len(sizes)).packed(sizes, 12)
    before, found = told(packed), packed.evened(sizes, least)
    if len(before) < 2 or sum(sizes[before[-1]]) >= least:
        assert found is packed
        return
    rest = [*before[-2], *before[-1]]
    sums = [(int(sum(sizes[rest[:cut]])), int(sum(sizes[rest[cut:]]))) for cut in range(len(rest) + 1)]
    cut = min(range(len(sums)), key=lambda n: abs(sums[n][0] - sums[n][1]))
    evened = [*before[:-2], rest[:cut], rest[cut:]]
    assert told(found) == (evened if min(sums[cut]) >= least else before)
    assert found.starts[-1] == len(sizes)


def test_bins_of_no_fewer_rows() -> None:
    packed = Packed(np.array([4, 2, 0, 1, 3]), np.array([0, 2, 3, 5]))
    assert told(packed.at_least(1)) == told(packed) == [[4, 2], [0], [1, 3]]
    found = packed.at_least(2)
    assert (found.order.tolist(), found.starts.tolist()) == ([4, 2, 1, 3], [0, 2, 4])
    assert (packed.at_least(3).order.tolist(), packed.at_least(3).starts.tolist()) == ([], [0])
    assert packed.numbers.tolist() == [0, 0, 1, 2, 2] and packed.lengths.tolist() == [2, 1, 2]

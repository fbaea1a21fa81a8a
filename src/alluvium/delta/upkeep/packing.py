"""Rows in groups, and packed into bins by their sizes: positions alone, a step a bin and none a row. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows side by side that belong together.

    Attributes:
        order: The place of each row, those of a bin side by side.
        starts: Where in that order each bin begins; then how many rows there are.
    """

    order: Places
    starts: Places

    @property
    def lengths(self) -> Places:
        """How many rows each bin has."""
        return np.diff(self.starts)

    @property
    def numbers(self) -> Places:
        """The bin of each row, in the order."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def sums(self, sizes: Places) -> Places:
        """What the rows of each bin come to.

        Args:
            sizes: Of each row, by its place.
        """
        return np.diff(_running(sizes[self.order])[self.starts])

    def at_least(self, smallest: int) -> Packed:
        """The bins of no fewer rows."""
        kept = self.lengths >= smallest
        lengths = self.lengths[kept]
        return Packed(self.order[np.repeat(kept, self.lengths)], _running(lengths))

    def packed(self, sizes: Places, most: int) -> Packed:
        """Each bin divided, as its rows stand, into such as come to so much at most; a larger row is alone.

        Args:
            sizes: Of each row, by its place; none is negative.
            most: What a bin comes to at most.
        """
        running = _running(sizes[self.order]).tolist()
        bounds = self.starts.tolist()
        begins: list[int] = []
        for place, end in pairwise(bounds):
            while place < end:
                begins.append(place)
                last = bisect_right(running, running[place] + most, place, end + 1) - 1
                place = max(last, place + 1)
        return Packed(self.order, np.array([*begins, len(self.order)], np.int64))

    def evened(self, sizes: Places, least: int) -> Packed:
        """The same, but the last two bins made alike where the last comes to less, and then neither does.

        Args:
            sizes: Of each row, by its place.
            least: What a bin should come to.
        """
        if len(self.lengths) < 2 or self.sums(sizes)[-1] >= least:
            return self
        first = self.starts[-3]
        running = _running(sizes[self.order[first:]])
        cut = int(np.argmin(np.abs(2 * running - running[-1])))
        if min(running[cut], running[-1] - running[cut]) < least:
            return self
        return Packed(self.order, np.array([*self.starts[:-2], first + cut, len(self.order)], np.int64))


def sizes_of(sizes: pa.ChunkedArray) -> Places:
    """Bytes of files, as places count them."""
    return np.asarray(sizes.combine_chunks().to_numpy(zero_copy_only=False), np.int64)


def one_bin(count: int) -> Packed:
    """So many rows together, as they come."""
    return Packed(np.arange(count), np.array([0, count] if count else [0]))


def grouped(keys: pa.Array, sizes: Places) -> Packed:
    """Rows of equal keys together, keys in order, the smallest row of each first."""
    encoded = keys.dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    numbers = ranks[encoded.indices.to_numpy(zero_copy_only=False)]
    return Packed(np.lexsort((sizes, numbers)), _running(np.bincount(numbers, minlength=len(ranks))))


def _running(values: Places | Sequence[int]) -> Places:
    """Sums of what stands before each place; then that of all."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])

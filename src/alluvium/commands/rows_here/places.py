"""Which rows of which files change."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64


@dataclass
class Places:
    """Positions of rows, by the numbers of their files."""

    _rows: dict[int, BitMap64] = field(default_factory=dict)

    def add(self, files: pa.ChunkedArray, rows: pa.ChunkedArray) -> None:
        """Rows that go; none comes twice."""
        numbers, places = files.to_numpy(), rows.to_numpy()
        for number in np.unique(numbers):
            values = array("Q")
            values.frombytes(places[numbers == number].astype(np.uint64).tobytes())
            found = BitMap64(values)
            self._rows[int(number)] = self._rows.get(int(number), BitMap64()) | found

    @property
    def count(self) -> int:
        """How many rows go."""
        return sum(len(bitmap) for bitmap in self._rows.values())

    @property
    def numbers(self) -> pa.Array:
        """The files that lose rows."""
        return pa.array(sorted(self._rows), pa.int64())

    @property
    def counts(self) -> pa.Array:
        """How many rows each of `numbers` loses."""
        return pa.array([len(self._rows[number]) for number in sorted(self._rows)], pa.int64())

    @property
    def masks(self) -> pa.Array:
        """Of each of `numbers` the rows that go, as `plan.changes.TOUCHED_FILES` has them."""
        return pa.array([self._rows[number].serialize() for number in sorted(self._rows)], pa.binary())

    def emptied(self, live: pa.Array) -> pa.Array:
        """Which of `numbers` have no row left, given how many each has; false where nobody knows."""
        return pc.fill_null(pc.equal(self.counts, live), False)

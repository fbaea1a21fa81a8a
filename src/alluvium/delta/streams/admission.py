"""How many files of a version still go into a batch. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(slots=True)
class Capacity:
    """What a batch can still take; as in the reference, the file that exceeds the bytes is still taken.

    Attributes:
        files: Files; None: any number.
        size_bytes: Bytes; None: any number.
        is_begun: Whether something has been taken.
    """

    files: int | None = None
    size_bytes: int | None = None
    is_begun: bool = False

    @property
    def is_left(self) -> bool:
        """Whether one more file is taken."""
        return (self.files is None or self.files > 0) and (self.size_bytes is None or self.size_bytes > 0)

    def take(self, sizes: pa.Array) -> int:
        """Takes the first of some files, in their order; how many of them."""
        count = len(sizes)
        if self.files is not None:
            count = min(count, max(0, self.files))
        if self.size_bytes is not None and count:
            total = pc.cumulative_sum(sizes.slice(0, count))
            before = pc.subtract(total, sizes.slice(0, count))
            count = pc.sum(pc.less(before, self.size_bytes)).as_py() or 0
        self._subtract(sizes.slice(0, count))
        return count

    def take_all(self, sizes: pa.Array) -> bool:
        """Takes all of some files that must not be parted, or none; the first are taken whatever they are."""
        total = pc.sum(sizes).as_py() or 0
        fits = (self.files is None or len(sizes) <= self.files) and (
            self.size_bytes is None or total <= self.size_bytes
        )
        if self.is_begun and not fits and len(sizes):
            return False
        self._subtract(sizes)
        return True

    def _subtract(self, sizes: pa.Array) -> None:
        self.is_begun = self.is_begun or len(sizes) > 0
        if self.files is not None:
            self.files -= len(sizes)
        if self.size_bytes is not None:
            self.size_bytes -= pc.sum(sizes).as_py() or 0

"""The ends of a file whose rows are written in the order of a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.footers.chunk_statistics import Bound
from alluvium.codecs.footers.parquet_footer import RunEnds
from alluvium.plan.write import KeyedRows

#: Kinds of rows that take others back.
RETRACTS = (1, 3)


@dataclass(slots=True)
class RunBounds:
    """What batches of rows, one after another, make known of their file.

    Attributes:
        keys: The file's columns of the key.
        kind: Its column of kinds.
    """

    keys: Sequence[str]
    kind: str
    _first: tuple[Bound, ...] | None = None
    _last: tuple[Bound, ...] = ()
    _retracts: int = 0

    @classmethod
    def of(cls, keyed: KeyedRows | None) -> RunBounds | None:
        """For a file of rows that merged so; None where they do not merge."""
        return None if keyed is None else cls(keyed.stored_keys, keyed.merge.kind or "")

    def add(self, rows: pa.Table) -> None:
        """Looks at further rows, of which there is at least one."""
        ends = rows.select(list(self.keys)).take(pa.array([0, rows.num_rows - 1]))
        first, last = zip(*(key_bounds(column.combine_chunks()) for column in ends.columns), strict=True)
        self._first = self._first or first
        self._last = last
        self._retracts += pc.sum(pc.is_in(rows[self.kind], pa.array(RETRACTS, pa.int8()))).as_py() or 0

    def ends(self) -> RunEnds:
        """Those of all rows so far."""
        return RunEnds(self._first or (), self._last, self._retracts)


def key_bounds(values: pa.Array) -> list[Bound]:
    """Values of a key as footers have bounds: dates as days, timestamps as microseconds since 1970."""
    if pa.types.is_date(values.type) or pa.types.is_time(values.type):
        return list(values.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(values.type):
        micros = values.cast(pa.timestamp("us", values.type.tz), safe=False)
        return list(micros.cast(pa.int64()).to_pylist())
    return list(values.to_pylist())

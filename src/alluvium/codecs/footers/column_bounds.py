"""Statistics of the columns of rows that are being written, where no footer tells them afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.footers.chunk_statistics import Bound
from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, FooterColumn

_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


@dataclass(slots=True)
class ColumnBounds:
    """What batches of rows make known of a file.

    Attributes:
        columns: Of which columns, by their paths through structs; those that rows lack are left aside.
        num_rows: So far.
    """

    columns: Sequence[FooterColumn]
    num_rows: int = 0
    _found: dict[tuple[str, ...], ColumnStats] = field(default_factory=dict)
    _unbounded: set[tuple[str, ...]] = field(default_factory=set)

    def add(self, rows: pa.Table) -> None:
        """Counts further rows."""
        self.num_rows += rows.num_rows
        for column in self.columns:
            if column.path[0] in rows.column_names:
                values = rows[column.path[0]].combine_chunks()
                for name in column.path[1:]:
                    values = pc.struct_field(values, name)  # null where the parent is
                self._add(column, values)

    def _add(self, column: FooterColumn, values: pa.Array) -> None:
        nulls = values.null_count
        before = self._found.get(column.path) or ColumnStats(column.type, None, None, 0)
        low, high = before.min, before.max
        if nulls < len(values):
            ends = _ends(values)
            if ends is None:
                # What a part does not tell, the whole does not either.
                self._unbounded.add(column.path)
            else:
                low = ends[0] if low is None else min(low, ends[0])
                high = ends[1] if high is None else max(high, ends[1])
        self._found[column.path] = ColumnStats(column.type, low, high, (before.null_count or 0) + nulls)

    def footer(self) -> FileFooter:
        """The statistics of all that was added."""
        found = {
            path: ColumnStats(stats.type, None, None, stats.null_count) if path in self._unbounded else stats
            for path, stats in self._found.items()
        }
        return FileFooter(self.num_rows, found)


def _ends(values: pa.Array) -> tuple[Bound, Bound] | None:
    """The least and the greatest value; None where they prove nothing, as beside NaN, or cannot be told."""
    kind = values.type
    if pa.types.is_floating(kind):
        if pc.any(pc.is_nan(values)).as_py():
            return None
        low, high = _min_max(values)
        # Zero has two signs, and equals itself.
        return (-0.0 if low == 0 else low, 0.0 if high == 0 else high)
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return _min_max(values.cast(pa.int32()))
    if pa.types.is_timestamp(kind):
        if kind.unit not in _MICROS:
            return None
        low, high = _min_max(values.cast(pa.int64()))
        return low * _MICROS[kind.unit], high * _MICROS[kind.unit]
    plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    return _min_max(values) if plain or pa.types.is_string(kind) else None


def _min_max(values: pa.Array) -> tuple[Bound, Bound]:
    ends = pc.min_max(values).as_py()
    return ends["min"], ends["max"]

"""A table's history as users see it: a list of rows that is also an Arrow table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

import pyarrow as pa


class History(Sequence[Mapping[str, object]]):
    """Commits, newest first, in the columns of `DESCRIBE HISTORY`; each item is a mapping of column to value."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._rows: list[dict[str, object]] = table.to_pylist(maps_as_pydicts="strict")

    @overload
    def __getitem__(self, index: int) -> Mapping[str, object]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, object]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, object] | Sequence[Mapping[str, object]]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Mapping[str, object]]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"History({len(self)} commits)"

    @property
    def num_rows(self) -> int:
        return len(self._rows)

    @property
    def column_names(self) -> list[str]:
        return list(self._table.column_names)

    def column(self, name: str) -> pa.ChunkedArray:
        """One column as Arrow."""
        return self._table.column(name)

    def to_arrow(self) -> pa.Table:
        return self._table

    def to_pylist(self) -> list[dict[str, object]]:
        return list(self._rows)

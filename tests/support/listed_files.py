"""Files of which nothing is there but what somebody has listed of them: their statistics, as a test says them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Decimal, Field, Struct

SCHEMA = Struct(
    (
        Field("i", t.INTEGER),
        Field("d", t.DOUBLE),
        Field("s", t.STRING),
        Field("b", t.BOOLEAN),
        Field("day", t.DATE),
        Field("ts", t.TIMESTAMP),
        Field("e", Decimal(9, 2)),
        Field("p", t.INTEGER),
        Field("q", t.STRING),
        Field("n", Struct((Field("a", t.INTEGER),))),
    )
)


@dataclass
class Listed:
    """Statistics as written: for each column (lower, upper, nulls) a file; `exact` columns have one value a file."""

    rows: list[int | None]
    columns: dict[str, list[tuple[object, object, int | None]]] = field(default_factory=dict)
    partitions: dict[str, list[object]] = field(default_factory=dict)

    @property
    def num_files(self) -> int:
        return len(self.rows)

    def _array(self, path: tuple[str, ...], place: int) -> pa.Array | None:
        column = self.columns.get(".".join(path))
        kind = SCHEMA.find_path(path)
        return None if column is None or kind is None else pa.array([c[place] for c in column], to_arrow(kind.type))

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        values = self.partitions.get(path[0])
        kind = SCHEMA.find_path(path)
        return None if values is None or kind is None else pa.array(values, to_arrow(kind.type))

    def lower(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._array(path, 0)

    def upper(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._array(path, 1)

    def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
        column = self.columns.get(".".join(path))
        return None if column is None else pa.array([c[2] for c in column], pa.int64())

    def num_rows(self) -> pa.Array:
        return pa.array(self.rows, pa.int64())

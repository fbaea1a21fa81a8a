"""A table of every type, for engines that read views lazily, and what they ask our reader for."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

import alluvium
from alluvium.api.lazy.rows import LazyRows
from alluvium.expr.tree import Expression
from alluvium.plan.scan import ScanPlan

#: What was asked for: names of columns, and the condition.
Asked: TypeAlias = "list[tuple[tuple[str, ...], Expression | None]]"

_UTC = dt.timezone.utc
_NAN = math.nan
_N = 12


def _days(hour: int, gap: int, zone: dt.timezone | None) -> list[dt.datetime | None]:
    return [None if i == gap else dt.datetime(2020, 1, i + 1, hour, tzinfo=zone) for i in range(_N)]


VALUES = pa.table(
    {
        "id": pa.array(range(_N), pa.int64()),
        "small": pa.array([None, -128, 127, 0, 1, 2, 3, 4, 5, 6, 7, 8], pa.int8()),
        "f": pa.array([_NAN, 1.5, -0.0, 0.0, None, math.inf, -math.inf, 2.5, _NAN, 1.0, 2.0, 3.0]),
        "g": pa.array([_NAN, 1.5, -0.0, 0.0, None, math.inf, -math.inf, 0.1, _NAN, 1.0, 2.0, 3.0], pa.float32()),
        "s": pa.array(["", "a", "A", "a ", "b", None, "ä", "\U0001f600", "\uffff", "z", "a", "B"]),
        "b": pa.array([b"", b"a", None, b"\x00", b"\xff", b"a", b"b", b"c", b"d", b"e", b"f", b"g"]),
        "d": pa.array([None if i == 3 else dt.date(2020, 1, i + 1) for i in range(_N)]),
        "t": pa.array(_days(0, 4, _UTC), pa.timestamp("us", "UTC")),
        "n": pa.array(_days(12, 5, None), pa.timestamp("us")),
        "m": pa.array([None if i == 6 else Decimal(i) / 4 for i in range(_N)], pa.decimal128(10, 2)),
        "o": pa.array([True, False, None] * 4),
        "st": pa.array([{"x": i, "y": str(i)} if i % 5 else None for i in range(_N)]),
        "l": pa.array([[i, None] if i % 4 else None for i in range(_N)], pa.list_(pa.int32())),
        "mp": pa.array([[("k", i)] if i % 3 else None for i in range(_N)], pa.map_(pa.string(), pa.int32())),
        "p": pa.array([1, 1, 1, 2, 2, 2, None, None, 3, 3, 3, 3], pa.int32()),
        "q": pa.array(["a b", "a b", "x=y", None, "é", "é", "x=y", "a b", None, "", "%", "%"]),
    }
)


def write_delta(url: str, **options: str) -> str:
    """Three commits, partitioned by columns with nulls, one row deleted."""
    for start in range(0, _N, 4):
        alluvium.write(VALUES.slice(start, 4), url, mode="append", partition_by=["p", "q"], **options)
    alluvium.DeltaTable.forPath(url).delete("id = 2")
    return url


def asked_rows(rows: LazyRows) -> tuple[LazyRows, Asked]:
    """The same rows, and a list of what is asked for."""
    asked: Asked = []

    def plan(names: Sequence[str] | None, where: Expression | None) -> ScanPlan:
        asked.append((tuple(rows.columns.names if names is None else names), where))
        return rows.plan(names, where)

    return replace(rows, plan=plan), asked

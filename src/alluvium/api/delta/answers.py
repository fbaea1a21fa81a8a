"""Counts, least and greatest values: from the log where it knows them, from the rows of the other files."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.api.lane import read_batches
from alluvium.delta.view.answers import LogBounds, bounds_from_log, count_from_log
from alluvium.delta.view.scan import plan_files
from alluvium.delta.view.snapshot import Snapshot
from alluvium.expr.tree import Expression
from alluvium.plan.scan import FILE_COLUMN
from alluvium.schema import types as t
from alluvium.storage.store import Store


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value of a column, in Spark's order: NaN is the greatest number, nulls do not count.

    Attributes:
        min: None where the column has no value that is not null.
        max: As `min`.
        files_read: Files whose rows were read to know; 0: the log said it all.
    """

    min: object
    max: object
    files_read: int


def count_rows(snapshot: Snapshot, where: Expression | None, open_store: Callable[[str], Store]) -> int:
    """See `Table.count`."""
    known = count_from_log(snapshot, where)
    if not known.undecided.num_rows:
        return known.rows
    plan = plan_files(snapshot, known.undecided)
    batches = read_batches(plan, snapshot.store, open_store, [FILE_COLUMN], where)
    read: int = sum(batch.num_rows for batch in batches)
    return known.rows + read


def column_bounds(snapshot: Snapshot, name: str, open_store: Callable[[str], Store]) -> Bounds:
    """See `Table.bounds`."""
    known = bounds_from_log(snapshot, name)
    low, high = known.low.as_py(), known.high.as_py()
    if known.undecided.num_rows:
        plan = plan_files(snapshot, known.undecided)
        for batch in read_batches(plan, snapshot.store, open_store, [known.path[0]]):
            low, high = _widened(low, high, _values(batch, known), known)
    return Bounds(low, high, known.undecided.num_rows)


def _values(batch: pa.RecordBatch, known: LogBounds) -> pa.Array:
    values = batch.column(0)
    for name in known.path[1:]:
        values = pc.struct_field(values, name)
    return values.drop_null()


def _widened(low: object, high: object, values: pa.Array, known: LogBounds) -> tuple[object, object]:
    if not len(values):
        return low, high
    found = pc.min_max(values).as_py()
    least, greatest = found["min"], found["max"]
    if known.type in t.FLOATING:
        is_nan = pc.is_nan(values)
        # Arrow leaves NaN out; of NaN alone it says infinities.
        least = math.nan if pc.all(is_nan).as_py() else pc.min(values.filter(pc.invert(is_nan))).as_py()
        greatest = math.nan if pc.any(is_nan).as_py() else greatest
    return _lesser(low, least), _greater(high, greatest)


def _key(value: object) -> object:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode("utf-8") if isinstance(value, str) else value


def _lesser(one: object, other: object) -> object:
    return other if one is None or _key(other) < _key(one) else one  # type: ignore[operator]  # of one type


def _greater(one: object, other: object) -> object:
    return other if one is None or _key(other) > _key(one) else one  # type: ignore[operator]  # of one type

"""How many files a look-up by a column opens: what an order of rows is good for, told by statistics alone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.view.snapshot import Snapshot
from alluvium.schema.edit import Path

Key: TypeAlias = int | float | str | bytes

#: So many values are looked up.
_LOOKED_UP = 1000


@dataclass(frozen=True, slots=True)
class LookUps:
    """What rows in order came to for who looks for one value of a column.

    Attributes:
        column: By which.
        before: How many files are opened on average, over values of rows that were put in order.
        after: The same afterwards.
    """

    column: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Sampled:
    """Values of a column in some rows, as they are compared (`spark.values.ranks.RankKey`)."""

    name: str
    path: Path
    keys: tuple[Key, ...]


def sampled(name: str, path: Path, keys: Sequence[Key | None]) -> Sampled:
    """At most a thousand of a sample's values, evenly chosen; null and NaN are looked for by nobody."""
    known = [key for key in keys if key is not None and key == key]
    chosen = known[:: max(1, len(known) // _LOOKED_UP)]
    return Sampled(name, path, tuple(one.decode(errors="replace") if isinstance(one, bytes) else one for one in chosen))


def look_ups(before: Snapshot, after: Snapshot, samples: Sequence[Sampled]) -> tuple[LookUps, ...]:
    """The figures of each column; a column without statistics is left out.

    Args:
        before: The version before rows were put in order.
        after: One afterwards.
        samples: Values of the rows.
    """
    found = []
    for one in samples:
        counts = [_opened(snapshot, one) for snapshot in (before, after)]
        if counts[0] is not None and counts[1] is not None:
            found.append(LookUps(one.name, counts[0], counts[1]))
    return tuple(found)


def _opened(snapshot: Snapshot, sample: Sampled) -> float | None:
    """How many files may hold a value, on average."""
    statistics = snapshot.statistics(snapshot.files)
    lower, upper = statistics.lower(sample.path), statistics.upper(sample.path)
    if lower is None or upper is None or not sample.keys:
        return None
    lows, highs = _keys(lower), _keys(upper)
    if lows is None or highs is None:
        return None
    nulls, rows = statistics.null_count(sample.path), statistics.num_rows()
    empty = pc.fill_null(pc.equal(nulls, rows), False) if nulls is not None else pa.repeat(False, len(rows))
    told = pc.and_(lower.is_valid(), upper.is_valid())
    # A file that tells nothing is opened by everybody.
    untold = pc.sum(pc.invert(pc.or_(told, empty)), min_count=0).as_py()
    known = told.to_pylist()
    begins = sorted(low for low, is_told in zip(lows, known, strict=True) if is_told)
    ends = sorted(high for high, is_told in zip(highs, known, strict=True) if is_told)
    opened = sum(bisect_right(begins, key) - bisect_left(ends, key) for key in sample.keys)
    return round(int(untold or 0) + opened / len(sample.keys), 2)


def _keys(bounds: pa.Array) -> list[Key] | None:
    """Bounds as samples have them; None: of a type whose order is another there."""
    kind = bounds.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return list(bounds.cast(pa.int64()).to_pylist())
    if pa.types.is_date32(kind):
        return list(bounds.cast(pa.int32()).cast(pa.int64()).to_pylist())
    # A clock's times have no place on the line before it is said in which zone.
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return list(bounds.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return list(bounds.cast(pa.float64()).to_pylist())
    return list(bounds.to_pylist()) if pa.types.is_string(kind) else None

"""The statistics of data files as manifests have them, out of what their footers tell.

Specification: "Stats strings are truncated to 16 chars by default (`metadata.stats-mode=truncate(16)`), max value
incremented in its last char; modes none/counts/full/truncate(n), per column `fields.<c>.stats-mode`;
`metadata.stats-dense-store` writes `_VALUE_STATS_COLS`".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.codecs.footers.chunk_statistics import Bound
from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, FooterColumn
from alluvium.errors import InvalidRequest
from alluvium.paimon.files.manifest_write import EMPTY_ROW
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms.options import FILE_FORMAT, STATS_DENSE, STATS_FIRST_COLUMNS, STATS_MODE, THIN_MODE
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Array, Map, Struct

_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_LAST_CHARACTER, _SURROGATES = 0x10FFFF, range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class StatsMode:
    """What is kept of a column: nothing, how many nulls, or the bounds too (texts cut to `length`; None: whole)."""

    counts: bool = True
    bounds: bool = True
    length: int | None = None


#: Of keys, unless their column has a mode of its own: `StatsCollectorFactories`.
KEY_MODE = StatsMode(length=128)


def _parse_mode(text: str, column: str) -> StatsMode:
    folded = text.strip().lower()
    if folded in ("none", "counts", "full"):
        return StatsMode(folded != "none", folded == "full")
    match = _TRUNCATE.fullmatch(folded)
    if match is None or int(match[1]) == 0:
        raise InvalidRequest(
            f"{text!r} is no mode of statistics",
            code="invalid-table-option",
            column=column,
            hint="none, counts, full or truncate(16)",
        )
    return StatsMode(length=int(match[1]))


def _modes(schema: TableSchema) -> list[StatsMode]:
    """Of each column."""
    options = schema.options
    # Of which there are no other columns.
    keys = schema.trimmed_primary_keys if THIN_MODE.get(options) else ()
    first, counts = STATS_FIRST_COLUMNS.get(options), FILE_FORMAT.get(options) != "parquet"
    found = []
    for index, column in enumerate(schema.fields):
        own = options.get(f"fields.{column.name}.stats-mode")
        text = STATS_MODE.get(options) if own is None else own
        if own is None and 0 <= first <= index:
            text = "none"
        mode = _parse_mode(text, column.name)
        if own is None and column.name in keys:
            mode = KEY_MODE
        # Of columns made of several Java keeps how many are null, and from Parquet's footers, which know leaves alone,
        # not even that.
        whole = StatsMode(counts and mode.counts, False)
        found.append(mode if _is_leaf(column) else whole)
    return found


def _is_leaf(column: DataField) -> bool:
    kind = to_logical(column.type)
    return not isinstance(kind, (Struct, Array, Map)) and kind != t.VARIANT


def stats_columns(schema: TableSchema) -> tuple[FooterColumn, ...]:
    """The columns to take statistics of.

    Raises:
        InvalidRequest: A mode that there is not (`"invalid-table-option"`).
    """
    return tuple(
        FooterColumn((f.name,), to_logical(f.type))
        for f, mode in zip(schema.fields, _modes(schema), strict=True)
        if mode.counts
    )


@dataclass(frozen=True, slots=True)
class ValueStats:
    """The statistics of some files, one of each a file; `columns` is None where they are of all columns."""

    low: pa.Array
    high: pa.Array
    nulls: pa.Array
    columns: tuple[str, ...] | None


def value_stats(schema: TableSchema, footers: Sequence[FileFooter]) -> ValueStats:
    """The statistics of files that were written by a schema."""
    modes = _modes(schema)
    dense = STATS_DENSE.get(schema.options)
    kept = [(f, m) for f, m in zip(schema.fields, modes, strict=True) if m.counts or not dense]
    count = len(footers)
    ends, types = [], []
    nulls: list[list[int | None]] = []
    for column, mode in kept:
        kind = to_logical(column.type)
        # A slot all the same, for the row has as many as there are columns.
        kind = kind if _is_leaf(column) else t.BINARY
        if not mode.counts:
            ends.append(pa.nulls(2 * count, to_arrow(kind)))
            nulls.append([None] * count)
        else:
            stats = [footer.columns.get((column.name,)) for footer in footers]
            ends.append(bounds_of(stats, kind, mode))
            nulls.append([None if s is None else s.null_count for s in stats])
        types.append((kind, column.type.precision))
    names = None if len(kept) == len(schema.fields) else tuple(f.name for f, _ in kept)
    counted = pa.array([list(row) for row in zip(*nulls, strict=True)] if kept else [[]] * count, pa.list_(pa.int64()))
    if not kept:
        empty = pa.repeat(pa.scalar(EMPTY_ROW, pa.binary()), count)
        return ValueStats(empty, empty, counted, names)
    low, high = encoded_ends(ends, types)
    return ValueStats(low, high, counted, names)


def encoded_ends(ends: Sequence[pa.Array], types: Sequence[tuple[t.DataType, int]]) -> tuple[pa.Array, pa.Array]:
    """Lower and upper bounds of some files as rows, out of those of each column as `bounds_of` gives them."""
    # Both at once: a call takes longer than the few rows of a commit.
    rows = encode_rows(ends, types)
    return rows.slice(0, len(rows) // 2), rows.slice(len(rows) // 2)


def bounds_of(stats: Sequence[ColumnStats | None], kind: t.DataType, mode: StatsMode) -> pa.Array:
    """The lower bounds of a column in each file, and behind them the upper ones: either both are known or none is."""
    lows: list[Bound | None] = []
    highs: list[Bound | None] = []
    # Java compares neither texts of bytes.
    known = mode.bounds and kind != t.BINARY
    for one in stats:
        low, high = (one.min, one.max) if one is not None and known else (None, None)
        if isinstance(low, str) and isinstance(high, str) and mode.length is not None:
            low, high = low[: mode.length], _cut_above(high, mode.length)
        if low is None or high is None:
            low = high = None
        lows.append(low)
        highs.append(high)
    return values_of([*lows, *highs], kind)


def _cut_above(text: str, length: int) -> str | None:
    """The least text of so many characters that is not less than the whole; None where there is none."""
    if len(text) <= length:
        return text
    for place in range(length - 1, -1, -1):
        code = ord(text[place]) + 1
        if code in _SURROGATES:
            code = _SURROGATES.stop
        if code <= _LAST_CHARACTER:
            return text[:place] + chr(code)
    return None


def values_of(values: Sequence[Bound | None], kind: t.DataType) -> pa.Array:
    """Bounds as values of a type."""
    target = to_arrow(kind)
    if kind in (t.DATE, t.TIME):
        return pa.array(values, pa.int32()).cast(target)
    if pa.types.is_timestamp(target):
        # Nanoseconds have no statistics: their files have INT96.
        return pa.array(values, pa.int64()).cast(pa.timestamp("us", target.tz)).cast(target)
    return pa.array(values, target)

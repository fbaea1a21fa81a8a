"""Counts and bounds that the log knows, and the files that must be read for the rest. Pure.

Specification: "Per-file Statistics". Statistics that are good enough to leave a file out need not be good enough to
answer: text is cut off, times lose their microseconds, bounds are wide where rows are deleted, writers differ on NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.features.rows.deletion_vectors import ensure_sound_vectors, live_row_counts
from alluvium.delta.log.large.pieces import joined
from alluvium.delta.statistics.stats_values import EXACT_DIGITS
from alluvium.delta.view.scan import Selection, select_files, select_some
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import InvalidRequest, suggest
from alluvium.expr.tree import Expression
from alluvium.schema import types as t
from alluvium.schema.text_lengths import char_length, pad_texts, pad_upper_bounds
from alluvium.schema.types import Array, DataType, Decimal, Map, Struct


@dataclass(frozen=True, slots=True)
class Counted:
    """How many rows there are, as far as the log tells.

    Attributes:
        rows: Live rows of the files of which the log says that all of their rows count.
        decided: How many files these are; skipped files do not count.
        undecided: Files of which some rows may count (`FILES`).
    """

    rows: int
    decided: int
    undecided: pa.Table


@dataclass(frozen=True, slots=True)
class LogBounds:
    """What the log tells of a column's least and greatest value.

    Attributes:
        path: The column.
        type: Its type.
        low: The least value of the files whose bounds are exact; null where there is none.
        high: The greatest.
        undecided: Files that may hold a lesser or a greater one (`FILES`).
    """

    path: tuple[str, ...]
    type: DataType
    low: pa.Scalar
    high: pa.Scalar
    undecided: pa.Table


def count_from_log(snapshot: Snapshot, where: Expression | None) -> Counted:
    """Counts the rows for which `where` is true in files that partition values and statistics decide as a whole.

    Deleted rows do not count: "`cardinality`: Number of rows the given DV logically removes from the file".

    Raises:
        CorruptTable: See `ensure_sound_vectors`.
    """
    if not snapshot.is_unread:
        return _counted(snapshot, select_files(snapshot, where))
    found = snapshot.map_files(lambda files: _counted(snapshot, select_some(snapshot, files, where)), each_once=True)
    rows, decided = sum(counted.rows for counted in found), sum(counted.decided for counted in found)
    return Counted(rows, decided, joined([counted.undecided for counted in found]))


def _counted(snapshot: Snapshot, selection: Selection) -> Counted:
    files = selection.files
    ensure_sound_vectors(files, snapshot.config.protocol, snapshot.store.url, snapshot.version)
    live = live_row_counts(files, snapshot.statistics(files).num_rows())
    decided = pc.and_(selection.certain, _flat(live.is_valid()))
    counted = _flat(live).filter(decided)
    return Counted(int(pc.sum(counted).as_py() or 0), len(counted), files.filter(pc.invert(decided)))


def bounds_from_log(snapshot: Snapshot, name: str) -> LogBounds:
    """The least and greatest value of a column in files whose bounds are exact, and the files that may go beyond.

    Args:
        snapshot: The version.
        name: A column; fields of structs by dots.

    Raises:
        InvalidRequest: There is no such column (`unknown-column`), or its values have no order (`unordered-column`).
        CorruptTable: See `ensure_sound_vectors`.
    """
    path, data_type = _resolve(snapshot.config.schema, name)
    length = char_length(snapshot.config.schema, path)
    files = snapshot.files
    ensure_sound_vectors(files, snapshot.config.protocol, snapshot.store.url, snapshot.version)
    statistics = snapshot.statistics(files)
    statistics.prepare([path])
    live = _flat(live_row_counts(files, statistics.num_rows()))
    constants = statistics.exact(path)
    if constants is not None:
        low = high = constants if length is None else pad_texts(constants, length)
        valueless = constants.is_null()
        attained = holds_values = pc.fill_null(pc.greater(live, 0), False)
    else:
        low, high, nulls = statistics.lower(path), statistics.upper(path), statistics.null_count(path)
        if low is None or high is None or nulls is None or pa.types.is_null(low.type):
            raise _unordered(name, data_type)
        high = high if length is None else pad_upper_bounds(high, length)
        rows = _flat(statistics.num_rows())
        valueless = pc.fill_null(pc.greater_equal(nulls, rows), False)
        tight = pc.and_(statistics.tight(), pc.fill_null(pc.greater(live, 0), False))
        holds_values = pc.and_(tight, pc.fill_null(pc.less(nulls, rows), False))
        both = pc.and_(low.is_valid(), high.is_valid())
        attained = pc.and_(pc.and_(holds_values, both), pa.scalar(_has_exact_bounds(data_type)))
    open_ = pc.invert(pc.or_(valueless, pc.fill_null(pc.equal(live, 0), False)))
    found = pc.and_(attained, open_)
    ends = (pc.min(low.filter(found)), pc.max(high.filter(found)))
    open_ = pc.and_(open_, pc.invert(found))
    sure = high.filter(pc.and_(open_, holds_values)), low.filter(pc.and_(open_, holds_values))
    beyond = pc.fill_null(pc.less_equal(low, pc.min(_joined(sure[0], ends[0]))), True)
    if data_type in t.FLOATING:
        # A writer that leaves NaN out has not told the greatest value.
        beyond = pa.repeat(pa.scalar(True), len(beyond))
    above = pc.fill_null(pc.greater_equal(high, pc.max(_joined(sure[1], ends[1]))), True)
    undecided = pc.and_(open_, pc.or_(beyond, above))
    return LogBounds(path, data_type, *ends, files.filter(undecided))


def is_ordered(data_type: DataType) -> bool:
    """Whether values of the type have a least and a greatest that can be asked for."""
    return not isinstance(data_type, (Struct, Array, Map)) and data_type not in (t.VARIANT, t.VOID)


def _joined(values: pa.Array, more: pa.Scalar) -> pa.Array:
    return pa.concat_arrays([values, pa.array([more.as_py()], values.type)]) if more.is_valid else values


def _has_exact_bounds(data_type: DataType) -> bool:
    if isinstance(data_type, Decimal):
        # Those of more digits may have been printed as doubles.
        return data_type.precision <= EXACT_DIGITS
    return data_type in (*t.INTEGRAL, t.DATE)


def _flat(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _resolve(schema: Struct, name: str) -> tuple[tuple[str, ...], DataType]:
    asked = (name,) if schema.find(name) is not None else tuple(name.split("."))
    path: tuple[str, ...] = ()
    data_type: DataType = schema
    for part in asked:
        found = schema.find_path((*path, part))
        if found is None:
            raise InvalidRequest(
                f"there is no column {name!r}", code="unknown-column", column=name, hint=suggest(name, schema.names)
            )
        path, data_type = (*path, found.name), found.type
    if not is_ordered(data_type):
        raise _unordered(name, data_type)
    return path, data_type


def _unordered(name: str, data_type: DataType) -> InvalidRequest:
    return InvalidRequest(
        f"column {name!r} of type {data_type} has no least or greatest value",
        code="unordered-column",
        column=name,
        hint="ask for its fields: 'struct.field'" if isinstance(data_type, Struct) else None,
    )

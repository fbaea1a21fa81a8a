"""What manifests know of each data file, for skipping: partition values, and statistics by the file's own schema.

Specification: "Stats follow the file's schema (`_SCHEMA_ID`): map by id before pruning; skip when the type changed".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.expr.functions import decimal_of
from alluvium.paimon.files.partitions import Partitions
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.types import DataField, DataType
from alluvium.paimon.terms.options import tracks_rows
from alluvium.paimon.terms.spec import ROW_ID
from alluvium.paimon.view.merge import SEQUENCE
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Decimal

#: NaN is greater than every number, and writers leave it out of some statistics: no upper bounds of these. A lower
#: bound of NaN, which Java keeps where NaN came first, is none (`expr.skipping.prune`).
_UNBOUNDED = (t.FLOAT, t.DOUBLE)
_KEPT = (t.BOOLEAN, *t.INTEGRAL, *_UNBOUNDED, t.STRING, t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)


class EntryStatistics:
    """Implements `expr.prune.FileStatistics` for manifest entries."""

    def __init__(self, snapshot: Snapshot, entries: pa.Table, partitions: Partitions) -> None:
        self._snapshot = snapshot
        self._entries = entries
        self._partitions = partitions
        self._groups = _groups(entries)

    @property
    def num_files(self) -> int:
        return int(self._entries.num_rows)

    def num_rows(self) -> pa.Array | None:
        return self._entries["row_count"].combine_chunks()

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        if len(path) != 1 or path[0] not in self._snapshot.schema.partition_keys:
            return None
        return self._partitions.column(path[0])

    def lower(self, path: tuple[str, ...]) -> pa.Array | None:
        known = self._identity(path)
        return self._bound(path, "stats_min") if known is None else known

    def upper(self, path: tuple[str, ...]) -> pa.Array | None:
        known = self._identity(path)
        if known is not None:
            more = pc.subtract(self._entries["row_count"].combine_chunks(), 1)
            return pc.add(known, more) if path == (ROW_ID,) else known
        column = self._column(path)
        return None if column is None or to_logical(column.type) in _UNBOUNDED else self._bound(path, "stats_max")

    def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
        known = self._identity(path)
        if known is not None:
            return pc.if_else(known.is_valid(), pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64()))
        column = self._column(path)
        if column is None:
            return None
        pieces = []
        for rows, place, fields in self._places(column, same_type=False):
            # Values that do not fit the column's type of today read as nulls, which nobody has counted.
            if place is None or not _stays_not_null(fields[place].type, column.type):
                pieces.append((rows, pa.nulls(len(rows), pa.int64())))
                continue
            lists = self._entries["stats_nulls"].combine_chunks().take(pa.array(rows))
            pieces.append((rows, _element(lists, place)))
        return _assembled(pieces, self.num_files, pa.int64())

    def _identity(self, path: tuple[str, ...]) -> pa.Array | None:
        """Of each file the least id of its rows, or the snapshot that made them, where the file says it of no row by
        itself.
        """
        schema, entries = self._snapshot.schema, self._entries
        if path not in ((ROW_ID,), (SEQUENCE,)) or schema.primary_keys or not tracks_rows(schema.options):
            return None
        if self._column(path) is not None:
            return None
        stored = [names is not None and path[0] in names for names in entries["write_cols"].to_pylist()]
        values = entries["first_row_id" if path == (ROW_ID,) else "max_sequence_number"].combine_chunks()
        return pc.if_else(pa.array(stored, pa.bool_()), pa.scalar(None, pa.int64()), values)

    def _bound(self, path: tuple[str, ...], side: str) -> pa.Array | None:
        column = self._column(path)
        if column is None:
            return None
        kind = to_logical(column.type)
        if kind not in _KEPT and not isinstance(kind, Decimal):
            return None
        target = to_arrow(kind)
        pieces = []
        for rows, place, fields in self._places(column, same_type=True):
            if place is None:
                pieces.append((rows, pa.nulls(len(rows), target)))
                continue
            data = self._entries[side].combine_chunks().take(pa.array(rows))
            types = [(to_logical(f.type), f.type.precision) for f in fields]
            known = pc.greater_equal(pc.binary_length(data), 12 + 8 * len(types))
            data = pc.if_else(known, data, pa.scalar(None, data.type))
            (values,) = decode_rows(data, types, (place,))
            if fields[place].type.root == "CHAR":
                values = pc.if_else(self._are_padded(rows), pa.scalar(None, values.type), values)
            pieces.append((rows, values))
        return _assembled(pieces, self.num_files, target)

    def _are_padded(self, rows: np.ndarray) -> pa.Array:
        """Of each file whether it keeps CHAR with blanks behind, which stand in its bounds, and which readers cut off.

        Blanks are less than some characters, and more than others: such bounds are none of what is read.
        """
        return pc.ends_with(self._entries["file_name"].combine_chunks().take(pa.array(rows)), ".orc")

    def _column(self, path: tuple[str, ...]) -> DataField | None:
        return self._snapshot.schema.find(path[0]) if len(path) == 1 else None

    def _places(self, column: DataField, same_type: bool) -> list[tuple[np.ndarray, int | None, list[DataField]]]:
        """For files alike in their statistics: which they are, at which place the column stands, and all columns."""
        found = []
        for schema_id, names, rows in self._groups:
            schema = self._snapshot.schema_of(schema_id)
            by_name = {f.name: f for f in schema.fields}
            fields = list(schema.fields) if names is None else [by_name[n] for n in names if n in by_name]
            whole = names is None or len(fields) == len(names)
            place = next((i for i, f in enumerate(fields) if f.id == column.id), None) if whole else None
            if place is not None and same_type and fields[place].type.shape != column.type.shape:
                place = None
            found.append((rows, place, fields))
        return found


def _stays_not_null(written: DataType, read: DataType) -> bool:
    """Whether no value of a column becomes null when it is read under its type of today."""
    source, target = to_logical(written), to_logical(read)
    if written.shape == read.shape or source == target:
        return True
    if isinstance(target, Decimal):
        exact = decimal_of(source)
        whole, scale = (39, 0) if exact is None else (exact.precision - exact.scale, exact.scale)
        return target.precision - target.scale >= whole and target.scale >= scale
    if source in t.INTEGRAL and target in t.INTEGRAL:
        return t.INTEGRAL.index(source) <= t.INTEGRAL.index(target)
    return target == t.STRING or (source in (*t.INTEGRAL, t.FLOAT) and target == t.DOUBLE)


def _groups(entries: pa.Table) -> list[tuple[int, tuple[str, ...] | None, np.ndarray]]:
    """Files by schema and by the columns that their statistics are of."""
    joined = pc.binary_join(entries["value_stats_cols"].combine_chunks(), "\x00")
    keys = pc.binary_join_element_wise(
        pc.cast(entries["schema_id"].combine_chunks(), pa.string()), pc.fill_null(joined, "\x01"), "\x02"
    )
    encoded = keys.dictionary_encode()
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    groups: list[tuple[int, tuple[str, ...] | None, np.ndarray]] = []
    for number, key in enumerate(encoded.dictionary.to_pylist()):
        schema_id, _, names = key.partition("\x02")
        columns = None if names == "\x01" else tuple(names.split("\x00")) if names else ()
        groups.append((int(schema_id), columns, np.flatnonzero(indices == number)))
    return groups


def _element(lists: pa.Array, place: int) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    starts = lists.offsets.to_numpy(zero_copy_only=False)[:-1]
    inside = np.asarray(pc.greater(lengths, place).to_numpy(zero_copy_only=False), bool)
    if not len(lists.values):
        return pa.nulls(len(lists), pa.int64())
    taken = lists.values.take(pa.array(np.where(inside, starts + place, 0)))
    return pc.if_else(pa.array(inside), taken, pa.scalar(None, pa.int64()))


def _assembled(pieces: list[tuple[np.ndarray, pa.Array]], count: int, kind: pa.DataType) -> pa.Array:
    if not pieces:
        return pa.nulls(count, kind)
    order = np.argsort(np.concatenate([rows for rows, _ in pieces]), kind="stable")
    return pa.concat_arrays([values.cast(kind) for _, values in pieces]).take(pa.array(order))

"""The rows of one data file as a plan wants them: its columns made of the file's own, its deleted rows marked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.bitmaps.roaring import positions_of
from alluvium.errors import AlluviumError, CorruptTable
from alluvium.plan.scan import (
    FIELD_ID,
    Coalesce,
    ColumnValue,
    Converted,
    FileConstant,
    Literal,
    OutputColumn,
    Physical,
    RowPosition,
    ScanPart,
    Sum,
)
from alluvium.portable.files.conform import conform, relabel
from alluvium.portable.files.data_file import RowFile
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.walk import holds

#: Metadata column: the address of the file that a row is in.
FILE_COLUMN = "_file"
#: Files whose constants and masks are taken from the plan in one step.
_FILES_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class FileRows:
    """A file of a plan: what its rows have in common."""

    part: ScanPart
    path: str
    mask: bytes | None
    constants: dict[str, pa.Scalar] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The unit in which timestamps of no fixed unit are read: as fine as the finest column."""
        fine = (t.TIMESTAMP_NANOS, t.TIMESTAMP_NTZ_NANOS)
        return "ns" if any(holds(self.part.read_schema, kind) for kind in fine) else "us"


def file_rows(parts: Sequence[ScanPart]) -> Iterator[FileRows]:
    """The files of some parts, their masks loaded."""
    for part in parts:
        for start in range(0, part.files.num_rows, _FILES_AT_ONCE):
            batch = part.load_masks(part.files.slice(start, _FILES_AT_ONCE)).combine_chunks()
            paths = batch["path"].to_pylist()
            masks = batch["mask"].to_pylist()
            constants = batch["constants"].combine_chunks()
            members = {f.name: constants.field(i) for i, f in enumerate(constants.type)}
            for i, (path, mask) in enumerate(zip(paths, masks, strict=True)):
                if mask is None and part.keeps_masked:
                    continue
                yield FileRows(part, path, mask, {name: values[i] for name, values in members.items()})


def made_batches(
    rows: FileRows, data: RowFile, needed: Collection[str], batch_size: int, uri: str, time_zone: str
) -> Iterator[tuple[int, pa.RecordBatch | None, pa.BooleanArray | None]]:
    """The file's rows, deleted ones too: how many, the columns needed (None: there are none), and which are left."""
    wanted = [c for c in rows.part.output if c.name in needed]
    physical = list(dict.fromkeys(path[0] for c in wanted for path in _physical_paths(c.value)))
    listed = _listed_rows(rows)
    start = 0
    for num_rows, arrays in data.batches(data.names(physical, _field_ids(rows.part)), batch_size):
        batch = _Batch(start, num_rows, arrays, rows, time_zone)
        start += num_rows
        try:
            made = {c.name: batch.column(c) for c in wanted}
        except AlluviumError as error:
            error.path = error.path or rows.path
            raise
        if FILE_COLUMN in needed and FILE_COLUMN not in made:
            made[FILE_COLUMN] = pa.repeat(pa.scalar(uri), num_rows)
        table = pa.RecordBatch.from_arrays(list(made.values()), names=list(made)) if made else None
        yield num_rows, table, batch.left(listed)


def _listed_rows(rows: FileRows) -> Sequence[int]:
    if rows.mask is None:
        return ()
    try:
        return positions_of(rows.mask)
    except CorruptTable as error:
        error.path = error.path or rows.path
        raise


def _field_ids(part: ScanPart) -> dict[str, int]:
    """Columns that are found by number, not by name."""
    ids = {f.name: f.metadata.get(FIELD_ID) for f in part.read_schema.fields}
    return {name: number for name, number in ids.items() if isinstance(number, int)}


def _physical_paths(value: ColumnValue) -> Iterator[tuple[str, ...]]:
    if isinstance(value, Physical):
        yield value.path
    elif isinstance(value, Converted):
        yield from _physical_paths(value.value)
    elif isinstance(value, (Coalesce, Sum)):
        for part in value.values:
            yield from _physical_paths(part)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Rows of a file before columns are made of them.

    Attributes:
        start: Position of the first row in the file.
        num_rows: How many.
        arrays: The file's top-level columns, under the names that the plan asks for.
        rows: What all rows of the file have in common.
        time_zone: The session's.
    """

    start: int
    num_rows: int
    arrays: dict[str, pa.Array]
    rows: FileRows
    time_zone: str

    def left(self, listed: Sequence[int]) -> pa.BooleanArray | None:
        """Which rows the file's mask leaves; None where all are left."""
        keeps = self.rows.part.keeps_masked
        low, high = bisect_left(listed, self.start), bisect_left(listed, self.start + self.num_rows)
        if low == high and not keeps:
            return None
        found = pc.is_in(self.positions(), pa.array(listed[low:high], pa.int64()))
        return found if keeps else pc.invert(found)

    def positions(self) -> pa.Array:
        """Each row's index in the file."""
        return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), self.num_rows), start=self.start - 1)

    def column(self, column: OutputColumn) -> pa.Array:
        made = self.value(column.value, column.name)
        return relabel(made, column.type, column.name)

    def value(self, value: ColumnValue, name: str) -> pa.Array:
        if isinstance(value, Physical):
            return self._physical(value, name)
        if isinstance(value, FileConstant):
            constant = self.rows.constants.get(value.name)
            if constant is None or not constant.is_valid:
                return pa.nulls(self.num_rows, to_arrow(value.type))
            return pa.repeat(constant, self.num_rows)
        if isinstance(value, Literal):
            return pa.repeat(pa.scalar(value.value, to_arrow(value.type)), self.num_rows)
        if isinstance(value, RowPosition):
            return self.positions()
        if isinstance(value, Converted):
            made = self.value(value.value, name)
            return value.conversion.convert(made, self.time_zone)
        parts = [self.value(part, name) for part in value.values]
        if isinstance(value, Coalesce):
            return pc.coalesce(*parts)
        total = parts[0]
        for part in parts[1:]:
            total = pc.add(total, part)
        return total

    def _physical(self, value: Physical, name: str) -> pa.Array:
        values = self.arrays.get(value.path[0])
        for member in value.path[1:]:
            if values is None or not pa.types.is_struct(values.type):
                break
            values = _member(values, member)
        if values is None:
            return pa.nulls(self.num_rows, to_arrow(value.type))
        return conform(values, value.type, name)


def _member(values: pa.StructArray, name: str) -> pa.Array | None:
    names = [f.name for f in values.type]
    if name not in names:
        name = next((other for other in names if other.lower() == name.lower()), "")
    return pc.struct_field(values, [name]) if name in names else None

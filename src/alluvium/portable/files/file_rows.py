"""The rows of one data file as a plan wants them: its columns made of the file's own, its deleted rows marked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.bitmaps.roaring import positions_of
from alluvium.codecs.columns import integer_column, long_column, scalar_of
from alluvium.codecs.footers.page_index import Integers
from alluvium.errors import AlluviumError, CorruptTable
from alluvium.plan.scan import (
    FIELD_ID,
    FILE_COLUMN,
    INSTANT_BOUNDS,
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
from alluvium.portable.files.file_names import own_member
from alluvium.portable.files.lacking import lacking_column
from alluvium.portable.files.local_instants import KnownInstants
from alluvium.schema import types as t
from alluvium.schema.arrow import to_arrow
from alluvium.schema.walk import holds

#: Files whose constants and masks are taken from the plan in one step.
_FILES_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class KeptPlaces:
    """The positions that a mask keeps of others, which most readers never ask for.

    Attributes:
        within: Others.
        keep: One value each.
        count: How many it keeps.
    """

    within: range
    keep: pa.BooleanArray
    count: int

    def __len__(self) -> int:
        return self.count


#: Positions of rows in their file, in order.
Places: TypeAlias = "range | Integers | KeptPlaces"


def positions(places: Places) -> Integers:
    """Each of them."""
    if isinstance(places, KeptPlaces):
        return np.asarray(pc.indices_nonzero(places.keep).to_numpy()).astype(np.int64) + places.within.start
    if isinstance(places, range):
        return np.arange(places.start, places.stop, dtype=np.int64)
    return places


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

    def instants(self, time_zone: str) -> KnownInstants | None:
        """What is known of instants in the file for a reader in a zone; None: they are what they are."""
        if not self.part.local_instants:
            return None
        known = self.constants[INSTANT_BOUNDS]
        ends = {f.name: (known[f.name]["low"], known[f.name]["high"]) for f in known.type} if known.is_valid else {}
        told = {name: pair for name, pair in ends.items() if all(end.is_valid for end in pair)}
        return KnownInstants(time_zone, {name: (low.value, high.value) for name, (low, high) in told.items()})


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
    maker = RowMaker(rows, needed, uri, time_zone)
    start = 0
    for num_rows, arrays in data.batches(maker.own_names(data), batch_size):
        places = range(start, start + num_rows)
        start += num_rows
        yield num_rows, maker.made(places, arrays), maker.left(places)


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Makes columns of a plan of those of a file.

    Attributes:
        rows: What all rows of the file have in common.
        needed: Names of the columns.
        uri: The file's address.
        time_zone: The session's.
    """

    rows: FileRows
    needed: Collection[str]
    uri: str
    time_zone: str
    _listed: list[Sequence[int]] = field(default_factory=list)

    @property
    def outputs(self) -> list[OutputColumn]:
        """The columns that the part makes."""
        return [c for c in self.rows.part.output if c.name in self.needed]

    def own_names(self, data: RowFile) -> dict[str, str]:
        """The file's columns that these are made of, by the names that the plan has for them."""
        physical = list(dict.fromkeys(path[0] for c in self.outputs for path in _physical_paths(c.value)))
        return data.names(physical, _field_ids(self.rows.part))

    def made(self, places: Places, arrays: dict[str, pa.Array]) -> pa.RecordBatch | None:
        """The columns needed; None where there are none.

        Args:
            places: The positions of some rows in the file, in order.
            arrays: The file's columns there, under the names that the plan has for them.

        Raises:
            CorruptTable: The file has values that the column cannot hold.
        """
        batch = _Batch(places, arrays, self.rows, self.time_zone)
        try:
            made = {c.name: batch.column(c) for c in self.outputs}
        except AlluviumError as error:
            error.path = error.path or self.rows.path
            raise
        if FILE_COLUMN in self.needed and FILE_COLUMN not in made:
            made[FILE_COLUMN] = pa.repeat(scalar_of(self.uri, pa.string()), len(places))
        return pa.RecordBatch.from_arrays(list(made.values()), names=list(made)) if made else None

    def left(self, places: range | Integers) -> pa.BooleanArray | None:
        """Which of the rows the file's mask leaves; None where all are left."""
        if not self._listed:
            self._listed.append(_listed_rows(self.rows))
        listed = self._listed[0]
        keeps = self.rows.part.keeps_masked
        low = bisect_left(listed, places[0]) if len(places) else 0
        high = bisect_left(listed, places[-1] + 1) if len(places) else 0
        if low == high and not keeps:
            return None
        found = pc.is_in(integer_column(positions(places)), long_column(listed[low:high]))
        return found if keeps else pc.invert(found)


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
        places: Positions of the rows in the file.
        arrays: The file's top-level columns, under the names that the plan asks for.
        rows: What all rows of the file have in common.
        time_zone: The session's.
    """

    places: Places
    arrays: dict[str, pa.Array]
    rows: FileRows
    time_zone: str

    @property
    def num_rows(self) -> int:
        return len(self.places)

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
            return integer_column(positions(self.places))
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
            values = _member(values, member, name)
        if values is None:
            return lacking_column(value, self.rows.part.read_schema, self.num_rows, name, self.time_zone)
        return conform(values, value.type, name)


def _member(values: pa.StructArray, member: str, name: str) -> pa.Array | None:
    own = own_member([f.name for f in values.type], member, name)
    return None if own is None else pc.struct_field(values, [own])

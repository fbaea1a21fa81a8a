"""The lane without Spark: pyarrow interprets scan plans, in fixed memory."""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.roaring import positions_of
from alluvium.errors import CorruptTable, InvalidRequest, UnsupportedFeature, suggest
from alluvium.expr.evaluate import evaluate
from alluvium.expr.tree import Expression, column_paths
from alluvium.plan.scan import (
    FIELD_ID,
    Coalesce,
    ColumnValue,
    FileConstant,
    Literal,
    OutputColumn,
    Physical,
    RowPosition,
    ScanPart,
    ScanPlan,
    Sum,
)
from alluvium.portable.conform import conform, relabel
from alluvium.portable.data_file import DataFile, Files, open_data_file
from alluvium.schema.arrow import to_arrow
from alluvium.storage.store import Store

#: Metadata column: the address of the file that a row is in.
FILE_COLUMN = "_file"
#: Files whose footers are read ahead: hides the latency of object stores, costs no data in memory.
_OPEN_AHEAD = 4
#: Files whose constants and masks are taken from the plan in one step.
_FILES_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class _Request:
    """What to produce of every part.

    Attributes:
        names: The result's columns.
        needed: These, and what the filter reads.
        schema: The result's schema.
        where: Rows to keep: those for which it is true.
        time_zone: The session's.
        batch_size: Rows of a batch at most.
    """

    names: tuple[str, ...]
    needed: tuple[str, ...]
    schema: pa.Schema
    where: Expression | None
    time_zone: str
    batch_size: int


@dataclass(frozen=True, slots=True)
class _FileRows:
    """A file of a plan: what its rows have in common."""

    part: ScanPart
    path: str
    mask: bytes | None
    constants: dict[str, pa.Scalar] = field(default_factory=dict)


def read_batches(
    plan: ScanPlan,
    store: Store,
    open_store: Callable[[str], Store],
    columns: Sequence[str] | None = None,
    where: Expression | None = None,
    time_zone: str = "UTC",
    batch_size: int = 65_536,
) -> pa.RecordBatchReader:
    """The rows of a plan, as a stream that holds at most a row group (of the columns asked) in memory.

    Args:
        plan: What to read.
        store: The table's root.
        open_store: From a URL to its store, for files that lie elsewhere.
        columns: Names; `"*"` stands for all of the plan's schema, `"_file"` for the file's address; None: all.
        where: Only rows for which it is true.
        time_zone: The session's, for `where`, and for files of an old Spark that name none.
        batch_size: Rows of a batch at most.

    Raises:
        InvalidRequest: There is no such column.
        UnsupportedFeature: The plan needs what this lane cannot do.
        NotFound: A data file is missing (while reading, code `missing-file`).
        CorruptTable: A data file is damaged (while reading).
    """
    for part in plan.parts:
        if part.file_format != "parquet" or part.merge is not None:
            what = "merging rows by key" if part.merge is not None else f"{part.file_format} files"
            raise UnsupportedFeature(f"{what} cannot be read without Spark", code="unsupported-scan", url=plan.root)
    request = _plan_request(plan, columns, where, time_zone, batch_size)
    files = Files(store, open_store)
    return pa.RecordBatchReader.from_batches(request.schema, _read(plan, request, files))


def _plan_request(
    plan: ScanPlan, columns: Sequence[str] | None, where: Expression | None, time_zone: str, batch_size: int
) -> _Request:
    # Metadata columns are columns of the parts that the plan's schema leaves out.
    known = {f.name: pa.field(f.name, to_arrow(f.type), f.nullable) for f in plan.schema.fields}
    for part in plan.parts:
        for c in part.output:
            known.setdefault(c.name, pa.field(c.name, to_arrow(c.type), c.nullable))
    known.setdefault(FILE_COLUMN, pa.field(FILE_COLUMN, pa.string(), False))
    by_folded = {name.casefold(): name for name in reversed(known)}
    names: list[str] = []
    for asked in ("*",) if columns is None else columns:
        if asked == "*":
            names.extend(plan.schema.names)
            continue
        name = asked if asked in known else by_folded.get(asked.casefold())
        if name is None:
            raise InvalidRequest(
                f"there is no column {asked!r}", code="unknown-column", column=asked, hint=suggest(asked, known)
            )
        names.append(name)
    read_by_filter = sorted({path[0] for path in column_paths(where)} if where is not None else ())
    needed = tuple(dict.fromkeys((*names, *read_by_filter)))
    return _Request(tuple(names), needed, pa.schema([known[name] for name in names]), where, time_zone, batch_size)


def _read(plan: ScanPlan, request: _Request, files: Files) -> Iterator[pa.RecordBatch]:
    with ThreadPoolExecutor(_OPEN_AHEAD, "alluvium-open") as pool:
        opening: deque[tuple[_FileRows, Future[DataFile]]] = deque()
        try:
            for rows in _file_rows(plan):
                opening.append((rows, pool.submit(open_data_file, files, rows.path, request.time_zone)))
                if len(opening) >= _OPEN_AHEAD:
                    yield from _next_file(opening, request, files)
            while opening:
                yield from _next_file(opening, request, files)
        finally:
            # The consumer may stop anywhere; files that were opened ahead must be closed all the same.
            for _, future in opening:
                if not future.cancel() and future.exception() is None:
                    future.result().close()


def _next_file(
    opening: deque[tuple[_FileRows, Future[DataFile]]], request: _Request, files: Files
) -> Iterator[pa.RecordBatch]:
    rows, future = opening.popleft()
    data = future.result()
    with contextlib.closing(data):
        yield from _file_batches(rows, data, request, files)


def _file_rows(plan: ScanPlan) -> Iterator[_FileRows]:
    for part in plan.parts:
        for start in range(0, part.files.num_rows, _FILES_AT_ONCE):
            batch = part.load_masks(part.files.slice(start, _FILES_AT_ONCE)).combine_chunks()
            paths = batch["path"].to_pylist()
            masks = batch["mask"].to_pylist()
            constants = batch["constants"].combine_chunks()
            members = {f.name: constants.field(i) for i, f in enumerate(constants.type)}
            for i, (path, mask) in enumerate(zip(paths, masks, strict=True)):
                if mask is None and part.keeps_masked:
                    continue
                yield _FileRows(part, path, mask, {name: values[i] for name, values in members.items()})


def _file_batches(rows: _FileRows, data: DataFile, request: _Request, files: Files) -> Iterator[pa.RecordBatch]:
    output = {c.name: c for c in rows.part.output}
    wanted = [output[name] for name in request.needed if name in output]
    physical = list(dict.fromkeys(path[0] for c in wanted for path in _physical_paths(c.value)))
    listed = _listed_rows(rows)
    start = 0
    for num_rows, arrays in data.batches(data.names(physical, _field_ids(rows.part)), request.batch_size):
        batch = _Batch(start, num_rows, arrays, rows)
        start += num_rows
        try:
            made = {c.name: batch.column(c) for c in wanted}
        except CorruptTable as error:
            error.path = error.path or rows.path
            raise
        if FILE_COLUMN in request.needed and FILE_COLUMN not in made:
            made[FILE_COLUMN] = pa.repeat(pa.scalar(files.uri(rows.path)), num_rows)
        table = pa.RecordBatch.from_arrays(list(made.values()), names=list(made)) if made else None
        keep = _kept(batch, listed, table, request.where, request.time_zone)
        if keep is not None:
            num_rows = pc.sum(keep).as_py() or 0
            if num_rows == 0:
                continue
            table = None if table is None else table.filter(keep)
        yield _projected(table, num_rows, request)


def _projected(table: pa.RecordBatch | None, num_rows: int, request: _Request) -> pa.RecordBatch:
    if not request.names or table is None:
        # No column, but rows: a batch of a struct without members knows how many.
        return pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))
    arrays = [table.column(table.schema.get_field_index(name)) for name in request.names]
    return pa.RecordBatch.from_arrays(arrays, schema=request.schema)


def _kept(
    batch: _Batch, listed: Sequence[int], table: pa.RecordBatch | None, where: Expression | None, time_zone: str
) -> pa.BooleanArray | None:
    """Which rows stay; None where all do."""
    keep = None
    low, high = bisect_left(listed, batch.start), bisect_left(listed, batch.start + batch.num_rows)
    if low < high or batch.rows.part.keeps_masked:
        keep = pc.is_in(batch.positions(), pa.array(listed[low:high], pa.int64()))
        keep = keep if batch.rows.part.keeps_masked else pc.invert(keep)
    if where is not None:
        if table is None:
            table = pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
        # "true" alone keeps a row: neither false nor null does.
        matches = pc.fill_null(evaluate(where, table, time_zone), False)
        keep = matches if keep is None else pc.and_(keep, matches)
    return keep


def _listed_rows(rows: _FileRows) -> Sequence[int]:
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
    """

    start: int
    num_rows: int
    arrays: dict[str, pa.Array]
    rows: _FileRows

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
        name = next((other for other in names if other.casefold() == name.casefold()), "")
    return pc.struct_field(values, [name]) if name in names else None

"""The lane without Spark: pyarrow interprets scan plans, in fixed memory."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest
from alluvium.expr.evaluate import evaluate
from alluvium.expr.tree import Expression, column_paths
from alluvium.plan.scan import ScanPart, ScanPlan
from alluvium.portable.files.data_file import FORMATS, Files, RowFile, open_data_file
from alluvium.portable.files.file_rows import FILE_COLUMN, FileRows, file_rows, made_batches
from alluvium.portable.merging.merged import merged_tables
from alluvium.schema.arrow import to_arrow
from alluvium.schema.text_lengths import CharLengths, char_lengths, pad_column
from alluvium.schema.types import Field
from alluvium.storage.store import Store

#: Files whose footers are read ahead: hides the latency of object stores, costs no data in memory.
_OPEN_AHEAD = 4


@dataclass(frozen=True, slots=True)
class _Request:
    """What to produce of every part.

    Attributes:
        names: The result's columns.
        needed: These, and what the filter reads, with their types.
        padded: Those of them with texts of type char(n), which are shown at their full length.
        schema: The result's schema.
        where: Rows to keep: those for which it is true.
        time_zone: The session's.
        batch_size: Rows of a batch at most.
    """

    names: tuple[str, ...]
    needed: Mapping[str, pa.DataType]
    padded: tuple[tuple[Field, CharLengths], ...]
    schema: pa.Schema
    where: Expression | None
    time_zone: str
    batch_size: int


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
        if part.file_format not in FORMATS:
            raise UnsupportedFeature(
                f"{part.file_format} files cannot be read without Spark", code="unsupported-scan", url=plan.root
            )
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
    by_folded = {name.lower(): name for name in reversed(known)}
    names: list[str] = []
    for asked in ("*",) if columns is None else columns:
        if asked == "*":
            names.extend(plan.schema.names)
            continue
        name = asked if asked in known else by_folded.get(asked.lower())
        if name is None:
            raise InvalidRequest(
                f"there is no column {asked!r}", code="unknown-column", column=asked, hint=suggest(asked, known)
            )
        names.append(name)
    read_by_filter = sorted({path[0] for path in column_paths(where)} if where is not None else ())
    needed = {name: known[name].type for name in (*names, *read_by_filter)}
    padded = tuple((f, lengths) for f in plan.schema.fields if f.name in needed and (lengths := char_lengths(f)))
    shown = pa.schema([known[name] for name in names])
    return _Request(tuple(names), needed, padded, shown, where, time_zone, batch_size)


def _read(plan: ScanPlan, request: _Request, files: Files) -> Iterator[pa.RecordBatch]:
    yield from _read_apart([part for part in plan.parts if part.merge is None], request, files)
    for merge in dict.fromkeys(part.merge for part in plan.parts if part.merge is not None):
        parts = [part for part in plan.parts if part.merge == merge]
        for table in merged_tables(parts, merge, request.needed, files, request.batch_size, request.time_zone):
            for merged in table.combine_chunks().to_batches(request.batch_size):
                batch = _padded(merged, request)
                keep = _kept(batch.num_rows, batch, None, request)
                left = batch if keep is None else batch.filter(keep)
                if left.num_rows:
                    yield _projected(left, left.num_rows, request)


def _read_apart(parts: Sequence[ScanPart], request: _Request, files: Files) -> Iterator[pa.RecordBatch]:
    """Rows that are independent of each other."""
    with ThreadPoolExecutor(_OPEN_AHEAD, "alluvium-open") as pool:
        opening: deque[tuple[FileRows, Future[RowFile]]] = deque()
        try:
            for rows in file_rows(parts):
                task = pool.submit(
                    open_data_file, files, rows.path, request.time_zone, rows.part.file_format, rows.unit
                )
                opening.append((rows, task))
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
    opening: deque[tuple[FileRows, Future[RowFile]]], request: _Request, files: Files
) -> Iterator[pa.RecordBatch]:
    rows, future = opening.popleft()
    data = future.result()
    with contextlib.closing(data):
        yield from _file_batches(rows, data, request, files)


def _file_batches(rows: FileRows, data: RowFile, request: _Request, files: Files) -> Iterator[pa.RecordBatch]:
    uri = files.uri(rows.path)
    for num_rows, table, left in made_batches(rows, data, request.needed, request.batch_size, uri, request.time_zone):
        table = None if table is None else _padded(table, request)
        keep = _kept(num_rows, table, left, request)
        if keep is not None:
            num_rows = pc.sum(keep).as_py() or 0
            if num_rows == 0:
                continue
            table = None if table is None else table.filter(keep)
        yield _projected(table, num_rows, request)


def _padded(table: pa.RecordBatch, request: _Request) -> pa.RecordBatch:
    for f, lengths in request.padded:
        place = table.schema.get_field_index(f.name)
        table = table.set_column(place, f.name, pad_column(table.column(place), f.type, lengths))
    return table


def _projected(table: pa.RecordBatch | None, num_rows: int, request: _Request) -> pa.RecordBatch:
    if not request.names or table is None:
        # No column, but rows: a batch of a struct without members knows how many.
        return pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))
    places = {name: place for place, name in enumerate(table.schema.names)}
    arrays = [table.column(places[name]) for name in request.names]
    return pa.RecordBatch.from_arrays(arrays, schema=request.schema)


def _kept(
    num_rows: int, table: pa.RecordBatch | None, left: pa.BooleanArray | None, request: _Request
) -> pa.BooleanArray | None:
    """Which rows stay; None where all do."""
    if request.where is None:
        return left
    if table is None:
        table = pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))
    # "true" alone keeps a row: neither false nor null does.
    matches = pc.fill_null(evaluate(request.where, table, request.time_zone), False)
    return matches if left is None else pc.and_(left, matches)

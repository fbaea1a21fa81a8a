"""The lane without Spark: pyarrow interprets scan plans, in fixed memory."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import InvalidRequest, UnsupportedFeature, suggest
from alluvium.expr.tree import Expression, column_paths
from alluvium.plan.scan import FILE_COLUMN, ScanPart, ScanPlan
from alluvium.portable.files.data_file import FORMATS, DataFile, Files, RowFile, open_data_file
from alluvium.portable.files.file_rows import FileRows, file_rows, made_batches
from alluvium.portable.files.row_bounds import Lessons
from alluvium.portable.late_rows import late_batches
from alluvium.portable.merging.merged import merged_tables
from alluvium.portable.request import Request, kept, padded, projected
from alluvium.schema.arrow import to_arrow
from alluvium.schema.text_lengths import char_lengths
from alluvium.storage.store import Store

#: Files whose footers are read ahead: hides the latency of object stores, costs no data in memory.
_OPEN_AHEAD = 4


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
) -> Request:
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
    return Request(tuple(names), needed, padded, shown, where, time_zone, batch_size)


def _read(plan: ScanPlan, request: Request, files: Files) -> Iterator[pa.RecordBatch]:
    yield from _read_apart([part for part in plan.parts if part.merge is None], request, files)
    for merge in dict.fromkeys(part.merge for part in plan.parts if part.merge is not None):
        parts = [part for part in plan.parts if part.merge == merge]
        for table in merged_tables(parts, merge, request.needed, files, request.batch_size, request.time_zone):
            for merged in table.combine_chunks().to_batches(request.batch_size):
                batch = padded(merged, request)
                keep = kept(batch.num_rows, batch, None, request)
                left = batch if keep is None else batch.filter(keep)
                if left.num_rows:
                    yield projected(left, left.num_rows, request)


def _read_apart(parts: Sequence[ScanPart], request: Request, files: Files) -> Iterator[pa.RecordBatch]:
    """Rows that are independent of each other."""
    lessons = Lessons()
    if sum(part.files.num_rows for part in parts) == 1:
        # Nothing to read ahead of.
        for rows in file_rows(parts):
            with contextlib.closing(_opened(rows, request, files)) as data:
                yield from _file_batches(rows, data, request, files, lessons)
        return
    with ThreadPoolExecutor(_OPEN_AHEAD, "alluvium-open") as pool:
        opening: deque[tuple[FileRows, Future[RowFile]]] = deque()
        try:
            for rows in file_rows(parts):
                opening.append((rows, pool.submit(_opened, rows, request, files)))
                if len(opening) >= _OPEN_AHEAD:
                    yield from _next_file(opening, request, files, lessons)
            while opening:
                yield from _next_file(opening, request, files, lessons)
        finally:
            # The consumer may stop anywhere; files that were opened ahead must be closed all the same.
            for _, future in opening:
                if not future.cancel() and future.exception() is None:
                    future.result().close()


def _opened(rows: FileRows, request: Request, files: Files) -> RowFile:
    zone = request.time_zone
    return open_data_file(files, rows.path, zone, rows.part.file_format, rows.unit, rows.instants(zone))


def _next_file(
    opening: deque[tuple[FileRows, Future[RowFile]]], request: Request, files: Files, lessons: Lessons
) -> Iterator[pa.RecordBatch]:
    rows, future = opening.popleft()
    data = future.result()
    with contextlib.closing(data):
        yield from _file_batches(rows, data, request, files, lessons)


def _file_batches(
    rows: FileRows, data: RowFile, request: Request, files: Files, lessons: Lessons
) -> Iterator[pa.RecordBatch]:
    uri = files.uri(rows.path)
    if request.where is not None and isinstance(data, DataFile) and data.coarse is None:
        yield from late_batches(rows, data, request, request.where, uri, lessons)
        return
    for num_rows, table, left in made_batches(rows, data, request.needed, request.batch_size, uri, request.time_zone):
        table = None if table is None else padded(table, request)
        keep = kept(num_rows, table, left, request)
        if keep is not None:
            num_rows = pc.sum(keep).as_py() or 0
            if num_rows == 0:
                continue
            table = None if table is None else table.filter(keep)
        yield projected(table, num_rows, request)

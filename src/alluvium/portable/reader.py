"""The lane without Spark: pyarrow interprets scan plans, in fixed memory."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

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
from alluvium.portable.plain_file import PlainFile, plain_file
from alluvium.portable.request import Request, kept, padded, projected
from alluvium.schema.arrow import to_arrow
from alluvium.schema.text_lengths import char_lengths
from alluvium.storage.store import Store

#: Files whose footers are read ahead: hides the latency of object stores, costs no data in memory.
_OPEN_AHEAD = 4
#: What is made of an open file.
_Item = TypeVar("_Item")


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
    request = _plan_request(plan, columns, where, time_zone, batch_size)
    source = _Source(request, Files(store, open_store))
    return pa.RecordBatchReader.from_batches(request.schema, _read(plan, source, source.batches))


def read_mixed(
    plan: ScanPlan,
    store: Store,
    open_store: Callable[[str], Store],
    columns: Sequence[str] | None,
    where: Expression | None,
    time_zone: str,
    batch_size: int,
) -> Iterator[pa.RecordBatch | PlainFile]:
    """The rows of a plan in their order, for an engine that reads Parquet itself; arguments and errors as of
    `read_batches`.

    Yields:
        Files that the engine may read, of which it wants the rows for which `where` is true, and rows of all others.
    """
    source = _Source(_plan_request(plan, columns, where, time_zone, batch_size), Files(store, open_store))
    return _read(plan, source, source.plain_or_batches)


def _plan_request(
    plan: ScanPlan, columns: Sequence[str] | None, where: Expression | None, time_zone: str, batch_size: int
) -> Request:
    for part in plan.parts:
        if part.file_format not in FORMATS:
            raise UnsupportedFeature(
                f"{part.file_format} files cannot be read without Spark", code="unsupported-scan", url=plan.root
            )
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


@dataclass(frozen=True, slots=True)
class _Source:
    """The files of a plan, opened one by one.

    Attributes:
        request: What is asked of them.
        files: Where they are.
        lessons: What was learned of their statistics on the way.
    """

    request: Request
    files: Files
    lessons: Lessons = field(default_factory=Lessons)

    def opened(self, rows: FileRows) -> RowFile:
        zone = self.request.time_zone
        return open_data_file(self.files, rows.path, zone, rows.part.file_format, rows.unit, rows.instants(zone))

    def batches(self, rows: FileRows, data: RowFile) -> Iterator[pa.RecordBatch]:
        """The file's rows as the request wants them."""
        uri, request = self.files.uri(rows.path), self.request
        if request.where is not None and isinstance(data, DataFile) and data.coarse is None:
            yield from late_batches(rows, data, request, request.where, uri, self.lessons)
            return
        for num_rows, table, left in made_batches(
            rows, data, request.needed, request.batch_size, uri, request.time_zone
        ):
            table = None if table is None else padded(table, request)
            keep = kept(num_rows, table, left, request)
            if keep is not None:
                num_rows = pc.sum(keep).as_py() or 0
                if num_rows == 0:
                    continue
                table = None if table is None else table.filter(keep)
            yield projected(table, num_rows, request)

    def plain_or_batches(self, rows: FileRows, data: RowFile) -> Iterator[pa.RecordBatch | PlainFile]:
        """The file, if it needs nothing of us, else its rows."""
        found = plain_file(rows, data, self.request, self.files.uri(rows.path), partial(self._anew, rows))
        if found is None:
            yield from self.batches(rows, data)
        else:
            yield found

    def _anew(self, rows: FileRows) -> Iterator[pa.RecordBatch]:
        with contextlib.closing(self.opened(rows)) as data:
            yield from self.batches(rows, data)


def _read(
    plan: ScanPlan, source: _Source, each: Callable[[FileRows, RowFile], Iterator[_Item]]
) -> Iterator[_Item | pa.RecordBatch]:
    yield from _read_apart([part for part in plan.parts if part.merge is None], source, each)
    request = source.request
    for merge in dict.fromkeys(part.merge for part in plan.parts if part.merge is not None):
        parts = [part for part in plan.parts if part.merge == merge]
        for table in merged_tables(parts, merge, request.needed, source.files, request.batch_size, request.time_zone):
            for merged in table.combine_chunks().to_batches(request.batch_size):
                batch = padded(merged, request)
                keep = kept(batch.num_rows, batch, None, request)
                left = batch if keep is None else batch.filter(keep)
                if left.num_rows:
                    yield projected(left, left.num_rows, request)


def _read_apart(
    parts: Sequence[ScanPart], source: _Source, each: Callable[[FileRows, RowFile], Iterator[_Item]]
) -> Iterator[_Item]:
    """Rows that are independent of each other."""
    if sum(part.files.num_rows for part in parts) == 1:
        # Nothing to read ahead of.
        for rows in file_rows(parts):
            with contextlib.closing(source.opened(rows)) as data:
                yield from each(rows, data)
        return
    with ThreadPoolExecutor(_OPEN_AHEAD, "alluvium-open") as pool:
        opening: deque[tuple[FileRows, Future[RowFile]]] = deque()
        try:
            for rows in file_rows(parts):
                opening.append((rows, pool.submit(source.opened, rows)))
                if len(opening) >= _OPEN_AHEAD:
                    yield from _next_file(opening, each)
            while opening:
                yield from _next_file(opening, each)
        finally:
            # The consumer may stop anywhere; files that were opened ahead must be closed all the same.
            for _, future in opening:
                if not future.cancel() and future.exception() is None:
                    future.result().close()


def _next_file(
    opening: deque[tuple[FileRows, Future[RowFile]]], each: Callable[[FileRows, RowFile], Iterator[_Item]]
) -> Iterator[_Item]:
    rows, future = opening.popleft()
    with contextlib.closing(future.result()) as data:
        yield from each(rows, data)

"""Rows to files in Spark's Python workers, for formats and types that Spark's own writer has no form for.

It takes longer than Spark's writer, and this package must be installed where the workers run.
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from alluvium.codecs.file_forms import FileForm, FileWriter, stored_as
from alluvium.codecs.footers.column_bounds import ColumnBounds
from alluvium.codecs.footers.parquet_footer import FileFooter, FooterColumn
from alluvium.codecs.partition_path import format_partition_path
from alluvium.errors import InvalidRequest
from alluvium.plan.write import KeyedRows, WritePlan
from alluvium.spark.naming.names import quote
from alluvium.spark.workers.run_bounds import RunBounds
from alluvium.spark.workers.worker_errors import carrying_errors
from alluvium.storage.store import OpenStore, Store

#: Of files that a worker has begun, one task after the other.
_files = itertools.count()


def write_in_workers(
    rows: DataFrame, directories: Sequence[str], plan: WritePlan, open_store: OpenStore
) -> dict[str, FileFooter | None]:
    """Writes rows as files below the plan's directory, as Spark's own writer would lay them out.

    Args:
        rows: The columns of `plan.files`, then those of `directories`.
        directories: Columns whose values, texts or numbers, name the directories.
        plan: What to write; `files` says how columns are stored.
        open_store: Where to.

    Returns:
        The files that count: tasks that failed, and were run again, may have left others. Of files that have no
        statistics of their own, what their rows were.
    """
    assert plan.files is not None
    options = dict(plan.options)
    level = int(options.get("parquet.compression.codec.zstd.level", "1"))
    form = FileForm(plan.file_format, plan.files, options["compression"], level)
    target = plan.target_file_bytes
    # Workers number nothing.
    keyed = None if plan.keyed is None else replace(plan.keyed, first_numbers=None)
    writer = _Writer(form, tuple(directories), plan.directory, target, plan.stats_columns, open_store, keyed)
    # Rows that merge by key stand in the order of their directories already, and within these by key.
    sorts = directories and plan.keyed is None
    ordered = rows.sortWithinPartitions(*(sf.col(quote(name)) for name in directories)) if sorts else rows
    found = ordered.mapInArrow(writer, "path string, footer binary").collect()
    # What our own workers have pickled.
    return {path: None if footer is None else pickle.loads(bytes(footer)) for path, footer in found}


@dataclass(frozen=True, slots=True)
class _Writer:
    """What a task does with its rows, which come in the order of their directories."""

    form: FileForm
    directories: tuple[str, ...]
    root: str
    target_bytes: int
    stats_columns: tuple[FooterColumn, ...]
    open_store: OpenStore
    keyed: KeyedRows | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with carrying_errors():
            written = self._written(batches)
        paths, footers = [path for path, _ in written], [footer for _, footer in written]
        yield pa.record_batch({"path": pa.array(paths, pa.string()), "footer": pa.array(footers, pa.binary())})

    def _written(self, batches: Iterator[pa.RecordBatch]) -> list[tuple[str, bytes | None]]:
        """The files of a task: their paths and footers."""
        store = self.open_store()
        written: list[tuple[str, bytes | None]] = []
        current: _File | None = None
        for batch in batches:
            for place, piece in self._pieces(batch):
                if current is not None and (current.place != place or current.writer.size >= self.target_bytes):
                    written.append(current.close(store))
                    current = None
                current = current or self._open(place)
                current.add(piece)
        if current is not None:
            written.append(current.close(store))
        return written

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[tuple[tuple[str | None, ...], pa.Table]]:
        """Runs of rows of one directory."""
        table, schema = pa.Table.from_batches([batch]), self.form.schema
        stored = pa.table([self._stored(table, f) for f in schema], schema=schema)
        if not self.directories:
            yield (), stored
            return
        texts = [table[name].cast(pa.string()).combine_chunks() for name in self.directories]
        begins = [0, *_changes(texts), batch.num_rows]
        for begin, end in itertools.pairwise(begins):
            if end > begin:
                yield tuple(column[begin].as_py() for column in texts), stored.slice(begin, end - begin)

    def _stored(self, rows: pa.Table, column: pa.Field) -> pa.Array:
        with _told(self.form.format, column.name):
            return stored_as(rows[column.name].combine_chunks(), column.type)

    def _open(self, place: tuple[str | None, ...]) -> _File:
        folder = format_partition_path(self.directories, place)
        # In the order of rows, as the names of Spark's own files are.
        name = f"{_task():05d}-{next(_files):09d}-{uuid.uuid4()}.{self.form.format}"
        path = f"{self.root}/{folder}/{name}" if folder else f"{self.root}/{name}"
        # What is in the order of keys has more to tell than any footer does.
        tells = self.form.tells_statistics and self.keyed is None
        bounds = None if tells else ColumnBounds(self.stats_columns)
        with _told(self.form.format):
            return _File(place, path, self.form, self.form.open(), bounds, RunBounds.of(self.keyed))


def _task() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


@dataclass(frozen=True, slots=True)
class _File:
    """A file in the making, held in memory until it is whole; `bounds` where its footer will not tell them."""

    place: tuple[str | None, ...]
    path: str
    form: FileForm
    writer: FileWriter
    bounds: ColumnBounds | None
    ends: RunBounds | None

    def add(self, rows: pa.Table) -> None:
        with _told(self.form.format):
            self.writer.add(rows)
        if self.bounds is not None:
            self.bounds.add(rows)
        if self.ends is not None:
            self.ends.add(rows)

    def close(self, store: Store) -> tuple[str, bytes | None]:
        """Puts the file; its path, and its footer, pickled, where the file has none."""
        with _told(self.form.format):
            content = self.writer.finish()
        store.put(self.path, content)
        if self.bounds is None:
            return self.path, None
        footer = self.bounds.footer()
        return self.path, pickle.dumps(footer if self.ends is None else replace(footer, ends=self.ends.ends()))


@contextlib.contextmanager
def _told(file_format: str, column: str | None = None) -> Iterator[None]:
    """What a library has against the rows, as an error of ours."""
    try:
        yield
    except MemoryError as error:
        raise InvalidRequest(
            f"a Python worker lacks memory for a file of format {file_format}, which it holds until it is whole",
            code="out-of-memory",
            column=column,
            hint="nothing was written; give the workers more memory, or the table a smaller target-file-size",
        ) from error
    except (pa.ArrowException, ValueError, TypeError, OverflowError, OSError) as error:
        raise InvalidRequest(
            f"the rows cannot be stored in a file of format {file_format}: {error}",
            code="invalid-data",
            column=column,
            hint="nothing was written; write values that the type of the table holds",
        ) from error


def _changes(columns: Sequence[pa.Array]) -> list[int]:
    """Places at which a row is in another directory than the row before it."""
    codes = [column.dictionary_encode(null_encoding="encode").indices for column in columns]
    differs = [pc.not_equal(code.slice(1), code.slice(0, len(code) - 1)) for code in codes]
    either = differs[0]
    for one in differs[1:]:
        either = pc.or_(either, one)
    return [int(place) + 1 for place in pc.indices_nonzero(either).to_pylist()]

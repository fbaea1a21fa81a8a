"""A table's rows as a lazy frame of Polars, which reads files that need nothing of us by its own reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, groupby, islice, repeat

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from alluvium.api.lazy.polars_terms import pushed
from alluvium.api.lazy.rows import LazyRows
from alluvium.portable.plain_file import PlainFile

_BATCH_SIZE = 65_536
#: Files that Polars reads in one go: few at first, as a query may want no more than some rows; then many.
_AT_ONCE = (1, 4, 16, 64)
#: Versions before 1.34 collect all rows of a query before they give out one. Some of those behind it (1.34 to 1.36) end
#: a query that failed as if it were done, so that the rows before it would be all.
_STREAMS = tuple(map(int, pl.__version__.split(".")[:2])) >= (1, 44)


def lazy_frame(rows: LazyRows) -> pl.LazyFrame:
    """The rows; columns and conditions of queries reach our reader."""
    return register_io_source(partial(_frames, rows), schema=_empty(rows).schema)


def _empty(rows: LazyRows) -> pl.DataFrame:
    return _frame(rows.schema.empty_table())


def _frame(data: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    found = pl.from_arrow(data)
    assert isinstance(found, pl.DataFrame)
    # It calls columns without a name by their place.
    found.columns = data.schema.names
    return found


def _columns(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Some columns; `select` would take a name such as `^.*$` for a pattern."""
    return pl.DataFrame({name: frame.get_column(name) for name in names})


def _frames(
    rows: LazyRows,
    with_columns: list[str] | None,
    predicate: pl.Expr | None,
    n_rows: int | None,
    batch_size: int | None,
) -> Iterator[pl.DataFrame]:
    names = list(rows.columns.names) if with_columns is None else list(with_columns)
    asked = () if predicate is None else predicate.meta.root_names()
    needed = [name for name in rows.columns.names if name in names or name in asked]
    needed = needed or list(rows.columns.names[:1])
    empty = _columns(_empty(rows), needed)
    yield _columns(empty, names)
    size = batch_size or _BATCH_SIZE
    if n_rows is not None or not _STREAMS:
        yield from _first_frames(rows, names, needed, predicate, n_rows, size)
        return
    where = None if predicate is None else pushed(predicate, rows.columns)
    for is_plain, found in groupby(rows.mixed(needed, where, size), lambda item: isinstance(item, PlainFile)):
        if not is_plain:
            yield from (_chosen(_frame(batch), names, predicate) for batch in found)
            continue
        for files in _chunks(found):
            yield from _of_files(files, empty, names, predicate)


def _first_frames(
    rows: LazyRows,
    names: Sequence[str],
    needed: Sequence[str],
    predicate: pl.Expr | None,
    n_rows: int | None,
    batch_size: int,
) -> Iterator[pl.DataFrame]:
    """Of the first rows (None: of all) those that meet a condition."""
    # A condition beside a number of rows is one on just these rows, which must not be chosen by it.
    where = None if predicate is None or n_rows is not None else pushed(predicate, rows.columns)
    left = n_rows
    with rows.batches(needed, where, batch_size) as batches:
        for batch in batches:
            found = _frame(batch)
            if left is not None:
                found = found.head(left)
                left -= found.height
            yield _chosen(found, names, predicate)
            if left == 0:
                return


def _chosen(frame: pl.DataFrame, names: Sequence[str], predicate: pl.Expr | None) -> pl.DataFrame:
    # What was left to us is done; what else the condition says is Polars' own.
    return _columns(frame if predicate is None else frame.filter(predicate), names)


def _chunks(files: Iterator[PlainFile]) -> Iterator[list[PlainFile]]:
    for count in chain(_AT_ONCE, repeat(_AT_ONCE[-1])):
        if not (chunk := list(islice(files, count))):
            return
        yield chunk


def _of_files(
    files: Sequence[PlainFile], empty: pl.DataFrame, names: Sequence[str], predicate: pl.Expr | None
) -> Iterator[pl.DataFrame]:
    query = _query(files, empty)
    if query is None:
        yield from (_chosen(_frame(batch), names, predicate) for file in files for batch in file.batches())
        return
    query, given = query if predicate is None else query.filter(predicate), False
    try:
        for found in query.collect_batches():
            given = True
            yield _columns(found, names)
    except pl.exceptions.PolarsError as error:
        # Polars does not tell which file is damaged, if that is it; our reader does, or reads what Polars cannot.
        for batch in _read_by_us(files, error):
            if not given:
                yield _chosen(_frame(batch), names, predicate)
        if given:
            raise


def _read_by_us(files: Sequence[PlainFile], error: pl.exceptions.PolarsError) -> Iterator[pa.RecordBatch]:
    for batch in chain.from_iterable(file.batches() for file in files):
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid:
            raise error from None  # text that is none, which Polars believes unseen where Arrow gives it
        yield batch


def _query(files: Sequence[PlainFile], empty: pl.DataFrame) -> pl.LazyFrame | None:
    """The files' rows with the columns of a frame; None: Polars reads something in another way than Arrow."""
    if any(map(_is_pattern, (*empty.columns, *(own for file in files for own in file.own.values())))):
        return None
    try:
        scans = [_scan(alike, empty) for alike in _neighbours(files)]
    except (ValueError, OverflowError):
        return None  # years that Python has no name for
    if any(scan.collect_schema() != empty.schema for scan in scans):
        return None
    return scans[0] if len(scans) == 1 else pl.concat(scans)


def _is_pattern(name: str) -> bool:
    """Whether `pl.col` takes a name for one of several columns, or for none."""
    return name in ("", "*") or (name.startswith("^") and name.endswith("$"))


def _neighbours(files: Sequence[PlainFile]) -> Iterator[list[PlainFile]]:
    """Files that make one scan."""
    return (list(run) for _, run in groupby(files, lambda file: (file.schema, file.own, file.constants)))


def _scan(files: Sequence[PlainFile], empty: pl.DataFrame) -> pl.LazyFrame:
    """Files of one schema, with the columns of a frame.

    Statistics in the files are left alone: those of the table have chosen the files, and what writers got wrong in
    theirs our reader knows (`portable.files.row_bounds`), Polars may not.
    """
    paths, own, constants = [file.path for file in files], files[0].own, files[0].constants
    found = pl.scan_parquet(paths, glob=False, hive_partitioning=False, use_statistics=False)
    return found.select(
        pl.col(own[name]).alias(name) if name in own else pl.lit(constants[name].as_py(), dtype).alias(name)
        for name, dtype in empty.schema.items()
    )

"""A table's rows as a lazy frame of Polars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import polars as pl
from polars.io.plugins import register_io_source

from alluvium.api.lazy.polars_terms import pushed
from alluvium.api.lazy.rows import LazyRows

_BATCH_SIZE = 65_536


def lazy_frame(rows: LazyRows) -> pl.LazyFrame:
    """The rows; columns and conditions of queries reach our reader."""
    return register_io_source(partial(_frames, rows), schema=_empty(rows).schema)


def _empty(rows: LazyRows) -> pl.DataFrame:
    return _frame(rows.schema.empty_table())


def _frame(data: object) -> pl.DataFrame:
    found = pl.from_arrow(data)
    assert isinstance(found, pl.DataFrame)
    return found


def _columns(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Some columns; `select` would take a name such as `^.*$` for a pattern."""
    return pl.DataFrame([frame.get_column(name) for name in names])


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
    # A condition beside a number of rows is one on just these rows, which must not be chosen by it.
    where = None if predicate is None or n_rows is not None else pushed(predicate, rows.columns)
    left = n_rows
    yield _columns(_empty(rows), names)
    with rows.batches(needed, where, batch_size or _BATCH_SIZE) as batches:
        for batch in batches:
            found = _frame(batch)
            if left is not None:
                found = found.head(left)
                left -= found.height
            # What was left to us is done; what else the condition says is Polars' own.
            found = found if predicate is None else found.filter(predicate)
            yield _columns(found, names)
            if left == 0:
                return

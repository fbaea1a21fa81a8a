"""A table's rows as a lazy frame of Polars."""

from __future__ import annotations

from collections.abc import Iterator
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


def _frames(
    rows: LazyRows,
    with_columns: list[str] | None,
    predicate: pl.Expr | None,
    n_rows: int | None,
    batch_size: int | None,
) -> Iterator[pl.DataFrame]:
    names = rows.columns.names if with_columns is None else with_columns
    asked = () if predicate is None else predicate.meta.root_names()
    needed = [name for name in rows.columns.names if name in names or name in asked]
    needed = needed or list(rows.columns.names[:1])
    where = None if predicate is None else pushed(predicate, rows.columns)
    left = n_rows
    yield _empty(rows).select(names)
    with rows.read(needed, where, batch_size or _BATCH_SIZE) as batches:
        for batch in batches:
            if left == 0:
                return
            found = _frame(batch)
            # What was left to us is done; what else the condition says is Polars' own.
            found = found if predicate is None else found.filter(predicate)
            found = found if left is None else found.head(left)
            left = None if left is None else left - found.height
            yield found.select(names)

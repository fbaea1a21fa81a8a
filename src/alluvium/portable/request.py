"""What a reader asks of every part of a plan, and how rows become those of the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.expr.evaluate import evaluate
from alluvium.expr.tree import Expression
from alluvium.schema.text_lengths import CharLengths, pad_column
from alluvium.schema.types import Field


@dataclass(frozen=True, slots=True)
class Request:
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


def padded(table: pa.RecordBatch, request: Request) -> pa.RecordBatch:
    """The rows with texts of type char(n) at their full length."""
    for f, lengths in request.padded:
        place = table.schema.get_field_index(f.name)
        if place < 0:
            continue
        table = table.set_column(place, f.name, pad_column(table.column(place), f.type, lengths))
    return table


def projected(table: pa.RecordBatch | None, num_rows: int, request: Request) -> pa.RecordBatch:
    """The columns of the result."""
    if not request.names or table is None:
        # No column, but rows: a batch of a struct without members knows how many.
        return pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))
    places = {name: place for place, name in enumerate(table.schema.names)}
    arrays = [table.column(places[name]) for name in request.names]
    return pa.RecordBatch.from_arrays(arrays, schema=request.schema)


def kept(
    num_rows: int, table: pa.RecordBatch | None, left: pa.BooleanArray | None, request: Request
) -> pa.BooleanArray | None:
    """Which rows stay; None where all do."""
    return left if request.where is None else matching(num_rows, table, left, request, request.where)


def matching(
    num_rows: int,
    table: pa.RecordBatch | None,
    left: pa.BooleanArray | None,
    request: Request,
    where: Expression,
) -> pa.BooleanArray:
    """Which of the rows that are left make a predicate true; without nulls."""
    if table is None:
        table = pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))
    # "true" alone keeps a row: neither false nor null does.
    matches = pc.fill_null(evaluate(where, table, request.time_zone), False)
    return matches if left is None else pc.and_(left, matches)

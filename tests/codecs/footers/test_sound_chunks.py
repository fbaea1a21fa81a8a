"""Footers whose column chunks would end the process in Arrow: bounds that are cut off, counts of levels that are none."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.codecs.footers.sound_chunks import ensure_sound_chunks
from alluvium.codecs.footers.thrift_compact import (
    i32_list_field,
    struct_field,
    struct_list_field,
    struct_of,
    written_field,
)

BINARY = 8


def text(number: int, value: bytes) -> bytes:
    return written_field(number, BINARY, bytes([len(value)]) + value)


def schema_of(kind: pa.DataType, nullable: bool = True) -> pq.ParquetSchema:
    """Of one column."""
    sink = io.BytesIO()
    pq.write_table(pa.schema([pa.field("x", kind, nullable)]).empty_table(), sink)
    return pq.read_metadata(sink).schema


def footer(bound: bytes = b"", which: int = 5, levels: Sequence[Sequence[int]] = ()) -> bytes:
    """One row group with one chunk."""
    inside = [struct_field(12, struct_of([text(which, bound)]))] if bound else []
    counts = [i32_list_field(number, list(found)) for number, found in zip((2, 3), levels, strict=False) if found]
    inside += [struct_field(16, struct_of(counts))] if counts else []
    chunk = struct_of([struct_field(3, struct_of(inside))])
    return struct_of([struct_list_field(4, [struct_of([struct_list_field(1, [chunk])])])])


SIZES = {pa.bool_(): 1, pa.int32(): 4, pa.int64(): 8, pa.float32(): 4, pa.float64(): 8, pa.binary(5): 5}


@pytest.mark.parametrize("kind", SIZES, ids=str)
@pytest.mark.parametrize("which", [1, 2, 5, 6])
def test_bounds(kind: pa.DataType, which: int) -> None:
    ensure_sound_chunks(footer(b"\1" * SIZES[kind], which), schema_of(kind))
    if SIZES[kind] > 1:
        with pytest.raises(ValueError, match="cut off"):
            ensure_sound_chunks(footer(b"\1" * (SIZES[kind] - 1), which), schema_of(kind))


def test_texts_have_bounds_of_any_length() -> None:
    ensure_sound_chunks(footer(b"\1"), schema_of(pa.string()))


@pytest.mark.parametrize(
    ("kind", "nullable", "repetition", "definition"),
    [(pa.int32(), False, 0, 0), (pa.int32(), True, 0, 1), (pa.list_(pa.int32()), True, 1, 3)],
    ids=str,
)
def test_counts_of_levels(kind: pa.DataType, nullable: bool, repetition: int, definition: int) -> None:
    """Each level is counted, or none."""
    schema = schema_of(kind, nullable)
    sound = [1] * (repetition + 1), [1] * (definition + 1)
    ensure_sound_chunks(footer(levels=sound), schema)
    ensure_sound_chunks(footer(levels=([], sound[1])), schema)
    for place in (0, 1):
        for wrong in ([*sound[place], 1, 1], sound[place][1:]):
            levels = [wrong if number == place else counts for number, counts in enumerate(sound)]
            if wrong:
                with pytest.raises(ValueError, match="levels"):
                    ensure_sound_chunks(footer(levels=levels), schema)


def test_what_arrow_writes_is_sound() -> None:
    rows = pa.table(
        {"a": [1, None], "l": [[1], []], "s": [{"x": [None, "t"]}, None], "d": pa.array([1, 2], pa.decimal128(20, 2))}
    )
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    whole = sink.getvalue()
    length = int.from_bytes(whole[-8:-4], "little")
    ensure_sound_chunks(whole[-8 - length : -8], pq.read_metadata(sink).schema)

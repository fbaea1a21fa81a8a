"""Footers whose column chunks would end the process in Arrow: bounds that are cut off, counts of levels that are none."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alluvium.codecs.footers.sound_chunks import ensure_sound_chunks
from alluvium.codecs.footers.thrift_compact import (
    i32_field,
    i32_list_field,
    struct_field,
    struct_list_field,
    struct_of,
    written_field,
)

OPTIONAL, REPEATED = 1, 2
BINARY = 8


def text(number: int, value: bytes) -> bytes:
    return written_field(number, BINARY, bytes([len(value)]) + value)


def element(kind: int | None = None, length: int = 0, repetition: int = OPTIONAL, children: int = 0) -> bytes:
    fields = [] if kind is None else [i32_field(1, kind)]
    fields += [i32_field(2, length)] if length else []
    fields += [i32_field(3, repetition), text(4, b"x")]
    return struct_of([*fields, *([i32_field(5, children)] if children else [])])


def footer(
    elements: Sequence[bytes], bound: bytes = b"", which: int = 5, levels: Sequence[Sequence[int]] = ()
) -> bytes:
    """One row group with one chunk."""
    inside = [struct_field(12, struct_of([text(which, bound)]))] if bound else []
    counts = [i32_list_field(number, list(found)) for number, found in zip((2, 3), levels, strict=False) if found]
    inside += [struct_field(16, struct_of(counts))] if counts else []
    chunk = struct_of([struct_field(3, struct_of(inside))])
    group = struct_of([struct_list_field(1, [chunk])])
    root = struct_of([text(4, b"schema"), i32_field(5, 1)])
    return struct_of([struct_list_field(2, [root, *elements]), struct_list_field(4, [group])])


@pytest.mark.parametrize(
    ("kind", "length", "size"), [(0, 0, 1), (1, 0, 4), (2, 0, 8), (3, 0, 12), (4, 0, 4), (5, 0, 8), (7, 5, 5)]
)
@pytest.mark.parametrize("which", [1, 2, 5, 6])
def test_bounds(kind: int, length: int, size: int, which: int) -> None:
    ensure_sound_chunks(footer([element(kind, length)], b"\1" * size, which))
    if size > 1:
        with pytest.raises(ValueError, match="cut off"):
            ensure_sound_chunks(footer([element(kind, length)], b"\1" * (size - 1), which))


def test_texts_have_bounds_of_any_length() -> None:
    ensure_sound_chunks(footer([element(6)], b"\1"))


LIST = [element(repetition=OPTIONAL, children=1), element(repetition=REPEATED, children=1), element(1)]


@pytest.mark.parametrize(
    ("elements", "repetition", "definition"),
    [([element(1, repetition=0)], 0, 0), ([element(1)], 0, 1), ([element(1, repetition=REPEATED)], 1, 1), (LIST, 1, 3)],
)
def test_counts_of_levels(elements: Sequence[bytes], repetition: int, definition: int) -> None:
    """Each level is counted, or none."""
    sound = [1] * (repetition + 1), [1] * (definition + 1)
    ensure_sound_chunks(footer(elements, levels=sound))
    ensure_sound_chunks(footer(elements, levels=([], sound[1])))
    for more in ([1], []):
        for place in (0, 1):
            wrong = [list(counts) for counts in sound]
            wrong[place] = wrong[place] + [1, 1] if more else wrong[place][1:]
            if wrong[place]:
                with pytest.raises(ValueError, match="levels"):
                    ensure_sound_chunks(footer(elements, levels=wrong))


def test_what_arrow_writes_is_sound() -> None:
    rows = pa.table(
        {"a": [1, None], "l": [[1], []], "s": [{"x": [None, "t"]}, None], "d": pa.array([1, 2], pa.decimal128(20, 2))}
    )
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    whole = sink.getvalue()
    length = int.from_bytes(whole[-8:-4], "little")
    ensure_sound_chunks(whole[-8 - length : -8])

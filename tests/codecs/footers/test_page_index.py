"""Where pages lie and what is known of them: random indexes and headers of pages, by a plain writer, beside lists."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thrift_writer import written_struct

from alluvium.codecs.footers import page_index
from alluvium.codecs.footers.page_index import (
    PageHeader,
    parse_column_index,
    parse_offset_index,
    parse_page_header,
    walk_pages,
)
from alluvium.codecs.footers.parquet_pages import Chunk, Leaf, NoPages

#: Of each page its rows, its bytes, and what lies behind it.
PAGES = st.lists(
    st.tuples(st.integers(1, 300), st.integers(1, 5000), st.sampled_from([0, 0, 0, 9])), min_size=1, max_size=40
)
STARTS = st.integers(4, 1 << 40)


def chunk_of(start: int, dictionary: int | None = None, num_values: int = 0) -> Chunk:
    return Chunk({}, {5: num_values, 9: start, **({} if dictionary is None else {11: dictionary})})


def locations(pages: list[tuple[int, int, int]], start: int) -> list[tuple[int, int, int]]:
    """Offset, size and first row of each."""
    offsets = accumulate((size + gap for _, size, gap in pages), initial=start)
    rows = accumulate((count for count, _, _ in pages), initial=0)
    return [(offset, page[1], first) for offset, page, first in zip(offsets, pages, rows, strict=False)]


def offset_index(places: list[tuple[int, int, int]], more: dict[int, Any], long_heads: bool, order: bool) -> bytes:
    structs = []
    for offset, size, first in places:
        fields = {1: ("i64", offset), 2: ("i32", size), 3: ("i64", first), **more}
        structs.append(("struct", fields if order else dict(reversed(fields.items()))))
    return written_struct({1: ("list", structs), 2: ("list", [("i64", 5)])}, long_heads)


@settings(max_examples=60, derandomize=True)
@given(PAGES, STARTS, st.integers(0, 500), st.booleans(), st.booleans(), st.sampled_from([{}, {9: ("i32", 5)}]))
def test_pages_by_their_index(
    pages: list[Any], start: int, before: int, long_heads: bool, order: bool, more: dict[int, Any]
) -> None:
    """In whatever form a writer has them: the usual one is read by a short cut."""
    places = locations(pages, start + before)
    num_rows = sum(rows for rows, _, _ in pages)
    raw = offset_index(places, more, long_heads, order)
    found = parse_offset_index(raw, chunk_of(start), num_rows)
    assert list(zip(found.offsets.tolist(), found.sizes.tolist(), found.first_rows.tolist(), strict=True)) == places
    assert found.dictionary == ((start, before) if before else None)
    # The last page has a row at least.
    with pytest.raises(NoPages):
        parse_offset_index(raw, chunk_of(start), places[-1][2])
    assert parse_offset_index(raw, chunk_of(start), places[-1][2] + 1) is not None
    with pytest.raises(NoPages):
        parse_offset_index(raw, chunk_of(start + before + 1), num_rows)


@pytest.mark.parametrize("places", [[(-1, 1, 0)], [(4, -1, 0)], [(4, 1, -1)], [(4, 1, -1), (5, 1, 1)]], ids=str)
def test_places_that_are_negative(places: list[tuple[int, int, int]]) -> None:
    """The short cut takes them for none: -1 is written as 1, and 0 as 0."""
    for order in (True, False):
        with pytest.raises(NoPages):
            parse_offset_index(offset_index(places, {}, False, order), chunk_of(4), 2)


BREAKS = ["offset", "row", "size", "overlap", "first", "same row"]


@settings(max_examples=80, derandomize=True)
@given(PAGES.filter(lambda pages: len(pages) > 1), STARTS, st.sampled_from(BREAKS), st.data())
def test_indexes_that_contradict_themselves(pages: list[Any], start: int, kind: str, data: st.DataObject) -> None:
    places = locations(pages, start)
    at = data.draw(st.integers(1, len(places) - 1))
    offset, size, first = places[at]
    changed = {
        "offset": (places[at - 1][0], size, first),
        "row": (offset, size, places[at - 1][2] - 1),
        "same row": (offset, size, places[at - 1][2]),
        "size": (offset, 0, first),
        "overlap": places[at],
        "first": places[at],
    }[kind]
    places[at] = changed
    if kind == "overlap":
        places[at - 1] = (places[at - 1][0], offset - places[at - 1][0] + 1, places[at - 1][2])
    if kind == "first":
        places[0] = (start, places[0][1], 1 if places[1][2] > 1 else -1)
    with pytest.raises(NoPages):
        parse_offset_index(offset_index(places, {}, False, True), chunk_of(start), 1 << 40)


def test_no_pages_at_all() -> None:
    with pytest.raises(NoPages):
        parse_offset_index(offset_index([], {}, False, True), chunk_of(4), 5)


BOUNDS = st.lists(
    st.tuples(st.booleans(), st.binary(max_size=5), st.binary(max_size=5), st.integers(0, 1000)),
    min_size=1,
    max_size=20,
)


@settings(max_examples=60, derandomize=True)
@given(BOUNDS, st.booleans(), st.sampled_from([None, 1, 2, 3, 5]))
def test_bounds_by_their_index(pages: list[Any], counted: bool, cut: int | None) -> None:
    null_pages, lows, highs, counts = (list(one) for one in zip(*pages, strict=True))
    fields: dict[int, Any] = {
        1: ("list", [("bool", x) for x in null_pages]), 2: ("list", [("binary", x) for x in lows]),
        3: ("list", [("binary", x) for x in highs]), 4: ("i32", 1),
    }  # fmt: skip
    if counted:
        fields[5] = ("list", [("i64", x) for x in counts])
    if cut is not None and cut in fields:
        fields[cut] = ("list", fields[cut][1][:-1])
        with pytest.raises(NoPages):
            parse_column_index(written_struct(fields))
        return
    found = parse_column_index(written_struct(fields))
    assert (found.null_pages, found.lows, found.highs) == (null_pages, lows, highs)
    assert found.null_counts == (counts if counted else None)


# --- headers ----------------------------------------------------------------------------------------------------------

DATA, INDEX, DICTIONARY, DATA_2 = range(4)


def header(kind: int, size: int, values: int, rows: int, encoding: int = 0, statistics: Any = None) -> bytes:
    fields: dict[int, Any] = {1: ("i32", kind), 2: ("i32", 9999), 3: ("i32", size)}
    told = {} if statistics is None else statistics
    if kind == DATA:
        inner = {1: ("i32", values), 2: ("i32", encoding), 3: ("i32", 3), 4: ("i32", 3)}
        fields[5] = ("struct", {**inner, **({5: ("struct", told)} if told else {})})
    elif kind == DATA_2:
        inner = {n: ("i32", x) for n, x in enumerate((values, 0, rows, encoding, 0, 0), start=1)}
        fields[8] = ("struct", {**inner, **({8: ("struct", told)} if told else {})})
    elif kind == DICTIONARY:
        fields[7] = ("struct", {1: ("i32", 1), 2: ("i32", encoding)})
    return written_struct(fields)


WALKED = st.lists(
    st.tuples(
        st.sampled_from([DATA, DATA_2]), st.integers(1, 50), st.integers(0, 300),
        st.one_of(st.none(), st.tuples(st.binary(max_size=400), st.binary(max_size=4), st.one_of(st.none(), st.integers(0, 50)))),
        st.booleans(),
    ),
    min_size=1, max_size=6,
)  # fmt: skip


@settings(max_examples=60, derandomize=True)
@given(WALKED, st.booleans(), st.booleans(), st.integers(0, 40))
def test_pages_by_their_headers(pages: list[Any], has_dictionary: bool, repeated: bool, start: int) -> None:
    """Version 1 counts values, which are rows where none repeats; version 2 counts both."""
    data, wanted = bytearray(b"x" * start), []
    dictionary = None
    if has_dictionary:
        text = header(DICTIONARY, 7, 0, 0)
        dictionary = (start, len(text) + 7)
        data += text + b"d" * 7
    first = values_of_all = 0
    for kind, rows, size, told, index_before in pages:
        if index_before:
            data += header(INDEX, 3, 0, 0) + b"iii"
        values = rows if kind == DATA or not repeated else rows + 2
        statistics: dict[int, Any] = {}
        if told is not None:
            low, high, nulls = told
            statistics = {1: ("binary", b"old"), 5: ("binary", high), 6: ("binary", low)}
            statistics |= {} if nulls is None else {3: ("i64", nulls)}
        text = header(kind, size, values, rows, statistics=statistics)
        wanted.append((len(data), len(text) + size, first, rows, told))
        data += text + b"p" * size
        first, values_of_all = first + rows, values_of_all + values
    asked = chunk_of(start, num_values=values_of_all)

    def read(offset: int, size: int) -> bytes:
        return bytes(data[offset : offset + size])

    if repeated and any(kind == DATA for kind, *_ in pages):
        with pytest.raises(NoPages):
            walk_pages(read, asked, Leaf(0, True), first)
        return
    found, bounds = walk_pages(read, asked, Leaf(0, repeated), first)
    assert found.offsets.tolist() == [one[0] for one in wanted]
    assert found.sizes.tolist() == [one[1] for one in wanted]
    assert found.first_rows.tolist() == [one[2] for one in wanted]
    assert found.dictionary == dictionary
    with pytest.raises(NoPages):
        walk_pages(read, asked, Leaf(0, repeated), first + 1)
    all_null = [told is not None and told[2] == rows for _, _, _, rows, told in wanted]
    if any(told is None for *_, told in wanted):
        assert bounds is None
        return
    assert bounds is not None
    assert bounds.null_pages == all_null
    shown = zip(all_null, (one[4] for one in wanted), strict=True)
    assert list(zip(bounds.lows, bounds.highs, strict=True)) == [(b"", b"") if n else told[:2] for n, told in shown]
    counts = [one[4][2] for one in wanted]
    assert bounds.null_counts == (None if None in counts else counts)


def test_headers_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (header(DATA, -1, 5, 5), header(7, 3, 5, 5), header(DATA, 3, 0, 0), header(DATA_2, 3, -1, 5), b""):
        with pytest.raises(NoPages):
            walk_pages(lambda at, size, text=text: text[at : at + size], chunk_of(0, num_values=5), Leaf(0, False), 5)  # type: ignore[misc]
    monkeypatch.setattr(page_index, "_MAX_HEADER_BYTES", 2000)
    long = header(DATA, 0, 5, 5, statistics={5: ("binary", b"z" * 3000)})
    assert (
        len(walk_pages(lambda at, size: long[at : at + size], chunk_of(0, num_values=5), Leaf(0, False), 5)[0].offsets)
        == 1
    )
    longer = header(DATA, 0, 5, 5, statistics={5: ("binary", b"z" * 9000)})
    with pytest.raises(NoPages):
        walk_pages(lambda at, size: longer[at : at + size], chunk_of(0, num_values=5), Leaf(0, False), 5)


@pytest.mark.parametrize(
    ("kind", "encoding", "wanted"),
    [
        (DATA, 0, PageHeader(False, False, 12)),
        (DATA, 2, PageHeader(False, True, 12)),
        (DATA, 8, PageHeader(False, True, 12)),
        (DATA, 3, PageHeader(False, False, 12)),
        (DATA_2, 8, PageHeader(False, True, 12)),
        (DATA_2, 5, PageHeader(False, False, 12)),
        (DICTIONARY, 2, PageHeader(True, False, 0)),
    ],
)
def test_a_page_that_was_read(kind: int, encoding: int, wanted: PageHeader) -> None:
    page = header(kind, 4, 12, 3, encoding) + b"page"
    assert parse_page_header(page) == wanted
    for wrong in (page[:-1], page + b"x", page[:3], b""):
        with pytest.raises(NoPages):
            parse_page_header(wrong)

"""The data pages of a Parquet file's column chunks: where they lie, and what bounds are known of them.

By the page index, or, where a file has none, by the headers of the pages.

Specifications: PageIndex.md (`OffsetIndex`, `ColumnIndex`), parquet.thrift (`PageHeader`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from alluvium.codecs.footers.parquet_pages import Chunk, Leaf, NoPages
from alluvium.codecs.footers.thrift_compact import DAMAGE, CompactReader, Value, fields_of, integer_at, items_of

Integers = npt.NDArray[np.int64]

_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = range(4)
#: PLAIN_DICTIONARY, RLE_DICTIONARY
_DICTIONARY_ENCODINGS = (2, 8)
#: Heads of a list that is the first field, of its structs, and of the fields of a `PageLocation` and its end.
_FIELD_1_LIST, _STRUCTS, _LOCATION_TYPES = 0x19, 0x0C, (0x16, 0x15, 0x16, 0x00)
#: Most headers of pages are shorter; one with long bounds of text is not.
_HEADER_BYTES = 256
_MAX_HEADER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Pages:
    """The data pages of a column chunk, in order.

    Attributes:
        offsets: Where they begin in the file.
        sizes: Bytes, with their headers.
        first_rows: The first row of each, counted from that of the row group.
        dictionary: Offset and size of the page that precedes them, if there is one.
    """

    offsets: Integers
    sizes: Integers
    first_rows: Integers
    dictionary: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class PageBounds:
    """A column index: one value a data page, as they are written.

    Attributes:
        null_pages: Whether all values are null; these have no bounds.
        lows: Raw bounds below.
        highs: Raw bounds above.
        null_counts: Rows that are null; None: not counted.
    """

    null_pages: list[bool]
    lows: list[bytes]
    highs: list[bytes]
    null_counts: list[int] | None


def parse_offset_index(raw: bytes, chunk: Chunk, num_rows: int) -> Pages:
    """The pages by the chunk's `OffsetIndex`.

    Raises:
        NoPages: It is damaged, or contradicts itself.
    """
    try:
        offsets, sizes, first_rows = _page_locations(raw)
        start = chunk.start
    except DAMAGE as error:
        raise NoPages(str(error)) from None
    before = int(offsets[0]) - start if len(offsets) else -1
    pages = Pages(offsets, sizes, first_rows, (start, before) if before > 0 else None)
    _ensure_in_order(pages, num_rows, before)
    return pages


def _page_locations(raw: bytes) -> Sequence[Integers]:
    """Offsets, sizes, first rows: the three fields of `PageLocation`."""
    # As all writers write it, the list is field 1 and each location has its fields in their order: then the types of
    # the fields and the ends of the structs are variable-length integers like their values, seven a page.
    if raw[0] == _FIELD_1_LIST and raw[1] & 15 == _STRUCTS:
        tokens = _varints(np.frombuffer(raw, np.uint8)[2:])
        count, tokens = (int(tokens[0]), tokens[1:]) if raw[1] >> 4 == 15 else (raw[1] >> 4, tokens)
        table = tokens[: 7 * count].reshape(-1, 7) if len(tokens) >= 7 * count else tokens[:0].reshape(-1, 7)
        # An odd one is a negative number, which no place is.
        is_usual = (table[:, ::2] == _LOCATION_TYPES).all() and not (table[:, 1::2] & 1).any()
        if len(table) == count and bool(is_usual):
            return [table[:, column] >> 1 for column in (1, 3, 5)]
    places = [fields_of(one) for one in items_of(CompactReader(raw).struct()[1])]
    return [np.array([integer_at(place, n) for place in places], np.int64) for n in (1, 2, 3)]


def _varints(data: npt.NDArray[np.uint8]) -> Integers:
    """Variable-length integers that stand behind each other, without regard to their signs."""
    ends = np.nonzero(data < 128)[0]
    data = data[: ends[-1] + 1] if len(ends) else data[:0]
    starts = np.concatenate([ends[:0], [0], ends[:-1] + 1]) if len(ends) else ends
    digits = np.arange(len(data)) - np.repeat(starts, np.diff(np.append(starts, len(data))))
    # What is longer than an integer can be belongs to another field.
    parts = (data & 127).astype(np.int64) << (7 * np.minimum(digits, 9))
    return np.add.reduceat(parts, starts) if len(starts) else parts


def _ensure_in_order(pages: Pages, num_rows: int, before: int) -> None:
    rises = bool((np.diff(pages.first_rows) > 0).all()) and bool((np.diff(pages.offsets) > 0).all())
    if not rises or before < 0 or pages.first_rows[0] != 0 or pages.first_rows[-1] >= num_rows:
        raise NoPages("the pages are not in order")
    if (pages.sizes <= 0).any() or (pages.offsets[:-1] + pages.sizes[:-1] > pages.offsets[1:]).any():
        raise NoPages("pages overlap")


def parse_column_index(raw: bytes) -> PageBounds:
    """A chunk's `ColumnIndex`.

    Raises:
        NoPages: It is damaged.
    """
    try:
        document = CompactReader(raw).struct()
        null_pages = [one is True for one in items_of(document[1])]
        lows, highs = ([one for one in items_of(document[n]) if isinstance(one, bytes)] for n in (2, 3))
        counts = [one for one in items_of(document[5]) if isinstance(one, int)] if 5 in document else None
    except DAMAGE as error:
        raise NoPages(str(error)) from None
    if any(len(one) != len(null_pages) for one in (lows, highs, counts) if one is not None):
        raise NoPages("the column index has not one value a page")
    return PageBounds(null_pages, lows, highs, counts)


def walk_pages(
    read: Callable[[int, int], bytes], chunk: Chunk, leaf: Leaf, num_rows: int
) -> tuple[Pages, PageBounds | None]:
    """The pages by their headers, where no index tells, and what the headers tell of each page.

    Args:
        read: Bytes of the file, by offset and size; fewer at its end.
        chunk: Whose.
        leaf: Its column.
        num_rows: Of the row group.

    Raises:
        NoPages: The headers do not tell in which rows the pages begin, or are damaged.
    """
    try:
        found = list(_walked(read, chunk, leaf))
    except DAMAGE as error:
        raise NoPages(str(error)) from None
    dictionary = next(((one.offset, one.size) for one in found if one.num_rows is None), None)
    data = [(one.offset, one.size, one.num_rows) for one in found if one.num_rows is not None]
    if not data or sum(rows for _, _, rows in data) != num_rows:
        raise NoPages("the pages have not all rows")
    offsets, sizes, counts = (np.array(one, np.int64) for one in zip(*data, strict=True))
    pages = Pages(offsets, sizes, np.cumsum(counts) - counts, dictionary)
    _ensure_in_order(pages, num_rows, 0)
    return pages, _bounds_of([one.statistics for one in found if one.num_rows is not None], counts.tolist())


def _bounds_of(statistics: Sequence[dict[int, Value]], counts: Sequence[int]) -> PageBounds | None:
    """The pages' own `Statistics`, of which the newer fields have an order that is defined."""
    lows, highs, nulls = ([one.get(n) for one in statistics] for n in (6, 5, 3))
    null_pages = [found == count for found, count in zip(nulls, counts, strict=True)]
    known_lows, known_highs = (
        [b"" if is_null else one for one, is_null in zip(some, null_pages, strict=True)] for some in (lows, highs)
    )
    known_nulls = [one for one in nulls if isinstance(one, int)]
    if not all(isinstance(one, bytes) for one in (*known_lows, *known_highs)):
        return None
    return PageBounds(
        null_pages,
        [one for one in known_lows if isinstance(one, bytes)],
        [one for one in known_highs if isinstance(one, bytes)],
        known_nulls if len(known_nulls) == len(nulls) else None,
    )


@dataclass(frozen=True, slots=True)
class _Page:
    """A page as its header tells: `num_rows` of a dictionary is None."""

    offset: int
    size: int
    num_rows: int | None
    statistics: dict[int, Value]


def _walked(read: Callable[[int, int], bytes], chunk: Chunk, leaf: Leaf) -> Iterator[_Page]:
    at, left = chunk.start, chunk.num_values
    while left > 0:
        header, length = _read_header(read, at)
        kind, size = integer_at(header, 1), length + integer_at(header, 3)
        if size < length:
            raise NoPages("a page of less than no bytes")
        if kind == _DICTIONARY_PAGE:
            yield _Page(at, size, None, {})
        elif kind in (_DATA_PAGE, _DATA_PAGE_V2):
            values, rows = _counts(header)
            if values <= 0:
                # Else a file could be all headers, each of which costs us more than its bytes.
                raise NoPages("a page without values")
            if rows is None and leaf.is_repeated:
                raise NoPages("a page of repeated values does not tell its rows")
            left -= values
            inner = fields_of(header[5 if kind == _DATA_PAGE else 8])
            statistics = inner.get(5 if kind == _DATA_PAGE else 8)
            yield _Page(at, size, values if rows is None else rows, statistics if isinstance(statistics, dict) else {})
        elif kind != _INDEX_PAGE:
            raise NoPages(f"a page of an unknown kind: {kind}")
        at += size


def _read_header(read: Callable[[int, int], bytes], at: int) -> tuple[dict[int, Value], int]:
    size = _HEADER_BYTES
    while True:
        reader = CompactReader(read(at, size))
        try:
            return reader.struct(), reader.at
        except IndexError:
            if size >= _MAX_HEADER_BYTES:
                raise
            size *= 16


def _counts(header: dict[int, Value]) -> tuple[int, int | None]:
    """Values of a data page, and its rows, where the header tells."""
    if integer_at(header, 1) == _DATA_PAGE:
        return integer_at(fields_of(header[5]), 1), None
    inner = fields_of(header[8])
    return integer_at(inner, 1), integer_at(inner, 3)


@dataclass(frozen=True, slots=True)
class PageHeader:
    """What is asked of a page that was read.

    Attributes:
        is_dictionary: It holds the values that others name by numbers.
        needs_dictionary: It names values by numbers.
        num_values: Of a data page, nulls included.
    """

    is_dictionary: bool
    needs_dictionary: bool
    num_values: int


def parse_page_header(page: bytes) -> PageHeader:
    """The header of a page.

    Args:
        page: With its header, as long as an index says.

    Raises:
        NoPages: Its header is damaged, or says another length.
    """
    try:
        reader = CompactReader(page)
        header = reader.struct()
        if reader.at + integer_at(header, 3) != len(page):
            raise NoPages("a page is not as long as the index says")
        kind = integer_at(header, 1)
        if kind == _DICTIONARY_PAGE:
            return PageHeader(True, False, 0)
        encoding = integer_at(fields_of(header[5]), 2) if kind == _DATA_PAGE else integer_at(fields_of(header[8]), 4)
        return PageHeader(False, encoding in _DICTIONARY_ENCODINGS, _counts(header)[0])
    except DAMAGE as error:
        raise NoPages(str(error)) from None

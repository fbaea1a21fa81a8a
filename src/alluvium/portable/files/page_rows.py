"""Some rows of a Parquet file, of which only the pages are read that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alluvium.codecs.columns import integer_column
from alluvium.codecs.footers.page_index import (
    Integers,
    PageBounds,
    Pages,
    parse_column_index,
    parse_offset_index,
    parse_page_header,
    walk_pages,
)
from alluvium.codecs.footers.parquet_pages import MAGIC, Chunk, Footer, Leaf, NoPages, no_chunk, row_group_of

#: What the trip of one request costs, told in bytes that could be read instead: beside us, and over a network.
_NEAR_BYTES, _FAR_BYTES = 64 << 10, 4 << 20
#: Pages are worth it where they cost at most this part of what the whole chunks do.
_WORTH = 0.5
#: A chunk of fewer trips' worth is read without looking at its pages.
_WORTH_ASKING = 2
#: Footers of more chunks are not read a second time, nor are footers made with so many.
_MAX_CHUNKS = 4096
#: What is told of pages is held as objects, of several times its bytes; no writer makes so many pages of one chunk.
_MAX_INDEX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class _LeafPages:
    """The pages of a leaf that hold the rows, or its whole chunk."""

    leaf: Leaf
    chunk: Chunk
    dictionary: tuple[int, int] | None
    pieces: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _ColumnPages:
    """What is read of a column for some rows.

    Attributes:
        leaves: Of each leaf.
        num_rows: How many rows the pages hold.
        places: Where the rows are among them.
    """

    leaves: list[_LeafPages]
    num_rows: int
    places: Integers


@dataclass
class PageRows:
    """The pages of an open file.

    Attributes:
        source: The file.
        metadata: Its footer as Arrow reads it.
        unit: Of INT96 timestamps.
    """

    source: pa.NativeFile
    metadata: pq.FileMetaData
    unit: str
    _pages: dict[tuple[int, int], Pages] = field(default_factory=dict)
    _bounds: dict[tuple[int, int], PageBounds | None] = field(default_factory=dict)

    def encodings(self, leaf: int) -> set[int | None]:
        """By their numbers those of a leaf's pages; `None` among them where the footer does not tell."""
        try:
            chunks = [self._whole_footer.chunk(number, leaf) for number in range(self.metadata.num_row_groups)]
            return {one for chunk in chunks for one in chunk.encodings if isinstance(one, int)}
        except NoPages:
            return {None}

    @property
    def is_near(self) -> bool:
        """Whether a request costs next to nothing."""
        return isinstance(self.source, (pa.OSFile, pa.BufferReader))

    def rows(self, row_group: int, columns: Sequence[str], positions: Integers) -> dict[str, pa.Array] | None:
        """The values of top-level columns in some rows.

        Args:
            row_group: Number.
            columns: By the file's own names.
            positions: The rows, counted from the row group's first, in order.

        Returns:
            None: Reading the chunks as a whole is no worse, or tells better what is wrong with them.
        """
        try:
            found = [self._column(row_group, name, positions) for name in columns]
            if not self._is_worth_it(found):
                return None
            made = pa.BufferReader(self._file_of(found))
            reader = pq.ParquetFile(made, coerce_int96_timestamp_unit=self.unit, pre_buffer=False)
            return {
                # A few pages are decoded sooner than another thread takes them over.
                name: _taken(reader.read_row_group(number, [name], use_threads=False), column.places, column.num_rows)
                for number, (name, column) in enumerate(zip(columns, found, strict=True))
            }
        except (NoPages, pa.ArrowException, OSError):
            return None

    def bounds(self, row_group: int, name: str) -> tuple[Pages, PageBounds] | None:
        """What is known of the pages of a column of one leaf; None where nothing is, or asking is not worth it."""
        try:
            leaves = self._read_footer().leaves_of(name)
            if len(leaves) != 1 or leaves[0].is_repeated:
                return None
            chunk = self._read_footer().chunk(row_group, leaves[0].number)
            if chunk.size < _WORTH_ASKING * self._trip:
                return None
            pages = self._pages_of(row_group, leaves[0], chunk)
            place = chunk.column_index
            known = self._bounds.get((row_group, leaves[0].number))
            found = known if place is None else parse_column_index(self._read_index(place))
            return None if found is None or len(found.lows) != len(pages.offsets) else (pages, found)
        except NoPages:
            return None

    def statistics(self, row_group: int, leaf: int) -> tuple[bytes | None, bytes | None, int | None]:
        """What the footer tells of a leaf: raw bounds, whose order is known, and nulls; None where it does not tell.

        Not by Arrow: it ends the process where sizes in the statistics of a damaged footer contradict each other.
        """
        try:
            low, high, nulls = self._read_footer().chunk(row_group, leaf).statistics
            return (low, high, nulls) if self._read_footer().has_order(leaf) else (None, None, nulls)
        except NoPages:
            return None, None, None

    @property
    def _trip(self) -> int:
        return _NEAR_BYTES if self.is_near else _FAR_BYTES

    def _read_footer(self) -> Footer:
        if self.metadata.num_columns * self.metadata.num_row_groups > _MAX_CHUNKS:
            raise NoPages("its footer is too large")
        return self._whole_footer

    @cached_property
    def _whole_footer(self) -> Footer:
        size = self.metadata.serialized_size
        # Behind it come its length and the magic bytes, four of each.
        return Footer(self._read(self.source.size() - size - 8, size))

    def _read(self, offset: int, size: int) -> bytes:
        """Bytes of the file; fewer at its end. Places come out of the file, and memory is taken before it is read."""
        size = min(size, self.source.size() - offset)
        if offset < 0 or size <= 0:
            raise NoPages("a place that is not in the file")
        return bytes(self.source.read_at(size, offset))

    def _read_index(self, place: tuple[int, int]) -> bytes:
        if place[1] > _MAX_INDEX_BYTES:
            raise NoPages("an index is too large")
        return self._read(*place)

    def _column(self, row_group: int, name: str, positions: Integers) -> _ColumnPages:
        footer = self._read_footer()
        total = self.metadata.row_group(row_group).num_rows
        leaves = footer.leaves_of(name)
        chunks = [footer.chunk(row_group, leaf.number) for leaf in leaves]
        pages = [self._pages_of(row_group, *pair) for pair in zip(leaves, chunks, strict=True)]
        # The members of a row stand beside each other: pages are taken up to where pages of all leaves begin.
        begins = reduce(np.intersect1d, [one.first_rows for one in pages])
        units = np.searchsorted(begins, positions, "right") - 1
        chosen = np.unique(units)
        lengths = np.append(begins[1:], total)[chosen] - begins[chosen]
        before = np.cumsum(lengths) - lengths
        place = np.searchsorted(chosen, units)
        return _ColumnPages(
            [_chosen_pages(*one, begins, chosen) for one in zip(leaves, chunks, pages, strict=True)],
            int(lengths.sum()),
            positions - begins[units] + before[place],
        )

    def _pages_of(self, row_group: int, leaf: Leaf, chunk: Chunk) -> Pages:
        key = (row_group, leaf.number)
        if key not in self._pages:
            total = self.metadata.row_group(row_group).num_rows
            place = chunk.offset_index
            if place is not None:
                self._pages[key] = parse_offset_index(self._read_index(place), chunk, total)
            elif self.is_near:
                self._pages[key], self._bounds[key] = walk_pages(self._read, chunk, leaf, total)
            else:
                raise NoPages("without an index each header is a request")
        return self._pages[key]

    def _is_worth_it(self, columns: Sequence[_ColumnPages]) -> bool:
        trip = self._trip
        leaves = [leaf for column in columns for leaf in column.leaves]
        if len(columns) * self._read_footer().num_leaves > _MAX_CHUNKS:
            return False
        whole = trip + sum(leaf.chunk.size for leaf in leaves)
        runs = _merged(self._places(leaves), 0 if self.is_near else _FAR_BYTES // 4)
        return sum(trip + size for _, size in runs) <= _WORTH * whole

    @staticmethod
    def _places(leaves: Iterable[_LeafPages]) -> list[tuple[int, int]]:
        return [place for leaf in leaves for place in (*([leaf.dictionary] if leaf.dictionary else []), *leaf.pieces)]

    def _file_of(self, columns: Sequence[_ColumnPages]) -> bytes:
        """A file of a row group for each column, which has the pages chosen of that column."""
        footer = self._read_footer()
        read = self._fetched(self._places(leaf for column in columns for leaf in column.leaves))
        body, at = [MAGIC], len(MAGIC)
        row_groups = []
        for column in columns:
            chunks, start = [no_chunk(column.num_rows)] * footer.num_leaves, at
            for leaf in column.leaves:
                pages = [read[place] for place in leaf.pieces]
                headers = [parse_page_header(page) for page in pages]
                # Where a dictionary grows too large the pages behind it do without; decoding it takes longest of all.
                needs_dictionary = any(header.needs_dictionary for header in headers)
                dictionary = [read[leaf.dictionary]] if leaf.dictionary and needs_dictionary else []
                if dictionary and not parse_page_header(dictionary[0]).is_dictionary:
                    raise NoPages("another page is where the dictionary should be")
                values = sum(header.num_values for header in headers)
                pages_at = at + sum(map(len, dictionary))
                size = sum(map(len, (*dictionary, *pages)))
                chunks[leaf.leaf.number] = leaf.chunk.written(values, size, at if dictionary else None, pages_at)
                body += [*dictionary, *pages]
                at += size
            row_groups.append(row_group_of(column.num_rows, at - start, chunks))
        body.append(footer.around(sum(column.num_rows for column in columns), row_groups))
        return b"".join(body)

    def _fetched(self, places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
        read: dict[tuple[int, int], bytes] = {}
        runs = _merged(places, 0 if self.is_near else _FAR_BYTES // 4)
        todo = iter(sorted(places))
        place = next(todo, None)
        for start, size in runs:
            data = self._read(start, size)
            if len(data) != size:
                raise NoPages("the file ends before its pages")
            while place is not None and place[0] < start + size:
                read[place] = data[place[0] - start : place[0] - start + place[1]]
                place = next(todo, None)
        return read


def _chosen_pages(leaf: Leaf, chunk: Chunk, pages: Pages, begins: Integers, chosen: Integers) -> _LeafPages:
    unit_of_page = np.searchsorted(begins, pages.first_rows, "right") - 1
    places = np.nonzero(np.isin(unit_of_page, chosen))[0].tolist()
    pieces = [(int(pages.offsets[i]), int(pages.sizes[i])) for i in places]
    return _LeafPages(leaf, chunk, pages.dictionary, pieces)


def _merged(places: Iterable[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Places (offset, size) as requests that read over gaps of some bytes."""
    runs: list[tuple[int, int]] = []
    for offset, size in sorted(places):
        if runs and offset <= sum(runs[-1]) + gap:
            start = runs[-1][0]
            runs[-1] = (start, max(sum(runs[-1]), offset + size) - start)
        else:
            runs.append((offset, size))
    return runs


def _taken(read: pa.Table, places: Integers, num_rows: int) -> pa.Array:
    column = read.column(0)
    if len(column) != num_rows:
        raise NoPages(f"{len(column)} rows where {num_rows} were to be")
    taken = column if len(places) == num_rows else column.take(integer_column(places))
    whole = taken.combine_chunks()
    # No chunks, or too many bytes, give no single array.
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole

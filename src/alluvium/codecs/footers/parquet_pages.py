"""The footer of a Parquet file field by field, and files made of some of a file's pages.

Arrow decodes whole column chunks. So that it decodes a few pages, they are put, as they are, behind a footer of their
own: that of the file, but for its row groups. Types, codecs and encodings stay Arrow's business.

Specification: parquet.thrift (`FileMetaData`, `SchemaElement`, `RowGroup`, `ColumnChunk`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from alluvium.codecs.footers.thrift_compact import (
    DAMAGE,
    CompactReader,
    Value,
    binary_list_field,
    fields_of,
    i32_field,
    i32_list_field,
    i64_field,
    integer_at,
    items_of,
    next_of,
    struct_field,
    struct_list_field,
    struct_of,
    written_field,
)

MAGIC = b"PAR1"
_REPEATED = 2
#: FileMetaData
_SCHEMA, _NUM_ROWS, _ROW_GROUPS, _COLUMN_ORDERS = 2, 3, 4, 7
#: What `ColumnMetaData` must have: `type`, `codec`, counts, sizes and the place; `encodings` and `path_in_schema`.
_NUMBERS, _LISTS = (1, 4, 5, 6, 7, 9), (2, 3)


class NoPages(Exception):
    """The pages cannot be told apart; the chunk can be read as a whole only."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column without members.

    Attributes:
        number: Its place among the leaves.
        is_repeated: Whether a row may have several values.
    """

    number: int
    is_repeated: bool


class Footer:
    """The footer of a file, read field by field.

    Args:
        raw: The metadata, without its length and the magic bytes.

    Raises:
        NoPages: It is damaged, or encrypted.
    """

    def __init__(self, raw: bytes) -> None:
        try:
            self._fields = CompactReader(raw).written_fields()
            self._row_groups = [fields_of(group) for group in items_of(self._fields[_ROW_GROUPS][1])]
        except DAMAGE as error:
            raise NoPages(str(error)) from None

    @cached_property
    def leaves(self) -> dict[str, list[Leaf]]:
        """By the names of the top-level columns.

        Raises:
            NoPages: The schema is damaged, or two have the same name.
        """
        try:
            return self._read_leaves()
        except DAMAGE as error:
            raise NoPages(str(error)) from None

    def _read_leaves(self) -> dict[str, list[Leaf]]:
        elements = map(fields_of, items_of(self._fields[_SCHEMA][1]))
        numbers = iter(range(1 << 30))
        leaves: dict[str, list[Leaf]] = {}
        for _ in range(integer_at(next_of(elements), 5)):
            column = next_of(elements)
            written = column[4]
            assert isinstance(written, bytes)
            name = written.decode()
            if name in leaves:
                raise NoPages(f"two columns are called {name!r}")
            leaves[name] = list(_leaves_of(column, elements, numbers, is_repeated=False))
        return leaves

    def leaves_of(self, name: str) -> list[Leaf]:
        """The leaves of a top-level column; `NoPages`: there is none of that name, or it has none."""
        found = self.leaves.get(name)
        if not found:
            raise NoPages(f"no column {name!r}")
        return found

    def chunk(self, row_group: int, leaf: int) -> Chunk:
        """A column chunk.

        Raises:
            NoPages: It lies elsewhere, or its metadata are damaged or encrypted.
        """
        try:
            document = fields_of(items_of(self._row_groups[row_group][1])[leaf])
            if document.get(1) or 8 in document or 9 in document:
                raise NoPages("the chunk is in another file, or encrypted")
            metadata = fields_of(document[3])
            for number in _NUMBERS:
                integer_at(metadata, number)
            for number in _LISTS:
                items_of(metadata[number])
            return Chunk(document, metadata)
        except DAMAGE as error:
            raise NoPages(str(error)) from None

    def has_order(self, leaf: int) -> bool:
        """Whether the order is known by which a leaf's bounds are bounds: "TypeDefinedOrder"."""
        orders = self._fields[_COLUMN_ORDERS][1] if _COLUMN_ORDERS in self._fields else None
        order = orders[leaf] if isinstance(orders, list) and leaf < len(orders) else None
        return isinstance(order, dict) and 1 in order

    def around(self, num_rows: int, row_groups: Sequence[bytes]) -> bytes:
        """The footer with other row groups (from `row_group_of`), with its length and the magic bytes behind it."""
        kept = [written_field(number, kind, written) for number, (kind, _, written) in self._fields.items()
                if number not in (_NUM_ROWS, _ROW_GROUPS)]  # fmt: skip
        made = struct_of([*kept, i64_field(_NUM_ROWS, num_rows), struct_list_field(_ROW_GROUPS, row_groups)])
        return made + len(made).to_bytes(4, "little") + MAGIC

    @cached_property
    def num_leaves(self) -> int:
        return sum(len(leaves) for leaves in self.leaves.values())


def _leaves_of(
    element: dict[int, Value], rest: Iterator[dict[int, Value]], numbers: Iterator[int], *, is_repeated: bool
) -> Iterator[Leaf]:
    """Those below a node: "schema: [...] depth first traversal"."""
    is_repeated = is_repeated or element.get(3) == _REPEATED
    children = element.get(5) or 0
    assert isinstance(children, int)
    # A group without members has no leaf.
    if not children and 1 in element:
        yield Leaf(next(numbers), is_repeated)
    for _ in range(children):
        yield from _leaves_of(next_of(rest), rest, numbers, is_repeated=is_repeated)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk's own metadata."""

    _document: dict[int, Value]
    _metadata: dict[int, Value]

    @property
    def encodings(self) -> list[Value]:
        """Of its pages, by their numbers (`Encoding`)."""
        return items_of(self._metadata[2])

    @property
    def num_values(self) -> int:
        return integer_at(self._metadata, 5)

    @property
    def size(self) -> int:
        """Bytes, as they are stored."""
        return integer_at(self._metadata, 7)

    @property
    def start(self) -> int:
        """Where the first of its pages begins."""
        first, dictionary = integer_at(self._metadata, 9), self._metadata.get(11)
        # Some writers set 0 where there is no dictionary.
        return min(first, dictionary) if isinstance(dictionary, int) and dictionary > 0 else first

    @property
    def statistics(self) -> tuple[bytes | None, bytes | None, int | None]:
        """Raw bounds (`min_value`, `max_value`), and how many values are null; None where it does not tell."""
        found = self._metadata.get(12)
        nulls = found.get(3) if isinstance(found, dict) else None
        return *self._bounds(6, 5), nulls if isinstance(nulls, int) else None

    @property
    def signed_bounds(self) -> tuple[bytes | None, bytes | None]:
        """Raw bounds as older writers told them (`min`, `max`), which compared values as signed numbers."""
        return self._bounds(2, 1)

    def _bounds(self, *numbers: int) -> tuple[bytes | None, bytes | None]:
        found = self._metadata.get(12)
        low, high = (found.get(n) for n in numbers) if isinstance(found, dict) else (None, None)
        return low if isinstance(low, bytes) else None, high if isinstance(high, bytes) else None

    @property
    def offset_index(self) -> tuple[int, int] | None:
        """Place and size of its `OffsetIndex`."""
        return _place(self._document, 4, 5)

    @property
    def column_index(self) -> tuple[int, int] | None:
        """Place and size of its `ColumnIndex`."""
        return _place(self._document, 6, 7)

    def written(self, num_values: int, size: int, dictionary_at: int | None, pages_at: int) -> bytes:
        """The chunk's metadata for some of its pages.

        Args:
            num_values: In the pages.
            size: Their bytes, with the dictionary's.
            dictionary_at: Where the dictionary page lies now; None: there is none.
            pages_at: Where the data pages lie.
        """
        fields = [
            i32_field(1, integer_at(self._metadata, 1)),
            i32_list_field(2, [one for one in self.encodings if isinstance(one, int)]),
            binary_list_field(3, [one for one in items_of(self._metadata[3]) if isinstance(one, bytes)]),
            i32_field(4, integer_at(self._metadata, 4)),
            i64_field(5, num_values),
            # Arrow asks for it, and makes nothing of it.
            i64_field(6, max(size, integer_at(self._metadata, 6))),
            i64_field(7, size),
            i64_field(9, pages_at),
        ]
        if dictionary_at is not None:
            fields.append(i64_field(11, dictionary_at))
        return struct_of([i64_field(2, 0), struct_field(3, struct_of(fields))])


def no_chunk(num_rows: int) -> bytes:
    """Stands for the chunk of a column that nobody will read, in a row group of some rows."""
    names = [i32_list_field(2, [0]), binary_list_field(3, [b""])]
    # Arrow 19 takes the values of the first chunk for the rows to read, whichever chunk it reads.
    sizes = [i64_field(5, num_rows), *(i64_field(number, 0) for number in (6, 7, 9))]
    return struct_of([i64_field(2, 0), struct_field(3, struct_of([i32_field(1, 1), *names, i32_field(4, 0), *sizes]))])


def row_group_of(num_rows: int, size: int, chunks: Sequence[bytes]) -> bytes:
    """A row group of chunks (from `Chunk.written`), one a leaf."""
    return struct_of([struct_list_field(1, chunks), i64_field(2, size), i64_field(3, num_rows)])


def _place(document: dict[int, Value], offset: int, length: int) -> tuple[int, int] | None:
    found = document.get(offset), document.get(length)
    return (found[0], found[1]) if isinstance(found[0], int) and isinstance(found[1], int) and found[1] else None

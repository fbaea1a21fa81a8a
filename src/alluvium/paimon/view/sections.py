"""Which files of a table with a primary key must be merged with which: sections whose key ranges do not touch.

Specification: `org.apache.paimon.mergetree.compact.IntervalPartition`. Ranges of all buckets are compared at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.errors import CorruptTable
from alluvium.paimon.files.partitions import Partitions
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import ROWKIND_FIELD
from alluvium.paimon.view.merge import GROUP

#: Of each file the number of its section, -1 where its rows merge with no others; its place among all files, by which
#: rows with equal sequence numbers are ordered; and what is true of all of them, in every row.
_NUMBERS = pa.schema(
    [
        pa.field("section", pa.int64()),
        pa.field("place", pa.int64()),
        pa.field("has_retracts", pa.bool_()),
        pa.field("has_ties", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True)
class Sections:
    """Sections of some files; implements `expr.prune.FileStatistics` for predicates about the number alone.

    Attributes:
        numbers: One row a file.
    """

    numbers: pa.Table

    @classmethod
    def of(
        cls,
        section: npt.NDArray[np.int64],
        has_retracts: bool = False,
        has_ties: bool = False,
        levels: pa.ChunkedArray | None = None,
    ) -> Sections:
        """Sections by their numbers.

        Args:
            section: Of each file, oldest first.
            has_retracts: As the property.
            has_ties: As the property.
            levels: Of each file. What was compacted is older than what was not, though its files came later: their
                rows were there when the compaction began.
        """
        count = len(section)
        places = np.arange(count)
        if levels is not None:
            places[np.lexsort((places, -levels.to_numpy()))] = np.arange(count)
        flags = [np.full(count, flag) for flag in (has_retracts, has_ties)]
        return cls(pa.table([section, places, *flags], schema=_NUMBERS))

    def kept(self, keep: pa.BooleanArray) -> Sections:
        """Those of the files whose flag is set."""
        return Sections(self.numbers.filter(keep))

    @property
    def merges(self) -> npt.NDArray[np.bool_]:
        """Of each file whether its rows merge with those of others."""
        return np.asarray(self.numbers["section"].to_numpy() >= 0)

    @property
    def has_retracts(self) -> bool:
        """Whether files that merge may hold rows that take others back: files that were skipped since count, too."""
        return self._is_set("has_retracts")

    @property
    def has_ties(self) -> bool:
        """Whether rows of different files may have equal sequence numbers; as `has_retracts`."""
        return self._is_set("has_ties")

    def _is_set(self, name: str) -> bool:
        return bool(self.numbers.num_rows) and bool(self.numbers[name][0].as_py())

    @property
    def num_files(self) -> int:
        return int(self.numbers.num_rows)

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        return self.numbers["section"].combine_chunks() if path == (GROUP,) else None

    def lower(self, path: tuple[str, ...]) -> pa.Array | None:
        return None

    def upper(self, path: tuple[str, ...]) -> pa.Array | None:
        return None

    def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
        return None

    def num_rows(self) -> pa.Array | None:
        return None


def number_sections(entries: pa.Table, partitions: Partitions, schema: TableSchema, first: int = 0) -> Sections:
    """The section of each file; a file that is alone in its section, and takes no row back, merges with none.

    Args:
        entries: The files, schema `SCANNED_ENTRIES`.
        partitions: Theirs.
        schema: Of the table.
        first: The number of the first section.

    Raises:
        CorruptTable: A key range is no row of the key's columns.
    """
    if not entries.num_rows:
        return Sections.of(np.zeros(0, np.int64))
    section = key_sections(entries, partitions, schema)
    retracts = np.asarray(may_take_back(entries, schema).to_numpy())
    alone = (np.bincount(section)[section] == 1) & ~retracts
    has_ties = _may_tie(entries, section, ~alone)
    numbers, is_taken_back = np.where(alone, -1, section + first), bool((retracts & ~alone).any())
    return Sections.of(numbers, is_taken_back, has_ties, entries["level"])


def may_take_back(entries: pa.Table, schema: TableSchema) -> pa.ChunkedArray:
    """Of each file whether rows of the kinds -U and -D may be in it.

    `_DELETE_ROW_COUNT` counts them. Older writers do not tell; and pypaimon, whose rows have these kinds where the
    table has a `rowkind.field`, writes them into level 0 and counts none. Paimon's own readers never believe level 0.

    Args:
        entries: The files, `level` and `delete_row_count` among their columns.
        schema: Of the table.
    """
    told = pc.not_equal(pc.fill_null(entries["delete_row_count"], 1), 0)
    return pc.or_(told, pc.equal(entries["level"], 0)) if ROWKIND_FIELD.get(schema.options) else told


def _may_tie(entries: pa.Table, section: npt.NDArray[np.int64], merging: npt.NDArray[np.bool_]) -> bool:
    """Whether ranges of sequence numbers meet within a section: two writers at a time may give the same numbers."""
    rows = np.flatnonzero(merging)
    ends = np.stack([entries[f"{end}_sequence_number"].to_numpy()[rows] for end in ("min", "max")])
    # As ranks, set apart by section: the numbers themselves may be times, whose products leave 64 bits.
    ranks = np.unique(ends, return_inverse=True)[1].reshape(ends.shape).astype(np.int64)
    low, high = ranks + section[rows] * (ends.size + 1)
    order = np.lexsort((high, low))
    highest = np.maximum.accumulate(high[order])
    return bool((low[order][1:] <= highest[:-1]).any())


def key_sections(entries: pa.Table, partitions: Partitions, schema: TableSchema) -> npt.NDArray[np.int64]:
    """The section of each file, numbered bucket by bucket in the order of keys.

    Raises:
        CorruptTable: As of `number_sections`.
    """
    count = entries.num_rows
    low, high = _ranks(entries, schema)
    bucket = np.asarray(entries["bucket"].to_numpy(), np.int64)
    places = np.asarray(partitions.indices.to_numpy(zero_copy_only=False), np.int64)
    groups = np.unique(np.stack([places, bucket]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    # Ranges of different buckets are set apart, so that one running maximum serves all.
    apart = groups * (2 * count + 1)
    low, high = low + apart, high + apart
    order = np.lexsort((high, low))
    highest = np.maximum.accumulate(high[order])
    begins = np.ones(count, bool)
    begins[1:] = low[order][1:] > highest[:-1]
    section = np.empty(count, np.int64)
    section[order] = np.cumsum(begins) - 1
    return section


def _ranks(entries: pa.Table, schema: TableSchema) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The ranks of the smallest and the greatest key of each file among all of them."""
    fields = [schema.find(name) for name in schema.trimmed_primary_keys]
    types = [(to_logical(f.type), f.type.precision) for f in fields if f is not None]
    if len(types) != len(fields):
        raise CorruptTable("the primary key names a column that does not exist", code="invalid-schema")
    both = pa.concat_arrays([entries["min_key"].combine_chunks(), entries["max_key"].combine_chunks()])
    columns = decode_rows(both, types)
    # `primary-key.nullable`: Paimon's comparators have nulls first, so before each column stands whether it is known.
    ordered = [part for column in columns for part in (pc.is_valid(column), column)]
    table = pa.table(ordered, names=[str(i) for i in range(len(ordered))])
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names])
    sorted_table = table.take(order)
    differs = np.zeros(len(both), bool)
    for column in sorted_table.columns:
        here = column.combine_chunks()
        unequal = pc.fill_null(pc.not_equal(here.slice(1), here.slice(0, len(here) - 1)), False)
        differs[1:] |= np.asarray(unequal.to_numpy(zero_copy_only=False), bool)
    ranks = np.empty(len(both), np.int64)
    ranks[order.to_numpy()] = np.cumsum(differs)
    count = entries.num_rows
    low, high = ranks[:count].copy(), ranks[count:].copy()
    # Writers differ on where NaN stands among keys: such a range may be any.
    for column in (c for c in columns if pa.types.is_floating(c.type)):
        is_nan = np.asarray(pc.fill_null(pc.is_nan(column), False).to_numpy(zero_copy_only=False), bool)
        anywhere = is_nan[:count] | is_nan[count:]
        low[anywhere], high[anywhere] = 0, 2 * count
    return low, high

"""Which files of a table with a primary key must be merged with which: sections whose key ranges do not touch.

Specification: `org.apache.paimon.mergetree.compact.IntervalPartition`. Ranges of all buckets are compared at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.binary_row import decode_rows
from alluvium.errors import CorruptTable
from alluvium.paimon.partitions import Partitions
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema


def sections(
    entries: pa.Table, partitions: Partitions, schema: TableSchema
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The section of each file, and whether it is alone in it without a row that takes one back.

    Raises:
        CorruptTable: A key range is no row of the key's columns.
    """
    count = entries.num_rows
    if not count:
        return np.zeros(0, np.int64), np.zeros(0, bool)
    low, high = _ranks(entries, schema)
    bucket = np.asarray(entries["bucket"].to_numpy(), np.int64)
    places = np.asarray(partitions.indices.to_numpy(zero_copy_only=False), np.int64)
    groups = np.unique(np.stack([places, bucket]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    # Ranks of different buckets are set apart, so that one running maximum serves all.
    apart = groups * (2 * count + 1)
    low, high = low + apart, high + apart
    order = np.lexsort((high, low))
    highest = np.maximum.accumulate(high[order])
    begins = np.ones(count, bool)
    begins[1:] = low[order][1:] > highest[:-1]
    section = np.empty(count, np.int64)
    section[order] = np.cumsum(begins) - 1
    alone = np.bincount(section)[section] == 1
    deletes = pc.fill_null(entries["delete_row_count"], 1).to_numpy()
    return section, alone & (deletes == 0)


def _ranks(entries: pa.Table, schema: TableSchema) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The ranks of the smallest and the greatest key of each file among all of them."""
    fields = [schema.find(name) for name in schema.trimmed_primary_keys]
    types = [(to_logical(f.type), f.type.precision) for f in fields if f is not None]
    if len(types) != len(fields):
        raise CorruptTable("the primary key names a column that does not exist", code="invalid-schema")
    both = pa.concat_arrays([entries["min_key"].combine_chunks(), entries["max_key"].combine_chunks()])
    columns = decode_rows(both, types)
    table = pa.table({str(i): column for i, column in enumerate(columns)})
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names])
    sorted_table = table.take(order)
    differs = np.zeros(len(both), bool)
    for column in sorted_table.columns:
        here = column.combine_chunks()
        unequal = pc.fill_null(pc.not_equal(here.slice(1), here.slice(0, len(here) - 1)), True)
        differs[1:] |= np.asarray(unequal.to_numpy(zero_copy_only=False), bool)
    ranks = np.empty(len(both), np.int64)
    ranks[order.to_numpy()] = np.cumsum(differs)
    count = entries.num_rows
    return ranks[:count], ranks[count:]

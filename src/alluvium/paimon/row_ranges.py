"""Tables with data evolution: files that hold columns of the same rows, told by ranges of row ids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alluvium.errors import UnsupportedFeature
from alluvium.paimon import options as o
from alluvium.paimon.merge import GROUP, ROW_ID, SEQUENCE
from alluvium.paimon.partitions import Partitions
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField
from alluvium.plan.scan import KeyMerge, SortColumn

#: "files with overlapping row-id ranges are zipped by row id; each column comes from the newest file".
PATCHES = KeyMerge(GROUP, (ROW_ID,), (SortColumn(SEQUENCE),), None, "patch")


def row_ranges(entries: pa.Table, partitions: Partitions) -> npt.NDArray[np.int64]:
    """Of each file the range of row ids that it shares with others of its bucket; -1 where it is alone in it."""
    if entries["first_row_id"].null_count:
        raise UnsupportedFeature(
            "data files without row ids in a table with data evolution", code="unsupported-scan", features=("row-ids",)
        )
    first = entries["first_row_id"].to_numpy()
    last = first + entries["row_count"].to_numpy() - 1
    # Writers of other languages number the rows of each partition from 0: ranges of different buckets are set apart.
    place = np.asarray(partitions.indices.to_numpy(zero_copy_only=False), np.int64)
    group = np.unique(np.stack([place, entries["bucket"].to_numpy()]), axis=1, return_inverse=True)[1].reshape(-1)
    apart = group.astype(np.int64) * (int(last.max()) + 1)
    first, last = first + apart, last + apart
    order = np.lexsort((-last, first))
    highest = np.maximum.accumulate(last[order])
    begins = np.ones(len(order), bool)
    begins[1:] = first[order][1:] > highest[:-1]
    ranges = np.empty(len(order), np.int64)
    ranges[order] = np.cumsum(begins) - 1
    return np.where(np.bincount(ranges)[ranges] == 1, -1, ranges)


def patched_columns(schema: TableSchema, held: dict[int, DataField], file_format: str) -> list[DataField]:
    """The columns that a file of a shared range supplies: those it holds, large values only from files of their own."""
    kinds = (o.BLOB_DESCRIPTOR_FIELD, o.BLOB_EXTERNAL_STORAGE_FIELD, o.BLOB_VIEW_FIELD)
    inline = {name for option in kinds for name in option.get(schema.options)}
    columns = []
    for f in schema.fields:
        apart = f.type.root == "BLOB" and file_format != "blob" and f.name not in inline
        if f.name in schema.partition_keys or (f.id in held and not apart):
            columns.append(f)
    return columns

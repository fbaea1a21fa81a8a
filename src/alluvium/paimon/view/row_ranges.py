"""Tables with data evolution: files that hold columns of the same rows, told by ranges of row ids."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.bitmaps.roaring import window
from alluvium.errors import UnsupportedFeature
from alluvium.paimon.files.partitions import Partitions
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.spec import ROW_ID
from alluvium.paimon.view.merge import GROUP, SEQUENCE
from alluvium.plan.scan import KeyMerge, MaskSource, SortColumn

#: "files with overlapping row-id ranges are zipped by row id; each column comes from the newest file".
PATCHES = KeyMerge(GROUP, (ROW_ID,), (SortColumn(SEQUENCE),), None, "patch")
#: Files of single columns, of large values or vectors: they hold parts of a range; no list of deleted rows is theirs.
IS_APART = r"\.(blob|video)$|\.vector\."


def row_ranges(
    entries: pa.Table, partitions: Partitions, number: int = 0, batches: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int64]:
    """Of each file the range of row ids that it shares with others of its bucket; -1 where it is alone in it.

    Args:
        entries: The files (`SCANNED_ENTRIES`).
        partitions: Theirs.
        number: Of the first range.
        batches: Of each file with which others it shares ranges at all; None: with all of them.
    """
    if entries["first_row_id"].null_count:
        raise UnsupportedFeature(
            "data files without row ids in a table with data evolution", code="unsupported-scan", features=("row-ids",)
        )
    first = entries["first_row_id"].to_numpy()
    last = first + entries["row_count"].to_numpy() - 1
    # Writers of other languages number the rows of each partition from 0: ranges of different buckets are set apart.
    place = np.asarray(partitions.indices.to_numpy(zero_copy_only=False), np.int64)
    batch = np.zeros(len(place), np.int64) if batches is None else batches
    groups = np.stack([place, entries["bucket"].to_numpy(), batch])
    group = np.unique(groups, axis=1, return_inverse=True)[1].reshape(-1)
    apart = group.astype(np.int64) * (int(last.max()) + 1)
    first, last = first + apart, last + apart
    order = np.lexsort((-last, first))
    highest = np.maximum.accumulate(last[order])
    begins = np.ones(len(order), bool)
    begins[1:] = first[order][1:] > highest[:-1]
    ranges = np.empty(len(order), np.int64)
    ranges[order] = np.cumsum(begins) - 1
    return np.where(np.bincount(ranges)[ranges] == 1, -1, ranges + number)


@dataclass(frozen=True, slots=True)
class RangeMasks:
    """Implements `plan.scan.MaskSource` for files that hold columns of the same rows.

    Which rows of a range are gone is kept for one of its files; they are gone from all.

    Attributes:
        masks: Of single files.
        anchors: From `anchors_of`.
    """

    masks: MaskSource
    anchors: pa.Table

    def load_masks(self, files: pa.Table) -> pa.Table:
        names = pc.replace_substring_regex(files["path"], r"^.*/", "").combine_chunks()
        anchors = self.anchors.take(pc.index_in(names, value_set=self.anchors["name"].combine_chunks()))
        asked = files
        for column, source in (("path", "anchor"), ("num_rows", "anchor_rows")):
            asked = asked.set_column(asked.schema.get_field_index(column), column, anchors[source])
        found = self.masks.load_masks(asked)["mask"].to_pylist()
        places = zip(found, anchors["shift"].to_pylist(), files["num_rows"].to_pylist(), strict=True)
        moved = [None if mask is None else window(mask, shift, count) for mask, shift, count in places]
        place = files.schema.get_field_index("mask")
        return files.set_column(place, files.schema.field(place), pa.array(moved, pa.binary()))


def anchors_of(entries: pa.Table, ranges: npt.NDArray[np.int64]) -> pa.Table:
    """Of each file by its `name` the file of its range that deleted rows are kept for (`anchor`; null: there is none),
    how many rows that has (`anchor_rows`), and behind how many of them its own rows begin (`shift`).

    Specification, `DataEvolutionUtils.retrieveAnchorFile`: the oldest of the range's files, those of single columns
    left aside.
    """
    places = np.arange(entries.num_rows)
    names = entries["file_name"].combine_chunks()
    can_be = pc.and_(pc.invert(pc.match_substring_regex(names, IS_APART)), pa.array(ranges >= 0))
    ages = pa.table({"range": ranges, "age": entries["max_sequence_number"], "name": names, "place": places})
    ages = ages.filter(can_be).sort_by([("range", "ascending"), ("age", "ascending"), ("name", "ascending")])
    shared, first = np.unique(ages["range"].to_numpy(), return_index=True)
    oldest = np.full(int(ranges.max()) + 2, -1)
    oldest[shared] = ages["place"].to_numpy()[first]
    chosen = np.where(ranges >= 0, oldest[ranges], places)
    anchor = entries.select(["file_name", "row_count", "first_row_id"]).take(pa.array(chosen, mask=chosen < 0))
    return pa.table(
        {
            "name": names,
            "anchor": anchor["file_name"],
            "anchor_rows": anchor["row_count"],
            "shift": pc.subtract(entries["first_row_id"], anchor["first_row_id"]),
        }
    )


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

"""Deletion vectors of files some of whose rows go: merged with those that are there, in index files of their own.

Specification: spec/paimon-format.md (d), "Deletion-vector index file";
`org.apache.paimon.deletionvectors.append.AppendDeleteFileMaintainer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.bitmaps.bits import union
from alluvium.codecs.bitmaps.roaring import parse_bitmap
from alluvium.paimon.commit.draft import VectorChange
from alluvium.paimon.features.deletion_vectors import (
    INDEX_TYPE,
    VectorMasks,
    new_index_files,
    vector_masks,
)
from alluvium.paimon.files.manifest import read_index_manifest
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms.spec import INDEX_ENTRIES


@dataclass(frozen=True, slots=True)
class EditedFiles:
    """What becomes of live files some of whose rows go.

    Attributes:
        removed: Names of the files that go as a whole.
        masked: Names of those that stay behind a vector, and
        updated: how many of them had one before.
        vectors: What becomes of the vectors.
    """

    removed: pa.Array
    masked: pa.Array
    updated: int
    vectors: VectorChange


def edit_files(snapshot: Snapshot, entries: pa.Table, touched: pa.Table) -> EditedFiles:
    """Carries out what a verb did to live files.

    Args:
        snapshot: Whose files they are.
        entries: The files (`SCANNED_ENTRIES`), one row each of `touched`.
        touched: `plan.changes.TOUCHED_FILES`.

    Raises:
        CorruptTable: A vector that is there is damaged.
    """
    names = entries["file_name"].combine_chunks()
    known = vector_masks(snapshot)
    merged = _merged(known, entries, touched)
    counts = dict(zip(names.to_pylist(), entries["row_count"].to_pylist(), strict=True))
    # A file none of whose rows is left goes as a whole.
    kept = {name: found for name, found in merged.items() if found[1] < counts[name]}
    masked = pa.array(list(kept), pa.string())
    removed = names.filter(pc.invert(pc.is_in(names, value_set=masked)))
    had = set() if known is None else set(known.ranges["name"].to_pylist())
    change = _change(snapshot, known, entries, kept)
    return EditedFiles(removed, masked, len(had.intersection(kept)), change)


def _merged(known: VectorMasks | None, entries: pa.Table, touched: pa.Table) -> dict[str, tuple[bytes, int]]:
    """Of the files that get a mask: all of their rows that are gone, and how many these are."""
    stays = touched["mask"].is_valid()
    names = entries.filter(stays)["file_name"].to_pylist()
    earlier = {} if known is None else known.load(names)
    found = {}
    # One step a file some of whose rows go.
    for name, mask in zip(names, touched.filter(stays)["mask"].to_pylist(), strict=True):
        found[name] = union(mask, earlier.get(name, mask))
    return found


def _change(
    snapshot: Snapshot, known: VectorMasks | None, entries: pa.Table, kept: Mapping[str, tuple[bytes, int]]
) -> VectorChange:
    """New index files in the place of those that have a vector of a file that is touched."""
    touched = set(entries["file_name"].to_pylist())
    before = _index_entries(snapshot)
    goes, others = _replaced(before, touched)
    loaded = {} if known is None else known.load([name for name, _, _ in others])
    by_place: dict[tuple[bytes, int], dict[str, tuple[bytes, int]]] = {}
    places = zip(*(entries[n].to_pylist() for n in ("file_name", "partition", "bucket")), strict=True)
    for name, partition, bucket in places:
        if name in kept:
            by_place.setdefault((partition, bucket), {})[name] = kept[name]
    for name, partition, bucket in others:
        bitmap = loaded[name]
        by_place.setdefault((partition, bucket), {})[name] = (bitmap, parse_bitmap(bitmap).cardinality)
    added, paths = new_index_files(snapshot, by_place)
    return VectorChange(frozenset(goes), entries["file_name"].combine_chunks(), added, paths)


def _index_entries(snapshot: Snapshot) -> pa.Table:
    document = snapshot.document
    if document is None or document.index_manifest is None:
        return INDEX_ENTRIES.empty_table()
    entries = read_index_manifest(snapshot.store, document.index_manifest)
    return entries.filter(pc.equal(entries["index_type"], INDEX_TYPE))


def _replaced(before: pa.Table, touched: set[str]) -> tuple[list[str], list[tuple[str, bytes, int]]]:
    """Index files that have a vector of a touched file, and the vectors of other files that are in them, too."""
    goes, others = [], []
    rows = before.select(["file_name", "partition", "bucket", "ranges"])
    # One step a bucket that has vectors.
    for name, partition, bucket, ranges in zip(*(c.to_pylist() for c in rows.columns), strict=True):
        files = [entry["f0"] for entry in ranges or ()]
        if touched.isdisjoint(files):
            continue
        goes.append(name)
        others += [(file, partition, bucket) for file in files if file not in touched]
    return goes, others

"""What a compaction does to deletion vectors: those of files that are written anew go with them, and rows of levels
above that have a newer one of their key get their bits.

Specification: `org.apache.paimon.deletionvectors.BucketedDvMaintainer`; "One index file per bucket for key tables".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.bitmaps.bits import union
from alluvium.codecs.bitmaps.roaring import parse_bitmap
from alluvium.paimon.commit.draft import VectorChange
from alluvium.paimon.features.deletion_vectors import INDEX_TYPE, new_index_files, vector_masks
from alluvium.paimon.files.manifest import read_index_manifest
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms import options as o
from alluvium.paimon.upkeep.keyed.compaction import Compaction

_Place = tuple[bytes, int]


def changed_vectors(compaction: Compaction, gone: Mapping[int, tuple[bytes, int]]) -> VectorChange | None:
    """New index files of the buckets whose vectors change; None: the table has none.

    Args:
        compaction: What is done to the files.
        gone: By the number of a file the rows of it (a bitmap in the portable 64-bit format, and how many) that are
            not their keys' any more.
    """
    snapshot, entries = compaction.snapshot, compaction.entries
    known = vector_masks(snapshot)
    if known is None and not o.DELETION_VECTORS.get(snapshot.schema.options):
        return None
    numbers = sorted(gone)
    leaving, masked = entries.filter(compaction.is_rewritten), entries.take(pa.array(numbers, pa.int64()))
    before = _index_files(snapshot, pa.concat_tables([compaction.before, masked]))
    written = set(leaving["file_name"].to_pylist())
    listed = {place: [name for _, names in files for name in names] for place, files in before.items()}
    had = {} if known is None else known.load([name for names in listed.values() for name in names])
    # One step a bucket with vectors, and one a file that gets bits.
    after = {
        place: {name: (had[name], parse_bitmap(had[name]).cardinality) for name in names if name not in written}
        for place, names in listed.items()
    }
    changed = {place for place, names in listed.items() if written.intersection(names)}
    columns = (masked[name].to_pylist() for name in ("partition", "bucket", "file_name"))
    for number, partition, bucket, name in zip(numbers, *columns, strict=True):
        bitmap = gone[number][0]
        after.setdefault((partition, bucket), {})[name] = union(bitmap, had.get(name, bitmap))
        changed.add((partition, bucket))
    replaced = frozenset(name for place in changed for name, _ in before.get(place, ()))
    added, contents = new_index_files(snapshot, {place: after[place] for place in sorted(changed) if after[place]})
    # Files that are written anew are looked for with all that go.
    change = VectorChange(replaced, masked["file_name"].combine_chunks(), added, contents)
    places = pa.concat_tables([table.select(["partition", "bucket"]) for table in (compaction.before, masked)])
    return replace(change, places=places, seen=frozenset(name for files in before.values() for name, _ in files))


def _index_files(snapshot: Snapshot, touched: pa.Table) -> dict[_Place, list[tuple[str, list[str]]]]:
    """The index files of the buckets of some files, and of which data files each has vectors."""
    document = snapshot.document
    if document is None or document.index_manifest is None:
        return {}
    entries = read_index_manifest(snapshot.store, document.index_manifest)
    entries = entries.filter(pc.equal(entries["index_type"], INDEX_TYPE))
    places = set(zip(touched["partition"].to_pylist(), touched["bucket"].to_pylist(), strict=True))
    found: dict[_Place, list[tuple[str, list[str]]]] = {}
    columns = (entries[name].to_pylist() for name in ("partition", "bucket", "file_name", "ranges"))
    for partition, bucket, name, ranges in zip(*columns, strict=True):
        if (partition, bucket) in places:
            found.setdefault((partition, bucket), []).append((name, [entry["f0"] for entry in ranges or ()]))
    return found

"""Draft plus base to snapshot, with the manifests that it names. Called anew for each base: that is the rebase.

Specification: spec/paimon-format.md (e); `FileStoreCommitImpl.tryCommitOnce`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commit.loop import Entry
from alluvium.errors import CommitConflict, Conflict, InvalidRequest, UnsupportedFeature
from alluvium.expr.skipping.whole import decide_whole
from alluvium.paimon.commit.draft import READS, Draft, Replaced, VectorChange
from alluvium.paimon.commit.standing import (
    ensure_all_there,
    ensure_avro,
    ensure_fits,
    ensure_masked_there,
    ensure_newest,
    ensure_ranges_whole,
    ensure_shown,
    ensure_unmoved,
    gone,
)
from alluvium.paimon.features.deletion_vectors import INDEX_TYPE as VECTORS
from alluvium.paimon.features.row_tracking import is_tracked, with_row_ids
from alluvium.paimon.files.hash_index import FOLDER as HASH_FOLDER
from alluvium.paimon.files.hash_index import INDEX_TYPE as HASH
from alluvium.paimon.files.manifest import live_entries, load_manifest_list, read_entries, read_index_manifest
from alluvium.paimon.files.manifest_merge import ManifestWriter, merge_all_manifests, merge_manifests
from alluvium.paimon.files.manifest_write import (
    codec_of,
    format_index_manifest,
    format_manifest_list,
    joined_manifest_lists,
)
from alluvium.paimon.files.partition_bounds import partition_entries
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.files.recent_lists import remember
from alluvium.paimon.log.names import directory
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms.options import (
    BUCKET,
    POSTPONE_BUCKET,
)
from alluvium.paimon.terms.spec import ENTRIES, INDEX_ENTRIES, MANIFESTS, SnapshotDocument, format_snapshot
from alluvium.paimon.view.stats import EntryStatistics

#: The version of snapshot files that is written.
_VERSION = 3
#: Where statistics of whole states lie.
STATISTICS = "statistics"
#: Made once: an array a column takes as long as reading a small manifest.
_NO_ENTRIES, _NO_MANIFESTS = ENTRIES.empty_table(), MANIFESTS.empty_table()


def assemble(draft: Draft, base: Snapshot) -> Entry:
    """The snapshot after the base, and its manifests.

    Args:
        draft: What to commit.
        base: What it lands on.

    Raises:
        CommitConflict: The table was altered so that the files of the draft do not fit any more, or the base is not its
            newest state (`"history-lost"`).
        InvalidRequest: The draft's partitions have other numbers of buckets (`"bucket-change"`).
    """
    ensure_fits(draft, base)
    ensure_unmoved(draft, base)
    ensure_avro(base)
    before = base.document
    number = 1 if before is None else before.id + 1
    if not base.at.is_latest:
        # Else a listing has found it a moment ago: whoever comes between that and the put is an ordinary race.
        ensure_newest(base, number)
    lists, manifests = _manifests(base)
    removed = removed_entries(base, draft.replaced)
    ensure_all_there(draft, base, removed)
    ensure_masked_there(draft, base)
    ensure_shown(draft, base, removed)
    ensure_ranges_whole(draft, base, removed)
    added, next_row_id = _numbered_entries(draft, base, manifests, removed)
    writer = ManifestWriter(base.schema)
    codec = codec_of(base.schema.options)
    merge = merge_all_manifests if draft.merges_manifests else merge_manifests
    base_list = _list_before(lists, manifests, merge(base.store, manifests, writer), codec)
    delta_list = _formatted(writer.add_entries(pa.concat_tables([_deletions(removed), added])), codec)
    told_list = None
    if draft.told is not None and draft.told.num_rows:
        told_list = _formatted(writer.add_entries(draft.told), codec)
    delta = _rows(added) - _rows(removed)
    document = SnapshotDocument(
        version=_VERSION,
        id=number,
        schema_id=_schema_id(draft, base),
        base_manifest_list=writer.add("manifest-list", base_list),
        base_manifest_list_size=len(base_list),
        delta_manifest_list=writer.add("manifest-list", delta_list),
        delta_manifest_list_size=len(delta_list),
        changelog_manifest_list=None if told_list is None else writer.add("manifest-list", told_list),
        changelog_manifest_list_size=None if told_list is None else len(told_list),
        index_manifest=_index_manifest(base, removed, draft, writer),
        commit_user=draft.user,
        commit_identifier=draft.identifier,
        commit_kind=_kind(draft),
        # Time travel looks for a time among snapshots in the order of their ids.
        time_millis=max(int(time.time() * 1000), before.time_millis if before is not None else 0),
        # "latestSnapshot.logOffsets()": where readers of a log beside the table go on from.
        log_offsets=None if before is None else before.log_offsets,
        total_record_count=_total(base) + delta,
        delta_record_count=delta,
        changelog_record_count=None if told_list is None or draft.told is None else _rows(draft.told),
        watermark=_watermark(draft, before),
        statistics=_statistics(base, draft, writer),
        properties=_properties(draft) or None,
        next_row_id=next_row_id,
    )
    path = f"{directory(base.branch, 'snapshot')}/snapshot-{number}"
    return Entry(number, path, format_snapshot(document), tuple(writer.parts))


def _numbered_entries(draft: Draft, base: Snapshot, manifests: pa.Table, removed: pa.Table) -> tuple[pa.Table, int]:
    """The new entries with the numbers and ids of their rows, and the id that the next row will have."""
    next_row_id = (0 if base.document is None else base.document.next_row_id) or 0
    if draft.restored is not None:
        # Ids are never given twice, be it that the rows that had them are gone.
        return draft.added, max(next_row_id, draft.restored.next_row_id)
    added = _placed(draft, base, manifests, removed)
    if is_tracked(base.schema.options):
        return with_row_ids(added, (base.version or 0) + 1, next_row_id, draft.compacts)
    return added, next_row_id


def _schema_id(draft: Draft, base: Snapshot) -> int:
    """The newest, but for a state that is there again, or is told in fewer manifests: travelling to it shows what it
    showed.
    """
    # What is there again has its manifests merged, too.
    again = draft.restored or (base if draft.merges_manifests else None)
    document = None if again is None else again.document
    return base.schema.id if document is None else document.schema_id


def _watermark(draft: Draft, before: SnapshotDocument | None) -> int | None:
    restored = None if draft.restored is None else draft.restored.document
    if restored is not None:
        return restored.watermark
    return None if before is None else before.watermark


def _kind(draft: Draft) -> str:
    if draft.statistics is not None:
        return "ANALYZE"
    return "COMPACT" if draft.compacts else "APPEND" if draft.replaced is None else "OVERWRITE"


def _properties(draft: Draft) -> dict[str, str]:
    """The draft's, and of rows of keys whether they have read: who numbers others at the same time looks at that."""
    if not draft.schema.primary_keys or draft.compacts or not draft.added.num_rows or draft.restored is not None:
        return dict(draft.properties)
    return {**draft.properties, READS: "true" if draft.reads else "false"}


def _statistics(base: Snapshot, draft: Draft, writer: ManifestWriter) -> str | None:
    """The document that describes the state: "inherited if the schema is unchanged"."""
    if draft.statistics is not None:
        name = f"stat-{uuid.uuid4()}-0"
        writer.parts.append((f"{STATISTICS}/{name}", draft.statistics))
        return name
    if draft.restored is not None and draft.restored.document is not None:
        return draft.restored.document.statistics
    before = base.document
    return before.statistics if before is not None and before.schema_id == base.schema.id else None


def removed_entries(base: Snapshot, replaced: Replaced | None) -> pa.Table:
    """The live entries (`ENTRIES`) that an overwrite takes out of a base."""
    if replaced is None or base.document is None:
        return _NO_ENTRIES
    document = base.document
    lists = (document.base_manifest_list, document.delta_manifest_list)
    # Whole: "a deletion [...] by the file's identity", of which readers look at a part only.
    entries = base.loaded("whole entries", lambda: live_entries(read_entries(base.store, lists)))
    return in_scope(base, entries, replaced)


def in_scope(base: Snapshot, entries: pa.Table, replaced: Replaced | None) -> pa.Table:
    """Those of some entries that lie where an overwrite takes files out.

    Raises:
        UnsupportedFeature: Only rows can tell, of some file (`"replace-where-undecided"`).
    """
    if replaced is None:
        return entries.slice(0, 0)
    if replaced.files is not None:
        return entries.filter(pc.is_in(entries["file_name"], value_set=replaced.files))
    if replaced.partitions is not None:
        return entries.filter(pc.is_in(entries["partition"], value_set=replaced.partitions))
    if replaced.where is None or not entries.num_rows:
        return entries
    values = EntryStatistics(base, entries, partitions_of(entries, base.schema))
    found = decide_whole(replaced.where, values, base.time_zone)
    if not found.is_decided:
        raise UnsupportedFeature(
            "replaceWhere by a condition that partition keys do not decide without Spark",
            code="replace-where-undecided",
            path=entries.filter(found.undecided)["file_name"][0].as_py(),
            hint="compare partition keys with constants; nothing was replaced",
        )
    return entries.filter(found.every)


def _placed(draft: Draft, base: Snapshot, manifests: pa.Table, removed: pa.Table) -> pa.Table:
    """The new entries of buckets, their sequence numbers behind those of the files that are there.

    "Append writer: sequence = running row count of the bucket". Where rows have no bucket each file counts for itself.
    """
    added = draft.added
    if BUCKET.get(draft.schema.options) <= 0 or not added.num_rows or base.document is None:
        if draft.compacts and BUCKET.get(draft.schema.options) == POSTPONE_BUCKET and base.document is not None:
            _ensure_divided_alike(base, added, removed)
        added = _behind_waiting(base, added)
        return added if draft.schema.primary_keys else _numbered(added, None)
    partitions = pc.unique(added["partition"].combine_chunks())
    live = partition_entries(base.store, manifests, base.schema, partitions)
    if removed.num_rows:
        live = live.filter(pc.invert(pc.is_in(live["file_name"], value_set=removed["file_name"].combine_chunks())))
    if not draft.compacts:
        _ensure_buckets(live, added, draft)
    # Rows of keys have their numbers with them.
    return added if draft.schema.primary_keys else _numbered(added, live)


def _numbered(added: pa.Table, live: pa.Table | None) -> pa.Table:
    if not added.num_rows or added["total_buckets"][0].as_py() <= 0:
        return added
    keys = ["partition", "bucket"]
    nothing = added.select([*keys, "max_sequence_number"]).slice(0, 0)
    known = nothing if live is None else live.select([*keys, "max_sequence_number"])
    tops = known.group_by(keys).aggregate([("max_sequence_number", "max")])
    top = {(row["partition"], row["bucket"]): row["max_sequence_number_max"] for row in tops.to_pylist()}
    counts = np.asarray(added["row_count"].to_numpy(), np.int64)
    first = np.zeros(len(counts), np.int64)
    places = zip(added["partition"].to_pylist(), added["bucket"].to_pylist(), strict=True)
    for index, place in enumerate(places):
        first[index] = top.get(place, -1) + 1
        top[place] = int(first[index] + counts[index]) - 1
    added = added.set_column(
        added.schema.get_field_index("min_sequence_number"), "min_sequence_number", pa.array(first)
    )
    last = pa.array(first + counts - 1)
    return added.set_column(added.schema.get_field_index("max_sequence_number"), "max_sequence_number", last)


def _ensure_buckets(live: pa.Table, added: pa.Table, draft: Draft) -> None:
    """ "total buckets of a partition unchanged (except OVERWRITE)" """
    wanted = added["total_buckets"][0].as_py()
    others = live.filter(pc.not_equal(pc.fill_null(live["total_buckets"], wanted), wanted))
    if others.num_rows:
        there = others["total_buckets"][0].as_py()
        raise InvalidRequest(
            f"the table has {wanted} buckets, but partitions that are written to have {there}",
            code="bucket-change",
            hint="overwrite these partitions as a whole, which gives them the new number of buckets",
        )


def _ensure_divided_alike(base: Snapshot, added: pa.Table, removed: pa.Table) -> None:
    """Rows that waited come into as many buckets as their partition has by now.

    Raises:
        CommitConflict: Somebody else has divided it meanwhile: keys would be in two buckets.
    """
    keys = ["partition", "total_buckets"]
    live = base.entries.filter(pc.greater_equal(base.entries["bucket"], 0)).select([*keys, "file_name"])
    live = live.filter(pc.invert(pc.is_in(live["file_name"], value_set=removed["file_name"].combine_chunks())))
    own = added.select(keys).group_by(keys).aggregate([]).rename_columns({"total_buckets": "own"})
    others = live.join(own, "partition", join_type="inner")
    others = others.filter(pc.not_equal(pc.fill_null(others["total_buckets"], others["own"]), others["own"]))
    if others.num_rows:
        raise gone(f"partitions have {others['total_buckets'][0].as_py()} buckets by now", base)


def _behind_waiting(base: Snapshot, added: pa.Table) -> pa.Table:
    """Files of rows that wait are divided in the order of their times, and clocks go back, or differ: who commits later
    is later.
    """
    waits = pc.equal(added["bucket"], POSTPONE_BUCKET)
    if not pc.any(waits, min_count=0).as_py():
        return added
    last = pc.max(base.entries.filter(pc.equal(base.entries["bucket"], POSTPONE_BUCKET))["creation_time"])
    own = added["creation_time"].combine_chunks()
    if last.as_py() is None or not pc.any(pc.less_equal(own, last), min_count=0).as_py():
        return added
    next_one = pc.add(last, pa.scalar(1, pa.duration("ms")))
    place = added.schema.get_field_index("creation_time")
    return added.set_column(place, ENTRIES.field(place), pc.if_else(waits, pc.max_element_wise(own, next_one), own))


def _formatted(manifests: pa.Table, codec: str) -> bytes:
    """A manifest list, which the next commit of this process reads."""
    data = format_manifest_list(manifests, codec)
    remember(data, manifests)
    return data


def _list_before(lists: Sequence[tuple[str, bytes]], before: pa.Table, after: pa.Table, codec: str) -> bytes:
    """The list of the manifests (`MANIFESTS`) that were there, be it that some were merged."""
    joined = joined_manifest_lists(lists, codec) if after is before else None
    if joined is None:
        return _formatted(after, codec)
    remember(joined, after)
    return joined


def _manifests(base: Snapshot) -> tuple[list[tuple[str, bytes]], pa.Table]:
    """The manifest lists of a snapshot, name and bytes, and their manifests (`MANIFESTS`), oldest first."""
    if base.document is None:
        return [], _NO_MANIFESTS
    names = (base.document.base_manifest_list, base.document.delta_manifest_list)
    found = [load_manifest_list(base.store, name) for name in names]
    return [(name, data) for name, (data, _) in zip(names, found, strict=True)], pa.concat_tables(
        [manifests for _, manifests in found]
    )


def _deletions(removed: pa.Table) -> pa.Table:
    """Entries that delete files."""
    place = removed.schema.get_field_index("kind")
    return removed.set_column(place, ENTRIES.field("kind"), pa.repeat(pa.scalar(1, pa.int8()), removed.num_rows))


def _rows(entries: pa.Table) -> int:
    return int(pc.sum(entries["row_count"]).as_py() or 0)


def _total(base: Snapshot) -> int:
    """Rows of the base; old snapshots do not say how many they are."""
    if base.document is None:
        return 0
    total = base.document.total_record_count
    return _rows(base.entries) if total is None else total


def _index_manifest(base: Snapshot, removed: pa.Table, draft: Draft, writer: ManifestWriter) -> str | None:
    """The index files of the snapshot: those of the base, but for partitions that are taken out, and new ones."""
    before = None if base.document is None else base.document.index_manifest
    if draft.restored is not None:
        restored = draft.restored.indexes
        if not restored.num_rows:
            return None
        return writer.add("index-manifest", format_index_manifest(restored, codec_of(base.schema.options)))
    replaces = draft.replaced is not None and removed.num_rows > 0
    if draft.index is None and draft.edits is None and (before is None or not replaces):
        return before
    entries = INDEX_ENTRIES.empty_table() if before is None else read_index_manifest(base.store, before)
    remaining = entries
    if draft.edits is not None:
        remaining = _with_vectors(entries, draft.edits, base, writer)
        if not draft.edits.replaced and not draft.edits.added.num_rows:
            return before
    elif replaces and draft.replaced is not None and draft.replaced.files is None:
        is_taken_out = pc.is_in(entries["partition"], value_set=removed["partition"].combine_chunks())
        remaining = entries.filter(pc.invert(is_taken_out))
    if draft.index is not None:
        remaining = _with_hashes(remaining, draft, base, writer)
    if remaining.num_rows == entries.num_rows and remaining.equals(entries):
        return before
    if not remaining.num_rows:
        return None
    return writer.add("index-manifest", format_index_manifest(remaining, codec_of(base.schema.options)))


def _with_vectors(entries: pa.Table, edits: VectorChange, base: Snapshot, writer: ManifestWriter) -> pa.Table:
    """Index files with the vectors of files whose rows change.

    Raises:
        CommitConflict: Somebody else deleted rows of the files, too (`"concurrent-delete-delete"`).
    """
    vectors = pc.equal(entries["index_type"], VECTORS)
    goes = pc.and_(vectors, pc.is_in(entries["file_name"], value_set=pa.array(sorted(edits.replaced), pa.string())))
    touched = _vectors_of(entries.filter(pc.and_(vectors, pc.invert(goes))))
    if entries.filter(goes).num_rows != len(edits.replaced) or touched.intersection(edits.files.to_pylist()):
        raise gone("rows of files whose rows change were deleted", base)
    if edits.places is not None:
        here = entries.filter(pc.and_(vectors, pc.is_in(_places(entries), value_set=_places(edits.places))))
        if frozenset(here["file_name"].to_pylist()) != edits.seen:
            raise gone("rows of files that are to be compacted were deleted", base)
    writer.parts += list(edits.contents.items())
    return pa.concat_tables([entries.filter(pc.invert(goes)), edits.added])


def _vectors_of(entries: pa.Table) -> set[str]:
    """Names of the data files that have a vector."""
    members = pc.list_flatten(entries["ranges"].combine_chunks())
    return set(pc.struct_field(members, "f0").to_pylist())


def _with_hashes(entries: pa.Table, draft: Draft, base: Snapshot, writer: ManifestWriter) -> pa.Table:
    """Index files with those of a draft in the place of the ones of the same buckets.

    Raises:
        CommitConflict: Somebody else assigned keys to buckets since they were read (`"concurrent-index"`): the same key
            may be in another one.
    """
    index = draft.index
    assert index is not None, "the draft has keys"
    hashes = entries.filter(pc.equal(entries["index_type"], HASH))
    there = hashes.filter(pc.is_in(hashes["partition"], value_set=index.partitions))
    if draft.replaced is None and index.seen != frozenset(there["file_name"].to_pylist()):
        message = "another writer has assigned keys of the same partitions to buckets"
        raise CommitConflict(
            message,
            conflicts=[Conflict("concurrent-index", base.version or 0, None, message)],
            code="concurrent-index",
            hint="repeat the operation",
        )
    writer.parts += [(f"{HASH_FOLDER}/{name}", content) for name, content in index.contents.items()]
    goes = pc.is_in(_places(entries), value_set=_places(index.added))
    if draft.replaced is not None:
        # All keys were assigned anew. Where rows were deleted and compacted away there are no files, but keys.
        goes = pc.is_in(entries["partition"], value_set=index.partitions)
    is_replaced = pc.and_(pc.equal(entries["index_type"], HASH), goes)
    return pa.concat_tables([entries.filter(pc.invert(is_replaced)), index.added])


def _places(entries: pa.Table) -> pa.Array:
    """Partition and bucket of each entry, as one value."""
    buckets = entries["bucket"].cast(pa.string()).cast(pa.binary())
    return pc.binary_join_element_wise(entries["partition"], buckets, b"/").combine_chunks()

"""Which files of a snapshot a reader wants, and which of them hold rows that merge with each other.

Specification: spec/paimon-format.md (d); `org.apache.paimon.table.source`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.expr.skipping.prune import prune
from alluvium.expr.tree import Expression, column_paths, conjunction, conjuncts
from alluvium.paimon.files.partitions import Partitions, partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.options import POSTPONE_BUCKET
from alluvium.paimon.terms.spec import ROW_ID
from alluvium.paimon.view.buckets import in_bucket, keeps_buckets, wanted_hash
from alluvium.paimon.view.merge import FIRST_ROW, GROUP, merge_engine
from alluvium.paimon.view.sections import Sections, number_sections
from alluvium.paimon.view.stats import EntryStatistics


@dataclass(frozen=True, slots=True)
class Selection:
    """Some files.

    Attributes:
        entries: Schema `SCANNED_ENTRIES`.
        partitions: Theirs.
        sections: The section of each file in which its rows merge; None: rows are independent.
        first: The number that the first section has, or will have where it is not known yet which there are.
        by_partition: How many files were left out by their partition, and
        by_statistics: by their statistics.
        batches: Of each file with which others its rows may be one at all, in tables with data evolution; None: with
            all.
    """

    entries: pa.Table
    partitions: Partitions
    sections: Sections | None = None
    first: int = 0
    by_partition: int = 0
    by_statistics: int = 0
    batches: npt.NDArray[np.int64] | None = None

    def kept(self, keep: pa.BooleanArray, schema: TableSchema) -> Selection:
        """The files whose flag is set."""
        entries = self.entries.filter(keep)
        sections = None if self.sections is None else self.sections.kept(keep)
        batches = None if self.batches is None else self.batches[keep.to_numpy(zero_copy_only=False)]
        partitions = partitions_of(entries, schema)
        return replace(self, entries=entries, partitions=partitions, sections=sections, batches=batches)


def visible_entries(snapshot: Snapshot) -> pa.Table:
    """The files that readers of the state see.

    Specification: "Deletion vectors on, or merge-engine first-row: batch reads use only level>0 files".
    """
    entries = snapshot.entries
    entries = entries.filter(pc.not_equal(entries["bucket"], POSTPONE_BUCKET))
    lowest = snapshot.lowest_level
    if lowest is None:
        lowest = 1 if snapshot.schema.primary_keys and not merges_on_read(snapshot) else 0
    return entries.filter(pc.greater_equal(entries["level"], lowest)) if lowest else entries


def merges_on_read(snapshot: Snapshot) -> bool:
    """Whether rows of a table with a primary key merge while reading."""
    if snapshot.lowest_level is not None:
        return bool(snapshot.schema.primary_keys)
    return shows_new(snapshot.schema)


def shows_new(schema: TableSchema) -> bool:
    """Whether readers see the rows of keys that no compaction has seen."""
    if not schema.primary_keys:
        return False
    if merge_engine(schema) == FIRST_ROW:
        return False
    return not o.DELETION_VECTORS.get(schema.options) or o.DELETION_VECTORS_MERGE_ON_READ.get(schema.options)


def hidden(schema: TableSchema, entries: pa.Table) -> pa.Table:
    """Of files of keys those whose rows readers see after a compaction only: they wait for it, or are new."""
    waits, new = pc.equal(entries["bucket"], POSTPONE_BUCKET), pc.equal(entries["level"], 0)
    return entries.filter(waits if shows_new(schema) else pc.or_(waits, new))


def with_new_rows(snapshot: Snapshot) -> Snapshot:
    """The state as verbs over rows see it: with the rows of keys that readers are shown by a compaction only.

    They are committed, and older than what a verb writes: made without them, its rows would hide them for ever.
    """
    if not snapshot.schema.primary_keys or merges_on_read(snapshot) or merge_engine(snapshot.schema) == FIRST_ROW:
        return snapshot
    if not pc.any(pc.equal(snapshot.entries["level"], 0), min_count=0).as_py():
        return snapshot
    shown = {o.DELETION_VECTORS_MERGE_ON_READ.key: "true"}
    schema = replace(snapshot.schema, options={**snapshot.schema.options, **shown})
    # What else was computed of the other view is not true of this one.
    loaded: dict[object, pa.Table | TableSchema | Snapshot] = {"entries": snapshot.entries}
    return replace(snapshot, schema=schema, asked={**snapshot.asked, **shown}, _loaded=loaded)


def as_streams_see(snapshot: Snapshot, lowest_level: int = 0) -> Snapshot:
    """The state with the rows of keys that batch readers are shown by a compaction only.

    Not by an option: the merge engine `first-row` has none, and what a user sets is about batches.

    Args:
        snapshot: The state.
        lowest_level: Of the levels whose files count.
    """
    # What else was computed of the other view is not true of this one.
    return replace(snapshot, lowest_level=lowest_level if snapshot.schema.primary_keys else None, _loaded={})


def is_data_evolution(snapshot: Snapshot) -> bool:
    return o.DATA_EVOLUTION.get(snapshot.schema.options)


def select_files(snapshot: Snapshot, where: Expression | None) -> Selection:
    """Skips files that cannot hold a row for which `where` is true."""
    entries = visible_entries(snapshot)
    if not merges_on_read(snapshot):
        return narrowed(snapshot, unmerged(snapshot, entries), where)
    # Asked again and again with other predicates: sections are a matter of all files.
    numbers = snapshot.loaded("sections", lambda: _numbered(snapshot, entries).numbers)
    return narrowed(snapshot, replace(unmerged(snapshot, entries), sections=Sections(numbers)), where)


def unmerged(snapshot: Snapshot, entries: pa.Table) -> Selection:
    """Files each row of which is read as it is."""
    return Selection(entries, partitions_of(entries, snapshot.schema))


def in_sections(snapshot: Snapshot, entries: pa.Table, first: int = 0) -> Selection:
    """Files with their sections, where rows merge.

    The numbers are taken before any file is skipped: an engine asks again with a sharper predicate, and must find a
    section under its number.

    Args:
        snapshot: Whose files they are.
        entries: They.
        first: The number of the first section.
    """
    sections = _numbered(snapshot, entries, first) if merges_on_read(snapshot) else None
    return replace(unmerged(snapshot, entries), sections=sections, first=first)


def _numbered(snapshot: Snapshot, entries: pa.Table, first: int = 0) -> Sections:
    return number_sections(entries, partitions_of(entries, snapshot.schema), snapshot.schema, first)


def narrowed(snapshot: Snapshot, selection: Selection, where: Expression | None) -> Selection:
    """What a predicate leaves of files."""
    schema, zone = snapshot.schema, snapshot.time_zone
    if selection.sections is not None and (sections_asked := _about(where, (GROUP,))) is not None:
        # An engine's tasks read some sections each: the files of the others are theirs, not skipped.
        selection = selection.kept(prune(sections_asked, selection.sections, zone), schema)
    before = selection.entries.num_rows
    on_partitions = _about(where, schema.partition_keys)
    if on_partitions is not None and before:
        selection = selection.kept(prune(on_partitions, _statistics(snapshot, selection), zone), schema)
    by_partition = before - selection.entries.num_rows
    selection = _in_buckets(snapshot, selection, where)
    left = selection.entries.num_rows
    if is_data_evolution(snapshot):
        # Files of a range are told apart from others by their ids alone.
        where = _about(where, (ROW_ID,))
    if where is not None and left:
        selection = selection.kept(_may_hold(snapshot, selection, where), schema)
    return replace(selection, by_partition=by_partition, by_statistics=left - selection.entries.num_rows)


def _statistics(snapshot: Snapshot, selection: Selection) -> EntryStatistics:
    return EntryStatistics(snapshot, selection.entries, selection.partitions)


def _may_hold(snapshot: Snapshot, selection: Selection, where: Expression) -> pa.BooleanArray:
    schema, statistics = snapshot.schema, _statistics(snapshot, selection)
    keep = prune(where, statistics, snapshot.time_zone)
    if selection.sections is None:
        return keep
    # "Value predicates must not prune single overlapping files; key predicates may."
    on_keys = _about(where, (*schema.primary_keys, *schema.partition_keys))
    everything = pa.repeat(pa.scalar(True), selection.entries.num_rows)
    by_key = everything if on_keys is None else prune(on_keys, statistics, snapshot.time_zone)
    return pc.if_else(pa.array(selection.sections.merges), by_key, keep)


def _in_buckets(snapshot: Snapshot, selection: Selection, where: Expression | None) -> Selection:
    """Only files of buckets that rows for which `where` is true can be in."""
    bucket_of = None if where is None else wanted_hash(snapshot.schema, where)
    if bucket_of is None or not selection.entries.num_rows or not keeps_buckets(snapshot):
        return selection
    keep = in_bucket(selection.entries, bucket_of)
    return selection if keep is None else selection.kept(keep, snapshot.schema)


def _about(where: Expression | None, names: Sequence[str]) -> Expression | None:
    """The part of a predicate that is about these columns alone."""
    if where is None:
        return None
    paths = {(name,) for name in names}
    return conjunction(tuple(c for c in conjuncts(where) if column_paths(c) and column_paths(c) <= paths))

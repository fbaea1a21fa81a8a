"""Full compaction of tables with a primary key: which buckets, what their rows are, and what entries come of it.

Specification: spec/paimon-format.md (e), "Compaction basics"; `org.apache.paimon.mergetree.compact.CompactStrategy`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.footers.parquet_footer import FileFooter
from alluvium.errors import UnsupportedFeature
from alluvium.expr.tree import Expression
from alluvium.paimon.commit.assemble import removed_entries
from alluvium.paimon.commit.draft import Replaced
from alluvium.paimon.features.deletion_vectors import INDEX_TYPE, vector_masks
from alluvium.paimon.files.manifest import scan_index_manifest
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import logical_schema
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.spec import ENTRIES, SCANNED_ENTRIES
from alluvium.paimon.upkeep.append_compact import partitions_where
from alluvium.paimon.view.merge import FILE_ORDER, KIND, SEQUENCE, key_merge
from alluvium.paimon.view.scan_parts import plan_files
from alluvium.paimon.view.sections import Sections
from alluvium.paimon.view.selection import unmerged
from alluvium.paimon.write.keyed import ensure_levels_alike
from alluvium.paimon.write.write import added_entries, plan_write
from alluvium.plan.scan import FileConstant, OutputColumn, ScanPart, ScanPlan
from alluvium.plan.write import BUCKET_COLUMN, WritePlan
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct

#: "0 append, 1 compact"
_COMPACTED = 1


@dataclass(frozen=True, slots=True)
class FullCompaction:
    """Implements `plan.ports.ScanSource`: all rows of some buckets as their files have them, each with its number, its
    kind, the place of its file among all, and its bucket.

    Attributes:
        snapshot: Whose files.
        entries: The files (`ENTRIES`): all of the buckets that are compacted.
    """

    snapshot: Snapshot
    entries: pa.Table

    @property
    def identity(self) -> tuple[str, ...]:
        s = self.snapshot
        names = "\n".join(self.entries["file_name"].to_pylist()).encode()
        return (s.store.url, str(s.version), s.branch, "compaction", hashlib.sha256(names).hexdigest())

    @property
    def size_bytes(self) -> int:
        return int(pc.sum(self.entries["file_size"]).as_py() or 0)

    @property
    def schema(self) -> Struct:
        """The table's columns, and those of the rows' fate."""
        own = logical_schema(self.snapshot.schema).fields
        hidden = (
            Field(SEQUENCE, t.LONG),
            Field(KIND, t.BYTE),
            Field(FILE_ORDER, t.LONG),
            Field(BUCKET_COLUMN, t.INTEGER),
        )
        return Struct((*own, *hidden))

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        """All files, whatever the predicate: a row of a key tells nothing of the others."""
        entries = self.entries.select(SCANNED_ENTRIES.names)
        # The order of levels, then that of manifests, oldest first, tells apart rows of equal numbers.
        alone = Sections.of(np.full(entries.num_rows, -1), levels=entries["level"])
        selection = replace(unmerged(self.snapshot, entries), sections=alone)
        plan = plan_files(self.snapshot, selection, None, vector_masks(self.snapshot))
        parts = tuple(_with_bucket(part, self.schema, entries) for part in plan.parts)
        return replace(plan, schema=self.schema, parts=parts).exactly()

    @property
    def vectors(self) -> frozenset[str]:
        """Files of deletion vectors of the buckets."""
        document = self.snapshot.document
        if document is None or document.index_manifest is None:
            return frozenset()
        index = scan_index_manifest(self.snapshot.store, document.index_manifest)
        columns = ["partition", "bucket", "file_name"]
        rows = index.filter(pc.equal(index["index_type"], INDEX_TYPE)).select(columns).to_pylist()
        known = self.entries.group_by(["partition", "bucket"]).aggregate([]).to_pylist()
        places = {(row["partition"], row["bucket"]) for row in known}
        return frozenset(row["file_name"] for row in rows if (row["partition"], row["bucket"]) in places)

    def plan_write(self) -> WritePlan:
        """How the rows become the buckets' only files."""
        schema = self.snapshot.schema
        plan = plan_write(replace(schema, options=_without_refusals(schema)), self.snapshot.store.url)
        assert plan.keyed is not None, "the table has a primary key"
        deleted = pc.fill_null(self.entries["delete_row_count"], 1)
        merge = key_merge(schema, bool(pc.any(pc.not_equal(deleted, 0)).as_py()), has_ties=True)
        keyed = replace(plan.keyed, merge=merge, bucket=BUCKET_COLUMN, is_whole=True, skipped_kinds=())
        # What is there was checked when it came.
        return replace(plan, keyed=keyed, bucket=None, assigned=None, checks=(), derived=())

    def added(self, written: pa.Table, footers: Sequence[FileFooter]) -> pa.Table:
        """The entries of the files that were written."""
        entries = compacted_entries(added_entries(self.snapshot.schema, written, footers))
        known = self.entries.group_by(["partition", "bucket"]).aggregate([("total_buckets", "max")]).to_pylist()
        totals = {(row["partition"], row["bucket"]): row["total_buckets_max"] for row in known}
        places = zip(entries["partition"].to_pylist(), entries["bucket"].to_pylist(), strict=True)
        count = entries.num_rows
        columns = {
            "level": pa.repeat(pa.scalar(top_level(self.snapshot.schema), pa.int32()), count),
            "total_buckets": pa.array([totals[place] for place in places], pa.int32()),
        }
        for name, values in columns.items():
            entries = entries.set_column(ENTRIES.get_field_index(name), ENTRIES.field(name), values)
        return entries


def compacted_entries(entries: pa.Table) -> pa.Table:
    """Entries of files that hold the rows of others."""
    values = pa.repeat(pa.scalar(_COMPACTED, pa.int8()), entries.num_rows)
    return entries.set_column(ENTRIES.get_field_index("file_source"), ENTRIES.field("file_source"), values)


def _with_bucket(part: ScanPart, schema: Struct, entries: pa.Table) -> ScanPart:
    files = part.files
    constants = files["constants"].combine_chunks()
    members = {f.name: constants.field(place) for place, f in enumerate(constants.type)}
    names = pc.replace_substring_regex(files["path"].combine_chunks(), "^.*/", "")
    places = pc.index_in(names, value_set=entries["file_name"].combine_chunks())
    members[BUCKET_COLUMN] = entries["bucket"].combine_chunks().take(places)
    made = pa.StructArray.from_arrays(list(members.values()), names=list(members))
    own = {
        BUCKET_COLUMN: OutputColumn(BUCKET_COLUMN, t.INTEGER, False, FileConstant(BUCKET_COLUMN, t.INTEGER)),
        FILE_ORDER: OutputColumn(FILE_ORDER, t.LONG, False, FileConstant(FILE_ORDER, t.LONG)),
    }
    by_name = {**{c.name: c for c in part.output}, **own}
    output = tuple(by_name[f.name] for f in schema.fields)
    place = files.schema.get_field_index("constants")
    return replace(part, files=files.set_column(place, "constants", made), output=output)


def top_level(schema: TableSchema) -> int:
    """The level of what is compacted fully: `num-levels`, one more than the trigger, begin at 0."""
    levels = o.NUM_LEVELS.get(schema.options)
    return (o.NUM_SORTED_RUN_COMPACTION_TRIGGER.get(schema.options) + 1 if levels is None else levels) - 1


def _without_refusals(schema: TableSchema) -> dict[str, str]:
    """The options as for rows that a job compacts: it is this one."""
    kept = {k: v for k, v in schema.options.items() if k not in (o.CHANGELOG_PRODUCER.key, o.ROWKIND_FIELD.key)}
    # Buckets are those that the rows are in.
    return {**kept, o.WRITE_ONLY.key: "true", o.BUCKET.key: "1"}


def ensure_compactable(schema: TableSchema) -> None:
    """Refuses tables whose compaction makes more than files.

    Raises:
        UnsupportedFeature: `"unsupported-compaction"`.
    """
    options, asked = schema.options, None
    producer = o.CHANGELOG_PRODUCER.get(options)
    if schema.crosses_partitions:
        asked = "keys that move between partitions"
    elif o.BUCKET.get(options) == o.POSTPONE_BUCKET:
        asked = f"{o.BUCKET.key} = {o.POSTPONE_BUCKET}"
    elif producer not in ("none", "input"):
        asked = f"{o.CHANGELOG_PRODUCER.key} = {producer}"
    elif "record-level.expire-time" in options:
        asked = "record-level.expire-time"
    if asked is not None:
        raise UnsupportedFeature(
            f"tables with {asked} are not compacted yet",
            code="unsupported-compaction",
            features=(asked,),
            hint="compact the table with Paimon's own engine",
        )
    ensure_levels_alike(schema)


def plan_full_compaction(snapshot: Snapshot, where: Expression | None = None) -> FullCompaction:
    """The buckets that are not yet one run at the top level, without rows that take others back.

    Args:
        snapshot: The newest state.
        where: Of partitions: only those for which it is true.

    Raises:
        UnsupportedFeature: As of `ensure_compactable`; or the condition is not about partition keys alone
            (`"replace-where-data"`).
    """
    ensure_compactable(snapshot.schema)
    entries = removed_entries(snapshot, Replaced())
    entries = partitions_where(snapshot, entries, where)
    if not entries.num_rows:
        return FullCompaction(snapshot, entries)
    is_plain = pc.equal(pc.fill_null(entries["delete_row_count"], 1), 0)
    done = pc.and_(pc.equal(entries["level"], top_level(snapshot.schema)), is_plain)
    keys = ["partition", "bucket"]
    flagged = entries.select(keys).append_column("is_open", pc.invert(done).cast(pa.int8()))
    open_places = flagged.group_by(keys).aggregate([("is_open", "max")])
    open_places = open_places.filter(pc.equal(open_places["is_open_max"], 1)).select(keys)
    numbered = entries.append_column("row", pa.array(np.arange(entries.num_rows)))
    rows = numbered.select([*keys, "row"]).join(open_places, keys, join_type="left semi")["row"]
    return FullCompaction(snapshot, entries.take(pa.array(np.sort(rows.to_numpy()))))

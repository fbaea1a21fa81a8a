"""A compaction that was planned: which rows it reads, how they are written, and what entries come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.footers.parquet_footer import FileFooter
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms import compaction_options as c
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.view.file_rows import FILE, FileRows
from alluvium.paimon.view.merge import FILE_ORDER, FIRST_ROW, key_merge
from alluvium.paimon.view.sections import may_take_back
from alluvium.paimon.write.write import added_entries, plan_write
from alluvium.plan.write import BUCKET_COLUMN, DROPS, LOGS, REWRITES, Regrouped, WritePlan

#: "0 append, 1 compact"
_COMPACTED = 1
#: Columns of the rows that are read, beside those of `FileRows`.
PLACE, LEVEL = "__alluvium_place", "__alluvium_level"


@dataclass(frozen=True, slots=True)
class Compaction:
    """What becomes of the files of some buckets.

    Attributes:
        snapshot: Whose files.
        entries: All of the buckets' (`ENTRIES`).
        fates: Of each file: `code` of its group (`Regrouped.code`; -1: it is in none), the `level` that it comes to,
            whether its new keys are looked up (`looks`), whether keys are looked up in it (`is_asked`), the `place`
            of its bucket, and its `order` among all, oldest first.
    """

    snapshot: Snapshot
    entries: pa.Table
    fates: pa.Table

    @classmethod
    def nothing(cls, snapshot: Snapshot, entries: pa.Table) -> Compaction:
        """No bucket is compacted."""
        names = ("code", "level", "looks", "is_asked", "place", "order")
        kinds = (pa.int64(), pa.int64(), pa.bool_(), pa.bool_(), pa.int64(), pa.int64())
        none = pa.schema(list(zip(names, kinds, strict=True))).empty_table()
        return cls(snapshot, entries.slice(0, 0), none)

    @property
    def schema(self) -> TableSchema:
        """The table's."""
        return self.snapshot.schema

    @property
    def is_rewritten(self) -> pa.Array:
        """Of each file whether its rows come into new files."""
        return self._flagged(REWRITES)

    @property
    def is_moved(self) -> pa.Array:
        """Of each file whether it comes to another level as it is."""
        elsewhere = pc.not_equal(self.fates["level"], self.entries["level"].cast(pa.int64())).combine_chunks()
        return pc.and_(elsewhere, pc.invert(self.is_rewritten))

    @property
    def before(self) -> pa.Table:
        """The entries that go."""
        return self.entries.filter(pc.or_(self.is_rewritten, self.is_moved))

    @property
    def moved(self) -> pa.Table:
        """The entries of files that come to another level."""
        # "None" of a file that may hold such rows is not believed at level 0, but would be above: there it is not told.
        counts = self.entries["delete_row_count"]
        doubted = pc.and_(may_take_back(self.entries, self.schema), pc.equal(counts, 0))
        counts = pc.if_else(doubted, pa.scalar(None, pa.int64()), counts)
        entries = _with_column(self.entries, "delete_row_count", counts)
        return _with_column(entries, "level", self.fates["level"].cast(pa.int32())).filter(self.is_moved)

    @property
    def reads_rows(self) -> bool:
        """Whether there are rows to write, be it how they changed."""
        return bool(pc.any(self._flagged(REWRITES | LOGS)).as_py())

    @property
    def rows(self) -> FileRows:
        """All rows of the groups."""
        return self._read(self._flagged(REWRITES | LOGS), BUCKET_COLUMN)

    @property
    def looked_up(self) -> FileRows | None:
        """The rows among which new keys are looked up for what they were; None: nobody needs to know."""
        keeps_last = o.MERGE_ENGINE.get(self.schema.options) == "deduplicate" and not any(
            o.SEQUENCE_FIELD.get(self.schema.options)
        )
        if (keeps_last and not self.logs) or not pc.any(self.fates["is_asked"], min_count=0).as_py():
            return None
        looks = pc.and_(self.fates["looks"].combine_chunks(), self._flagged(REWRITES | LOGS))
        at = pc.is_in(self.fates["place"], value_set=self.fates.filter(looks)["place"].combine_chunks())
        chosen = pc.and_(self.fates["is_asked"].combine_chunks(), at.combine_chunks())
        return self._read(chosen, None) if pc.any(chosen).as_py() else None

    @property
    def new_keys(self) -> FileRows:
        """The rows whose keys are looked up."""
        return self._read(self.fates["looks"].combine_chunks(), None)

    @property
    def asked(self) -> FileRows | None:
        """The rows, with their places, that are deleted where a new key is theirs; None: there are none such."""
        chosen = self.fates["is_asked"].combine_chunks()
        if not o.DELETION_VECTORS.get(self.schema.options) or not pc.any(chosen, min_count=0).as_py():
            return None
        return replace(self._read(chosen, None), is_placed=True)

    @property
    def logs(self) -> bool:
        """Whether of any file it is told how its rows change."""
        return bool(pc.any(self._flagged(LOGS), min_count=0).as_py())

    def _flagged(self, flags: int) -> pa.Array:
        codes = np.asarray(self.fates["code"].to_numpy())
        return pa.array((codes >= 0) & ((codes & flags) != 0))

    def _read(self, chosen: pa.Array, code: str | None) -> FileRows:
        """Some files; their code under a name, which is null where there is none."""
        fates, entries = self.fates.filter(chosen), self.entries.filter(chosen)
        codes = fates["code"].cast(pa.int32()) if code else pa.nulls(fates.num_rows, pa.int32())
        said = {
            FILE_ORDER: fates["order"],
            BUCKET_COLUMN: codes,
            PLACE: fates["place"],
            LEVEL: entries["level"],
            FILE: pa.array(np.flatnonzero(chosen.to_numpy(zero_copy_only=False)), pa.int64()),
        }
        return FileRows(self.snapshot, entries, pa.table(said))

    def plan_write(self) -> WritePlan:
        """How the rows become files."""
        schema = self.schema
        plan = plan_write(replace(schema, options=_without_refusals(schema)), self.snapshot.store.url)
        assert plan.keyed is not None, "the table has a primary key"
        merge = key_merge(schema, bool(pc.any(may_take_back(self.entries, schema)).as_py()), has_ties=True)
        # Of which rows a row above level 0 is the newest, the groups say.
        merge = replace(merge, level=None)
        regrouped = self._regrouped(merge.has_retracts)
        keyed = replace(plan.keyed, merge=merge, bucket=BUCKET_COLUMN, regrouped=regrouped, skipped_kinds=())
        # What is there was checked when it came.
        return replace(
            plan, keyed=keyed, bucket=None, assigned=None, checks=(), derived=(), options=self._rolling(plan)
        )

    def _regrouped(self, has_retracts: bool) -> Regrouped:
        options = self.schema.options
        compared = None
        if c.ROW_DEDUPLICATE.get(options):
            ignored = c.ROW_DEDUPLICATE_IGNORED.get(options)
            compared = tuple(name for name in self.schema.names if name not in ignored)
        of_lookup = c.needs_lookup(options)
        kept = any(code >= 0 and code & REWRITES and not code & DROPS for code in self.fates["code"].to_pylist())
        return Regrouped(
            PLACE,
            LEVEL,
            of_lookup and o.MERGE_ENGINE.get(options) != FIRST_ROW,
            c.num_levels(options) - 1 if o.CHANGELOG_PRODUCER.get(options) == "full-compaction" else None,
            self.logs,
            compared,
            self.logs or (kept and has_retracts),
            self.looked_up is not None,
        )

    def _rolling(self, plan: WritePlan) -> tuple[tuple[str, str], ...]:
        """As many rows in a file as make up its size, by what the files that are read have in each."""
        entries = self.entries.filter(self.is_rewritten)
        size, rows = (int(pc.sum(entries[name]).as_py() or 0) for name in ("file_size", "row_count"))
        most = rows * c.target_size(self.schema.options) // max(size, 1)
        return (*plan.options, ("maxRecordsPerFile", str(most))) if 0 < most < rows else plan.options

    def added(self, written: pa.Table, footers: Sequence[FileFooter]) -> pa.Table:
        """The entries of the files of rows that were written."""
        entries = self._placed(written, footers, o.DATA_FILE_PREFIX.get(self.schema.options))
        return compacted_entries(entries)

    def told(self, written: pa.Table, footers: Sequence[FileFooter]) -> pa.Table:
        """The entries of the files that tell how rows changed."""
        return self._placed(written, footers, c.CHANGELOG_PREFIX.get(self.schema.options))

    def _placed(self, written: pa.Table, footers: Sequence[FileFooter], prefix: str) -> pa.Table:
        """Entries in the buckets, and of the levels, that the groups of the files have."""
        firsts = pc.index_in(written["bucket"].cast(pa.int64()), value_set=self.fates["code"].combine_chunks())
        groups = self.entries.take(firsts)
        buckets = groups["bucket"].combine_chunks()
        written = written.set_column(written.schema.get_field_index("bucket"), "bucket", buckets)
        entries = added_entries(self.schema, written, footers, prefix)
        columns: Mapping[str, pa.ChunkedArray] = {
            "level": self.fates["level"].take(firsts).cast(pa.int32()),
            "total_buckets": groups["total_buckets"],
        }
        for name, values in columns.items():
            entries = _with_column(entries, name, values)
        return entries


def compacted_entries(entries: pa.Table) -> pa.Table:
    """Entries of files that hold the rows of others."""
    return _with_column(entries, "file_source", pa.repeat(pa.scalar(_COMPACTED, pa.int8()), entries.num_rows))


def _with_column(entries: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return entries.set_column(ENTRIES.get_field_index(name), ENTRIES.field(name), values)


def _without_refusals(schema: TableSchema) -> dict[str, str]:
    """The options as for rows that a job compacts: it is this one."""
    kept = {k: v for k, v in schema.options.items() if k not in (o.CHANGELOG_PRODUCER.key, o.ROWKIND_FIELD.key)}
    # Buckets are those that the rows are in.
    return {**kept, o.WRITE_ONLY.key: "true", o.BUCKET.key: "1"}

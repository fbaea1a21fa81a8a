"""PaimonTarget: a Paimon table as the place that rows are written to."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commit.loop import NOTHING_STANDS, Published, commit
from alluvium.errors import (
    AlluviumError,
    CommitConflict,
    UnsupportedFeature,
)
from alluvium.expr.tree import named_paths, names_only
from alluvium.paimon.commit.assemble import removed_entries
from alluvium.paimon.commit.callers import begin, gave_up, stands
from alluvium.paimon.commit.draft import Draft, Replaced, VectorChange
from alluvium.paimon.commit.port import PaimonPort, point_to
from alluvium.paimon.files.partitions import data_paths, partitions_of
from alluvium.paimon.log.schema_log import publish_first_schema
from alluvium.paimon.log.snapshot import Snapshot, load_snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.rows.row_ids import stored_ids, with_stored_ids
from alluvium.paimon.rows.vectors import EditedFiles, edit_files
from alluvium.paimon.schema.logical import written_schema
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import DATA_EVOLUTION
from alluvium.paimon.terms.spec import parse_snapshot
from alluvium.paimon.view.file_rows import FILE, FileRows
from alluvium.paimon.view.merge import AGGREGATION, FIRST_ROW, merge_engine
from alluvium.paimon.view.selection import hidden, with_new_rows
from alluvium.paimon.view.system.file_tables import partition_maps
from alluvium.paimon.write.crossing import ensure_crossing, moves_keys
from alluvium.paimon.write.dynamic import index_change
from alluvium.paimon.write.keyed import RowKinds
from alluvium.paimon.write.patches import patch_entries
from alluvium.paimon.write.told import apart, told_entries
from alluvium.paimon.write.write import added_entries, plan_write
from alluvium.plan.changes import (
    Append,
    Committed,
    EditFigures,
    EditRows,
    NewFiles,
    Rearrange,
    Replace,
    WrittenRows,
)
from alluvium.plan.crossing import UnseenRows
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.plan.write import Check, WritePlan
from alluvium.schema.types import Struct
from alluvium.storage.locating import locating
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import Store

log = logging.getLogger("alluvium")

#: Of conflicts over which bucket, or partition, a key is in: rows are written anew, and nobody has to read them again.
KEYS_MOVED = "concurrent-index"
#: Metric: how many of the rows that were written take others back.
RETRACTS = "numRetractedRows"
_READS_LOST = ("concurrent-append", "concurrent-delete-delete", "history-lost")


@dataclass(frozen=True, slots=True)
class PaimonTarget:
    """A table at the state it was opened at, or one about to be created.

    Attributes:
        store: The table's objects.
        table: Its schema, the options of the call on top.
        snapshot: None for a table to create.
        retry: How often a lost commit is tried again.
        properties: Of the snapshot to make.
        kind: Of rows of keys that are written, as of `keyed_rows`.
        rescales: Whether what is replaced gets another number of buckets than the table says.
        has_read: Whether the rows were made of those that readers of the table see.
    """

    store: Store
    table: TableSchema
    snapshot: Snapshot | None
    retry: RetryPolicy = DEFAULT_RETRY
    properties: Mapping[str, str] = field(default_factory=dict)
    kind: int | RowKinds | None = None
    rescales: bool = False
    has_read: bool = False

    @property
    def url(self) -> str:
        return self.store.url

    @property
    def schema(self) -> Struct:
        return written_schema(self.table)

    @property
    def exists(self) -> bool:
        return self.snapshot is not None

    @property
    def version(self) -> int:
        """The snapshot that it was opened at; 0: there is none yet."""
        return 0 if self.snapshot is None else self.snapshot.version or 0

    def plan_write(self, replace: Replace | None, options: tuple[tuple[str, str], ...]) -> WritePlan:
        with locating(self.store, self.version or None):
            ensure_crossing(self.table, replace)
            checks, base = self._replace_checks(replace), None if replace is not None else self.snapshot
            plan = plan_write(self.table, self.store.url, checks, options, base, self.kind)
            # Rows that are only moved stay what they are.
            plan = plan.keeping_nulls() if self.rescales else plan
            return plan if base is None else dataclasses.replace(plan, unseen=self._unseen(base))

    def _unseen(self, base: Snapshot) -> UnseenRows | None:
        """The rows that are hidden from readers, and from verbs those that wait.

        The first row of a key stays, whatever comes, and what is aggregated hides nothing.
        """
        is_verb = self.kind is not None
        if not self.table.primary_keys or not (self.has_read or is_verb):
            return None
        engine = merge_engine(self.table)
        if engine == FIRST_ROW or (engine == AGGREGATION and not is_verb):
            return None
        seen = with_new_rows(base) if is_verb else base
        entries = hidden(seen.schema, base.entries)
        if not entries.num_rows:
            return None
        order = pa.array(np.arange(entries.num_rows), pa.int64())
        return UnseenRows(FileRows(base, entries, pa.table({FILE: order})), self.table.primary_keys)

    def _replace_checks(self, replace: Replace | None) -> tuple[Check, ...]:
        """New rows must lie in what they replace, or they would stand beside it."""
        if replace is None or replace.where is None or replace.sql is None:
            return ()
        paths, keys = named_paths(replace.where), {(name,) for name in self.table.partition_keys}
        if not names_only(replace.where, keys):
            others = sorted(".".join(path) for path in paths - keys)
            raise UnsupportedFeature(
                f"replaceWhere on columns that are not partition keys: {', '.join(others) or replace.sql}",
                code="replace-where-data",
                column=others[0] if others else None,
                hint=f"partition keys: {', '.join(self.table.partition_keys) or 'none'}",
            )
        if self.snapshot is not None:
            # What cannot be decided is refused before rows are written.
            removed_entries(self.snapshot, Replaced(where=replace.where))
        return (Check("replaceWhere", f"({replace.sql})", tuple(path[0] for path in paths)),)

    @property
    def is_changed(self) -> bool:
        """Commits of rows say nothing of the table."""
        return False

    @property
    def is_recorded(self) -> bool:
        """Changes are told by the files that a commit adds."""
        return False

    @property
    def before_columns(self) -> tuple[str, ...]:
        """Keys, which must stay, as must partitions of rows that stay in their files; rows of keys that go are written
        with all that they have.
        """
        return self.table.partition_keys if DATA_EVOLUTION.get(self.table.options) else self.table.primary_keys

    def plan_change_files(self) -> WritePlan:
        """There are none."""
        raise AssertionError("a table without change data is not asked for them")

    def commit(self, changes: WrittenRows | EditRows) -> Committed:
        if isinstance(changes, EditRows):
            return self._edit(changes)
        return self._written(changes)

    def _edit(self, changes: EditRows) -> Committed:
        """Commits what became of single rows: those of keys have all been written, others are gone from their files."""
        if self.table.primary_keys:
            done = self._written(Append(changes.new, changes.operation, changes.read, changes.txn))
            figures = EditFigures(files_added=changes.new.table.num_rows)
            return replace(done, metrics={**done.metrics, **changes.describe(figures)})
        assert self.snapshot is not None, "rows that change are there"
        snapshot, touched = self.snapshot, changes.touched
        entries = self._named(touched)
        with locating(self.store, self.version or None):
            edited = edit_files(snapshot, entries, touched)
            written, added = self._edited(changes)
            needed = None
            if changes.patches is not None:
                patched, needed = patch_entries(self.table, snapshot, changes.patches)
                # Those that get their ids now come first.
                added, written = pa.concat_tables([added, patched]), _all(written, changes.patches.new.table)
            partitions = partitions_of(added, self.table)
            paths = data_paths(added, partitions, self.table).to_pylist()
            files = _told(added, partition_maps(self.table, partitions), paths)
        replaced = Replaced(files=edited.removed) if touched.num_rows else None
        draft = Draft(self.table, added, replaced, properties=self.properties, reads=True, edits=edited.vectors)
        draft = replace(draft, needed=needed)
        done = self._published(draft, written, snapshot, files, paths)
        return replace(done, metrics={**done.metrics, **changes.describe(_figures(edited, added, entries))})

    def _edited(self, changes: EditRows) -> tuple[pa.Table, pa.Table]:
        """The files that a verb has written (`WRITTEN_FILES`), and their entries (`ENTRIES`)."""
        new, fresh = changes.new, changes.fresh
        added = added_entries(self.table, new.table, new.footers)
        if stored_ids(self.table) is not None:
            added = with_stored_ids(added, self.table, new.footers)
        if fresh is None:
            return new.table, added
        others = added_entries(self.table, fresh.table, fresh.footers)
        return _all(new.table, fresh.table), pa.concat_tables([added, others])

    def _named(self, touched: pa.Table) -> pa.Table:
        """The entries of live files, in the order of their paths."""
        assert self.snapshot is not None, "rows that change are there"
        names = pc.replace_substring_regex(touched["path"], "^.*/", "")
        entries = self.snapshot.entries
        return entries.take(pc.index_in(names, value_set=entries["file_name"].combine_chunks()))

    def _written(self, changes: WrittenRows) -> Committed:
        rows, told = apart(changes.new)
        with locating(self.store, self.version or None):
            added = added_entries(self.table, rows.table, rows.footers)
            partitions = partitions_of(added, self.table)
            paths = data_paths(added, partitions, self.table).to_pylist()
            files = _told(added, partition_maps(self.table, partitions), paths)
            changed = told_entries(self.table, told) if told.table.num_rows else None
            if changed is not None:
                paths += data_paths(changed, partitions_of(changed, self.table), self.table).to_pylist()
        draft = replace(self._draft(added, changes), told=changed)
        base = self._created() if self.snapshot is None else self.snapshot
        if self._is_idle(draft, changes):
            return Committed(self.version, files, _metrics(draft, rows.table, None), 0)
        try:
            done = self._published(draft, rows.table, base, files, paths, told.table)
            if not moves_keys(self.table):
                return done
            # Among them those of keys that have left their partition.
            gone = str(pc.sum(added["delete_row_count"]).as_py() or 0)
            return replace(done, metrics={**done.metrics, RETRACTS: gone})
        except CommitConflict as error:
            is_brought = isinstance(changes, Append) and changes.read.is_nothing
            if moves_keys(self.table) and is_brought and error.code in _READS_LOST:
                # What the caller brings may be written anew; only where its keys are has changed.
                error.code = KEYS_MOVED
            raise

    def compact(
        self,
        new: NewFiles,
        added: pa.Table,
        before: pa.Table,
        edits: VectorChange | None = None,
        moved: pa.Table | None = None,
        told: tuple[NewFiles, pa.Table] | None = None,
        is_overwrite: bool = False,
    ) -> Committed:
        """Publishes files in the place of others that hold the same rows.

        Args:
            new: What the job has left.
            added: Its entries (`ENTRIES`).
            before: The entries whose files go; all of them have to be there still.
            edits: What becomes of deletion vectors.
            moved: Entries of files that come to another level as they are; among `before` they are of the old one.
            told: Files that tell how rows changed, and their entries.
            is_overwrite: Whether the commit is to be called one that overwrites.
        """
        assert self.snapshot is not None, "what is compacted is there"
        changes, changed = (NewFiles.none(), None) if told is None else told
        with locating(self.store, self.version or None):
            partitions = partitions_of(added, self.table)
            paths = data_paths(added, partitions, self.table).to_pylist()
            files = _told(added, partition_maps(self.table, partitions), paths)
            if changed is not None:
                paths += data_paths(changed, partitions_of(changed, self.table), self.table).to_pylist()
        replaced = Replaced(files=before["file_name"].combine_chunks())
        live = added if moved is None else pa.concat_tables([added, moved])
        draft = Draft(self.table, live, replaced, properties=self.properties, told=changed, edits=edits)
        draft = replace(draft, compacts=not is_overwrite)
        return self._published(draft, new.table, self.snapshot, files, paths, changes.table)

    def _published(
        self,
        draft: Draft,
        written: pa.Table,
        base: Snapshot,
        files: pa.Table,
        paths: Sequence[str],
        beside: pa.Table | None = None,
    ) -> Committed:
        """Moves files, those of rows and then others beside them, to their paths, and commits."""
        told = [] if beside is None else beside["path"].to_pylist()
        self._move([*written["path"].to_pylist(), *told], paths)
        try:
            published = publish(self.store, draft, base, self.retry, is_current=self.snapshot is None)
        except NOTHING_STANDS:
            self._delete(paths)
            raise
        return Committed(published.entry.version, files, _metrics(draft, written, published.base), published.attempts)

    def _draft(self, added: pa.Table, changes: WrittenRows) -> Draft:
        # Where keys are must still hold when their rows land.
        replaced = _replaced(_replace_of(changes), added)
        asks = moves_keys(self.table) and replaced is None
        reads = asks or (not isinstance(changes, Rearrange) and not changes.read.is_nothing)
        index = None
        if changes.new.assigned is not None:
            index = index_change(self.table, self.snapshot if replaced is None else None, changes.new.assigned)
        draft = Draft(self.table, added, replaced, properties=self.properties, reads=reads, index=index)
        draft = replace(draft, rescales=self.rescales)
        if changes.txn is None:
            return draft
        user, identifier = changes.txn
        return replace(draft, user=user, identifier=identifier, is_named=True)

    def _is_idle(self, draft: Draft, changes: WrittenRows) -> bool:
        """No rows make no snapshot, but for an overwrite of more than the partitions of the rows."""
        nothing = draft.added.num_rows == 0 and not draft.is_named
        replaces = _replace_of(changes)
        return nothing and (replaces is None or replaces.dynamic or self.snapshot is None)

    def _created(self) -> Snapshot:
        """The table, once its schema is there; files are moved into it only then."""
        publish_first_schema(self.store, self.table)
        return load_snapshot(self.store, At())

    def _move(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        try:
            map_parallel(lambda pair: self.store.move(*pair), list(zip(sources, targets, strict=True)))
        except BaseException:
            # No snapshot can name them.
            self._delete(targets)
            raise

    def _delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            try:
                self.store.delete(path)
            except AlluviumError as error:
                # The caller is told why the write failed; what is left is in no snapshot.
                log.warning("a file of a failed write could not be deleted: %s", error)


def _all(written: pa.Table, more: pa.Table) -> pa.Table:
    """Files of two jobs; one without rows says nothing of its columns' types."""
    return pa.concat_tables([table for table in (written, more) if table.num_rows] or [written])


def _figures(edited: EditedFiles, added: pa.Table, entries: pa.Table) -> EditFigures:
    """What an edit came to in files."""
    is_removed = pc.is_in(entries["file_name"], value_set=edited.removed)

    def size(files: pa.Table) -> int:
        return int(pc.sum(files["file_size"]).as_py() or 0)

    return EditFigures(
        files_added=added.num_rows,
        bytes_added=size(added),
        files_removed=len(edited.removed),
        bytes_removed=size(entries.filter(is_removed)),
        masks_added=len(edited.masked),
        bytes_masked=size(entries.filter(pc.invert(is_removed))),
        masks_updated=edited.updated,
        masks_removed=edited.updated,
    )


def _replace_of(changes: WrittenRows) -> Replace | None:
    return None if isinstance(changes, Append) else changes.replace


def _replaced(replaces: Replace | None, added: pa.Table) -> Replaced | None:
    if replaces is None:
        return None
    if replaces.dynamic:
        return Replaced(partitions=pc.unique(added["partition"].combine_chunks()))
    return Replaced(where=replaces.where)


def _metrics(draft: Draft, written: pa.Table, base: Snapshot | None) -> dict[str, str]:
    """What was written, and taken out of the state that the commit landed on (None: it made none)."""
    metrics = {"numFiles": str(written.num_rows)}
    if draft.replaced is not None and base is not None:
        removed = removed_entries(base, draft.replaced)
        metrics["numRemovedFiles"] = str(removed.num_rows)
        metrics["numRemovedBytes"] = str(pc.sum(removed["file_size"]).as_py() or 0)
    metrics["numOutputRows"] = str(pc.sum(written["num_rows"]).as_py() or 0)
    metrics["numOutputBytes"] = str(pc.sum(written["size"]).as_py() or 0)
    return metrics


def _told(added: pa.Table, partitions: pa.Array, paths: Sequence[str]) -> pa.Table:
    """What a caller is told of the files: `path`, `size`, `num_rows`, and `partition`, a map of column to text."""
    return pa.table(
        {
            "path": pa.array(paths, pa.string()),
            "size": added["file_size"],
            "num_rows": added["row_count"],
            "partition": partitions,
        }
    )


def publish(
    store: Store, draft: Draft, base: Snapshot, retry: RetryPolicy, is_current: bool = False
) -> Published[Snapshot]:
    """Commits a draft by the loop, and leaves the hints.

    Snapshots expire, so that the place behind an old base may be free again: the commit goes onto the newest state,
    unless the caller has made it this moment (`is_current`).

    Raises:
        CommitConflict: Another writer won, or attempts are exhausted.
        CommitUnknown: The store did not say whether the commit stands.
    """
    attempt = begin(draft, base) if draft.is_named else None
    try:
        published = commit(PaimonPort(store, base.branch), draft, base, retry, is_current=is_current)
    except NOTHING_STANDS as error:
        # Where the same commit has won, it is another one's to say that it stands.
        known = error.conflicts if isinstance(error, CommitConflict) else ()
        if attempt is not None and not any(one.rule == "concurrent-transaction" for one in known):
            gave_up(draft, base, attempt)
        raise
    if draft.is_named:
        stands(draft, base, parse_snapshot(published.entry.data, published.entry.path))
    point_to(store, published.entry, base.branch)
    return published

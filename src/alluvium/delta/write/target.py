"""DeltaTarget: a Delta table as the place that rows are written to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commit.afterwards import afterwards
from alluvium.commit.clear import clear
from alluvium.commit.loop import NOTHING_STANDS, Published, commit
from alluvium.delta.commit.differences import differences
from alluvium.delta.commit.draft import Draft
from alluvium.delta.commit.port import DeltaPort
from alluvium.delta.commit.rearranged import ensure_rearranged
from alluvium.delta.features.columns.identity_columns import COMMIT_TAG, with_moved_marks
from alluvium.delta.features.registry import ensure_writable
from alluvium.delta.features.rows import change_data_feed
from alluvium.delta.features.rows.clustering import DOMAIN, clustering_columns, clustering_domain
from alluvium.delta.features.rows.row_ids import preserving
from alluvium.delta.log_upkeep.checkpoints import keep_up
from alluvium.delta.rows.row_edits import edit_files
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.terms.actions import Actions, tombstones_of, total
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.file_properties import NO_LAYOUT, FileLayout
from alluvium.delta.terms.spec import FILES, DomainMetadata, Txn
from alluvium.delta.view.partitions import partition_keys, partitions_predicate
from alluvium.delta.view.scan import decided_files, whole_files
from alluvium.delta.view.snapshot import Snapshot, load_snapshot, refresh
from alluvium.delta.write.symlink_manifest import keeps_manifests, update_manifests, write_manifests
from alluvium.delta.write.write import added_files, change_files, partition_maps, plan_change_files, plan_write
from alluvium.errors import UnsupportedFeature
from alluvium.expr.tree import named_paths, names_only
from alluvium.plan.changes import (
    Append,
    Committed,
    Describe,
    EditRows,
    FileChanges,
    Operation,
    Preview,
    ReadScope,
    Rearrange,
    Replace,
    RewriteFiles,
    WrittenRows,
)
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.plan.write import WRITTEN_FILES, Check, WritePlan
from alluvium.schema.types import JsonValue, Struct
from alluvium.storage.locating import locating
from alluvium.storage.store import Store

#: The operation of commits that write a batch of a stream.
STREAMING = "STREAMING UPDATE"


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a commit is made of, once it is known which files come and go.

    Attributes:
        added: Files that come (`FILES`).
        removed: Files that go (`FILES`).
        data_change: Whether rows change with them.
        numbers: Whether columns were numbered.
        txn: An application's id and version.
        unclustered: Whether nothing is left that was clustered.
    """

    added: pa.Table
    removed: pa.Table
    data_change: bool = True
    numbers: bool = False
    txn: tuple[str, int] | None = None
    unclustered: bool = False


@dataclass(frozen=True, slots=True)
class DeltaTarget:
    """A table at the version it was opened at, or one about to be created.

    Attributes:
        store: The table's objects.
        config: Of the table after the commit: the opened version's own, a changed one, or that of a table to create.
        snapshot: None for a table to create.
        retry: How often a lost commit is tried again.
        domains: Metadata domains that the commit sets.
        restates: Whether the commit repeats the table's description where it does not change, as the reference does in
            commits that are about nothing else.
        layout: What the session says of data files.
    """

    store: Store
    config: TableConfig
    snapshot: Snapshot | None
    retry: RetryPolicy = DEFAULT_RETRY
    domains: tuple[DomainMetadata, ...] = ()
    restates: bool = False
    layout: FileLayout = NO_LAYOUT

    @property
    def url(self) -> str:
        return self.store.url

    @property
    def schema(self) -> Struct:
        return self.config.schema

    @property
    def exists(self) -> bool:
        return self.snapshot is not None

    def plan_write(self, replace: Replace | None, options: tuple[tuple[str, str], ...]) -> WritePlan:
        with locating(self.store, self.snapshot.version if self.snapshot else None):
            ensure_writable(self.config)
            if self.snapshot is not None:
                ensure_writable(self.snapshot.config)
            checks = self._replace_checks(replace)
            indexed = clustering_columns(self._domains(), self.config)
            return plan_write(self.config, self.store.url, checks, options, indexed, self.layout)

    def _domains(self) -> dict[str, DomainMetadata]:
        before = {} if self.snapshot is None else self.snapshot.state.domains
        return {**before, **{d.domain: d for d in self.domains}}

    def replaces_rows(self, replace: Replace | None) -> bool:
        """Whether an overwrite takes single rows out of files: partition values do not say what its condition is.

        It may name columns that are in the files, or be one that only Spark understands.

        Raises:
            UnsupportedFeature: Rows were asked to be left alone (`replace-where-data`).
        """
        if replace is None or replace.where is None or self.snapshot is None:
            return False
        partitions = {(name,) for name in self.config.partition_columns}
        if not replace.rows and not names_only(replace.where, partitions):
            others = sorted(".".join(path) for path in named_paths(replace.where) - partitions)
            raise UnsupportedFeature(
                f"replaceWhere on columns that are not partition columns: {', '.join(others) or replace.sql}",
                code="replace-where-data",
                column=others[0] if others else None,
                hint=f"partition columns: {', '.join(self.config.partition_columns) or 'none'}",
            )
        by_values = named_paths(replace.where) <= partitions
        return not by_values or decided_files(self.snapshot, replace.where) is None

    def _replace_checks(self, replace: Replace | None) -> tuple[Check, ...]:
        """New rows must lie in what they replace, or they would stand beside it."""
        if replace is None or replace.where is None or replace.sql is None or replace.unchecked:
            return ()
        paths = sorted(named_paths(replace.where))
        return (Check("replaceWhere", f"({replace.sql})", tuple(".".join(path) for path in paths)),)

    def commit(self, changes: FileChanges) -> Committed:
        if isinstance(changes, Describe):
            return self._commit_description(changes)
        if changes.new.reached:
            # Numbers that were made are told of in the table's description.
            moved = with_moved_marks(self.config, changes.new.reached)
            told = replace(changes, new=replace(changes.new, reached={}))
            return replace(self, config=moved).commit(told)
        if isinstance(changes, EditRows | RewriteFiles):
            return self._commit_rows(changes)
        return self._commit_files(changes)

    def _commit_description(self, changes: Describe) -> Committed:
        nothing = FILES.empty_table()
        removed = nothing if not changes.empties or self.snapshot is None else self.snapshot.files
        parts = _Parts(nothing, removed, unclustered=changes.empties)
        files = written_files(self.config, WRITTEN_FILES.empty_table())
        return self._publish(self._draft(parts, changes.operation, changes.read), files)

    def _commit_files(self, changes: WrittenRows) -> Committed:
        """A commit of new rows, beside others or in their place."""
        new, replaces = changes.new, replaces_of(changes)
        data_change = not isinstance(changes, Rearrange)
        added = added_files(self.config, new.table, new.footers, data_change)
        removed = self._replaced(replaces, added)
        if not data_change:
            ensure_rearranged(added, removed)
        metrics = {
            **self._metrics(added, removed, new.table, replaces, changes.operation.name),
            **changes.operation.metrics,
        }
        files = written_files(self.config, new.table)
        if self._is_idle(added, removed, changes):
            assert self.snapshot is not None
            return Committed(self.snapshot.version, files, metrics, 0)
        whole = replaces is not None and replaces.where is None
        parts = _Parts(added, removed, data_change, new.numbers, changes.txn, whole)
        return self._publish(self._draft(parts, _told(changes, metrics), self._read(added, changes)), files)

    def _commit_rows(self, changes: EditRows | RewriteFiles) -> Committed:
        """A commit that changes rows of live files, or writes such files anew."""
        assert self.snapshot is not None, "rows that change are those of a version"
        edits = changes if isinstance(changes, EditRows) else None
        txn, told = (None, None) if edits is None else (edits.txn, edits.change_files)
        marks = changes.marks if isinstance(changes, RewriteFiles) else None
        added = added_files(self.config, changes.new.table, changes.new.footers, edits is not None, marks)
        with locating(self.store, self.snapshot.version):
            edited = edit_files(self.snapshot, changes.touched)
        records = WRITTEN_FILES.empty_table() if told is None else told
        metrics = {**changes.operation.metrics, **changes.describe(edited.figures(added, records.num_rows))}
        files = written_files(self.config, changes.new.table)
        if not (added.num_rows or changes.touched.num_rows or txn is not None or self.is_changed):
            return Committed(self.snapshot.version, files, metrics, 0)
        live = pa.concat_tables([added, edited.masked])
        parts = _Parts(live, edited.removed, edits is not None, changes.new.numbers, txn)
        draft = self._draft(parts, _told(changes, metrics), changes.read)
        actions = replace(draft.actions, change_files=change_files(self.config, records))
        # Rows of touched files keep their identities, also where they are only copied.
        draft = replace(draft, actions=preserving(actions, self.config) if edits is None else actions)
        try:
            return self._publish(draft, files)
        except NOTHING_STANDS:
            if edited.vectors_path is not None:
                clear(self.store, files=[edited.vectors_path])
            raise

    def _publish(self, draft: Draft, files: pa.Table) -> Committed:
        """What a caller is told of a commit is known before it: after it nothing may fail."""
        published = publish(self.store, draft, self.snapshot, self.retry)
        return Committed(published.entry.version, files, draft.operation.metrics, published.attempts)

    def preview(self, changes: Describe) -> Preview:
        """What `commit` would do to what is there; nothing is written.

        Raises:
            UnsupportedFeature: The table may not be written by this version of Alluvium.
        """
        version = -1 if self.snapshot is None else self.snapshot.version
        before = None if self.snapshot is None else self.snapshot.config
        removed = () if self.snapshot is None or not changes.empties else self.snapshot.files["path"].to_pylist()
        return Preview(version, changes.operation, differences(before, self.config), (), tuple(removed))

    def _is_idle(self, added: pa.Table, removed: pa.Table, changes: WrittenRows) -> bool:
        """Whether there is nothing to say: as in the reference, no rows appended make no commit."""
        replaces = replaces_of(changes)
        # A change of the table's description is said even where it changes nothing, as the reference does; and so is an
        # overwrite, but for one of the partitions of no rows.
        says = changes.new.numbers or self.is_changed or (replaces is not None and not replaces.dynamic)
        return not (says or added.num_rows or removed.num_rows or changes.txn is not None)

    @property
    def is_recorded(self) -> bool:
        """Whether the table keeps change data."""
        return change_data_feed.is_used(self.config)

    @property
    def before_columns(self) -> tuple[str, ...]:
        """What is recorded of a row before it changed."""
        return self.schema.names if self.is_recorded else ()

    def plan_change_files(self) -> WritePlan:
        """How change data become files."""
        return plan_change_files(self.plan_write(None, ()))

    @property
    def is_changed(self) -> bool:
        """Whether the commit says something new of the table itself."""
        config, base = self.config, self.snapshot.config if self.snapshot else None
        return base is None or config.metadata != base.metadata or config.protocol != base.protocol

    def _replaced(self, replace: Replace | None, added: pa.Table) -> pa.Table:
        """The live files that an overwrite removes."""
        if replace is None or self.snapshot is None:
            return FILES.empty_table()
        if replace.dynamic:
            zone = self.snapshot.time_zone
            written = partition_keys(added, self.config, zone)
            return self.snapshot.pick_files(
                lambda files: files.filter(pc.is_in(partition_keys(files, self.config, zone), value_set=written))
            )
        found = decided_files(self.snapshot, replace.where)
        if found is None:
            # `replaces_rows` sends such conditions to the rows; no file is removed whose rows may have to stay.
            raise UnsupportedFeature(
                f"replaceWhere by a condition that partition values do not decide: {replace.sql}",
                code="replace-where-data",
                path=whole_files(self.snapshot, replace.where).undecided["path"][0].as_py(),
                hint="compare partition columns with constants",
            )
        return found

    def _draft(self, parts: _Parts, operation: Operation, read: ReadScope) -> Draft:
        now_ms = int(time.time() * 1000)
        base = self.snapshot.config if self.snapshot else None
        protocol, metadata = self.config.protocol, self.config.metadata
        # The reference moves the marks of identity columns in every commit that numbers them, be it to where they are.
        restates = self.restates or parts.numbers
        unmoved = parts.numbers and base is not None and metadata == base.metadata
        txn = parts.txn
        return Draft(
            actions=Actions(
                protocol=protocol if base is None or protocol != base.protocol else None,
                metadata=metadata if base is None or metadata != base.metadata or restates else None,
                added=parts.added,
                removed=tombstones_of(parts.removed, now_ms, parts.data_change),
                txns=() if txn is None else (Txn(app_id=txn[0], version=txn[1], last_updated=now_ms),),
                domains=(*self.domains, *(self._unclustered() if parts.unclustered else ())),
                info={"tags": {COMMIT_TAG: "true"}} if unmoved else {},
            ),
            read=read,
            operation=operation,
            read_version=-1 if self.snapshot is None else self.snapshot.version,
            config=self.config if self.is_changed else None,
        )

    def _unclustered(self) -> tuple[DomainMetadata, ...]:
        """As in the reference, rows that take the place of all others are not clustered, unless it is said anew."""
        if any(d.domain == DOMAIN for d in self.domains):
            return ()
        clustered = clustering_columns(self._domains(), self.config)
        return (clustering_domain([]),) if clustered else ()

    def _read(self, added: pa.Table, changes: WrittenRows) -> ReadScope:
        """What a commit of rows depends on: what these have read, and what they replace."""
        if isinstance(changes, Rearrange):
            # They depend on the files that they were in, and these are removed.
            return ReadScope.nothing()
        if isinstance(changes, Append) or self.snapshot is None:
            return changes.read
        where = changes.replace.where
        if changes.replace.dynamic:
            where = partitions_predicate(added, self.config, self.snapshot.time_zone)
        return ReadScope.rows(where).beside(changes.read)

    def _metrics(
        self, added: pa.Table, removed: pa.Table, written: pa.Table, replaces: Replace | None, operation: str
    ) -> dict[str, str]:
        """Under the names, and in the presence, that the reference gives them."""
        rows = written.num_rows > 0
        by_condition = replaces is not None and replaces.where is not None and self.snapshot is not None
        # Where there are no rows the reference counts the file that Spark leaves so that their schema is not lost.
        leaves = not rows and not by_condition and not self.config.partition_columns
        metrics = {"numFiles": "1" if leaves else str(added.num_rows)}
        if replaces is not None and self.snapshot is not None:
            metrics["numRemovedFiles"] = str(removed.num_rows)
            metrics["numRemovedBytes"] = str(total(removed.column("size")))
        if rows or leaves:
            metrics["numOutputRows"] = str(total(written.column("num_rows")))
        metrics["numOutputBytes"] = str(total(written.column("size")))
        if by_condition:
            # To the reference such an overwrite is a deletion first, here of whole files.
            metrics["numAddedChangeFiles"] = "0"
            if rows:
                metrics.update(numCopiedRows="0", **_deleted_rows(removed))
        return metrics if operation != STREAMING else _of_stream(metrics, len(removed))


def replaces_of(changes: WrittenRows) -> Replace | None:
    """What new rows take the place of; None: of nothing."""
    return None if isinstance(changes, Append) else changes.replace


def _told(changes: WrittenRows | EditRows | RewriteFiles, metrics: Mapping[str, str]) -> Operation:
    """What the history says of new rows: also that they were moved for few files, which the reference leaves out."""
    said = changes.operation
    moved: dict[str, JsonValue] = {"optimizeWrite": True} if changes.new.rebalanced else {}
    return replace(said, parameters={**said.parameters, **moved}, metrics=metrics)


def _of_stream(metrics: Mapping[str, str], removed: int) -> dict[str, str]:
    """The metrics of a write as the reference calls them where the rows come from a stream."""
    told = {"numRemovedFiles": str(removed), "numAddedFiles": metrics["numFiles"]}
    told["numOutputRows"] = metrics.get("numOutputRows", "0")
    return {**told, "numOutputBytes": metrics["numOutputBytes"]}


def _deleted_rows(removed: pa.Table) -> dict[str, str]:
    """Rows of files that are removed; nothing where a file does not say how many it has."""
    counts = AddStatistics(removed, Struct(()), ()).num_rows()
    masked = pc.struct_field(removed.column("deletionVector"), "cardinality")
    return {} if counts.null_count else {"numDeletedRows": str(total(counts) - total(masked))}


def written_files(config: TableConfig, written: pa.Table) -> pa.Table:
    """What a caller is told of the files: `path`, `size`, `num_rows`, and `partition`, a map of column to text."""
    return pa.table(
        {
            "path": written.column("path"),
            "size": written.column("size"),
            "num_rows": written.column("num_rows"),
            "partition": partition_maps(config, written.column("partition")),
        }
    )


def publish(store: Store, draft: Draft, base: Snapshot | None, retry: RetryPolicy) -> Published[Snapshot | None]:
    """Commits a draft by the loop, and writes a checkpoint when one is due.

    Raises:
        CommitConflict: Another writer won, or attempts are exhausted.
        CommitUnknown: The store did not say whether the commit stands.
    """
    published = commit(DeltaPort(store), draft, base, retry)
    keep_up(store, published.entry, published.base)
    _keep_manifests(store, draft, published)
    return published


def _keep_manifests(store: Store, draft: Draft, published: Published[Snapshot | None]) -> None:
    """Brings manifests up to date where the table wants it."""
    base, version = published.base, published.entry.version
    config = draft.config or (None if base is None else base.config)
    if config is None or not keeps_manifests(config):
        return

    def act() -> None:
        # Of the newest version: the last of several writers is to leave what holds.
        snapshot = load_snapshot(store) if base is None else refresh(base)
        if base is None or not keeps_manifests(base.config) or snapshot.version != version:
            write_manifests(snapshot)
        else:
            update_manifests(snapshot, (draft.actions.added, draft.actions.removed))

    afterwards(f"version {version} of {store.url}", "manifest of symbolic links", act)

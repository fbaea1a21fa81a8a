"""The state of a version: a LogSegment read and reconciled.

Specification: "Action Reconciliation".
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa

from alluvium.delta.log.compaction import (
    choose_compactions,
    compacted,
    is_reconciled,
    may_lack_domains,
    may_lack_removes,
)
from alluvium.delta.log.names import SIDECAR_DIRECTORY, commit_path
from alluvium.delta.log.read import CommitActions, commit_version, read_commits
from alluvium.delta.log.read_checkpoint import (
    CheckpointHead,
    count_checkpoint_rows,
    file_sources,
    read_checkpoint_files,
    read_checkpoint_head,
)
from alluvium.delta.log.replay import reconcile
from alluvium.delta.log.segment import LogSegment, list_commits_after, list_segment
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.terms.spec import DomainMetadata, Metadata, Protocol, RowIdHighWaterMark, Txn
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, NotFound
from alluvium.storage.store import ObjectInfo, Store

#: Checkpoints whose files are larger together are left unread until somebody needs all of them; bytes.
MAX_CHECKPOINT_BYTES = 512 << 20
#: As so many each file action counts at least, whatever a writer made of it: in memory it has twice as many.
ACTION_BYTES = 179
#: Sidecars that are together smaller than this part of the limit are not asked how many they list.
_SMALL = 64
#: Raises `UnsupportedFeature` or `CorruptTable` for a protocol that we cannot read.
Gate = Callable[[Protocol], None]


@dataclass(frozen=True, slots=True)
class LogState:
    """All that the log says of one version.

    Attributes:
        segment: The files of the log that it was read from.
        protocol: The latest protocol.
        metadata: The latest metadata.
        files: The live files; schema `FILES`, and `stats_parsed` where a checkpoint has statistics only in that form.
        tombstones: Removed files not yet forgotten; schema `TOMBSTONES`.
        txns: The latest transaction of each application.
        domains: The latest configuration of each domain, without removed ones.
        row_id_high_water_mark: The latest, if there is one (draft of 2023).
        deferred: Files of the checkpoint that were left unread for their size: `files` and `tombstones` lack what they
            list, and are of the later commits alone. Ask the snapshot, which reads them where it must.
    """

    segment: LogSegment
    protocol: Protocol
    metadata: Metadata
    files: pa.Table
    tombstones: pa.Table
    txns: Mapping[str, Txn]
    domains: Mapping[str, DomainMetadata]
    row_id_high_water_mark: RowIdHighWaterMark | None
    deferred: tuple[ObjectInfo, ...] = ()

    @property
    def version(self) -> int:
        """The version."""
        return self.segment.version


def load_state(
    store: Store, segment: LogSegment, ensure_readable: Gate, max_checkpoint_bytes: int | None = None
) -> LogState:
    """Reads a version.

    A checkpoint that turns out to be damaged is passed over with a warning, if another one or the commits alone lead
    to the version; the state's segment then differs from the one given.

    Args:
        store: The table's objects.
        segment: What to read.
        ensure_readable: Called with the newest protocol before files are interpreted.
        max_checkpoint_bytes: Of a checkpoint whose files are larger together, each of their actions counted as
            `ACTION_BYTES` at least, those in Parquet are left unread; the state names them in `deferred`, and `files`
            and `tombstones` are of the later commits alone. None: all are read.

    Raises:
        CorruptTable: The log is damaged, or has no protocol or metadata (`no-protocol`, `no-metadata`).
        UnsupportedFeature: From `ensure_readable`.
    """
    damaged: dict[str, CorruptTable] = {}
    unusable: set[str] = set()
    current = segment
    while True:
        try:
            state = _load(store, current, ensure_readable, max_checkpoint_bytes)
            break
        except CorruptTable as error:
            if error.code != "damaged-checkpoint":
                raise
            damaged[error.path or ""] = error
            unusable |= {info.path for info in current.checkpoint}
            try:
                current = list_segment(store, segment.version, unusable)
            except (CorruptTable, NotFound):
                raise error from None
    for passed_over in damaged.values():
        warnings.warn(
            f"version {state.version} of {store.url} was read without {passed_over.path}: {passed_over.message}",
            stacklevel=2,
        )
    return state


def advance(
    store: Store,
    segment: LogSegment,
    state: LogState,
    ensure_readable: Gate,
    max_checkpoint_bytes: int | None = MAX_CHECKPOINT_BYTES,
) -> tuple[LogSegment, LogState]:
    """The newest state, of which only the commits after `state` are read; the same objects if there are none.

    Where those commits have been cleaned up meanwhile, or another table stands in the place of the one that the state
    is of, the newest state is read anew.

    Raises:
        CorruptTable: The new commits have a gap that no checkpoint bridges, or are damaged.
        NotFound: The table is gone (`not-a-table`).
        UnsupportedFeature: From `ensure_readable`.
    """
    try:
        commits = list_commits_after(store, segment)
    except CorruptTable:
        commits = None
    if commits is None:
        anew = list_segment(store)
        newest = load_state(store, anew, ensure_readable, max_checkpoint_bytes)
        return newest.segment, newest
    if not commits:
        return segment, state
    newer = apply_commits(state, store, commits, ensure_readable)
    return newer.segment, newer


def apply_commits(state: LogState, store: Store, commits: Sequence[ObjectInfo], ensure_readable: Gate) -> LogState:
    """The state after some commits more.

    Args:
        state: Where to begin.
        store: The table's objects.
        commits: The commits that follow, ascending, without a gap.
        ensure_readable: Called with a new protocol before files are interpreted.

    Raises:
        CorruptTable: The commits do not follow the state (`gap-in-log`), or are damaged.
        UnsupportedFeature: From `ensure_readable`.
    """
    if not commits:
        return state
    for expected, commit in enumerate(commits, state.version + 1):
        if commit_version(commit) != expected:
            raise CorruptTable(
                f"commit {expected} is missing from the log", code="gap-in-log", version=expected,
                path=commit_path(expected),
            )  # fmt: skip
    actions = read_commits(store, commits)
    head = CheckpointHead(
        state.protocol, state.metadata, dict(state.txns), dict(state.domains), state.row_id_high_water_mark
    )
    segment = replace(
        state.segment,
        version=state.version + len(commits),
        commits=(*state.segment.commits, *commits),
        timestamp_ms=commits[-1].modified_ms,
        last=commits[-1],
    )
    _judge(segment, head, actions, ensure_readable)
    merged = _merge(segment, head, actions, (state.files.to_batches(), state.tombstones.to_batches()))
    return replace(merged, deferred=state.deferred)


def _load(store: Store, segment: LogSegment, ensure_readable: Gate, max_checkpoint_bytes: int | None) -> LogState:
    head = read_checkpoint_head(store, segment.checkpoint)
    actions = _read_entries(store, segment, head)
    _judge(segment, head, actions, ensure_readable)
    sources = file_sources(segment.checkpoint, head)
    deferred: tuple[ObjectInfo, ...] = ()
    if max_checkpoint_bytes is not None and _are_large(store, sources, head, max_checkpoint_bytes):
        deferred = tuple(info for info in sources if not info.path.endswith(".json"))
        sources = [info for info in sources if info.path.endswith(".json")]
    return replace(_merge(segment, head, actions, read_checkpoint_files(store, sources)), deferred=deferred)


def _are_large(store: Store, sources: Sequence[ObjectInfo], head: CheckpointHead, max_bytes: int) -> bool:
    """Whether the files of a checkpoint list more than should be held. Some writers need five bytes an action."""
    if max(sum(info.size for info in sources), head.rows * ACTION_BYTES) > max_bytes:
        return True
    sidecars = [info for info in sources if info.path.startswith(f"{SIDECAR_DIRECTORY}/")]
    if sum(info.size for info in sidecars) * _SMALL <= max_bytes:
        return False
    return (head.rows + count_checkpoint_rows(store, sidecars)) * ACTION_BYTES > max_bytes


def _read_entries(store: Store, segment: LogSegment, head: CheckpointHead) -> CommitActions:
    """The commits of a segment, by way of log compactions where those are sound and lead to the same."""
    entries = choose_compactions(segment.commits, segment.compactions)
    # With domains before the range, the answer of `_is_sound` is known.
    if not compacted(entries) or (head.domains and may_lack_domains(entries)):
        return read_commits(store, segment.commits)
    try:
        actions = _read_reconciled(store, entries)
    except AlluviumError as error:
        if error.path not in {info.path for info, _ in compacted(entries)}:
            raise
        actions = None
    if actions is not None and _is_sound(segment, entries, head, actions):
        return actions
    # A compaction is an offer; the commits that it stands for are all there.
    return read_commits(store, segment.commits)


def _read_reconciled(store: Store, entries: Sequence[ObjectInfo]) -> CommitActions | None:
    """Commits and compactions; None where one of these is not reconciled."""
    compactions = {info for info, _ in compacted(entries)}
    actions = CommitActions()
    for is_compaction, run in groupby(entries, key=compactions.__contains__):
        for files in [[info] for info in run] if is_compaction else [list(run)]:
            found = read_commits(store, files, actions.lines)
            if is_compaction and not is_reconciled(found):
                return None
            actions = actions.followed_by(found)
    return actions


def _is_sound(segment: LogSegment, entries: Sequence[ObjectInfo], head: CheckpointHead, actions: CommitActions) -> bool:
    metadata = actions.metadata or head.metadata
    if actions.damage or actions.metadata_damage or metadata is None:
        return False
    if actions.domains and may_lack_domains(entries):
        return False
    try:
        retention_ms = parse_properties(metadata.configuration).deleted_file_retention_ms
    except InvalidRequest:
        return False
    return not may_lack_removes(entries, segment.commits, retention_ms)


def _judge(segment: LogSegment, head: CheckpointHead, actions: CommitActions, ensure_readable: Gate) -> None:
    """The protocol first: what follows may mean something else, or look damaged, under one that we do not know."""
    protocol = actions.protocol or head.protocol
    if protocol is not None:
        ensure_readable(protocol)
    if damage := actions.damage or actions.metadata_damage:
        raise damage
    for name, found in (("protocol", protocol), ("metaData", actions.metadata or head.metadata)):
        if found is None:
            raise CorruptTable(
                f"the log up to version {segment.version} holds no {name} action",
                code="no-protocol" if name == "protocol" else "no-metadata",
                version=segment.version,
                hint="the first version of a table must hold both; restore the log from a copy",
            )


def _merge(
    segment: LogSegment,
    head: CheckpointHead,
    actions: CommitActions,
    older: tuple[list[pa.RecordBatch], list[pa.RecordBatch]],
) -> LogState:
    protocol, metadata = actions.protocol or head.protocol, actions.metadata or head.metadata
    if protocol is None or metadata is None:
        raise CorruptTable("the log holds no protocol or no metaData action", code="no-protocol")
    files, tombstones = reconcile(*older, actions.adds, actions.removes)
    domains = {**head.domains, **actions.domains}
    return LogState(
        segment=segment,
        protocol=protocol,
        metadata=metadata,
        files=files,
        tombstones=tombstones,
        txns={**head.txns, **actions.txns},
        # "Snapshot reads do _not_ return removed `domainMetadata` actions."
        domains={name: domain for name, domain in domains.items() if not domain.removed},
        row_id_high_water_mark=actions.row_id_high_water_mark or head.row_id_high_water_mark,
    )

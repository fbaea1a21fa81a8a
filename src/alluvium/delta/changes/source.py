"""The change feed of a range of versions, loaded once, as a source of scan plans for engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from alluvium.delta.changes.bounds import Bound, Clock, Range, resolve_range
from alluvium.delta.changes.files import group_changes
from alluvium.delta.changes.head import load_head
from alluvium.delta.changes.incomplete import complete_removes
from alluvium.delta.changes.plan import Feed, lay_out, plan_changes
from alluvium.delta.changes.schema import Change, SchemaMode, choose_config, ensure_compatible, ensure_recorded
from alluvium.delta.features.log.in_commit_timestamp import enablement
from alluvium.delta.features.registry import ensure_readable, ensure_readable_protocol
from alluvium.delta.log.read_changes import CHANGED_FILES, CommitChanges, read_changes
from alluvium.delta.log.segment import list_log
from alluvium.delta.terms.actions import total
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.delta.terms.spec import Metadata, Protocol
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.expr.tree import Expression
from alluvium.plan.scan import ScanPlan
from alluvium.schema.types import Struct
from alluvium.storage.locating import locating

#: Commits before the range whose times are looked at, since a file's time counts as later than those before it.
_TIMES_BEFORE = 100


@dataclass(frozen=True, slots=True)
class ChangeSource:
    """Implements `plan.ports.ScanSource` for the changes of some versions of a Delta table."""

    snapshot: Snapshot
    range: Range
    feed: Feed

    @property
    def identity(self) -> tuple[str, ...]:
        s, versions = self.snapshot, f"{self.range.first}..{self.range.last}"
        config = self.feed.config
        shown = (config.metadata.schema_string, config.mapping_mode)
        return (s.store.url, versions, "changes", config.metadata.id, str(s.timestamp_ms), s.time_zone, *shown)

    @property
    def size_bytes(self) -> int:
        return sum(total(layout.group.files["size"]) for layout in self.feed.layouts)

    @property
    def schema(self) -> Struct:
        """The columns of the feed."""
        return plan_changes(self.feed).schema

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        with locating(self.snapshot.store, None):
            return plan_changes(self.feed, where)


def load_changes(
    snapshot: Snapshot,
    start: Bound,
    end: Bound | None = None,
    *,
    schema_mode: SchemaMode = "endVersion",
    allow_out_of_range: bool = False,
) -> ChangeSource:
    """Reads the log of a range of versions, each entry once.

    Args:
        snapshot: The latest version that counts.
        start: The first version, or the first one at or after a time.
        end: The last version, or the last one at or before a time; None: the latest.
        schema_mode: Whose columns the feed of a table with column mapping has.
        allow_out_of_range: A range beyond the latest version is empty, and not an error.

    Raises:
        NotFound: The range is not in the log, or not any more (`missing-version`).
        InvalidRequest: The range ends before it starts (`invalid-range`), changes were not recorded in all of it
            (`change-feed-disabled`), or it has no common schema (`incompatible-schema`).
        CorruptTable: The log breaks the specification.
        UnsupportedFeature: A version of the range needs a reader that we are not.
    """
    with locating(snapshot.store, None):
        clock, wanted = _resolve(snapshot, start, end, allow_out_of_range)
        if wanted.is_empty:
            return ChangeSource(snapshot, wanted, feed_of(snapshot, snapshot.config, (), {}, ()))
        listed = clock.commits
        commits = read_changes(snapshot.store, [listed[v] for v in range(wanted.first, wanted.last + 1)])
        configs = _configs(snapshot, commits)
        ensure_recorded(configs, wanted.first, wanted.last)
        config = choose_config(snapshot.config, configs, schema_mode)
        ensure_compatible(config, configs, wanted.first, wanted.last)
        return ChangeSource(snapshot, wanted, feed_of(snapshot, config, commits, times_of(commits, clock), configs))


def _resolve(snapshot: Snapshot, start: Bound, end: Bound | None, allow_out_of_range: bool) -> tuple[Clock, Range]:
    """A range by version needs the end of the log only, one by time all of it."""
    by_time = start.version is None or (end is not None and end.version is None)
    first = 0 if by_time or start.version is None else min(start.version, snapshot.version) - _TIMES_BEFORE
    listing = list_log(snapshot.store, max(0, first))
    commits = {version: info for version, info in listing.commits.items() if version <= snapshot.version}
    clock = Clock(snapshot.store, commits, enablement(snapshot.config))
    return clock, resolve_range(clock, snapshot.version, start, end, allow_out_of_range=allow_out_of_range)


def _configs(snapshot: Snapshot, commits: Sequence[CommitChanges]) -> tuple[Change, ...]:
    """The table at the first version, and wherever it changes.

    Raises:
        UnsupportedFeature: One of them needs a reader that we are not.
    """
    first = commits[0]
    if commits[-1].version == snapshot.version and all(c.protocol is None and c.metadata is None for c in commits[1:]):
        # Nothing has changed since: what is known of the latest version was true at the first.
        return ((first.version, snapshot.config),)
    protocol, metadata = first.protocol, first.metadata
    if protocol is None or metadata is None:
        older_protocol, older_metadata = load_head(snapshot.store, first.version)
        protocol, metadata = protocol or older_protocol, metadata or older_metadata
    configs: list[Change] = [(first.version, _readable(protocol, metadata))]
    for commit in commits[1:]:
        if commit.protocol is not None or commit.metadata is not None:
            protocol, metadata = commit.protocol or protocol, commit.metadata or metadata
            configs.append((commit.version, _readable(protocol, metadata)))
    return tuple(configs)


def _readable(protocol: Protocol, metadata: Metadata) -> TableConfig:
    ensure_readable_protocol(protocol)
    config = parse_config(protocol, metadata)
    ensure_readable(config)
    return config


def feed_of(
    snapshot: Snapshot,
    config: TableConfig,
    commits: Sequence[CommitChanges],
    times: Mapping[int, int],
    configs: Sequence[Change],
) -> Feed:
    """The changes of some versions.

    Args:
        snapshot: A version at or after all of them, for the table's objects.
        config: The table whose columns are shown.
        commits: What the versions did, ascending.
        times: When they were committed, milliseconds since 1970 UTC.
        configs: The table as it was in between.
    """
    added = pa.concat_tables([CHANGED_FILES.empty_table(), *(c.added for c in commits)])
    groups = complete_removes(group_changes(commits), added, _older_files(snapshot, commits))
    loosened = frozenset(
        f.name for f in config.schema.fields if not f.nullable and any(_may_lack(f.name, older) for _, older in configs)
    )
    layouts = lay_out(groups, config, times, snapshot.time_zone)
    return Feed(config, layouts, times, loosened, snapshot.store, snapshot.open_store, snapshot.time_zone)


def _may_lack(name: str, config: TableConfig) -> bool:
    found = config.schema.find(name)
    return found is None or found.nullable


def times_of(commits: Sequence[CommitChanges], clock: Clock) -> Mapping[int, int]:
    """When versions were committed. "In-Commit Timestamps" stand in the commits, which are read already."""
    for commit in commits:
        carried = None if commit.info is None else commit.info.in_commit_timestamp
        if carried is not None and clock.is_carried(commit.version):
            clock.learn(commit.version, carried)
    return {commit.version: clock.time_of(commit.version) for commit in commits}


def _older_files(snapshot: Snapshot, commits: Sequence[CommitChanges]) -> Callable[[], pa.Table]:
    def load() -> pa.Table:
        before = commits[0].version - 1
        if before < 0:
            return CHANGED_FILES.empty_table()
        return load_snapshot(snapshot.store, before, time_zone=snapshot.time_zone).files

    return load

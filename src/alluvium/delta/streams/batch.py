"""The files of a batch as sources of scan plans for engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.columns import repeated
from alluvium.delta.changes.plan import Feed, plan_changes
from alluvium.delta.changes.source import feed_of
from alluvium.delta.log.read_changes import CommitChanges
from alluvium.delta.terms.actions import total
from alluvium.delta.terms.spec import FILES
from alluvium.delta.view.scan import Selection, plan_files, select_among
from alluvium.delta.view.snapshot import Snapshot
from alluvium.errors import AlluviumError
from alluvium.expr.tree import Expression
from alluvium.plan.ports import ScanSource
from alluvium.plan.scan import Literal, OutputColumn, ScanPlan
from alluvium.schema.types import Field, Struct
from alluvium.storage.locating import locating


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """Implements `plan.ports.ScanSource` for files that versions of a range added.

    Attributes:
        snapshot: The table whose columns are shown.
        files: The files (`FILES`), no path twice.
        span: What tells the range from others.
    """

    snapshot: Snapshot
    files: pa.Table
    span: tuple[str, ...]

    @property
    def identity(self) -> tuple[str, ...]:
        s = self.snapshot
        return (s.store.url, str(s.version), s.config.metadata.id, "stream", s.time_zone, *self.span)

    @property
    def size_bytes(self) -> int:
        return total(self.files["size"])

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        s = self.snapshot
        with locating(s.store, None):
            chosen = Selection(self.files, repeated(False, self.files.num_rows))
            if where is not None:
                chosen = select_among(self.files, where, s.config, s.time_zone, s.statistics)
            return plan_files(s, chosen.files, skipped=chosen.skipped, are_live=False)


@dataclass(frozen=True, slots=True)
class BatchChanges:
    """The same for the changes of a range."""

    snapshot: Snapshot
    feed: Feed
    span: tuple[str, ...]

    @property
    def identity(self) -> tuple[str, ...]:
        s = self.snapshot
        return (s.store.url, str(s.version), s.config.metadata.id, "stream of changes", s.time_zone, *self.span)

    @property
    def size_bytes(self) -> int:
        return sum(total(layout.group.files["size"]) for layout in self.feed.layouts)

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        with locating(self.snapshot.store, None):
            return plan_changes(self.feed, where)


@dataclass(frozen=True, slots=True)
class LostBatch:
    """The same for a range that the log has no more, or that may not be read: it fails where somebody reads it.

    On a restart Spark asks for the last batch again, and drops it.

    Attributes:
        snapshot: The table whose columns are shown.
        error: What is wrong.
        span: What tells the range from others.
        extra: Columns beside the table's.
    """

    snapshot: Snapshot
    error: AlluviumError
    span: tuple[str, ...]
    extra: tuple[Field, ...] = ()

    @property
    def identity(self) -> tuple[str, ...]:
        s = self.snapshot
        return (s.store.url, str(s.version), s.config.metadata.id, "lost", s.time_zone, *self.span)

    @property
    def size_bytes(self) -> int:
        return 0

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        if where is not None:
            raise self.error
        plan = plan_files(self.snapshot, FILES.empty_table())
        more = tuple(OutputColumn(f.name, f.type, True, Literal(None, f.type)) for f in self.extra)
        # Parts that are not complete are asked for again by those who read them.
        parts = tuple(replace(part, is_complete=False, output=(*part.output, *more)) for part in plan.parts)
        return replace(plan, parts=parts, schema=Struct((*plan.schema.fields, *self.extra)))


def row_sources(snapshot: Snapshot, files: pa.Table, span: tuple[str, ...]) -> tuple[ScanSource, ...]:
    """The rows of files that versions added (`CHANGED_FILES`), by as few sources as can be; none where there are none.

    A path stands once in a source: it may have been added again with another vector. A table that was partitioned anew
    has files with values of other columns. "Actual partition values for a file must be read from the transaction log":
    what has none there stands in the file.
    """
    found: list[ScanSource] = []
    for columns, laid_out in _by_columns(snapshot, files):
        own = replace(snapshot, config=replace(snapshot.config, partition_columns=columns), _found={})
        for n, each in enumerate(_by_turn(laid_out)):
            found.append(BatchFiles(own, _as_live(each), (*span, ",".join(columns), str(n))))
    return tuple(found)


def change_sources(
    snapshot: Snapshot, commits: Sequence[CommitChanges], times: Mapping[int, int], span: tuple[str, ...]
) -> tuple[ScanSource, ...]:
    """What versions did, by one source; none where they did nothing."""
    feed = feed_of(snapshot, snapshot.config, commits, times, ()) if commits else None
    return (BatchChanges(snapshot, feed, span),) if feed is not None and feed.layouts else ()


def _by_columns(snapshot: Snapshot, files: pa.Table) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
    if not files.num_rows:
        return
    config = snapshot.config
    own = {config.physical_names[name] for name in config.partition_columns}
    values = files["partitionValues"].combine_chunks()
    # Asked for all values of a key, which are none at all (null) only where the key is missing.
    counts = [pc.map_lookup(values, name, "all").null_count for name in own]
    if set(pc.unique(values.keys).to_pylist()) == own and not any(counts):
        yield config.partition_columns, files
        return
    logical = {physical: name for name, physical in config.physical_names.items()}
    kinds = [tuple(sorted(key for key, _ in entry if key in logical)) for entry in values.to_pylist()]
    for kind in dict.fromkeys(kinds):
        mask = pa.array([each == kind for each in kinds])
        yield tuple(logical[key] for key in kind), files.filter(mask)


def _by_turn(files: pa.Table) -> Iterator[pa.Table]:
    """Files whose paths differ, as often as it takes."""
    while files.num_rows:
        paths = files["path"].combine_chunks()
        rows = pa.array(range(files.num_rows), pa.int32()) if len(pc.unique(paths)) < files.num_rows else None
        if rows is None:
            yield files
            return
        is_first = pc.equal(pc.index_in(paths, value_set=paths), rows)
        yield files.filter(is_first)
        files = files.filter(pc.invert(is_first))


def _as_live(files: pa.Table) -> pa.Table:
    """`CHANGED_FILES` as `FILES`; what a scan does not ask for is null."""
    count = files.num_rows
    columns = []
    for field in FILES:
        if field.name in files.column_names:
            columns.append(files[field.name].cast(field.type))
        elif field.name == "dataChange":
            columns.append(pa.chunked_array([repeated(True, count)], pa.bool_()))
        else:
            columns.append(pa.chunked_array([pa.nulls(count, field.type)], field.type))
    return pa.Table.from_arrays(columns, schema=FILES)

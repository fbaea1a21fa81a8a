"""Groups of changed files as a scan plan: columns of the table, and three that say what happened when.

Every group is a part of the plan; `_commit_version` and `_commit_timestamp` are constants of a file, `_change_type` is
one for the group, or a column of the files. So any engine reads a feed, and knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.changes.files import ChangedRows, FileGroup, keys_of
from alluvium.delta.changes.schema import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, EXTRA_COLUMNS
from alluvium.delta.features.feature import ScanContext
from alluvium.delta.features.registry import SCAN_PASSES
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import FILES
from alluvium.delta.view.partitions import partition_constants
from alluvium.delta.view.scan import data_paths
from alluvium.expr.skipping.prune import prune
from alluvium.expr.tree import Expression, column_paths, conjunction, conjuncts
from alluvium.plan.scan import FileConstant, Literal, OutputColumn, Physical, ScanPart, ScanPlan
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.storage.store import Store

_SEPARATOR = "\0"
_CONSTANTS = {(name,) for name in EXTRA_COLUMNS.names}


@dataclass(frozen=True, slots=True)
class Feed:
    """The changes of some versions, loaded.

    Attributes:
        config: The table whose columns are shown.
        layouts: The files, by how they are laid out; see `Layout`.
        times: When each version was committed, milliseconds since 1970 UTC.
        loosened: Columns that are not null in `config`, though there are rows without them in the range.
        store: The table's objects.
        open_store: From a URL to its store, for files that lie outside the table.
        time_zone: In which partition values without a zone are read.
    """

    config: TableConfig
    layouts: tuple[Layout, ...]
    times: Mapping[int, int]
    loosened: frozenset[str]
    store: Store
    open_store: Callable[[str], Store]
    time_zone: str

    @property
    def schema(self) -> Struct:
        """The columns of the feed."""
        own = (replace(f, nullable=f.nullable or f.name in self.loosened) for f in self.config.schema.fields)
        return Struct((*own, *EXTRA_COLUMNS.fields))


@dataclass(frozen=True, slots=True)
class Layout:
    """Files of one group whose partition values are of the same columns.

    Attributes:
        group: The files, and which of their rows are changes.
        config: As that of the feed, but partitioned as these files are.
        statistics: Of the files, decoded when a predicate first asks for them.
    """

    group: FileGroup
    config: TableConfig
    statistics: ChangeStatistics

    @property
    def key(self) -> str:
        """Tells the part from others of the feed."""
        return f"{self.group.name}[{','.join(self.config.partition_columns)}]"


class ChangeStatistics:
    """What is known of files in a feed, the extra columns included; implements `expr.prune.FileStatistics`.

    Bounds hold for any of a file's rows, so for the changed ones, too.
    """

    def __init__(self, own: AddStatistics, constants: Mapping[str, pa.Array]) -> None:
        self._own = own
        self._constants = constants

    @property
    def num_files(self) -> int:
        return self._own.num_files

    def prepare(self, paths: set[tuple[str, ...]]) -> None:
        self._own.prepare(paths - _CONSTANTS)

    def exact(self, path: tuple[str, ...]) -> pa.Array | None:
        found = self._constants.get(path[0]) if len(path) == 1 else None
        return self._own.exact(path) if found is None else found

    def lower(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._own.lower(path)

    def upper(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._own.upper(path)

    def null_count(self, path: tuple[str, ...]) -> pa.Array | None:
        return self._own.null_count(path)

    def num_rows(self) -> pa.Array | None:
        return self._own.num_rows()


def lay_out(
    groups: tuple[FileGroup, ...], config: TableConfig, times: Mapping[int, int], time_zone: str
) -> tuple[Layout, ...]:
    """Splits groups by the columns that their files have partition values of: nearly always the same for all."""
    return tuple(
        Layout(part, laid_out, _statistics(part, laid_out, times, time_zone))
        for group in groups
        for part, laid_out in _by_columns(group, config)
    )


def _by_columns(group: FileGroup, config: TableConfig) -> Iterator[tuple[FileGroup, TableConfig]]:
    """A table may have been partitioned anew in the range. "Actual partition values for a file must be read from the
    transaction log": what has none there stands in the file.
    """
    logical = {physical: name for name, physical in config.physical_names.items()}
    values = group.files["partitionValues"].combine_chunks()
    present = [name for name in pc.unique(values.keys).to_pylist() if name in logical]
    # Asked for all values of a key, which are none at all (null) only where the key is missing.
    has = {name: pc.is_valid(pc.map_lookup(values, name, "all")) for name in present}
    own = {config.physical_names[name] for name in config.partition_columns}
    if has.keys() == own and all(found.true_count == group.files.num_rows for found in has.values()):
        yield group, config
        return
    signature = pa.repeat(pa.scalar("", pa.string()), group.files.num_rows)
    for name in sorted(present):
        signature = pc.binary_join_element_wise(signature, pc.if_else(has[name], f"{name}{_SEPARATOR}", ""), "")
    for text in pc.unique(signature).to_pylist():
        columns = tuple(logical[name] for name in text.split(_SEPARATOR) if name)
        yield _filtered(group, pc.equal(signature, text)), replace(config, partition_columns=columns)


def _filtered(group: FileGroup, chosen: pa.Array) -> FileGroup:
    return replace(
        group,
        files=group.files.filter(chosen),
        vectors=None if group.vectors is None else group.vectors.filter(chosen),
        without=None if group.without is None else group.without.filter(chosen),
    )


def _statistics(group: FileGroup, config: TableConfig, times: Mapping[int, int], time_zone: str) -> ChangeStatistics:
    files = group.files
    own = AddStatistics(files, config.schema, config.partition_columns, config.physical_paths, time_zone)
    versions = files["version"].combine_chunks()
    constants = {COMMIT_VERSION: versions, COMMIT_TIMESTAMP: _timestamps(versions, times)}
    if group.change_type is not None:
        constants[CHANGE_TYPE] = pa.repeat(pa.scalar(group.change_type, pa.string()), files.num_rows)
    return ChangeStatistics(own, constants)


def _timestamps(versions: pa.Array, times: Mapping[int, int]) -> pa.Array:
    encoded = versions.dictionary_encode()
    micros = pa.array([times[version] * 1000 for version in encoded.dictionary.to_pylist()], pa.int64())
    return micros.cast(pa.timestamp("us", tz="UTC")).take(encoded.indices)


def plan_changes(feed: Feed, where: Expression | None = None) -> ScanPlan:
    """How to read the changes for which `where` may be true."""
    parts: list[ScanPart] = []
    by_constants = by_statistics = 0
    for layout in feed.layouts:
        kept, of_constants, of_statistics = _select(layout, where, feed.time_zone)
        by_constants, by_statistics = by_constants + of_constants, by_statistics + of_statistics
        part = _part(layout, kept, feed)
        if part.files.num_rows:
            parts.append(part)
    return ScanPlan(
        root=feed.store.url,
        parts=tuple(parts),
        schema=_passed(feed.schema, (), feed.config, feed).schema,
        partition_columns=(*feed.config.partition_columns, COMMIT_VERSION, COMMIT_TIMESTAMP),
        skipped=(("partition", by_constants), ("statistics", by_statistics)),
    )


def _select(layout: Layout, where: Expression | None, time_zone: str) -> tuple[pa.Array | None, int, int]:
    """Which files to read (None: all), and how many were left out by constants and by statistics."""
    if where is None:
        return None, 0, 0
    statistics = layout.statistics
    constant = {*((name,) for name in layout.config.partition_columns), *_CONSTANTS}
    if layout.group.change_type is None:
        constant.discard((CHANGE_TYPE,))
    on_constants = conjunction(tuple(c for c in conjuncts(where) if column_paths(c) <= constant))
    kept = pa.repeat(True, statistics.num_files)
    if on_constants is not None:
        kept = prune(on_constants, statistics, time_zone)
    of_constants = statistics.num_files - kept.true_count
    if on_constants == where or not kept.true_count:
        return kept, of_constants, 0
    statistics.prepare(set(column_paths(where)))
    sharper = pc.and_(kept, prune(where, statistics, time_zone))
    return sharper, of_constants, kept.true_count - sharper.true_count


def _part(layout: Layout, kept: pa.Array | None, feed: Feed) -> ScanPart:
    group, config = layout.group, layout.config
    files = _scan_files(group.files if kept is None else group.files.filter(kept), config, feed)
    change_type: Literal | Physical = Physical((CHANGE_TYPE,), t.STRING)
    read = config.data_columns.fields
    if group.change_type is None:
        # "In addition to the data columns, change data files contain additional columns that identify the type of
        # change event"
        read = (*read, Field(CHANGE_TYPE, t.STRING))
    else:
        change_type = Literal(group.change_type, t.STRING)
    output = (
        *(_output(f, config) for f in feed.schema.fields[: -len(EXTRA_COLUMNS.fields)]),
        OutputColumn(CHANGE_TYPE, t.STRING, True, change_type),
        OutputColumn(COMMIT_VERSION, t.LONG, True, FileConstant(COMMIT_VERSION, t.LONG)),
        OutputColumn(COMMIT_TIMESTAMP, t.TIMESTAMP, True, FileConstant(COMMIT_TIMESTAMP, t.TIMESTAMP)),
    )
    part = ScanPart(layout.key, files, "parquet", Struct(tuple(read)), output)
    (mapped,) = _passed(feed.schema, (part,), config, feed).parts
    if group.vectors is None:
        return mapped
    keys = keys_of(data_paths(group.files), group.files["version"])
    counts = layout.statistics.num_rows()
    num_records = pa.nulls(len(keys), pa.int64()) if counts is None else counts
    masks = ChangedRows(keys, group.vectors, group.without, num_records, feed.store, feed.open_store)
    return replace(mapped, masks=masks, keeps_masked=group.keeps_listed)


def _passed(schema: Struct, parts: tuple[ScanPart, ...], config: TableConfig, feed: Feed) -> ScanPlan:
    """A plan over logical names as the table's features want it. Vectors are not theirs: the files are not live."""
    plan = ScanPlan(feed.store.url, parts, schema)
    context = ScanContext(config, FILES.empty_table(), feed.store, feed.time_zone, feed.open_store)
    for edit in SCAN_PASSES:
        plan = edit(plan, context)
    return plan


def _output(f: Field, config: TableConfig) -> OutputColumn:
    value = FileConstant(f.name, f.type) if f.name in config.partition_columns else Physical((f.name,), f.type)
    return OutputColumn(f.name, f.type, f.nullable, value)


def _scan_files(files: pa.Table, config: TableConfig, feed: Feed) -> pa.Table:
    own = partition_constants(files, config, feed.time_zone)
    versions = files["version"].combine_chunks()
    extra = {COMMIT_VERSION: versions, COMMIT_TIMESTAMP: _timestamps(versions, feed.times)}
    constants = pa.StructArray.from_arrays(
        [*own.flatten(), *extra.values()], fields=[*own.type, *(pa.field(name, a.type) for name, a in extra.items())]
    )
    return pa.table(
        {
            "path": data_paths(files),
            "size": files["size"],
            "modification_time_ms": pc.fill_null(files["modificationTime"], 0),
            "num_rows": pa.nulls(files.num_rows, pa.int64()),
            "constants": constants,
            "mask": pa.nulls(files.num_rows, pa.binary()),
        }
    )

"""Rows of a DataFrame into a table: append, overwrite, create. One path for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from alluvium.codecs.footers.orc_footer import read_orc_footer
from alluvium.codecs.footers.parquet_footer import FileFooter, FooterColumn, read_footer
from alluvium.codecs.partition_path import parse_partition_path
from alluvium.commands.any_rows import read_any
from alluvium.commit.clear import clear
from alluvium.commit.loop import NOTHING_STANDS
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest, NotFound
from alluvium.plan.changes import (
    Append,
    Committed,
    NewFiles,
    Operation,
    Overwrite,
    ReadScope,
    Rearrange,
    Replace,
    WrittenRows,
)
from alluvium.plan.ports import ScanSource, Target
from alluvium.plan.write import WRITTEN_FILES, Numbered, WritePlan
from alluvium.schema.types import LONG
from alluvium.spark.assigned import in_buckets
from alluvium.spark.crossing import across_partitions
from alluvium.spark.run_ends import with_ends
from alluvium.spark.sessions.session import is_connect
from alluvium.spark.unseen import ensure_none_hidden
from alluvium.spark.values.columns import Assignment
from alluvium.spark.values.derive import CompleteRows, complete
from alluvium.spark.workers.worker_files import OpenStore
from alluvium.spark.write import STAGED_MARK, write_files
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import ObjectInfo, Store


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What the caller asked for, format-neutral.

    Attributes:
        replace: None for an append.
        operation: Provenance; its metrics are filled in by the target.
        read: What the rows depend on, beside what they replace.
        txn: An application's id and version; a version already seen makes the write a no-op.
        options: For Spark's own writer.
        assignment: Which types of the rows may go into which types of the table.
        data_change: False: the rows are those that they replace, only rearranged.
        rebalance: Whether to move rows between tasks for few files of the right size; None: as the table wants it.
        open_store: The table's objects for Python workers, where Spark's own writer cannot write its files.
        sort: Columns by which rows are sorted within files; None: as the table wants it.
    """

    replace: Replace | None
    operation: Operation
    read: ReadScope
    txn: tuple[str, int] | None = None
    options: tuple[tuple[str, str], ...] = ()
    assignment: Assignment = Assignment.EXACT
    data_change: bool = True
    rebalance: bool | None = None
    open_store: OpenStore | None = None
    sort: tuple[str, ...] | None = None


def write_rows(df: DataFrame, target: Target, request: WriteRequest) -> Committed:
    """Writes the rows as new files and commits them.

    A failed job leaves no visible trace: the files of an attempt that certainly did not commit are deleted;
    those of an attempt whose outcome is unknown are kept, for they may be part of the table.

    Raises:
        InvalidRequest: The rows do not fit the table; the table is as it was.
        CommitConflict: Another writer won; the table is as the winner left it.
        CommitUnknown: The store did not say whether the commit stands.
    """
    plan = arranged_as(request, target.plan_write(request.replace, request.options))
    rows = complete(df, target.schema, plan, request.assignment)
    numbered = tuple(n for n in plan.numbered if n.column in rows.numbered)
    try:
        changes = _changes(request, new_files(rows, target.store, plan, numbered, request.open_store))
    except BaseException:
        clear(target.store, plan.directory)
        raise
    try:
        committed = target.commit(changes)
    except BaseException as error:
        # What has been moved is no longer here: whoever moved it knows whether it may be part of the table.
        if plan.is_staged or isinstance(error, NOTHING_STANDS):
            clear(target.store, plan.directory)
        raise
    if committed.attempts == 0 or plan.is_staged:
        clear(target.store, plan.directory)
    return committed


def new_files(
    rows: CompleteRows,
    store: Store,
    plan: WritePlan,
    numbered: Sequence[Numbered] = (),
    open_store: OpenStore | None = None,
) -> NewFiles:
    """Writes complete rows into files that nothing names yet.

    Args:
        rows: What to write.
        store: The table's objects.
        plan: As the table made it.
        numbered: Columns that the job numbers itself.
        open_store: The table's objects for Python workers.

    Raises:
        InvalidRequest: As of `write_files`.
        UnsupportedFeature: As of `ensure_none_hidden`.
    """
    placed, done, assigned = rows.df, rows.plan, None

    def read(source: ScanSource) -> DataFrame:
        return read_any(placed.sparkSession, source, open_store, reads_whole=True)

    if done.unseen is not None:
        ensure_none_hidden(placed, done.unseen, done.root, read)
    if done.crossing is not None:
        placed, done = across_partitions(placed, done, done.crossing, read)
    elif done.assigned is not None:
        placed, done, assigned = in_buckets(placed, done, done.assigned)
    counted = write_here(placed, store, done, open_store)
    written, footers, reached = numbered_files(store, plan, numbered, counted)
    if plan.keyed is not None:
        footers = with_ends(placed.sparkSession, plan, plan.keyed, written["path"].to_pylist(), footers)
    return NewFiles(written, footers, reached, bool(numbered), assigned, done.rebalance)


def arranged_as(request: WriteRequest, plan: WritePlan) -> WritePlan:
    """The plan, with what the request says of where rows stand."""
    rebalance = plan.rebalance if request.rebalance is None else request.rebalance
    return replace(plan, rebalance=rebalance, sort=plan.sort if request.sort is None else request.sort)


def _changes(request: WriteRequest, new: NewFiles) -> WrittenRows:
    if request.replace is None:
        return Append(new, request.operation, request.read, request.txn)
    if not request.data_change:
        return Rearrange(new, request.replace, request.operation, request.txn)
    return Overwrite(new, request.replace, request.operation, request.read, request.txn)


def write_here(
    df: DataFrame, store: Store, plan: WritePlan, open_store: OpenStore | None = None
) -> Mapping[str, FileFooter | None] | None:
    """Writes rows as files of a store that this client lists, too; arguments and result as of `write_files`.

    Raises:
        InvalidRequest: As of `write_files`, and `"unreachable-storage"`.
    """
    counted = write_files(df.sparkSession, df, plan, open_store)
    if is_connect(df.sparkSession) and counted is None:
        ensure_seen(store, plan)
    return counted


def ensure_seen(store: Store, plan: WritePlan) -> None:
    """Finds the marker that Spark leaves when a job has ended, and deletes it.

    Raises:
        InvalidRequest: `"unreachable-storage"`: the job has ended, and nothing is here.
    """
    marker = f"{plan.directory}/_SUCCESS"
    try:
        store.head(marker)
    except NotFound as error:
        raise InvalidRequest(
            "the Connect server wrote the files to a storage that this client does not see under the same address",
            code="unreachable-storage",
            url=store.url,
            hint="use an object store that both have credentials for; delete what the server wrote: "
            f"{plan.root.rstrip('/')}/{plan.directory}",
        ) from error
    store.delete(marker)


def numbered_files(
    store: Store, plan: WritePlan, numbered: Sequence[Numbered], counted: Mapping[str, FileFooter | None] | None = None
) -> tuple[pa.Table, tuple[FileFooter, ...], dict[str, int]]:
    """`written_files`, and the furthest number in each column that the job numbered.

    Raises:
        CorruptTable: A file does not tell the bounds of its numbers (`"damaged-file"`).
    """
    written, footers = written_files(store, _with_bounds_of(plan, numbered), counted)
    return written, _without_others(plan, footers), _reached(plan, numbered, footers)


def written_files(
    store: Store, plan: WritePlan, counted: Mapping[str, FileFooter | None] | None = None
) -> tuple[pa.Table, tuple[FileFooter, ...]]:
    """What a job left in its directory: a row of `WRITTEN_FILES` and a footer for each file that has rows.

    Args:
        store: The table's objects.
        plan: What was written.
        counted: The files that count, with the footers of those that have none; None: all that are there.
    """
    found = _data_files(store, plan.directory)
    objects = sorted((o for o in found if counted is None or o.path in counted), key=lambda o: o.path)
    told = counted or {}
    footers = map_parallel(lambda o: told.get(o.path) or _footer(store, o, plan), objects)
    pairs = []
    for one, footer in zip(objects, footers, strict=True):
        if footer.num_rows:
            pairs.append((one, footer))
        else:
            # Spark leaves a file without rows so that the schema is not lost; the log knows the schema.
            store.delete(one.path)
    names = len(plan.partition_by)
    table = pa.Table.from_pydict(
        {
            "path": [o.path for o, _ in pairs],
            "size": [o.size for o, _ in pairs],
            "modification_time_ms": [o.modified_ms for o, _ in pairs],
            "num_rows": [footer.num_rows for _, footer in pairs],
            "partition": [_partition(o.path, names, plan) for o, _ in pairs],
            "bucket": [_bucket(o.path) if plan.has_buckets else None for o, _ in pairs],
        },
        schema=WRITTEN_FILES,
    )
    return table, tuple(footer for _, footer in pairs)


def _data_files(store: Store, directory: str) -> Sequence[ObjectInfo]:
    """The files that the job has committed: not those below `_temporary`, where attempts that died leave theirs, even
    after the job; nor whatever else Hadoop hides.
    """
    above = len(directory) + 1

    def is_data(path: str) -> bool:
        *folders, name = path[above:].split("/")
        # A partition's folder may begin as the name of its column does.
        return not _is_hidden(name) and not any(_is_hidden(folder) and "=" not in folder for folder in folders)

    return [o for o in store.list_tree(directory) if is_data(o.path)]


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _footer(store: Store, found: ObjectInfo, plan: WritePlan) -> FileFooter:
    read = read_orc_footer if plan.file_format == "orc" else read_footer
    try:
        return read(store.open_input(found.path), plan.stats_columns)
    except AlluviumError as error:
        error.path = error.path or found.path
        raise


def _partition(path: str, names: int, plan: WritePlan) -> list[str | None]:
    """The partition values in the directories between the job's own directory and the file."""
    directories = path.split("/")[: -2 if plan.has_buckets else -1]
    values = list(parse_partition_path("/".join(directories[-names:]))[1]) if names else []
    return [None if v is None else v.removeprefix(STAGED_MARK) for v in values] if plan.is_staged else values


def _bucket(path: str) -> int:
    """The bucket, in the directory of the file."""
    return int(path.split("/")[-2].rpartition("=")[2])


def _with_bounds_of(plan: WritePlan, numbered: Sequence[Numbered]) -> WritePlan:
    """The plan, with statistics of the columns that the job numbers: how far it got is found in the footers."""
    known = {column.path for column in plan.stats_columns}
    paths = [(plan.stored_name(n.column),) for n in numbered]
    further = tuple(FooterColumn(path, LONG) for path in paths if path not in known)
    return replace(plan, stats_columns=plan.stats_columns + further)


def _reached(plan: WritePlan, numbered: Sequence[Numbered], footers: Sequence[FileFooter]) -> dict[str, int]:
    reached = {}
    for n in numbered:
        numbers = []
        for footer in footers:
            stats = footer.columns.get((plan.stored_name(n.column),))
            end = None if stats is None else stats.max if n.step > 0 else stats.min
            if isinstance(end, int):
                numbers.append(end)
            elif stats is None or stats.null_count != footer.num_rows:
                # Without it the next writer would make the same numbers again.
                raise CorruptTable(
                    "a file that was just written does not tell the bounds of its numbers",
                    code="damaged-file",
                    column=n.column,
                )
        # Rows that were there before may be among them.
        furthest = None if not numbers else max(numbers) if n.step > 0 else min(numbers)
        if furthest is not None and (furthest - n.first) * n.step >= 0:
            reached[n.column] = furthest
    return reached


def _without_others(plan: WritePlan, footers: Sequence[FileFooter]) -> tuple[FileFooter, ...]:
    """The footers, telling of the columns alone that the table keeps statistics of."""
    kept = {column.path for column in plan.stats_columns}
    return tuple(
        replace(f, columns={path: stats for path, stats in f.columns.items() if path in kept}) for f in footers
    )

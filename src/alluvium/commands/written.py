"""From what was asked for, and the files that a job has left, to the commit; whoever wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from alluvium.codecs.footers.orc_footer import read_orc_footer
from alluvium.codecs.footers.parquet_footer import FileFooter, FooterColumn, read_footer
from alluvium.codecs.partition_path import parse_partition_path
from alluvium.commit.clear import clear
from alluvium.commit.loop import NOTHING_STANDS
from alluvium.errors import AlluviumError, CorruptTable, InvalidRequest
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
from alluvium.plan.ports import Target
from alluvium.plan.write import STAGED_MARK, WRITTEN_FILES, Numbered, WritePlan
from alluvium.schema.types import LONG
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import ObjectInfo, Store


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller asked for, format-neutral.

    Attributes:
        replace: None for an append.
        operation: Provenance; its metrics are filled in by the target.
        read: What the rows depend on, beside what they replace.
        txn: An application's id and version; a version already seen makes the write a no-op.
        options: For the writer of the files.
        data_change: False: the rows are those that they replace, only rearranged.
        sort: Columns by which rows are sorted within files; None: as the table wants it.
    """

    replace: Replace | None
    operation: Operation
    read: ReadScope
    txn: tuple[str, int] | None = None
    options: tuple[tuple[str, str], ...] = ()
    data_change: bool = True
    sort: tuple[str, ...] | None = None


def ensure_data_changes(request: Request) -> None:
    """Refuses an overwrite of single rows that is said only to rearrange rows (`"contradicting-options"`)."""
    if not request.data_change:
        raise InvalidRequest(
            "an overwrite with dataChange=false cannot replace single rows",
            code="contradicting-options",
            hint="name partition columns in replaceWhere, or leave dataChange out",
        )


def changes_of(request: Request, new: NewFiles) -> WrittenRows:
    """What is to be committed, once the files are there."""
    if request.replace is None:
        return Append(new, request.operation, request.read, request.txn)
    if not request.data_change:
        return Rearrange(new, request.replace, request.operation, request.txn)
    return Overwrite(new, request.replace, request.operation, request.read, request.txn)


def commit_files(target: Target, plan: WritePlan, changes: WrittenRows) -> Committed:
    """Commits the files of a job, or clears them away where they are certainly no part of the table.

    Raises:
        CommitConflict: Another writer won; the table is as the winner left it.
        CommitUnknown: The store did not say whether the commit stands; the files stay.
    """
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

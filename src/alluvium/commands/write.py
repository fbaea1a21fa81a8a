"""Rows of a DataFrame into a table: append, overwrite, create. One path for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from alluvium.codecs.parquet_footer import FileFooter, read_footer
from alluvium.codecs.partition_path import parse_partition_path
from alluvium.errors import AlluviumError, CommitConflict, InvalidRequest, UnsupportedFeature
from alluvium.plan.changes import Committed, FileChanges, Operation, Replace
from alluvium.plan.ports import Target
from alluvium.plan.write import WRITTEN_FILES, WritePlan
from alluvium.spark.columns import Assignment, align
from alluvium.spark.write import write_files
from alluvium.storage.parallel import map_parallel
from alluvium.storage.store import ObjectInfo, Store


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What the caller asked for, format-neutral.

    Attributes:
        replace: None for an append.
        operation: Provenance; its metrics are filled in by the target.
        txn: An application's id and version; a version already seen makes the write a no-op.
        options: For Spark's Parquet writer.
        assignment: Which types of the rows may go into which types of the table.
    """

    replace: Replace | None
    operation: Operation
    txn: tuple[str, int] | None = None
    options: tuple[tuple[str, str], ...] = ()
    assignment: Assignment = Assignment.EXACT


def write_rows(df: DataFrame, target: Target, request: WriteRequest) -> Committed:
    """Writes the rows as new files and commits them.

    A failed job leaves no visible trace: the files of an attempt that certainly did not commit are deleted;
    those of an attempt whose outcome is unknown are kept, for they may be part of the table.

    Raises:
        InvalidRequest: The rows do not fit the table; the table is as it was.
        CommitConflict: Another writer won; the table is as the winner left it.
        CommitUnknown: The store did not say whether the commit stands.
    """
    plan = target.plan_write(request.replace, request.options)
    rows = align(df, target.schema, request.assignment)
    try:
        write_files(df.sparkSession, rows, plan)
        written, footers = written_files(target.store, plan)
        changes = FileChanges(written, footers, request.operation, request.replace, request.txn)
    except BaseException:
        target.store.delete_tree(plan.directory)
        raise
    try:
        committed = target.commit(changes)
    except (CommitConflict, InvalidRequest, UnsupportedFeature):
        target.store.delete_tree(plan.directory)
        raise
    if committed.attempts == 0:
        target.store.delete_tree(plan.directory)
    return committed


def written_files(store: Store, plan: WritePlan) -> tuple[pa.Table, tuple[FileFooter, ...]]:
    """What a job left in its directory: a row of `WRITTEN_FILES` and a footer for each file that has rows."""
    objects = sorted(_data_files(store, plan.directory), key=lambda o: o.path)
    footers = map_parallel(lambda o: _footer(store, o, plan), objects)
    pairs = []
    for found, footer in zip(objects, footers, strict=True):
        if footer.num_rows:
            pairs.append((found, footer))
        else:
            # Spark leaves a file without rows so that the schema is not lost; the log knows the schema.
            store.delete(found.path)
    names = len(plan.partition_by)
    table = pa.Table.from_pydict(
        {
            "path": [o.path for o, _ in pairs],
            "size": [o.size for o, _ in pairs],
            "modification_time_ms": [o.modified_ms for o, _ in pairs],
            "num_rows": [footer.num_rows for _, footer in pairs],
            "partition": [_partition(o.path, names) for o, _ in pairs],
        },
        schema=WRITTEN_FILES,
    )
    return table, tuple(footer for _, footer in pairs)


def _data_files(store: Store, directory: str) -> Sequence[ObjectInfo]:
    def is_data(path: str) -> bool:
        return not path.rsplit("/", 1)[-1].startswith(("_", "."))

    return [o for o in store.list_tree(directory) if is_data(o.path)]


def _footer(store: Store, found: ObjectInfo, plan: WritePlan) -> FileFooter:
    try:
        return read_footer(store.open_input(found.path), plan.stats_columns)
    except AlluviumError as error:
        error.path = error.path or found.path
        raise


def _partition(path: str, names: int) -> list[str | None]:
    """The partition values in the directories between the job's own directory and the file."""
    directories = path.split("/")[1:-1]
    return list(parse_partition_path("/".join(directories[-names:]))[1]) if names else []

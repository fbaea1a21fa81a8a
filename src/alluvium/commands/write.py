"""Rows of a DataFrame into a table: append, overwrite, create. One path for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from alluvium.codecs.footers.parquet_footer import FileFooter
from alluvium.commands.any_rows import read_any
from alluvium.commands.written import Request, changes_of, commit_files, numbered_files
from alluvium.commit.clear import clear
from alluvium.errors import InvalidRequest, NotFound
from alluvium.plan.changes import Committed, NewFiles
from alluvium.plan.ports import ScanSource, Target
from alluvium.plan.write import Numbered, WritePlan
from alluvium.spark.assigned import in_buckets
from alluvium.spark.crossing import across_partitions
from alluvium.spark.run_ends import with_ends
from alluvium.spark.sessions.session import is_connect
from alluvium.spark.unseen import ensure_none_hidden
from alluvium.spark.values.columns import Assignment
from alluvium.spark.values.derive import CompleteRows, complete
from alluvium.spark.write import write_files
from alluvium.storage.store import OpenStore, Store


@dataclass(frozen=True, slots=True)
class WriteRequest(Request):
    """What the caller of a job of Spark asked for.

    Attributes:
        assignment: Which types of the rows may go into which types of the table.
        rebalance: Whether to move rows between tasks for few files of the right size; None: as the table wants it.
        open_store: The table's objects for Python workers, where Spark's own writer cannot write its files.
        reading: Within it the files are written, which may take a look at the table: what it means if a file of the
            table is missing.
    """

    assignment: Assignment = Assignment.EXACT
    rebalance: bool | None = None
    open_store: OpenStore | None = None
    reading: Callable[[], AbstractContextManager[None]] = nullcontext


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
        with request.reading():
            changes = changes_of(request, new_files(rows, target.store, plan, numbered, request.open_store))
    except BaseException:
        clear(target.store, plan.directory)
        raise
    return commit_files(target, plan, changes)


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

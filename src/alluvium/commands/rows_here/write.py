"""Rows of Arrow into a table, without Spark: append, overwrite, create."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.commands.written import Request, changes_of, commit_files, written_files
from alluvium.commit.clear import clear
from alluvium.errors import AlluviumError
from alluvium.plan.changes import Committed, NewFiles
from alluvium.plan.ports import Target
from alluvium.plan.write import WritePlan
from alluvium.portable.writing.complete import Completion, completion
from alluvium.portable.writing.files import FilesInTheMaking, PartitionTexts, ensure_portable


def write_batches(
    rows: pa.RecordBatchReader, target: Target, request: Request, texts: PartitionTexts, time_zone: str = "UTC"
) -> Committed:
    """Writes the rows as new files and commits them; as `commands.write.write_rows`, in this process.

    Args:
        rows: What to write. It is read once, batch by batch; where the table, or the request, wants rows in an order,
            all of it is held in memory.
        target: The table.
        request: What is asked.
        texts: How the table's format spells partition values.
        time_zone: In which the table's expressions are evaluated.

    Raises:
        InvalidRequest: The rows do not fit the table; the table is as it was.
        UnsupportedFeature: The table needs Spark to write it (`"needs-spark"`).
        CommitConflict: Another writer won; the table is as the winner left it.
        CommitUnknown: The store did not say whether the commit stands.
    """
    planned = target.plan_write(request.replace, request.options)
    plan = planned if request.sort is None else replace(planned, sort=request.sort)
    ensure_portable(plan)
    completed = completion(rows.schema, target.schema, plan, time_zone)
    files = FilesInTheMaking(plan, target.store, texts)
    try:
        new = _written(rows, target, completed, files)
    except BaseException as error:
        clear(target.store, plan.directory)
        if isinstance(error, AlluviumError):
            error.url = error.url or target.url
        raise
    return commit_files(target, plan, changes_of(request, new))


def _written(rows: pa.RecordBatchReader, target: Target, completed: Completion, files: FilesInTheMaking) -> NewFiles:
    if completed.plan.sort:
        batches = [completed.complete(batch) for batch in rows]
        if batches:
            files.add(_sorted(pa.concat_tables(batches), completed.plan))
    else:
        for batch in rows:
            files.add(completed.complete(batch))
    table, footers = written_files(target.store, completed.plan, files.finish())
    return NewFiles(table, footers, completed.reached, bool(completed.numbered))


def _sorted(rows: pa.Table, plan: WritePlan) -> pa.Table:
    """By the plan's columns, nulls first as Spark has them."""
    keys: dict[str, pa.ChunkedArray] = {}
    for name in plan.sort:
        keys[str(len(keys))] = rows[name].is_valid()
        keys[str(len(keys))] = rows[name]
    return rows.take(pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys]))

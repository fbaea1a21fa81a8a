"""Writes to a Delta table without Spark: pyarrow makes the file, DeltaTarget commits it."""

from __future__ import annotations

import io
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
from changes import changes_of

from alluvium.codecs.footers.parquet_footer import read_footer
from alluvium.delta.description.create import new_config
from alluvium.delta.view.scan import select_files
from alluvium.delta.view.snapshot import Snapshot, load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import NotFound
from alluvium.expr.sql.parse import parse_predicate
from alluvium.plan.changes import (
    TOUCHED_FILES,
    Committed,
    NewFiles,
    Operation,
    ReadScope,
    Replace,
    RewriteFiles,
    WrittenRows,
)
from alluvium.plan.retry import DEFAULT_RETRY, RetryPolicy
from alluvium.plan.write import WRITTEN_FILES
from alluvium.schema.types import LONG, STRING, Field, Struct
from alluvium.storage.store import Store

SCHEMA = Struct((Field("id", LONG), Field("p", STRING)))


def open_target(store: Store, partitioned: bool = False, retry: RetryPolicy = DEFAULT_RETRY) -> DeltaTarget:
    """The table as a target; one to create where there is none."""
    try:
        snapshot: Snapshot | None = load_snapshot(store)
    except NotFound:
        snapshot = None
    config = snapshot.config if snapshot else new_config(SCHEMA, ["p"] if partitioned else [], {})
    return DeltaTarget(store, config, snapshot, retry)


def commit_rows(
    target: DeltaTarget,
    ids: list[int],
    p: str = "a",
    replace: Replace | None = None,
    txn: tuple[str, int] | None = None,
    data_change: bool = True,
) -> Committed:
    """One Parquet file with the ids, written and committed."""
    return target.commit(stage_rows(target, ids, p, replace, txn, data_change))


def stage_rows(
    target: DeltaTarget,
    ids: list[int],
    p: str = "a",
    replace: Replace | None = None,
    txn: tuple[str, int] | None = None,
    data_change: bool = True,
) -> WrittenRows:
    """One Parquet file with the ids, written."""
    new = _write(target, ids, p, replace)
    operation = Operation("WRITE", {"mode": "Append" if replace is None else "Overwrite", "partitionBy": "[]"})
    return changes_of(new, operation, replace, txn, data_change)


def rewrite_partition(target: DeltaTarget, p: str) -> Committed | None:
    """The rows of a partition in one file, as OPTIMIZE commits it; None where there are fewer than two files."""
    snapshot = target.snapshot
    assert snapshot is not None
    paths = select_files(snapshot, parse_predicate(f"p = '{p}'", SCHEMA)).files["path"]
    if len(paths) < 2:
        return None
    stored = [pq.read_table(pa.BufferReader(target.store.get(path)), columns=["id"]) for path in paths.to_pylist()]
    touched = pa.table([paths, pa.nulls(len(paths), pa.binary())], schema=TOUCHED_FILES)
    new = _write(target, pa.concat_tables(stored)["id"].to_pylist(), p, None)
    return target.commit(RewriteFiles(new, touched, Operation("OPTIMIZE"), ReadScope.nothing()))


def _write(target: DeltaTarget, ids: list[int], p: str, replace: Replace | None) -> NewFiles:
    plan = target.plan_write(replace, ())
    columns = {"id": pa.array(ids, pa.int64())}
    if not plan.partition_by:
        columns["p"] = pa.array([p] * len(ids), pa.string())
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    path = f"{plan.directory}/{uuid.uuid4()}.parquet"
    target.store.put(path, sink.getvalue())
    info = target.store.head(path)
    written = pa.Table.from_pylist(
        [
            {
                "path": path,
                "size": info.size,
                "modification_time_ms": info.modified_ms,
                "num_rows": len(ids),
                "partition": [p] if plan.partition_by else [],
            }
        ],
        schema=WRITTEN_FILES,
    )
    footer = read_footer(pa.BufferReader(sink.getvalue()), plan.stats_columns)
    return NewFiles(written, (footer,))

"""Rescaling: the rows of partitions of a table with fixed buckets in another number of them.

Specification: `org.apache.paimon.spark.procedure.RescaleProcedure`.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from alluvium.commands.any_rows import read_any
from alluvium.commands.paimon.compact import compact_written
from alluvium.commands.write import WriteRequest, write_rows
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.terms.options import BUCKET, DELETION_VECTORS, FALLBACK_BRANCH, POSTPONE_BUCKET
from alluvium.paimon.view.merge import FIRST_ROW, merge_engine
from alluvium.paimon.view.source import PaimonSource
from alluvium.paimon.write.postponed import is_postponed
from alluvium.paimon.write.target import PaimonTarget
from alluvium.plan.changes import Committed, Operation, ReadScope, Replace
from alluvium.plan.retry import RetryPolicy
from alluvium.spark.values.columns import Assignment
from alluvium.storage.store import OpenStore


def rescale_rows(
    spark: SparkSession,
    snapshot: Snapshot,
    bucket_num: int | None,
    where: Replace,
    open_store: OpenStore,
    retry: RetryPolicy,
) -> Committed:
    """Overwrites partitions with their own rows, divided anew.

    Args:
        spark: The session.
        snapshot: The newest state.
        bucket_num: How many buckets they shall have; None: as many as the table's options say.
        where: Which partitions.
        open_store: The table's objects for Python workers.
        retry: How often a lost commit is tried again.

    Raises:
        InvalidRequest: There is nothing to divide (`"no-snapshot"`), or no such number of buckets (`"invalid-bucket"`).
        UnsupportedFeature: The table's buckets are not fixed, or it has rows that only a compaction shows
            (`"unsupported-rescale"`), or as of a write.
        CommitConflict: Somebody else wrote to the partitions meanwhile: their rows would be lost.
    """
    count = _ensure_rescalable(snapshot, bucket_num)
    table = replace(snapshot.schema, options={**snapshot.schema.options, BUCKET.key: str(count)})
    rows = read_any(spark, PaimonSource(snapshot), open_store)
    if where.sql is not None:
        rows = rows.where(where.sql)
    target = PaimonTarget(snapshot.store, table, snapshot, retry, rescales=True)
    said = Operation("RESCALE", {"bucket": str(count)})
    request = WriteRequest(where, said, ReadScope.nothing(), assignment=Assignment.CAST, open_store=open_store)
    done = write_rows(rows, target, request)
    if done.attempts:
        compact_written(spark, target, done, open_store, replaced=True)
    return done


def _ensure_rescalable(snapshot: Snapshot, bucket_num: int | None) -> int:
    own = BUCKET.get(snapshot.schema.options)
    if snapshot.document is None:
        raise InvalidRequest(
            "the table has no snapshot: there is nothing to rescale",
            code="no-snapshot",
            url=snapshot.store.url,
            hint="alter its option bucket",
        )
    shown = FALLBACK_BRANCH.get(snapshot.schema.options)
    if shown:
        raise UnsupportedFeature(
            f"a rescaling would make rows that the branch {shown!r} shows the table's own",
            code="unsupported-rescale",
            url=snapshot.store.url,
            features=(FALLBACK_BRANCH.key,),
            hint=f"unset {FALLBACK_BRANCH.key}, and rescale the table and its branch each by itself",
        )
    waits = is_postponed(snapshot.schema)
    if own <= 0 and not (waits and bucket_num is not None):
        raise UnsupportedFeature(
            f"tables with {BUCKET.key} = {own} are not rescaled: their rows are in no fixed number of buckets",
            code="unsupported-rescale",
            url=snapshot.store.url,
            features=(f"{BUCKET.key} = {own}",),
            hint="say into how many" if waits else "tables with bucket = 1 or more are",
        )
    hides_new = merge_engine(snapshot.schema) == FIRST_ROW or DELETION_VECTORS.get(snapshot.schema.options)
    hidden = pc.equal(snapshot.entries["bucket"], POSTPONE_BUCKET)
    if snapshot.schema.primary_keys and hides_new:
        hidden = pc.equal(snapshot.entries["level"], 0)
    if pc.any(hidden, min_count=0).as_py():
        raise UnsupportedFeature(
            "the table has rows that readers see only after a compaction: a rescaling would lose them",
            code="unsupported-rescale",
            url=snapshot.store.url,
            features=("level 0",),
            hint="call compact() first",
        )
    count = own if bucket_num is None else bucket_num
    if count <= 0:
        raise InvalidRequest(f"rows cannot be divided into {count} buckets", code="invalid-bucket", hint="1 or more")
    return count

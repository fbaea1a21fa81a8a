"""Keys without their partition: a row's partition may change, and who writes asks where its key is.

Specification: `org.apache.paimon.crosspartition.GlobalIndexAssigner`; buckets are dynamic, without an index of hashes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from alluvium.errors import UnsupportedFeature
from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms import options as o
from alluvium.paimon.view.file_rows import FILE, FileRows
from alluvium.paimon.view.merge import AGGREGATION, DEDUPLICATE, FIRST_ROW, PARTIAL_UPDATE, SEQUENCE, merge_engine
from alluvium.plan.changes import Replace
from alluvium.plan.crossing import DELETES, SKIPS, STAYS, Crossing
from alluvium.plan.write import BUCKET_COLUMN, FIRST_COLUMN
from alluvium.schema import types as t

_UPDATE_BEFORE, _DELETE = 1, 3
_RETRACTS = (_UPDATE_BEFORE, _DELETE)


def moves_keys(schema: TableSchema) -> bool:
    """Whether writers find the partition of a key; a fixed number of buckets leaves each partition its own rows."""
    return schema.crosses_partitions and o.BUCKET.get(schema.options) == o.DYNAMIC_BUCKET


def crossing_of(schema: TableSchema, base: Snapshot | None) -> Crossing:
    """How keys find their places.

    Args:
        schema: Of the table, its options with those of the call on top.
        base: Where keys are; None: rows come in the place of all.
    """
    engine, options = merge_engine(schema), schema.options
    ignores = o.IGNORE_DELETE.get(options)
    follows = {FIRST_ROW: SKIPS, DEDUPLICATE: DELETES}.get(engine, STAYS)
    ends: tuple[int, ...] = ()
    if engine == DEDUPLICATE:
        ends = _RETRACTS
        # What takes rows back is never written then.
        follows = "" if ignores else follows
    elif (engine == PARTIAL_UPDATE and o.REMOVE_RECORD_ON_DELETE.get(options)) or (
        engine == AGGREGATION and o.AGGREGATION_REMOVE_RECORD_ON_DELETE.get(options)
    ):
        ends = (_DELETE,)
    there = counts = None
    if base is not None and base.entries.num_rows:
        there, counts = _there(base), _counts(base)
    return Crossing(
        schema.primary_keys,
        there,
        BUCKET_COLUMN,
        (SEQUENCE, FILE),
        ends,
        _RETRACTS if engine == FIRST_ROW or (ignores and engine != AGGREGATION) else (),
        follows,
        o.DYNAMIC_BUCKET_ROWS.get(options),
        counts,
    )


def _there(base: Snapshot) -> FileRows:
    """All rows, those that wait for a compaction too."""
    entries = base.entries
    order = pa.array(np.arange(entries.num_rows), pa.int64())
    return FileRows(base, entries, pa.table({BUCKET_COLUMN: entries["bucket"], FILE: order}))


def _counts(base: Snapshot) -> pa.Table:
    sums = base.entries.group_by(["partition", "bucket"]).aggregate([("row_count", "sum")])
    partitions = partitions_of(sums, base.schema)
    columns = {name: partitions.column(name) for name in base.schema.partition_keys}
    return pa.table({**columns, BUCKET_COLUMN: sums["bucket"], FIRST_COLUMN: sums["row_count_sum"]})


def ensure_crossing(schema: TableSchema, replace: Replace | None) -> None:
    """Refuses other buckets than dynamic ones, in which nobody looks for keys of other partitions, partitions by
    numbers of which zero has two signs, and overwrites of some partitions: the keys would have to leave others.

    Raises:
        UnsupportedFeature: `"unsupported-option"`, `"unsupported-type"`, `"unsupported-overwrite"`.
    """
    bucket = o.BUCKET.get(schema.options)
    if schema.crosses_partitions and bucket != o.DYNAMIC_BUCKET:
        raise UnsupportedFeature(
            f"tables with bucket = {bucket} whose primary key lacks a partition key are read, but not written",
            code="unsupported-option",
            features=("cross-partition",),
            hint="with bucket = -1 they are, or make these part of the key",
        )
    for name in schema.partition_keys if schema.crosses_partitions else ():
        column = schema.find(name)
        if column is not None and to_logical(column.type) in (t.FLOAT, t.DOUBLE):
            raise UnsupportedFeature(
                f"keys are in any partition, and {name!r} is of type {column.type}: zero has two signs in it, which "
                "are two partitions to some",
                code="unsupported-type",
                column=name,
                features=(str(column.type),),
                hint="partition by a column of another type",
            )
    if replace is None or not moves_keys(schema) or not (replace.dynamic or replace.where is not None):
        return
    raise UnsupportedFeature(
        "keys of the table are in any partition, so that partitions are not replaced one by one",
        code="unsupported-overwrite",
        features=("primary key without partition keys",),
        hint="overwrite the table as a whole, or delete the rows and append the new ones",
    )

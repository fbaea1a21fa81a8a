"""Rows that wait for a compaction to divide them into buckets: in files beside these, which no reader of rows sees.

Specification: `bucket = -2`; `org.apache.paimon.postpone.PostponeBucketFileStoreWrite`.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import replace

from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import BUCKET, DATA_FILE_PREFIX, POSTPONE_BUCKET, STATS_MODE

#: Numbers of writers are Java's positive integers.
_WRITERS = (1 << 31) - 1


def is_postponed(schema: TableSchema) -> bool:
    """Whether rows are written without a bucket, which a compaction gives them."""
    return bool(schema.primary_keys) and BUCKET.get(schema.options) == POSTPONE_BUCKET


def as_waiting(schema: TableSchema) -> TableSchema:
    """The schema by which files of waiting rows are written: nobody skips them, so that they have no statistics."""
    return replace(schema, options={**schema.options, STATS_MODE.key: "none"}) if is_postponed(schema) else schema


def data_prefix(schema: TableSchema) -> str:
    """How the names of a job's data files begin.

    "Each writer should have its unique prefix, so files from the same writer can be consumed by the same compaction
    reader to keep the input order": all files of a job are of one writer here.
    """
    prefix = DATA_FILE_PREFIX.get(schema.options)
    if not is_postponed(schema):
        return prefix
    # Java puts a hyphen behind the prefix, whether it ends with one or not.
    return f"{prefix}-u-{uuid.uuid4()}-s-{random.randrange(_WRITERS)}-w-"

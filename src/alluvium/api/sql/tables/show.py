"""SHOW COLUMNS of tables of ours."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from alluvium.api.sql.call import Call

_COLUMN = StructType([StructField("col_name", StringType(), False)])


def run(call: Call) -> DataFrame | None:
    """Carries out `SHOW COLUMNS IN t`."""
    access = call.table(call.plan.child())
    if access is None:
        return None
    return call.rows_of(_COLUMN, [(name,) for name in access.snapshot().config.schema.names])

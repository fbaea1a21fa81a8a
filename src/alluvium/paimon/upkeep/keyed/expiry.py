"""Rows whose time has passed: compactions leave them out; until then they are read.

Specification: `record-level.expire-time`; `org.apache.paimon.io.RecordLevelExpire`.
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.paimon.files.partitions import partitions_of
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms import options as o
from alluvium.paimon.view.stats import EntryStatistics
from alluvium.paimon.write.keyed import time_column
from alluvium.schema import types as t

#: Numbers from here on are milliseconds, smaller ones seconds.
_MILLIS_FROM = 1_000_000_000_000
_FIRST_SECOND = -62_135_596_800


@dataclass(frozen=True, slots=True)
class RowExpiry:
    """Which rows are left out.

    Attributes:
        column: That has their time; rows without one stay.
        since: Rows of before have expired: seconds since 1970 UTC.
    """

    column: DataField
    since: int

    @property
    def stays(self) -> str:
        """Of a row whether it is kept, as Spark SQL."""
        name, kind = "`" + self.column.name.replace("`", "``") + "`", to_logical(self.column.type)
        if kind == t.TIMESTAMP:
            found = f"{name} >= timestamp_seconds({self.since})"
        elif kind == t.TIMESTAMP_NTZ:
            # Clocks without a zone are taken for UTC's.
            moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=self.since)
            found = f"{name} >= timestamp_ntz'{moment}'"
        else:
            seconds = f"if({name} >= {_MILLIS_FROM}L, {name} div 1000, {name})" if kind == t.LONG else name
            found = f"{seconds} >= {self.since}L"
        return f"({name} is null or {found})"

    def among(self, snapshot: Snapshot, entries: pa.Table) -> npt.NDArray[np.bool_]:
        """Of each file whether rows of it have expired, as far as its statistics tell."""
        nothing = np.zeros(entries.num_rows, bool)
        if not entries.num_rows:
            return nothing
        statistics = EntryStatistics(snapshot, entries, partitions_of(entries, snapshot.schema))
        least = statistics.lower((self.column.name,))
        if least is None:
            return nothing
        if pa.types.is_timestamp(least.type):
            seconds = pc.floor(
                pc.divide(least.cast(pa.timestamp("us", least.type.tz)).cast(pa.int64()).cast(pa.float64()), 1e6)
            )
        else:
            seconds = least.cast(pa.int64())
            seconds = pc.if_else(pc.greater_equal(seconds, _MILLIS_FROM), pc.divide(seconds, 1000), seconds)
        found = pc.fill_null(pc.less(seconds, self.since), False)
        return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def row_expiry(schema: TableSchema) -> RowExpiry | None:
    """Which rows have expired by now; None: the table keeps them all.

    Raises:
        InvalidRequest: As of `time_column`.
    """
    column, kept_ms = time_column(schema), o.RECORD_LEVEL_EXPIRE_TIME.get(schema.options)
    if column is None or kept_ms is None:
        return None
    # Before the first year no calendar has a time, and no row.
    return RowExpiry(column, max(int(time.time()) - kept_ms // 1000, _FIRST_SECOND))

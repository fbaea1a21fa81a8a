"""Rows that wait, divided into buckets: which they are, how many buckets their partitions get, and what comes of them.

Specification: `bucket = -2`; `org.apache.paimon.table.PostponeUtils`, `SparkPostponeCompactProcedure`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.footers.parquet_footer import FileFooter
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms import compaction_options as c
from alluvium.paimon.terms import options as o
from alluvium.paimon.terms.spec import ENTRIES
from alluvium.paimon.upkeep.keyed.plan import Asked, asked_entries
from alluvium.paimon.view.file_rows import FILE, FileRows
from alluvium.paimon.view.sections import may_take_back
from alluvium.paimon.write.keyed import RowKinds
from alluvium.paimon.write.write import added_entries, bucketing_of, plan_write
from alluvium.plan.write import BUCKET_COLUMN, Bucketing, WritePlan

#: Column of the rows that are read: how many buckets their partition has.
TOTAL = "__alluvium_total"
_MOST_BUCKETS = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Moving:
    """Files of waiting rows, whose rows come into buckets.

    Attributes:
        snapshot: Whose files.
        before: The files (`ENTRIES`), in the order in which their rows came.
        totals: How many buckets the partition of each has, or gets.
    """

    snapshot: Snapshot
    before: pa.Table
    totals: pa.Array

    @property
    def rows(self) -> FileRows:
        """All rows, with their place among those that came."""
        order = pa.array(np.arange(self.before.num_rows), pa.int64())
        return FileRows(self.snapshot, self.before, pa.table({FILE: order, TOTAL: self.totals}), is_placed=True)

    @property
    def bucketing(self) -> Bucketing:
        """How rows are divided, whatever the number of buckets."""
        found = bucketing_of(self._schema)
        assert found is not None, "rows come into buckets"
        return found

    @property
    def _schema(self) -> TableSchema:
        """As of a table whose rows are in buckets."""
        schema = self.snapshot.schema
        return replace(schema, options={**schema.options, o.BUCKET.key: "1"})

    def plan_write(self) -> WritePlan:
        """How the rows become files; they bring their kinds, numbers and buckets with them."""
        schema = self._schema
        kinds = RowKinds(takes_back=bool(pc.any(may_take_back(self.before, schema)).as_py()))
        plan = plan_write(schema, self.snapshot.store.url, base=self.snapshot, kind=kinds)
        # What is there was checked when it came.
        return replace(plan.brought(BUCKET_COLUMN), checks=(), derived=())

    def added(self, written: pa.Table, footers: Sequence[FileFooter]) -> pa.Table:
        """The entries of the files of rows that were written."""
        return self._placed(written, footers, o.DATA_FILE_PREFIX.get(self._schema.options))

    def told(self, written: pa.Table, footers: Sequence[FileFooter]) -> pa.Table:
        """The entries of the files that tell which rows came."""
        return self._placed(written, footers, c.CHANGELOG_PREFIX.get(self._schema.options))

    def _placed(self, written: pa.Table, footers: Sequence[FileFooter], prefix: str) -> pa.Table:
        entries = added_entries(self._schema, written, footers, prefix)
        place = pc.index_in(entries["partition"].combine_chunks(), value_set=self.before["partition"].combine_chunks())
        index = ENTRIES.get_field_index("total_buckets")
        return entries.set_column(index, ENTRIES.field(index), self.totals.take(place))


def plan_moving(snapshot: Snapshot, asked: Asked) -> Moving:
    """Which rows wait.

    Args:
        snapshot: The newest state.
        asked: Of which partitions.

    Raises:
        InvalidRequest: The options name no number of buckets (`"invalid-bucket"`).
        CorruptTable: A partition's buckets are of several numbers (`"bucket-conflict"`).
        UnsupportedFeature: The condition is not about partition keys alone (`"replace-where-data"`).
    """
    entries = asked_entries(snapshot, asked)
    waits = pc.equal(entries["bucket"], o.POSTPONE_BUCKET)
    waiting = entries.filter(waits)
    # By their time; those of one job have the same, and stand as they were added.
    times = np.asarray(pc.fill_null(waiting["creation_time"].cast(pa.int64()), 0).to_numpy())
    waiting = waiting.take(pa.array(np.argsort(times, kind="stable")))
    return Moving(snapshot, waiting, totals_of(snapshot, waiting, entries.filter(pc.invert(waits))))


def totals_of(snapshot: Snapshot, waiting: pa.Table, placed: pa.Table) -> pa.Array:
    """Of the partition of each file how many buckets it has: as many as it had, or as the options say."""
    known: dict[bytes, int] = {}
    pairs = placed.group_by(["partition", "total_buckets"]).aggregate([]).to_pylist()
    for pair in pairs:
        if known.setdefault(pair["partition"], pair["total_buckets"]) != pair["total_buckets"]:
            raise CorruptTable(
                f"a partition has {known[pair['partition']]} buckets, and {pair['total_buckets']}",
                code="bucket-conflict",
                url=snapshot.store.url,
            )
    rows = waiting.group_by(["partition"]).aggregate([("row_count", "sum")]).to_pylist()
    fresh = {row["partition"]: row["row_count_sum"] for row in rows}
    made = {p: known.get(p) or _first_total(snapshot, count) for p, count in fresh.items()}
    places = pc.index_in(waiting["partition"].combine_chunks(), value_set=pa.array(list(made), pa.binary()))
    return pa.array(list(made.values()), pa.int32()).take(places)


def _first_total(snapshot: Snapshot, rows: int) -> int:
    options = snapshot.schema.options
    if (own := o.BUCKET.get(options)) > 0:
        return own  # the table has buckets by now, and went back to a state before
    wanted, default = o.POSTPONE_TARGET_ROWS.get(options), o.POSTPONE_DEFAULT_BUCKETS.get(options)
    named = o.POSTPONE_DEFAULT_BUCKETS.key if wanted is None else o.POSTPONE_TARGET_ROWS.key
    count = default if wanted is None else -(-max(rows, 1) // max(wanted, 1))
    if (wanted is not None and wanted < 1) or not 0 < count <= _MOST_BUCKETS:
        raise InvalidRequest(
            f"{named} = {options.get(named)}: rows cannot be divided into buckets by it",
            code="invalid-bucket",
            url=snapshot.store.url,
            hint="alter the option: 1 or more",
        )
    return count

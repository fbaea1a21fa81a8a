"""Rows that merge by key in Spark's Python workers, where Spark has no operator for the merge.

A task's rows come in the order of their keys, so that no more is held than some whole keys at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DecimalType

from alluvium.errors import InvalidRequest
from alluvium.plan.scan import KeyMerge
from alluvium.plan.write import MergeRows
from alluvium.spark.naming.names import quote
from alluvium.spark.workers.worker_errors import carrying_errors

#: Rows that are merged at once, if their keys end there: a merge costs some kernels, however few the rows.
_AT_ONCE = 1 << 17
#: Of a decimal, at most.
_DIGITS = 38


def merged_in_workers(rows: DataFrame, within: Sequence[str], merge: KeyMerge, merge_rows: MergeRows) -> DataFrame:
    """One row a key, deletions too.

    Args:
        rows: Those of a key in one task. A column that is neither a key nor merged by a rule is the newest row's.
        within: Columns without nulls: rows merge where they are equal, and their keys.
        merge: How.
        merge_rows: Merges rows of whole keys.
    """
    # The first of the columns stands for the group, which is any that tells rows apart.
    keys = (*within[1:], *merge.keys)
    whole = replace(merge, group=within[0], keys=keys, keeps_deletes=True, level=None)
    ordered = rows.sortWithinPartitions(*(sf.col(quote(name)) for name in (within[0], *keys)))
    # Sums that others have made may have more digits than their column: Spark hands these on under a wider type alone.
    wide = [
        sf.col(quote(f.name)).cast(DecimalType(_DIGITS, f.dataType.scale)).alias(f.name)
        if isinstance(f.dataType, DecimalType)
        else sf.col(quote(f.name))
        for f in rows.schema.fields
    ]
    digits = {f.name: f.dataType.precision for f in rows.schema.fields if isinstance(f.dataType, DecimalType)}
    return ordered.select(*wide).mapInArrow(_Merger(whole, merge_rows, digits), rows.schema)


@dataclass(frozen=True, slots=True)
class _Merger:
    """What a task does with its rows."""

    merge: KeyMerge
    merge_rows: MergeRows
    digits: Mapping[str, int] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with carrying_errors():
            for wide in _whole_keys(batches, (self.merge.group, *self.merge.keys)):
                table = self._narrow(wide)
                merged = self.merge_rows(table, self.merge, table.column_names)
                merged = merged.select(table.column_names).cast(table.schema)
                for name, digits in self.digits.items():
                    _ensure_fit(merged[name], name, digits)
                yield from merged.to_batches()

    def _narrow(self, table: pa.Table) -> pa.Table:
        """Decimals under their own types, by which functions go, whatever digits they have."""
        for name, digits in self.digits.items():
            place, values = table.schema.get_field_index(name), table[name].combine_chunks()
            kind = pa.decimal128(digits, values.type.scale)
            table = table.set_column(place, pa.field(name, kind), values.view(kind))
        return table


def _ensure_fit(values: pa.ChunkedArray, name: str, digits: int) -> None:
    """What Spark would make null of.

    Raises:
        InvalidRequest: A value has more digits than its column (`"invalid-data"`).
    """
    wide = values.combine_chunks().view(pa.decimal128(_DIGITS, values.type.scale))
    most = pc.max(pc.abs(wide)).as_py()
    if most is not None and most >= Decimal(10) ** (digits - values.type.scale):
        raise InvalidRequest(
            f"rows of a key are {most} together, which {values.type} has no digits for",
            code="invalid-data",
            column=name,
            hint="nothing was written; alter the column to a DECIMAL of more digits, and compact again",
        )


def _whole_keys(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.Table]:
    """The rows in tables that end where a key does."""
    gathered: list[pa.RecordBatch] = []
    count, enough = 0, _AT_ONCE
    for batch in batches:
        gathered.append(batch)
        count += batch.num_rows
        if count < enough:
            continue
        table = pa.Table.from_batches(gathered)
        begin = _last_key(table, names)
        if begin:
            yield table.slice(0, begin)
        rest = table.slice(begin)
        gathered, count = rest.to_batches(), rest.num_rows
        # A key of very many rows is not looked at again with each batch.
        enough = max(_AT_ONCE, 2 * count)
    if count:
        yield pa.Table.from_batches(gathered)


def _last_key(table: pa.Table, names: Sequence[str]) -> int:
    """The first row of the last key."""
    same = np.ones(table.num_rows, bool)
    for name in names:
        same &= pc.equal(table[name], table[name][-1]).to_numpy()
    others = np.flatnonzero(~same)
    return int(others[-1]) + 1 if len(others) else 0

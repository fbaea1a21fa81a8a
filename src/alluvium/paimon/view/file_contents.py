"""What is known of data files before they are opened, for readers that are right about some contents alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.paimon.files.evolution import file_columns
from alluvium.paimon.files.partitions import Partitions
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.terms.options import ORC_LOCAL_INSTANTS
from alluvium.paimon.view.merge import KIND, SEQUENCE
from alluvium.paimon.view.stats import EntryStatistics
from alluvium.plan.scan import OutputColumn, Physical
from alluvium.schema import types as t
from alluvium.schema.types import Field, Struct
from alluvium.schema.walk import holds

#: "Key-value files: `_KEY_<pk...>, _SEQUENCE_NUMBER, _VALUE_KIND, <all columns>`", in thin mode without the first.
_KEY = "_KEY_"
_EPOCH = dt.date(1970, 1, 1)
_LEAST_DAYS, _MOST_DAYS = (dt.date.min - _EPOCH).days, (dt.date.max - _EPOCH).days


def held_columns(schema: TableSchema, write_cols: Sequence[str] | None) -> Struct | None:
    """All columns of files that were written by a schema; None: it has a type that is not known here.

    Args:
        schema: The writer's.
        write_cols: Names of its columns that the files hold; None: all.
    """
    try:
        own = tuple(Field(f.name, to_logical(f.type)) for f in file_columns(schema, write_cols).values())
    except UnsupportedFeature:
        return None
    if not schema.primary_keys:
        return Struct(own)
    keys = tuple(Field(f"{_KEY}{f.name}", f.type) for f in own if f.name in schema.trimmed_primary_keys)
    return Struct((*keys, Field(SEQUENCE, t.LONG), Field(KIND, t.BYTE), *own))


def has_local_instants(snapshot: Snapshot, schema: TableSchema, held: Struct | None) -> bool:
    """Whether instants in ORC files of Java, written by a schema, may go by the clock of the writer's zone.

    What the schema says was so when they were written; what the call says comes first, as in Java.
    """
    if held is not None and not any(holds(held, kind) for kind in (t.TIMESTAMP, t.TIMESTAMP_NANOS)):
        return False
    key = ORC_LOCAL_INSTANTS.key
    return ORC_LOCAL_INSTANTS.get(snapshot.asked if key in snapshot.asked else schema.options)


def instant_bounds(
    snapshot: Snapshot, entries: pa.Table, partitions: Partitions, output: Sequence[OutputColumn]
) -> pa.StructArray:
    """The bounds of instants by the manifests, as `plan.scan.INSTANT_BOUNDS` has them: Java keeps true ones there."""
    statistics = EntryStatistics(snapshot, entries, partitions)
    found: dict[str, pa.Array] = {}
    for column in output:
        if not isinstance(column.value, Physical) or column.value.type != t.TIMESTAMP or len(column.value.path) > 1:
            continue
        try:
            low, high = statistics.lower((column.name,)), statistics.upper((column.name,))
        except CorruptTable:
            continue
        if low is not None and high is not None:
            found[column.value.path[0]] = pa.StructArray.from_arrays([low, high], names=["low", "high"])
    fields = [pa.field(name, values.type) for name, values in found.items()]
    if not fields:
        return pa.nulls(entries.num_rows, pa.struct([]))
    return pa.StructArray.from_arrays(list(found.values()), fields=fields)


def earliest_date(
    snapshot: Snapshot, entries: pa.Table, partitions: Partitions, output: Sequence[OutputColumn]
) -> dt.date | None:
    """What comes before no date in some columns of files, by the manifests; None: no telling, or no date is read."""
    statistics = EntryStatistics(snapshot, entries, partitions)
    found: list[int] = []
    for column in output:
        if not isinstance(column.value, Physical) or not holds(column.value.type, t.DATE):
            continue
        try:
            low, nulls = statistics.lower((column.name,)), statistics.null_count((column.name,))
        except CorruptTable:
            # They are asked for caution's sake: readers that need none go on without.
            return None
        if low is None or nulls is None:
            # A date within something: nobody keeps statistics of these.
            return None
        has_values = pc.fill_null(pc.less(nulls, entries["row_count"].combine_chunks()), True)
        if pc.any(pc.and_(has_values, low.is_null())).as_py():
            return None
        least = pc.min(low.cast(pa.int32())).as_py()
        found.append(_MOST_DAYS if least is None else least)
    # Python's dates are not all of Paimon's.
    return _EPOCH + dt.timedelta(min(max(min(found), _LEAST_DAYS), _MOST_DAYS)) if found else None

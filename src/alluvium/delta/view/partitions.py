"""Partition values of files as typed columns, as keys to compare by, and as predicates."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.partition_values import parse_partition_values, partition_column
from alluvium.expr.tree import And, Column, Compare, Expression, Literal, Or
from alluvium.schema.arrow import to_arrow
from alluvium.schema.types import Field

#: Predicates over more partitions than this cost more than they save; the whole table is then the scope.
_MAX_PARTITIONS = 500


def partition_fields(config: TableConfig) -> tuple[Field, ...]:
    """The partition columns in partition order."""
    found = (config.schema.find(name) for name in config.partition_columns)
    return tuple(f for f in found if f is not None)


def partition_constants(files: pa.Table, config: TableConfig, time_zone: str) -> pa.StructArray:
    """The typed partition values of each file (`FILES`), a struct with a field for each partition column.

    Specification: "Actual partition values for a file must be read from the transaction log." They stand there under
    physical names; the struct has logical ones.

    Raises:
        CorruptTable: A text that is no value of its column's type.
    """
    fields = partition_fields(config)
    if not fields:
        return pa.StructArray.from_arrays([], fields=[], mask=pa.repeat(False, files.num_rows))
    keys = config.physical_names
    arrays = [parse_partition_values(partition_column(files, keys[f.name]), f.type, time_zone, f.name) for f in fields]
    return pa.StructArray.from_arrays(arrays, fields=[pa.field(f.name, to_arrow(f.type)) for f in fields])


def partition_keys(files: pa.Table, config: TableConfig, time_zone: str) -> pa.Array:
    """One binary key a file: equal for equal partition values, however their texts are written."""
    constants = partition_constants(files, config, time_zone)
    parts: list[pa.Array] = [pa.repeat(pa.scalar(b"", pa.binary()), files.num_rows)]
    for values in constants.flatten():
        text = values if pa.types.is_binary(values.type) else values.cast(pa.string()).cast(pa.binary())
        # The length goes first, for a value may hold any byte; a null is marked by one that no length starts with.
        length = pc.binary_length(text).cast(pa.string()).cast(pa.binary())
        marked = pc.binary_join_element_wise(length, text, pa.scalar(b":"))
        parts.append(pc.fill_null(marked, b"n"))
    return pc.binary_join_element_wise(*parts, pa.scalar(b";"))


def partitions_predicate(files: pa.Table, config: TableConfig, time_zone: str) -> Expression | None:
    """True for rows in the partitions of the files; None where they are too many to say."""
    constants = partition_constants(files, config, time_zone)
    rows = pa.Table.from_batches([pa.RecordBatch.from_struct_array(constants)])
    rows = rows.group_by(rows.column_names, use_threads=False).aggregate([])
    if not 0 < rows.num_rows <= _MAX_PARTITIONS:
        return None
    try:
        values = rows.to_pylist()
    except (ValueError, OverflowError):
        # Dates and times before year 1 or after 9999, which Spark knows and Python does not.
        return None
    any_of: Expression | None = None
    for row in values:
        all_of: Expression | None = None
        for f in partition_fields(config):
            same: Expression = Compare("<=>", Column((f.name,), f.type), Literal(row[f.name], f.type))
            all_of = same if all_of is None else And(all_of, same)
        if all_of is not None:
            any_of = all_of if any_of is None else Or(any_of, all_of)
    return any_of

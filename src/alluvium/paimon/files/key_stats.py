"""What manifests say of the keys of a file: the first and the last, and statistics of their columns.

Specification: spec/paimon-format.md (e), "level-0 file per flush with min/max key (trimmed-key BinaryRow), key stats,
value stats (all columns), delete count".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from alluvium.codecs.binary_rows.binary_row_encode import encode_rows
from alluvium.codecs.footers.chunk_statistics import Bound
from alluvium.codecs.footers.parquet_footer import FileFooter, RunEnds
from alluvium.errors import CorruptTable
from alluvium.paimon.files.file_stats import KEY_MODE, bounds_of, encoded_ends, values_of
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms.options import THIN_MODE

_PREFIX = "_KEY_"


def key_name(name: str) -> str:
    """The column of files that holds a key beside the column of that name."""
    return f"{_PREFIX}{name}"


def stored_key_names(schema: TableSchema) -> tuple[str, ...]:
    """Names of the files' columns that hold the trimmed primary key."""
    names = schema.trimmed_primary_keys
    return names if THIN_MODE.get(schema.options) else tuple(map(key_name, names))


def key_entries(schema: TableSchema, footers: Sequence[FileFooter], sequence: str) -> Mapping[str, pa.Array]:
    """The columns of `ENTRIES` that are about keys and numbers of some files.

    Args:
        schema: By which they were written.
        footers: Of each, with its ends.
        sequence: The column of the rows' numbers.

    Raises:
        CorruptTable: A file does not tell its numbers or its keys (`"damaged-file"`).
    """
    keys = [f for name in schema.trimmed_primary_keys if (f := schema.find(name)) is not None]
    ends = [_ends(f) for f in footers]
    bounds, nulls = [], []
    for column, name in zip(keys, stored_key_names(schema), strict=True):
        stats = [footer.columns.get((name,)) for footer in footers]
        bounds.append(bounds_of(stats, to_logical(column.type), KEY_MODE))
        nulls.append([None if s is None else s.null_count for s in stats])
    types = [(to_logical(f.type), f.type.precision) for f in keys]
    low, high = encoded_ends(bounds, types)
    numbers = [footer.columns.get((sequence,)) for footer in footers]
    return {
        "min_key": _rows([e.first for e in ends], keys),
        "max_key": _rows([e.last for e in ends], keys),
        "key_stats_min": low,
        "key_stats_max": high,
        "key_stats_nulls": pa.array([list(row) for row in zip(*nulls, strict=True)], pa.list_(pa.int64())),
        "min_sequence_number": pa.array([_number(None if s is None else s.min) for s in numbers], pa.int64()),
        "max_sequence_number": pa.array([_number(None if s is None else s.max) for s in numbers], pa.int64()),
        "delete_row_count": pa.array([e.retracts for e in ends], pa.int64()),
    }


def _rows(ends: Sequence[tuple[Bound, ...]], keys: Sequence[DataField]) -> pa.Array:
    columns = [values_of([row[n] for row in ends], to_logical(f.type)) for n, f in enumerate(keys)]
    return encode_rows(columns, [(to_logical(f.type), f.type.precision) for f in keys])


def _ends(footer: FileFooter) -> RunEnds:
    if footer.ends is None:
        raise CorruptTable("a file that was just written does not tell its first and last key", code="damaged-file")
    return footer.ends


def _number(bound: Bound | None) -> int:
    if not isinstance(bound, int):
        raise CorruptTable("a file that was just written does not tell the numbers of its rows", code="damaged-file")
    return bound

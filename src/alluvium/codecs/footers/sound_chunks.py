"""Whether what a Parquet footer says of its column chunks is what Arrow takes it for: it ends the process where a bound
is cut off, or counts of levels are not as many as there are levels.

Specification: parquet.thrift (`ColumnMetaData`, `Statistics`, `SizeStatistics`).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.parquet as pq

from alluvium.codecs.footers.thrift_compact import CompactReader, Value, fields_of, items_of

# FileMetaData, RowGroup, ColumnChunk, ColumnMetaData
_ROW_GROUPS = 4
_COLUMNS, _METADATA, _STATISTICS, _SIZE_STATISTICS = 1, 3, 12, 16
# Statistics: `max`, `min`, `max_value`, `min_value`
_BOUNDS = (1, 2, 5, 6)
# SizeStatistics: counts of repetition levels, and of definition levels
_REPETITION_COUNTS, _DEFINITION_COUNTS = 2, 3
#: Bytes of a value by its physical type.
_SIZES = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column: bytes of a value (0: any number), and its highest levels."""

    size: int
    definition: int
    repetition: int


def ensure_sound_chunks(raw: bytes, schema: pq.ParquetSchema) -> None:
    """Looks at each chunk of a footer.

    Args:
        raw: The metadata, without its length and the magic bytes.
        schema: Its columns as Arrow reads them: it passes over what is of another type than it should be.

    Raises:
        ValueError: A bound is shorter than a value of its column, or there are more or fewer counts than levels; or one
            of `thrift_compact.DAMAGE`.
    """
    leaves = [_leaf_of(schema.column(number)) for number in range(len(schema))]
    footer = CompactReader(raw).struct()
    for group in map(fields_of, items_of(footer.get(_ROW_GROUPS, []))):
        for leaf, chunk in zip(leaves, map(fields_of, items_of(group.get(_COLUMNS, []))), strict=False):
            metadata = chunk.get(_METADATA)
            if isinstance(metadata, dict):
                _ensure_sound(metadata, leaf)


def _leaf_of(column: pq.ColumnSchema) -> _Leaf:
    size = column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else _SIZES.get(column.physical_type, 0)
    return _Leaf(size or 0, column.max_definition_level, column.max_repetition_level)


def _ensure_sound(metadata: dict[int, Value], leaf: _Leaf) -> None:
    bounds = _members(metadata, _STATISTICS, _BOUNDS)
    if any(isinstance(bound, bytes) and len(bound) < leaf.size for bound in bounds):
        raise ValueError("a bound of a column is cut off")
    levels = _members(metadata, _SIZE_STATISTICS, (_REPETITION_COUNTS, _DEFINITION_COUNTS))
    for counts, highest in zip(levels, (leaf.repetition, leaf.definition), strict=False):
        if isinstance(counts, list) and counts and len(counts) != highest + 1:
            raise ValueError("the levels of a column are not those that are counted")


def _members(metadata: dict[int, Value], number: int, wanted: tuple[int, ...]) -> list[Value | None]:
    found = metadata.get(number)
    return [found.get(one) for one in wanted] if isinstance(found, dict) else []

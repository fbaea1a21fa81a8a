"""Whether what a Parquet footer says of its column chunks is what Arrow takes it for: it ends the process where a bound
is cut off, or counts of levels are not as many as there are levels.

Specification: parquet.thrift (`SchemaElement`, `ColumnMetaData`, `Statistics`, `SizeStatistics`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from alluvium.codecs.footers.thrift_compact import CompactReader, Value, fields_of, items_of

# FileMetaData, SchemaElement, RowGroup, ColumnChunk, ColumnMetaData
_SCHEMA, _ROW_GROUPS = 2, 4
_TYPE, _TYPE_LENGTH, _REPETITION, _CHILDREN = 1, 2, 3, 5
_COLUMNS, _METADATA, _STATISTICS, _SIZE_STATISTICS = 1, 3, 12, 16
_OPTIONAL, _REPEATED = 1, 2
# Statistics: `max`, `min`, `max_value`, `min_value`
_BOUNDS = (1, 2, 5, 6)
# SizeStatistics: counts of repetition levels, and of definition levels
_REPETITION_COUNTS, _DEFINITION_COUNTS = 2, 3
#: Bytes of a value by its physical type: BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE.
_SIZES = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
_FIXED_LEN_BYTE_ARRAY = 7


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column: bytes of a value (0: any number), and its highest levels."""

    size: int
    definition: int
    repetition: int


def ensure_sound_chunks(raw: bytes) -> None:
    """Looks at each chunk of a footer.

    Args:
        raw: The metadata, without its length and the magic bytes.

    Raises:
        ValueError: A bound is shorter than a value of its column, or there are more or fewer counts than levels; or one
            of `thrift_compact.DAMAGE`.
    """
    footer = CompactReader(raw).struct()
    elements = iter([fields_of(one) for one in items_of(footer[_SCHEMA])])
    leaves = list(_leaves(next(elements), elements, 0, 0))
    for group in map(fields_of, items_of(footer.get(_ROW_GROUPS, []))):
        for leaf, chunk in zip(leaves, map(fields_of, items_of(group.get(_COLUMNS, []))), strict=False):
            metadata = chunk.get(_METADATA)
            if isinstance(metadata, dict):
                _ensure_sound(metadata, leaf)


def _leaves(
    element: dict[int, Value], rest: Iterator[dict[int, Value]], definition: int, repetition: int
) -> Iterator[_Leaf]:
    """Those below a node: "schema: [...] depth first traversal"."""
    children = element.get(_CHILDREN) or 0
    if not isinstance(children, int):
        raise ValueError("a group has no number of members")
    if not children:
        yield _Leaf(_size_of(element), definition, repetition)
    for _ in range(children):
        member = next(rest)
        repeats = member.get(_REPETITION)
        below = definition + (repeats in (_OPTIONAL, _REPEATED)), repetition + (repeats == _REPEATED)
        yield from _leaves(member, rest, *below)


def _size_of(leaf: dict[int, Value]) -> int:
    kind = leaf.get(_TYPE)
    known = _SIZES.get(kind) if isinstance(kind, int) else None
    size = leaf.get(_TYPE_LENGTH) if kind == _FIXED_LEN_BYTE_ARRAY else known
    return size if isinstance(size, int) else 0


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

"""What a Parquet footer tells of one column in each row group: bounds, and how many values are null.

Arrow tells it of files that this process has just written. Of all others it is read field by field: Arrow ends the
process where a bound is cut off, or a chunk is of another type than its column.

Specification: parquet.thrift (`Statistics`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

import pyarrow.parquet as pq

from alluvium.codecs.footers.parquet_pages import Footer, NoPages

#: bool, int (integers; dates as days and timestamps as microseconds since 1970), float, Decimal, str or bytes.
Bound: TypeAlias = "bool | int | float | Decimal | str | bytes"

_FORMATS = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d", "BOOLEAN": "<?"}


@dataclass(frozen=True, slots=True)
class ChunkStatistics:
    """Of one chunk.

    Attributes:
        bounds: Least and greatest value, by the physical type; None: they are not told, or prove nothing.
        null_count: None where it is not told.
    """

    bounds: tuple[Bound, Bound] | None
    null_count: int | None


def statistics_by_arrow(
    metadata: pq.FileMetaData, row_groups: Sequence[int], leaf: int
) -> list[ChunkStatistics | None]:
    """Of a leaf in some row groups of a file that this process wrote; None: nothing is told."""
    return [_of_arrow(metadata.row_group(number).column(leaf).statistics) for number in row_groups]


def statistics_by_field(
    footer: Footer, described: pq.ColumnSchema, row_groups: Sequence[int], leaf: int
) -> list[ChunkStatistics | None]:
    """The same of any file.

    Raises:
        ValueError: A bound is no value of its type.
    """
    return [_of_fields(footer, described, number, leaf) for number in row_groups]


def plain_value(raw: bytes, physical: str) -> Bound:
    """A bound that is written "PLAIN", without the length of text.

    Raises:
        ValueError: It has fewer or more bytes than a value of the physical type.
    """
    if physical not in _FORMATS:
        return raw
    try:
        value: Bound = struct.unpack(_FORMATS[physical], raw)[0]
    except struct.error:
        raise ValueError(f"a bound of {len(raw)} bytes is no {physical}") from None
    return value


def _of_arrow(found: pq.Statistics | None) -> ChunkStatistics | None:
    if found is None:
        return None
    bounds = (found.min_raw, found.max_raw) if found.has_min_max else None
    return ChunkStatistics(bounds, found.null_count if found.has_null_count else None)


def _of_fields(footer: Footer, described: pq.ColumnSchema, row_group: int, leaf: int) -> ChunkStatistics | None:
    try:
        chunk = footer.chunk(row_group, leaf)
    except NoPages:
        return None
    low, high, nulls = chunk.statistics
    if not footer.has_order(leaf):
        # "max/min: DEPRECATED [...] determined by signed comparison": right for numbers, which are known by it later.
        low, high = chunk.signed_bounds if described.physical_type in _FORMATS else (None, None)
    if low is None or high is None:
        return None if nulls is None else ChunkStatistics(None, nulls)
    is_fixed = described.physical_type == "FIXED_LEN_BYTE_ARRAY"
    if is_fixed and not len(low) == len(high) == described.length:
        raise ValueError(f"bounds of {len(low)} and {len(high)} bytes, where values have {described.length}")
    return ChunkStatistics(
        (plain_value(low, described.physical_type), plain_value(high, described.physical_type)), nulls
    )

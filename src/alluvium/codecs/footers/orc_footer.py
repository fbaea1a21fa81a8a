"""What an ORC file says of itself in its tail: rows, the bounds and null counts of columns, and their types.

Nothing but the tail is read: pyarrow opens ORC files, but shows nobody their statistics, nor all of their types. Bounds
are exact values; one that the file does not give for certain is None.

Specification: https://orc.apache.org/specification/ORCv1/ ("File Tail", "Column Statistics").
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

from alluvium.codecs.footers.chunk_statistics import Bound
from alluvium.codecs.footers.orc_tail import (
    Message,
    OrcTail,
    bytes_of,
    fields_of,
    messages_of,
    names_of,
    number_of,
    numbers_of,
    read_tail,
    reading_orc,
    signed,
    sole_kind,
)
from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, FooterColumn
from alluvium.schema import types as t
from alluvium.schema.types import DataType
from alluvium.schema.types import Decimal as DecimalType

_Bounds: TypeAlias = "tuple[Bound, Bound] | None"
_Read: TypeAlias = Callable[[Message, int], _Bounds]

# Footer
_STRIPES, _TYPES, _NUM_ROWS, _STATISTICS, _WRITER = 3, 4, 6, 7, 9
_JAVA = 0
# StripeInformation
_STRIPE_OFFSET, _STRIPE_LENGTHS, _STRIPE_ROWS = 1, (2, 3, 4), 5
# Type
_KIND, _SUBTYPES, _PRECISION, _SCALE = 1, 2, 5, 6
# ColumnStatistics
_NUM_VALUES, _OF_INTEGERS, _OF_DOUBLES, _OF_STRINGS, _OF_BOOLEANS, _OF_DECIMALS, _OF_DATES = range(1, 8)
# Within those of one kind
_MIN, _MAX, _SUM = 1, 2, 3
_BOOLEAN, _BYTE, _SHORT, _INT, _LONG, _FLOAT, _DOUBLE, _STRING = range(8)
_DECIMAL, _DATE, _VARCHAR, _CHAR = 14, 15, 16, 17
_TEXTS = (_STRING, _VARCHAR, _CHAR)
_MAX_DIGITS = 38
#: "the header is [...] a 3 byte value": a chunk of more has no room for its length, and Arrow takes memory for one.
_MAX_BLOCK_BYTES = 1 << 23
#: Arrow takes memory for all of them before it reads the first; of more no list has room.
_MAX_STRIPE_ROWS = (1 << 31) - 1
#: Of types within each other; Arrow's own limit for Parquet is 100.
_MAX_DEPTH = 200


def read_orc_footer(file: pa.NativeFile, columns: Sequence[FooterColumn], path: str | None = None) -> FileFooter:
    """Reads the tail of an ORC file, and closes the file.

    Args:
        file: A seekable file.
        columns: The columns at the top level to take statistics of, by their names in the file.
        path: For the error.

    Raises:
        CorruptTable: The file is not an ORC file.
        UnsupportedFeature: Its codec is unknown (`"unsupported-codec"`).
    """
    with reading_orc(path), file:
        return _footer(read_tail(file).footer, columns)


@dataclass(frozen=True, slots=True)
class OrcType:
    """A type of an ORC file.

    Attributes:
        is_char: Whether it is `char(n)`.
        holds_char: Whether it is, or has such a member at any depth.
        members: Of a struct its fields', of a list its elements', of a map those of keys and values, of a union all.
    """

    is_char: bool
    holds_char: bool
    members: tuple[OrcType, ...] = ()


def char_columns(tail: OrcTail, path: str | None = None) -> Mapping[str, OrcType]:
    """The columns of an ORC file that are `char(n)`, or hold such, by name.

    Args:
        tail: From `read_sound_tail`.
        path: For the error.

    Raises:
        CorruptTable: The file is damaged.
    """
    with reading_orc(path):
        types = messages_of(tail.footer, _TYPES)
        if not any(number_of(one, _KIND) == _CHAR for one in types):
            return {}
        made: dict[int, OrcType] = {}
        # Types are numbered from the root down, so that the last ones have no members, and each is a member once.
        for place in reversed(range(len(types))):
            members = tuple(made.pop(member) for member in numbers_of(types[place], _SUBTYPES))
            is_char = number_of(types[place], _KIND) == _CHAR
            made[place] = OrcType(is_char, is_char or any(m.holds_char for m in members), members)
        columns = zip(names_of(types[0]), made[0].members, strict=True)
        return {name: kind for name, kind in columns if kind.holds_char}


def read_sound_tail(file: pa.NativeFile, path: str | None = None) -> OrcTail:
    """Reads the tail, and looks at what Arrow ends the process about or hangs on: decimals of more digits than there
    are, types too deep for its stack, stripes of more rows than the file or its memory or in one place, chunks of more
    bytes than memory has. What is in a stripe is looked at before it is read (`orc_stripe.StripeGuard`).

    Args:
        file: A seekable file, which stays open.
        path: For the error.

    Raises:
        CorruptTable: One has; or the file is not an ORC file.
        UnsupportedFeature: Its codec is unknown (`"unsupported-codec"`).
    """
    with reading_orc(path):
        tail = read_tail(file)
        if tail.codec and tail.block_bytes > _MAX_BLOCK_BYTES:
            raise ValueError(f"chunks of {tail.block_bytes} bytes, where {_MAX_BLOCK_BYTES} are the most")
        footer = tail.footer
        stripes = messages_of(footer, _STRIPES)
        _ensure_apart(stripes)
        rows = [number_of(stripe, _STRIPE_ROWS) for stripe in stripes]
        if sum(rows) != number_of(footer, _NUM_ROWS):
            raise ValueError(
                f"its stripes have {sum(rows)} rows, and it is said to have {number_of(footer, _NUM_ROWS)}"
            )
        if max(rows, default=0) > _MAX_STRIPE_ROWS:
            raise ValueError(f"a stripe has more than {_MAX_STRIPE_ROWS} rows")
        types = messages_of(footer, _TYPES)
        decimals = (one for one in types if sole_kind(one) == _DECIMAL)
        if any(max(number_of(one, _PRECISION), number_of(one, _SCALE)) > _MAX_DIGITS for one in decimals):
            raise ValueError(f"a decimal has more than {_MAX_DIGITS} digits")
        depths = [0] * len(types)
        for depth, one in zip(depths, types, strict=True):
            for member in numbers_of(one, _SUBTYPES):
                depths[member] = depth + 1
        if max(depths, default=0) > _MAX_DEPTH:
            raise ValueError(f"types are nested more than {_MAX_DEPTH} deep")
        return tail


def _ensure_apart(stripes: Sequence[Message]) -> None:
    """Of stripes in one place Arrow looks at all, where it is asked for one of them."""
    end = 0
    for stripe in stripes:
        begin = number_of(stripe, _STRIPE_OFFSET)
        if begin < end:
            raise ValueError("two of its stripes are in the same place")
        end = begin + sum(number_of(stripe, field) for field in _STRIPE_LENGTHS)


def _footer(footer: Message, columns: Sequence[FooterColumn]) -> FileFooter:
    num_rows = number_of(footer, _NUM_ROWS)
    types = messages_of(footer, _TYPES)
    statistics = messages_of(footer, _STATISTICS)
    # The first is that of the rows: what did not count all of them tells nothing of their columns either.
    if num_rows == 0 or not statistics or number_of(statistics[0], _NUM_VALUES) != num_rows:
        return FileFooter(num_rows)
    places = dict(zip(names_of(types[0]), numbers_of(types[0], _SUBTYPES), strict=True))
    found = {}
    for column in columns:
        place = places.get(column.path[0]) if len(column.path) == 1 else None
        if place is not None:
            kind = number_of(types[place], _KIND)
            stats = _column_stats(statistics[place], kind, column.type, num_rows)
            # The C++ writer takes a text for no longer than up to its first NUL where it compares.
            is_known = kind not in _TEXTS or number_of(footer, _WRITER) == _JAVA
            found[column.path] = stats if is_known else replace(stats, min=None, max=None)
    return FileFooter(num_rows, found)


def _column_stats(message: Message, kind: int, data_type: DataType, num_rows: int) -> ColumnStats:
    count = number_of(message, _NUM_VALUES)
    bounds: _Bounds = None
    for expected, kinds, field, read in _READERS:
        if kind in kinds and count and field in message and expected(data_type):
            bounds = read(fields_of(bytes_of(message, field)), count)
    low, high = bounds or (None, None)
    return ColumnStats(data_type, low, high, num_rows - count)


def _integers(message: Message, count: int) -> _Bounds:
    if _MIN not in message or _MAX not in message:
        return None
    return signed(number_of(message, _MIN)), signed(number_of(message, _MAX))


def _doubles(message: Message, count: int) -> _Bounds:
    if not {_MIN, _MAX, _SUM} <= message.keys():
        return None
    low, high, total = (struct.unpack("<d", bytes_of(message, field))[0] for field in (_MIN, _MAX, _SUM))
    # NaN is greater than any number, and the bounds do not know it: but a sum with one is one.
    if total != total or low != low or high != high:
        return None
    # Zero has two signs, and equals itself.
    return (-0.0 if low == 0 else low, 0.0 if high == 0 else high)


def _texts(message: Message, count: int) -> _Bounds:
    # Of texts beyond 1024 bytes there are bounds of another name, which no row needs to have.
    if _MIN not in message or _MAX not in message:
        return None
    return bytes_of(message, _MIN).decode(), bytes_of(message, _MAX).decode()


def _booleans(message: Message, count: int) -> _Bounds:
    true = sum(numbers_of(message, _MIN))
    return true == count, true > 0


def _decimals(message: Message, count: int) -> _Bounds:
    if _MIN not in message or _MAX not in message:
        return None
    return Decimal(bytes_of(message, _MIN).decode()), Decimal(bytes_of(message, _MAX).decode())


#: For which types, as which kinds of ORC's, where, and how the bounds of a column are told.
_READERS: Sequence[tuple[Callable[[DataType], bool], tuple[int, ...], int, _Read]] = (
    (lambda kind: kind in t.INTEGRAL or kind == t.TIME, (_BYTE, _SHORT, _INT, _LONG), _OF_INTEGERS, _integers),
    (lambda kind: kind in t.FLOATING, (_FLOAT, _DOUBLE), _OF_DOUBLES, _doubles),
    (lambda kind: kind == t.STRING, _TEXTS, _OF_STRINGS, _texts),
    (lambda kind: kind == t.BOOLEAN, (_BOOLEAN,), _OF_BOOLEANS, _booleans),
    (lambda kind: isinstance(kind, DecimalType), (_DECIMAL,), _OF_DECIMALS, _decimals),
    (lambda kind: kind == t.DATE, (_DATE,), _OF_DATES, _integers),
)

"""Whose clock the instants of an ORC file may go by: what tells it, of which pyarrow shows nothing.

Specification: https://orc.apache.org/specification/ORCv1/ ("Stripe Footer", "Column Statistics").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from alluvium.codecs.footers.orc_tail import (
    Message,
    OrcTail,
    bytes_of,
    fields_of,
    messages_of,
    names_of,
    number_of,
    numbers_of,
    read_stripe_footer,
    reading_orc,
    signed,
)

# Footer
_STRIPES, _TYPES, _STATISTICS = 3, 4, 7
# StripeFooter
_WRITER_TIMEZONE = 3
# Type
_KIND, _SUBTYPES = 1, 2
_TIMESTAMP_INSTANT = 18
# ColumnStatistics, and those of timestamps
_NUM_VALUES, _OF_TIMESTAMPS = 1, 9
_MIN_UTC, _MAX_UTC = 3, 4


@dataclass(frozen=True, slots=True)
class WriterClock:
    """What a file says of its writer's clock.

    Attributes:
        zones: Of each stripe the writer's zone as it calls it; None: the stripe does not say. It does where the file
            has a column of type `timestamp`.
        bounds: Columns of type `timestamp with local time zone` at the top level, and the least and the greatest value
            of each in milliseconds since 1970 UTC, as they are stored.
        empty: Columns at the top level, of whatever type, that have no value.
    """

    zones: tuple[str | None, ...]
    bounds: Mapping[str, tuple[int, int]]
    empty: frozenset[str] = frozenset()


def read_writer_clock(file: pa.NativeFile, tail: OrcTail, path: str | None = None) -> WriterClock:
    """Reads the tails of an ORC file's stripes.

    Args:
        file: A seekable file, which stays open.
        tail: That of the file.
        path: For the error.

    Raises:
        CorruptTable: The file is damaged.
        UnsupportedFeature: Its codec is unknown (`"unsupported-codec"`).
    """
    with reading_orc(path):
        zones = tuple(_zone(file, stripe, tail.codec) for stripe in messages_of(tail.footer, _STRIPES))
        return WriterClock(zones, *_columns(tail.footer))


def _zone(file: pa.NativeFile, stripe: Message, codec: int) -> str | None:
    _, footer = read_stripe_footer(file, stripe, codec)
    return bytes_of(footer, _WRITER_TIMEZONE).decode() or None


def _columns(footer: Message) -> tuple[dict[str, tuple[int, int]], frozenset[str]]:
    """The bounds of instants, and the columns without values."""
    types, statistics = messages_of(footer, _TYPES), messages_of(footer, _STATISTICS)
    bounds, empty = {}, []
    for name, place in zip(names_of(types[0]), numbers_of(types[0], _SUBTYPES), strict=True):
        if place >= len(statistics):
            continue
        if _NUM_VALUES in statistics[place] and number_of(statistics[place], _NUM_VALUES) == 0:
            empty.append(name)
        stats = fields_of(bytes_of(statistics[place], _OF_TIMESTAMPS))
        if number_of(types[place], _KIND) == _TIMESTAMP_INSTANT and _MIN_UTC in stats and _MAX_UTC in stats:
            bounds[name] = signed(number_of(stats, _MIN_UTC)), signed(number_of(stats, _MAX_UTC))
    return bounds, frozenset(empty)

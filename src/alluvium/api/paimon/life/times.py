"""Times and durations as callers give them."""

from __future__ import annotations

import datetime as dt

from alluvium.codecs.temporal_text import parse_timestamp, parse_zone
from alluvium.errors import InvalidRequest
from alluvium.paimon.terms.durations import ensure_duration

#: A point in time: text is read in UTC, as is a time without a zone; numbers are milliseconds since 1970 UTC.
When = dt.datetime | str | int
#: `"1 d"`, `"12 h"`.
Duration = dt.timedelta | str


def millis_of(when: When, what: str, time_zone: str = "UTC") -> int:
    """Milliseconds since 1970 UTC.

    Raises:
        InvalidRequest: It is no time (`"invalid-timestamp"`).
    """
    if isinstance(when, bool):
        raise InvalidRequest(f"{what} is a time, not {when!r}", code="invalid-timestamp")
    if isinstance(when, int):
        return when
    if isinstance(when, str):
        micros = parse_timestamp(when, parse_zone(time_zone))
        if micros is None:
            raise InvalidRequest(f"{what} {when!r} is no time", code="invalid-timestamp", hint="yyyy-MM-dd HH:mm:ss")
        return micros // 1000
    aware = when if when.tzinfo is not None else when.replace(tzinfo=dt.timezone.utc)
    return int(aware.timestamp() * 1000)


def duration_ms(duration: Duration | None, what: str) -> int | None:
    """Milliseconds of a duration.

    Raises:
        InvalidRequest: It is none (`"invalid-duration"`).
    """
    if duration is None:
        return None
    if isinstance(duration, dt.timedelta):
        return int(duration.total_seconds() * 1000)
    return ensure_duration(what, duration)

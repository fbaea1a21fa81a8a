"""Durations as options have them: `"36 h"`, `"1 d"`, `"500"` (milliseconds).

Specification: `org.apache.paimon.utils.TimeUtils`.
"""

from __future__ import annotations

import re

from alluvium.errors import InvalidRequest

_DURATION = re.compile(r"(\d+)\s*([a-zµ]*)")
#: Milliseconds of each unit; those below count as parts.
_UNITS: dict[str, float] = {
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("µs", "micro", "micros", "microsecond", "microseconds"), 1e-3),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1e-6),
}


def parse_duration(text: str) -> int:
    """Milliseconds of a duration.

    Raises:
        ValueError: The text is none.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError("expected a duration such as 12 h or 1 d")
    return int(int(match[1]) * _UNITS[match[2]])


def ensure_duration(what: str, text: str) -> int:
    """Milliseconds of a duration that a caller gave.

    Raises:
        InvalidRequest: The text is none (`"invalid-duration"`).
    """
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidRequest(f"{what} = {text!r}: {error}", code="invalid-duration", hint="12 h, 1 d") from None

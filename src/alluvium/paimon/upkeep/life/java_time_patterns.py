"""Times as patterns of Java's `DateTimeFormatter` have them, as far as partitions are named by times."""

from __future__ import annotations

import datetime as dt
import re

from alluvium.errors import InvalidRequest

#: Letters of a pattern, and the part of a time that they stand for.
_PARTS = {
    "y": "year",
    "u": "year",
    "M": "month",
    "d": "day",
    "H": "hour",
    "m": "minute",
    "s": "second",
    "S": "fraction",
}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")
#: Without a pattern: a date, and perhaps a time of day behind it.
_DEFAULT = re.compile(
    r"(?P<year>-?\d{1,10})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?: (?P<hour>\d{1,2}):(?P<minute>\d{1,2}):(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?)?"
)


def parse_time(text: str, pattern: str | None) -> dt.datetime | None:
    """The time that a text stands for; None: it is none.

    Args:
        text: The text.
        pattern: Java's; None: `yyyy-MM-dd`, perhaps with ` HH:mm:ss`, digits in front left out or not.

    Raises:
        InvalidRequest: A pattern that is not understood here (`"invalid-table-option"`).
    """
    match = (_DEFAULT if pattern is None else _expression(pattern)).fullmatch(text)
    if match is None:
        return None
    found = match.groupdict()
    numbers = {
        name: int(found[name]) for name in ("year", "month", "day", "hour", "minute", "second") if found.get(name)
    }
    micros = int((found.get("fraction") or "0").ljust(9, "0")[:6])
    try:
        return dt.datetime(
            numbers.get("year", 1970), numbers.get("month", 1), numbers.get("day", 1), numbers.get("hour", 0),
            numbers.get("minute", 0), numbers.get("second", 0), micros,
        )  # fmt: skip
    except ValueError:
        return None


def _expression(pattern: str) -> re.Pattern[str]:
    parts, at = [], 0
    for token in _TOKEN.finditer(pattern):
        if token.start() != at:
            break
        at = token.end()
        letter, text = token[2], token[0]
        if letter is None:
            parts.append(re.escape(text if token[1] is None else token[1].replace("''", "'") or "'"))
        elif letter in _PARTS:
            # "yyyy" takes as many digits as it has letters, "M" one or two.
            digits = f"{{{len(text)}}}" if len(text) > 1 else "{1,2}"
            parts.append(f"(?P<{_PARTS[letter]}>\\d{digits})")
        else:
            break
    else:
        if at == len(pattern):
            return re.compile("".join(parts))
    raise InvalidRequest(
        f"the pattern {pattern!r} is not understood",
        code="invalid-table-option",
        hint="y, M, d, H, m, s and S in numbers, others in quotes: yyyyMMdd",
    )

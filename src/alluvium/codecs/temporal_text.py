"""Dates, instants and zones as Spark reads and writes them in text, years beyond 9999 included.

The one reader of such texts: of constants in predicates, of partition values, of statistics.

Values are integers (days or microseconds since 1970-01-01, proleptic Gregorian calendar): Python's `date` and
`datetime` end at the year 9999, Spark's types do not.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from alluvium.errors import InvalidRequest

#: What Spark's casts cut off at both ends of a text: they go by bytes, so no blanks beyond ASCII.
BLANKS = " \t\n\v\f\r\x1c\x1d\x1e\x1f"
DAY_US = 86_400_000_000
_EPOCH = datetime(1970, 1, 1)

# Spark's casts: month and day may be missing, or of one digit; what follows a date's blank or T does not count.
_DATE = r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})"
_DATE_TEXT = re.compile(rf"{_DATE}(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_CLOCK = r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?"
_INSTANT_TEXT = re.compile(rf"{_DATE}(?:[ T](?:{_CLOCK})?\s*(\S.*)?)?)?)?", re.ASCII)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)
_UTC_NAMES = ("Z", "UTC", "GMT", "UT", "ETC/UTC")

#: Java's old names of three letters, as Spark takes them (`java.time.ZoneId.SHORT_IDS`).
_SHORT_IDS = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "EST": "-05:00", "HST": "-10:00", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "MST": "-07:00", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip


def days_from_civil(year: int, month: int, day: int) -> int | None:
    """Days since 1970-01-01 of a proleptic Gregorian date; None where there is no such date."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not 1 <= month <= 12 or not 1 <= day <= lengths[month - 1]:
        return None
    # Years that begin in March put the leap day last, so that months have a closed form.
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day number: the inverse of `days_from_civil`."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted_month + 2) // 5 + 1


@lru_cache(maxsize=256)
def parse_zone(name: str) -> tzinfo:
    """A zone by its name as Spark takes it: a region, `Z`, an offset such as `+01:00`, or one of Java's old names.

    Raises:
        InvalidRequest: There is no such zone.
    """
    name = _SHORT_IDS.get(name, name)
    if name.upper() in _UTC_NAMES:
        return timezone.utc
    if match := _OFFSET.fullmatch(name):
        sign, hours, minutes, seconds = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
        if offset <= timedelta(hours=18) and int(minutes or 0) < 60 and int(seconds or 0) < 60:
            return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InvalidRequest(
            f"there is no time zone {name!r}",
            code="unknown-time-zone",
            hint="name a region, such as Europe/Berlin, or UTC",
        ) from None


def parse_date(text: str) -> int | None:
    """Days since 1970-01-01 of a date as Spark casts it (`2024`, `2024-1-1`, with or without a time behind it).

    None where the text is no date.
    """
    match = _DATE_TEXT.fullmatch(text.strip(BLANKS))
    return None if match is None else days_from_civil(int(match[1]), int(match[2] or 1), int(match[3] or 1))


def parse_timestamp(text: str, zone: tzinfo) -> int | None:
    """Microseconds since 1970 UTC; text that names no zone is in `zone`. None where the text is no timestamp."""
    parsed = parse_local(text)
    if parsed is None:
        return None
    local_us, named = parsed
    try:
        return local_us - _offset_us(local_us, zone if named is None else parse_zone(named))
    except InvalidRequest:
        return None


def parse_timestamp_ntz(text: str) -> int | None:
    """Microseconds of the wall clock since 1970-01-01 00:00; a zone in the text is left aside, as Spark's cast does."""
    parsed = parse_local(text)
    return None if parsed is None else parsed[0]


def parse_local(text: str) -> tuple[int, str | None] | None:
    """Microseconds of the wall clock, and the zone that the text names; None where it is no timestamp."""
    match = _INSTANT_TEXT.fullmatch(text.strip(BLANKS))
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, named = match.groups()
    days = days_from_civil(int(year), int(month or 1), int(day or 1))
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if days is None or hours > 23 or minutes > 59 or seconds > 59:
        return None
    # Digits beyond the sixth are cut, as Spark does: its timestamps are microseconds.
    micros = int((fraction or "").ljust(6, "0")[:6])
    return days * DAY_US + (hours * 3600 + minutes * 60 + seconds) * 1_000_000 + micros, named


def _offset_us(local_us: int, zone: tzinfo) -> int:
    fixed = zone.utcoffset(None)
    if fixed is not None:
        return fixed // timedelta(microseconds=1)
    # A wall time in a gap or an overlap takes the offset before the transition: java.time does the same.
    wall = min(max(_EPOCH + timedelta(microseconds=_clamped(local_us)), datetime(1, 1, 2)), datetime(9999, 12, 30))
    offset = wall.replace(tzinfo=zone).utcoffset()
    return 0 if offset is None else offset // timedelta(microseconds=1)


def _clamped(local_us: int) -> int:
    return min(max(local_us, -719_160 * DAY_US), 2_932_890 * DAY_US)


def format_date(days: int) -> str:
    """`yyyy-MM-dd`; years beyond 9999 with a sign, as java.time prints them."""
    year, month, day = civil_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def format_instant(micros: int, separator: str) -> tuple[str, str]:
    """Date and time to the second joined by `separator`, and the six digits of the fraction."""
    days, rest = divmod(micros, DAY_US)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{format_date(days)}{separator}{clock}", f"{fraction:06d}"

"""Files of time zones (TZif, RFC 8536), the system's and those of the package `tzdata`.

`zoneinfo` reads them, too, but does not tell when clocks change.
"""

from __future__ import annotations

import calendar
import datetime as dt
import importlib.resources
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from struct import Struct

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.int64]

#: Magic, version, unused; counts of UT flags, standard flags, leap seconds, changes, kinds of time, letters of names.
_HEAD = Struct(">4sc15x6l")
_KIND = np.dtype([("offset", ">i4"), ("is_summer", "?"), ("name", "u1")])
#: The calendar repeats itself after as many years, weekdays too.
_CYCLE_S = 146_097 * 86_400
_EPOCH = dt.date(1970, 1, 1)
#: Years of tables. No file tells of a change in the last cycle, so that the rule has all of it.
_FIRST_YEAR, _END_YEAR = 1800, 2500
#: 2500-01-01 in UTC.
_END_S = 16_725_225_600
_LAST_OF_FEBRUARY = 59

_NAME = r"(?:<[^>]*>|[A-Za-z]+)"
_DISTANCE = r"[+-]?\d+(?::\d+){0,2}"
_DATE = rf"(?:M\d+\.\d+\.\d+|J?\d+)(?:/{_DISTANCE})?"
_RULE = re.compile(rf"{_NAME}({_DISTANCE})(?:{_NAME}({_DISTANCE})?,({_DATE}),({_DATE}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Clock:
    """How far a clock is ahead of UTC's.

    Attributes:
        changes: When that changes, seconds since 1970, in order, up to 2500.
        offsets: Seconds, before the first change, and from each on.
    """

    changes: Seconds
    offsets: Seconds

    def offsets_s(self, instants: Seconds) -> Seconds:
        """Seconds at some instants, which are seconds since 1970; after 2500 as a cycle of the calendar before."""
        if len(instants) and instants.max() >= _END_S:
            over = np.maximum((instants - _END_S) // _CYCLE_S + 1, 0)
            instants = instants - over * _CYCLE_S
        return self.offsets[np.searchsorted(self.changes, instants, "right")]

    def instants(self, shown: Seconds) -> tuple[Seconds, Seconds]:
        """The first and the last instant at which the clock shows some times before 2500.

        Of a time that a clock skips, it is one that the clock shows as another.
        """
        ends = np.maximum.accumulate(self.changes + self.offsets[:-1])
        starts = np.maximum.accumulate(self.changes + self.offsets[1:])
        last = np.searchsorted(starts, shown, "right")
        first = np.minimum(np.searchsorted(ends, shown, "right"), last)
        return shown - self.offsets[first], shown - self.offsets[last]


@dataclass(frozen=True, slots=True)
class YearlyRule:
    """How a zone's clock goes on for ever.

    Attributes:
        standard: Seconds ahead of UTC's.
        summer: The same in summer; None: there is none.
        dates: When summer begins, and when it ends, as the rule has it.
    """

    standard: int
    summer: int | None = None
    dates: tuple[str, str] = ("", "")

    def changes(self) -> tuple[Seconds, Seconds]:
        """The changes from 1800 to 2500, and the seconds ahead of UTC's from each on."""
        if self.summer is None:
            return np.array([], np.int64), np.array([], np.int64)
        begin, end = self.dates
        years = range(_FIRST_YEAR, _END_YEAR)
        pairs = [(_date_s(begin, year) - self.standard, self.summer) for year in years]
        pairs += [(_date_s(end, year) - self.summer, self.standard) for year in years]
        table = np.array(sorted(pairs), np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]


@dataclass(frozen=True, slots=True)
class ZoneFile:
    """How far a zone's clock is ahead of UTC's.

    Attributes:
        changes: When that changes, seconds since 1970, in order.
        offsets: Seconds, from each change on.
        is_summer: Whether that is summer time.
        first: Seconds, before the first change: the local mean time.
        before: The same, as ORC's library for C++ has it: the first that is not summer time of those behind a change.
        rule: What follows the last change; None: the file does not say.
    """

    changes: Seconds
    offsets: Seconds
    is_summer: npt.NDArray[np.bool_]
    first: int
    before: int
    rule: YearlyRule | None

    def clock(self, before: int) -> Clock:
        """The clock that goes by the file, with as many seconds before the first change."""
        changes, offsets = self.changes, self.offsets
        if self.rule is not None:
            more, behind = self.rule.changes()
            is_later = more > (changes[-1] if len(changes) else -(1 << 62))
            changes = np.concatenate([changes, more[is_later]])
            offsets = np.concatenate([offsets, behind[is_later]])
        return Clock(changes, np.concatenate([np.array([before], np.int64), offsets]))


@cache
def zone_file(key: str) -> ZoneFile | None:
    """The system's file of a zone; None: the system has none.

    Args:
        key: Of a `zoneinfo.ZoneInfo`, which lets none out of the folder.

    Raises:
        ValueError, struct.error: It is damaged.
    """
    path = Path(os.environ.get("TZDIR", "/usr/share/zoneinfo"), key)
    return _parsed(path.read_bytes()) if path.is_file() else None


@cache
def packaged_zone_file(key: str) -> ZoneFile | None:
    """The file of a zone in the package `tzdata`, which is IANA's main data; None: it has none.

    Args:
        key: As of `zone_file`.
    """
    path = importlib.resources.files("tzdata").joinpath("zoneinfo", *key.split("/"))
    return _parsed(path.read_bytes()) if path.is_file() else None


def _parsed(data: bytes) -> ZoneFile:
    at, width, (_, version, *counts) = 0, 4, _HEAD.unpack_from(data)
    if version >= b"2":
        # The same again, in eight bytes a change.
        at, width = _HEAD.size + _length(counts, width), 8
        _, _, *counts = _HEAD.unpack_from(data, at)
    _, _, _, change_count, kind_count, _ = counts
    end = at + _HEAD.size + _length(counts, width)
    at += _HEAD.size
    changes = np.frombuffer(data, f">i{width}", change_count, at).astype(np.int64)
    at += change_count * width
    behind = np.frombuffer(data, np.uint8, change_count, at)
    kinds = np.frombuffer(data, _KIND, kind_count, at + change_count)
    offsets, is_summer = kinds["offset"].astype(np.int64), kinds["is_summer"]
    standard = behind[~is_summer[behind]]
    before = int(offsets[standard[0] if len(standard) else 0])
    footer = data[end:].strip(b"\n").decode("ascii") if width == 8 else ""
    rule = parse_rule(footer) if footer else None
    return ZoneFile(changes, offsets[behind], is_summer[behind], int(offsets[0]), before, rule)


def _length(counts: list[int], width: int) -> int:
    ut, standard, leaps, changes, kinds, letters = counts
    return changes * (width + 1) + kinds * _KIND.itemsize + letters + leaps * (width + 4) + standard + ut


def parse_rule(text: str) -> YearlyRule:
    """The footer of a file, which is a value of POSIX's `TZ`.

    Raises:
        ValueError: It is none.
    """
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(f"no rule of a time zone: {text!r}")
    standard, summer, begin, end = match.groups()
    # POSIX counts westward.
    ahead = -_distance_s(standard)
    if begin is None:
        return YearlyRule(ahead)
    return YearlyRule(ahead, ahead + 3600 if summer is None else -_distance_s(summer), (begin, end))


def _distance_s(text: str) -> int:
    hours, minutes, seconds = (*map(int, text.lstrip("+-").split(":")), 0, 0)[:3]
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if text.startswith("-") else 1)


def _date_s(text: str, year: int) -> int:
    """When a date of a rule is, in seconds since 1970 of the clock that goes until then."""
    date, _, time = text.partition("/")
    since_midnight = _distance_s(time) if time else 7200
    if date.startswith("M"):
        month, week, weekday = map(int, date[1:].split("."))
        begin = dt.date(year, month, 1)
        day = (weekday - begin.isoweekday()) % 7 + 7 * (week - 1)
        # The fifth is the last one.
        day -= 7 if day >= calendar.monthrange(year, month)[1] else 0
    else:
        # With J from 1, and the 29th of February is not counted.
        begin, day = dt.date(year, 1, 1), int(date.lstrip("J"))
        day -= date.startswith("J") and not (day > _LAST_OF_FEBRUARY and calendar.isleap(year))
    return (begin - _EPOCH).days * 86_400 + 86_400 * day + since_midnight

"""Whether the JVM's clocks are ours: its edition of the world's time zones may be older than the system's, or newer."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from weakref import WeakKeyDictionary

import numpy as np
from py4j.java_gateway import JavaGateway

from alluvium.codecs.temporal_text import parse_zone
from alluvium.expr.bind import SETTLED
from alluvium.expr.columnar import ahead_s
from alluvium.spark.jvm.gateway import Java

#: How Java tells of a change: `Gap at 2037-03-29T02:00+01:00 to +02:00`.
_CHANGE = re.compile(r"at (-?\d{4,})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d))?(Z|[+-][\d:]+) to (Z|[+-][\d:]+)")
#: Of earlier times nothing is taken for granted. Rules that go on for ever have shown themselves until 2040.
_FROM, _UNTIL = SETTLED.replace(tzinfo=None), dt.datetime(2040, 1, 1)
#: No clock changes twice in so many seconds.
_STEP_S = 6 * 3_600

_known: WeakKeyDictionary[JavaGateway, dict[str, bool]] = WeakKeyDictionary()


def shares_clock(java: Java, name: str) -> bool:
    """Whether Spark and we say the same of a zone's local times, of 1980 and later.

    Args:
        java: The session's JVM, which is asked once a zone.
        name: Of the zone, as Spark takes it.
    """
    known = _known.setdefault(java.gateway, {})
    if name not in known:
        known[name] = isinstance(parse_zone(name), dt.timezone) or _is_shared(java, name)
    return known[name]


def _is_shared(java: Java, name: str) -> bool:
    first, changes = _javas_changes(java, name)
    at = np.array([second for second, _ in changes], np.int64)
    grid = np.arange(_seconds(_FROM), _seconds(_UNTIL), _STEP_S)
    # Between the changes by the step; at each to the second.
    instants = np.concatenate([grid, at - 1, at])
    instants = instants[(instants >= grid[0]) & (instants <= grid[-1])]
    javas = np.array([first, *(offset for _, offset in changes)], np.int64)[np.searchsorted(at, instants, "right")]
    return bool((javas == ahead_s(instants, parse_zone(name))).all())


def _javas_changes(java: Java, name: str) -> tuple[int, list[tuple[int, int]]]:
    """How far the clock is ahead in the beginning, in seconds, and when it changes since then, and to what."""
    utils, time = java.jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils, java.jvm.java.time
    table = utils.getZoneId(name).getRules()
    told = [str(table.getTransitions().toString())]
    rules = table.getTransitionRules()
    for number in range(rules.size()):
        rule = rules.get(number)
        told += [str(rule.createTransition(year).toString()) for year in range(_FROM.year, _UNTIL.year)]
    listed = [_change(match) for match in _CHANGE.finditer(told[0])]
    # Rules hold behind the last change that is listed.
    last = max((second for second, _ in listed), default=_seconds(_FROM))
    ruled = sorted(_change(match) for text in told[1:] for match in _CHANGE.finditer(text))
    changes = [*listed, *(one for one in ruled if one[0] > last)]
    first = int(table.getOffset(time.Instant.ofEpochSecond(_seconds(_FROM))).getTotalSeconds())
    return first, [one for one in changes if one[0] > _seconds(_FROM)]


def _change(match: re.Match[str]) -> tuple[int, int]:
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    if not 1 <= year <= 9999:
        return -(1 << 62), 0
    local = _seconds(dt.datetime(year, month, day, hour, minute, second))
    return local - _offset(match[7]), _offset(match[8])


def _offset(text: str) -> int:
    if text == "Z":
        return 0
    hours, minutes, *seconds = (int(part) for part in text[1:].split(":"))
    total = hours * 3_600 + minutes * 60 + sum(seconds)
    return -total if text[0] == "-" else total


def _seconds(time: dt.datetime) -> int:
    return calendar.timegm(time.timetuple())

"""The clocks of zones as Java's `TimeZone` has them, which is not what other readers of the same data make of these.

Java is built with IANA's main data, as the package `tzdata` is. Systems may have more: Debian's files have histories of
their own for zones that the main data take for others before 1970 ("backzone"). And `sun.util.calendar.ZoneInfo`, which
Java's older classes ask, knows changes of 1900 to 2037 only (of later ones, too, in Java 25).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from alluvium.codecs.zone_file import Clock, Seconds, YearlyRule, ZoneFile, packaged_zone_file, zone_file

#: 1900-01-01 in UTC, the first that it knows of clocks.
_BEGIN_S = -2_208_988_800
#: 2037-01-01, and the last second of that year.
_LAST_YEAR_S, _LAST_S = 2_114_380_800, 2_145_916_799


@cache
def java_clock(key: str) -> Clock | None:
    """The clock of a zone; None: nobody knows the zone.

    Since 1970 it goes by the system's file: Java's data and the system's are of some version each, and to suppose that
    they are of one leaves alone what Arrow, which has the system's, makes of most times.

    Args:
        key: Of a `zoneinfo.ZoneInfo`.
    """
    packaged, system = packaged_zone_file(key), zone_file(key)
    # `EST`, `HST` and `MST` are regions to new data, and a distance from UTC to systems and to Java before 24.
    is_fixed = system is not None and not len(system.changes)
    old, new = system if is_fixed else packaged or system, system or packaged
    if old is None or new is None:
        return None
    standard = _standard_s(new)
    known = _joined(old.clock(old.first), new.clock(new.first))
    later, behind_later, last = _later(new, standard)
    is_within = (known.changes >= _BEGIN_S) & (known.changes <= last)
    changes, behind = known.changes[is_within], known.offsets[1:][is_within]
    if not len(changes):
        return _clock(later, np.concatenate([_one(standard), behind_later]))
    at_begin = known.offsets_s(_one(_BEGIN_S - 1))
    return _clock(
        np.concatenate([_one(_BEGIN_S), changes, later]),
        np.concatenate([_one(standard), at_begin, behind, behind_later]),
    )


def _joined(old: Clock, new: Clock) -> Clock:
    """What one clock says before 1970, and another from there on."""
    before, after = old.changes < 0, new.changes > 0
    return _clock(
        np.concatenate([old.changes[before], _one(0), new.changes[after]]),
        np.concatenate([old.offsets[:1], old.offsets[1:][before], new.offsets_s(_one(0)), new.offsets[1:][after]]),
    )


def _later(file: ZoneFile, standard: int) -> tuple[Seconds, Seconds, int]:
    """The last changes, the seconds ahead of UTC's from each on, and up to when others go before them.

    What the data say of late years one by one is left out, and the yearly rule goes on; without one, it is standard
    time from 2037 on, unless the data have changes after that.
    """
    if file.rule is not None and file.rule.summer is not None:
        changes, behind = file.rule.changes()
        is_late = changes >= _LAST_YEAR_S
        return changes[is_late], behind[is_late], _LAST_YEAR_S
    if len(file.changes) and file.changes[-1] >= _LAST_YEAR_S:
        return np.array([], np.int64), np.array([], np.int64), _LAST_S
    return _one(_LAST_YEAR_S - standard), _one(standard), _LAST_S


def _standard_s(file: ZoneFile) -> int:
    """How far today's standard time is ahead of UTC's: what Java has before 1900.

    Its data know of no summer time that is behind standard time (Ireland's winter, Morocco's Ramadan, Namibia's winter
    of old); what is so called is its standard time.
    """
    rule = file.rule or YearlyRule(int(file.offsets[-1]) if len(file.offsets) else file.first)
    found = rule.standard if rule.summer is None else min(rule.standard, rule.summer)
    (summers,) = np.nonzero(file.is_summer)
    if rule.summer is None and len(summers) and (last := summers[-1]) > 0 and not file.is_summer[last - 1]:
        into = int(file.offsets[last])
        return min(found, into) if into < file.offsets[last - 1] else found
    return found


def _clock(changes: Seconds, offsets: Seconds) -> Clock:
    """Without the changes that change nothing."""
    (real,) = np.nonzero(offsets[1:] != offsets[:-1])
    return Clock(changes[real], np.concatenate([offsets[:1], offsets[1:][real]]))


def _one(number: int) -> Seconds:
    return np.array([number], np.int64)

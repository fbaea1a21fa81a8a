"""Whether the clocks of a session's server are ours: its edition of the world's time zones may be another."""

from __future__ import annotations

import datetime as dt
from weakref import WeakKeyDictionary

import numpy as np
from pyspark.sql import SparkSession

from alluvium.codecs.temporal_text import parse_zone
from alluvium.errors import InvalidRequest
from alluvium.expr.bind import SETTLED
from alluvium.expr.columnar import ahead_s
from alluvium.expr.late_times import Numbers

#: Of earlier times nothing is taken for granted. Rules that go on for ever have shown themselves until 2040.
_FROM_S, _UNTIL_S = int(SETTLED.timestamp()), 2_208_988_800
_DAY_S, _HOUR_S = 86_400, 3_600
#: Days are weighed by their numbers, so that clocks that are ahead on other days make another sum.
_WEIGHTS = 9_973
_AHEAD = "unix_seconds(from_utc_timestamp(timestamp_seconds({0}), '{1}')) - {0}"

_known: WeakKeyDictionary[SparkSession, dict[str, bool]] = WeakKeyDictionary()


def shares_clock(spark: SparkSession, name: str) -> bool:
    """Whether the server and we say the same of a zone's local times, of 1980 and later.

    Args:
        spark: The session, which is asked once a zone.
        name: Of the zone, as Spark takes it.
    """
    known = _known.setdefault(spark, {})
    if name not in known:
        known[name] = _is_shared(spark, name)
    return known[name]


def _is_shared(spark: SparkSession, name: str) -> bool:
    """By how far the clock is ahead each day, all days in one sum, and around each change of ours."""
    try:
        zone = parse_zone(name)
    except InvalidRequest:
        # One that Spark alone knows.
        return False
    if isinstance(zone, dt.timezone):
        return True
    days = np.arange(_FROM_S, _UNTIL_S, _DAY_S)
    changes = _changes(zone)
    around = np.concatenate([changes - 1, changes])
    second = f"{_FROM_S}L + i * {_DAY_S}L"
    row = spark.sql(
        f"""select aggregate(sequence(0L, {len(days) - 1}L), 0L, (sum, i) ->
                sum + (i % {_WEIGHTS} + 1) * ({_AHEAD.format(f"({second})", name)})) as days,
            transform(array({", ".join(f"{s}L" for s in around) or "0L"}), s -> {_AHEAD.format("s", name)}) as around"""
    ).collect()[0]
    weighed = int(((np.arange(len(days)) % _WEIGHTS + 1) * ahead_s(days, zone)).sum())
    return bool(row.days == weighed) and row.around[: len(around)] == ahead_s(around, zone).tolist()


def _changes(zone: dt.tzinfo) -> Numbers:
    """When our clock changes, seconds since 1970."""
    hours = np.arange(_FROM_S, _UNTIL_S, _HOUR_S)
    ahead = ahead_s(hours, zone)
    late = np.flatnonzero(ahead[1:] != ahead[:-1])
    # Within these hours it does: halved until there is no second between.
    low, high, before = hours[late], hours[late + 1], ahead[late]
    while (high - low > 1).any():
        middle = (low + high) // 2
        is_behind = ahead_s(middle, zone) != before
        low, high = np.where(is_behind, low, middle), np.where(is_behind, middle, high)
    return high

"""The ends of a range of a Paimon table's snapshots, as callers name them."""

from __future__ import annotations

import datetime as dt

from alluvium.api.options import parse_timestamp_ms
from alluvium.paimon.log.snapshot import Snapshot
from alluvium.paimon.log.travel import At
from alluvium.paimon.view.changes import ChangeRange, resolve_range


def named_range(snapshot: Snapshot, start: object, end: object, mode: str) -> ChangeRange:
    """See `resolve_range`; ends may be dates and times as well."""
    return resolve_range(snapshot, _point(start), _point(end), mode)


def _point(named: object) -> object:
    return At(timestamp_ms=parse_timestamp_ms(named)) if isinstance(named, (dt.datetime, dt.date)) else named

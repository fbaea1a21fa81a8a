"""The ends of a range of a Paimon table's snapshots."""

from __future__ import annotations

import datetime as dt

from alluvium.api.options import parse_timestamp_ms
from alluvium.paimon.changes import resolve_end
from alluvium.paimon.snapshot import Snapshot, load_snapshot
from alluvium.paimon.travel import At


def resolve_bound(snapshot: Snapshot, point: object) -> int:
    """The snapshot that an end of a range names: an id, a tag, a time; None: the one that was opened.

    Raises:
        NotFound: There is nothing there.
    """
    if isinstance(point, (dt.datetime, dt.date)):
        at = At(timestamp_ms=parse_timestamp_ms(point))
        found = load_snapshot(snapshot.store, at, snapshot.branch).version
        assert found is not None
        return found
    return resolve_end(snapshot, point)

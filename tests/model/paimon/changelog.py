"""What the changelog of a table of keys must tell of a verb."""

from __future__ import annotations

from model.paimon.verbs import PaimonBound
from model.paimon.world import Told, engine_of, producer_of
from model.state import ID, Version


def told(now: Version, bound: PaimonBound) -> list[Told]:
    """Of rows that come over others; an overwrite tells nothing.

    Args:
        now: The table before.
        bound: What was done to it, by an engine that compacts behind its commit.
    """
    producer = producer_of(now)
    if producer == "input":
        return bound.written
    if producer == "none":
        return []
    changes: list[Told] = []
    for key in sorted({row[ID] for _, row in bound.written}):
        changes += _looked_up(now, bound.after, key)
    return changes


def _looked_up(now: Version, after: Version, key: int) -> list[Told]:
    old, new = now.rows.get(key), after.rows.get(key)
    if old is None:
        return [] if new is None else [("+I", new)]
    if new is None:
        return [("-D", old)]
    is_first = engine_of(now) == "first-row"
    leaves_out = now.properties.get("changelog-producer.row-deduplicate") == "true"
    if is_first or (leaves_out and after.shown(old) == after.shown(new)):
        return []
    return [("-U", old), ("+U", new)]

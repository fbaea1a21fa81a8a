"""What the changelog of a table of keys must tell of a verb."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from model.observe import ensure, whole
from model.paimon.verbs import PaimonBound
from model.paimon.world import NOTHING, Told, Tops, engine_of, producer_of
from model.state import ID, Version
from model.values import Row


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
    if is_first or (_leaves_out(now) and after.shown(old) == after.shown(new)):
        return []
    return [("-U", old), ("+U", new)]


def _leaves_out(now: Version) -> bool:
    return now.properties.get("changelog-producer.row-deduplicate") == "true"


# --- changelogs by full compactions ---


def left_of(tops: Tops, bound: PaimonBound) -> Tops:
    """What has been told of the rows that a verb leaves, and of those in their place: of an overwrite nobody is told. The
    compaction behind it, if there is one, may have taken its rows for told.
    """
    if bound.stays is None:
        return tops
    stays = bound.stays
    left = {key: rows for key, rows in tops.items() if all(row is None or stays(row) for row in rows)}
    return left | {key: (None, row) for key, row in bound.after.rows.items() if not stays(row)}


def chained(tops: Tops, bound: PaimonBound, found: Sequence[dict[str, Any]]) -> tuple[list[Told], Tops]:
    """What was told of a verb leads from what had been told of each key to the rows that there are now; who compacts in
    full tells all of it, others what they like.

    Args:
        tops: What had been told last, of each key; more than one where the model cannot know.
        bound: What was done.
        found: Changes as they were read, with their kinds.

    Returns:
        The changes, and what has been told now.
    """
    after = bound.after
    key, changes = after.column(ID).name, dict[int, dict[str, dict[str, Any]]]()
    for change in found:
        kind, row = change["_row_kind"], {n: v for n, v in change.items() if n != "_row_kind"}
        ensure(kind not in changes.setdefault(row[key], {}), f"{kind} of {row[key]} is told twice")
        changes[row[key]][kind] = row
    is_whole = bound.call["verb"] == "compact" and bound.call["full"]
    told: list[Told] = []
    now_told = dict(tops)
    for number in sorted({*tops, *changes, *after.rows}):
        link = _Link(number, tops.get(number, NOTHING), after.rows.get(number), after)
        if number in changes:
            told += link.told(changes[number])
            now_told[number] = (after.rows.get(number),)
        elif is_whole:
            ensure(link.is_told, f"a full compaction tells nothing of {number}", link.new, link.before)
            now_told[number] = (after.rows.get(number),)
    return told, now_told


def not_as_told(tops: Tops, now: Version, found: Sequence[dict[str, Any]]) -> str | None:
    """Of which key rows are not as it has been told; None: of none."""
    key = now.column(ID).name
    by_key = {row[key]: whole(row) for row in found}
    for number in sorted({*tops, *by_key}):
        known = [None if row is None else whole(now.shown(row)) for row in tops.get(number, NOTHING)]
        if by_key.get(number) not in known:
            return f"{number}: {by_key.get(number)}, not one of {known}"
    return None if len(by_key) == len(found) else "a key twice"


@dataclass(frozen=True)
class _Link:
    """One key: what had been told of it, and its row now."""

    number: int
    before: tuple[Row | None, ...]
    new: Row | None
    after: Version

    def _same(self, row: Row | None, shown: dict[str, Any]) -> bool:
        return row is not None and whole(self.after.shown(row)) == whole(shown)

    @property
    def is_told(self) -> bool:
        if self.new is None:
            return None in self.before
        return any(self._same(row, self.after.shown(self.new)) for row in self.before)

    def told(self, changes: dict[str, dict[str, Any]]) -> list[Told]:
        what = f"of {self.number} {changes} is told"
        if set(changes) == {"+I"}:
            ensure(None in self.before and self._same(self.new, changes["+I"]), what, self.before, self.new)
            return [("+I", self.new or {})]
        ensure(set(changes) in ({"-D"}, {"-U", "+U"}), what)
        gone = changes.get("-D") or changes["-U"]
        old = next((row for row in self.before if row is not None and self._same(row, gone)), None)
        ensure(old is not None, what, self.before)
        assert old is not None
        if "-D" in changes:
            ensure(self.new is None, what, self.new)
            return [("-D", old)]
        ensure(self._same(self.new, changes["+U"]), what, self.new)
        assert self.new is not None
        is_same = whole(changes["-U"]) == whole(changes["+U"])
        ensure(not (is_same and _leaves_out(self.after)), f"{what}, which is no change")
        return [("-U", old), ("+U", self.new)]

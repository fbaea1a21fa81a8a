"""A Paimon table as the model knows it: its snapshots, its tags, and what its newest schema makes of the rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from model.state import ID, Version
from model.values import Row, Value

#: A change: its kind, and the row by its columns' keys.
Told = tuple[str, Row]
#: What has been told last of each key; more than one where the model cannot know.
Tops = dict[int, tuple[Row | None, ...]]
NOTHING: tuple[Row | None, ...] = (None,)


@dataclass(frozen=True)
class Branch:
    """A branch beside the main one.

    Attributes:
        tag: Of which it was made.
        began: The snapshot of that.
        now: What reading it gives.
        versions: What each of its snapshots was.
    """

    tag: str
    began: int
    now: Version
    versions: dict[int, Version]


@dataclass
class PaimonWorld:
    """The table under test.

    Attributes:
        url: Where it is.
        now: What reading it gives: the rows of the newest snapshot in the columns of the newest schema.
        versions: What each snapshot was when it was made, of those that are there.
        tags: Name to the snapshot's number and what that was.
        newest: The newest snapshot; 0: there is none yet.
        ids: Of tables that track rows: what each snapshot has told, the row's key to its id and the snapshot that
            changed it last.
        next_ids: The least id that a new row may have, by snapshot.
        copy: What a copy of the table was when it was made last.
        forwarded: How often it went on as a branch did, whose schemas took the places of its own, but not of its copy's.
        next_key: Number of the next column or tag.
        told: What the changelog of a snapshot tells, by kind and row; of the others nothing.
        tops: Where full compactions tell how rows changed: what they have told last, as of each snapshot.
        unfinished: Snapshots with files that a writer's compaction of its own took in behind them.
        branches: By their names.
        consumers: Name to the snapshot that it reads next.
    """

    url: str
    now: Version
    versions: dict[int, Version] = field(default_factory=dict)
    tags: dict[str, tuple[int, Version]] = field(default_factory=dict)
    newest: int = 0
    ids: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    next_ids: dict[int, int] = field(default_factory=dict)
    copy: Version | None = None
    forwarded: int = 0
    next_key: int = 0
    told: dict[int, list[Told]] = field(default_factory=dict)
    tops: dict[int, Tops] = field(default_factory=dict)
    unfinished: set[int] = field(default_factory=set)
    branches: dict[str, Branch] = field(default_factory=dict)
    consumers: dict[str, int] = field(default_factory=dict)

    @property
    def copied_to(self) -> str:
        """What the URL of its copy ends with."""
        return f"-copy{self.forwarded}"

    @property
    def whole(self) -> list[int]:
        """Snapshots that can be gone back to: what the others hide, or have not told, would come with the next compaction."""
        return sorted(self.versions.keys() - self.unfinished)

    def seen_now(self, version: Version) -> Version:
        """An older state in the columns of today's schema, which no rollback takes back."""
        return replace(self.now, rows=version.rows)


def is_keyed(now: Version) -> bool:
    """Whether rows merge by key."""
    return bool(now.keys)


def tracks(now: Version) -> bool:
    """Whether rows have ids."""
    return now.properties.get("row-tracking.enabled") == "true"


def evolves(now: Version) -> bool:
    """Whether columns of rows are written by themselves."""
    return now.properties.get("data-evolution.enabled") == "true"


def engine_of(now: Version) -> str:
    """The merge engine."""
    return now.properties.get("merge-engine", "deduplicate")


def producer_of(now: Version) -> str:
    """Who makes the changelog."""
    return now.properties.get("changelog-producer", "none")


def hides(now: Version) -> bool:
    """Whether rows are shown only when a compaction has seen them."""
    is_masked = now.properties.get("deletion-vectors.enabled") == "true"
    return is_keyed(now) and (is_masked or engine_of(now) == "first-row")


def by_writers(now: Version) -> bool:
    """Whether rows are moved only by engines that write changelogs, and compact behind their commits."""
    return hides(now) or producer_of(now) != "none"


def order_of(now: Version) -> str | None:
    """The column by which rows of a key are newer, if not by when they came."""
    return now.properties.get("sequence.field")


def behind_deletions(now: Version, row: Row) -> Row:
    """A new row as late as the deletion of its key: an older one is there only if a compaction dropped the deletion."""
    order, past = order_of(now), now.deleted.get(row[ID])
    return {**row, order: past} if order and row[ID] in now.deleted and _rank(row.get(order)) < _rank(past) else row


def with_deletions(now: Version, after: Version) -> Version:
    """The state after deletions, which stand in files until they are compacted away."""
    if (order := order_of(now)) is None:
        return after
    gone = {key: row.get(order) for key, row in now.rows.items() if key not in after.rows}
    known = {key: max(value, now.deleted.get(key, value), key=_rank) for key, value in gone.items()}
    return replace(after, deleted=now.deleted | known)


def merged(now: Version, old: Row | None, new: Row) -> Row:
    """What becomes of a row of keys when another of its key comes."""
    if old is None:
        return new
    engine = engine_of(now)
    if engine == "first-row":
        return old
    if engine == "deduplicate":
        order = order_of(now)
        return old if order and _rank(new.get(order)) < _rank(old.get(order)) else new
    given = {key: new.get(key) if new.get(key) is not None else old.get(key) for key in {*old, *new}}
    if engine == "aggregation":
        given["n"] = _sum(old.get("n"), new.get("n"))
    return {**given, ID: new[ID]}


def _rank(value: Value) -> tuple[bool, Any]:
    """Nulls are least."""
    return (value is not None, 0 if value is None else Decimal(value))


def _sum(one: Value, other: Value) -> Value:
    known = [v for v in (one, other) if v is not None]
    return sum(known) if known else None

"""A table as the model knows it: every version's columns and rows, and what is known of its rows' identities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from model.values import Row, Tree, Value, holds

#: The column that tells rows apart in the model; no two live rows have one value.
ID = "id"


@dataclass(frozen=True)
class Column:
    """`key` stays whatever the column is called; values of a row go by it. Of one that is `numbered` the table makes them."""

    key: str
    name: str
    type: str
    numbered: bool = False


@dataclass(frozen=True)
class Version:
    """What one version of the table is."""

    columns: tuple[Column, ...]
    rows: dict[int, Row]
    properties: dict[str, str] = field(default_factory=dict)
    partition: tuple[str, ...] = ()
    clustered: tuple[str, ...] = ()
    constraints: dict[str, Tree] = field(default_factory=dict)
    #: The primary key of a Paimon table.
    keys: tuple[str, ...] = ()
    #: Of a Paimon table that orders rows of a key by a column: the greatest value there of a deleted row, by key.
    deleted: dict[int, Value] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        return self.properties.get(f"delta.{name}") == "true"

    @property
    def is_mapped(self) -> bool:
        return self.properties.get("delta.columnMapping.mode", "none") != "none"

    @property
    def feeds(self) -> bool:
        return self.has("enableChangeDataFeed")

    @property
    def tracks(self) -> bool:
        return self.has("enableRowTracking")

    def types(self) -> dict[str, str]:
        """Key to type, of the columns whose values are known before they are written."""
        return {c.key: c.type for c in self.given}

    @property
    def given(self) -> tuple[Column, ...]:
        """The columns that new rows bring."""
        return tuple(c for c in self.columns if not c.numbered)

    @property
    def numbered(self) -> Column | None:
        """The identity column."""
        return next((c for c in self.columns if c.numbered), None)

    def names(self) -> dict[str, tuple[str, str]]:
        """Key to name and type."""
        return {c.key: (c.name, c.type) for c in self.columns}

    def column(self, key: str) -> Column:
        return next(c for c in self.columns if c.key == key)

    def admits(self, row: Row) -> bool:
        """A CHECK passes only where it is true; null is a violation."""
        return all(holds(tree, row) is True for tree in self.constraints.values())

    def with_rows(self, rows: dict[int, Row]) -> Version:
        return replace(self, rows=rows)

    def shown(self, row: Row) -> dict[str, Any]:
        """A row under the columns' names."""
        return {c.name: row.get(c.key) for c in self.columns}


class Present(Protocol):
    """What verbs over rows need to know of a table."""

    @property
    def now(self) -> Version:
        """What it is."""


def part_of(key: int) -> int:
    """The partition of a row where it is a part of the key: a key is always in the same one."""
    return key % 3


Change = tuple[str, dict[str, Any]]


@dataclass
class Bound:
    """A step that is about to be done: the call, and what must come of it.

    Attributes:
        call: For the engine: plain JSON.
        after: The table afterwards.
        operations: What the history may call each commit.
        commits: The fewest and the most that it may take.
        feed: The change rows exactly; None: only that they lead from the rows before to those after.
        fresh: Rows whose identity must be new.
        updated: Rows that keep theirs, and whose last change this is.
        restores: The version whose identities come back.
        moves_to: Where the table goes on, with a history of its own.
        vacuums: Whether files of older versions may be gone.
        forgets: Whether older entries of the log may be gone.
        refused: It must be refused, and change nothing.
        syncs: Whether what the table says of itself afterwards is for the table to say, rows aside.
    """

    call: dict[str, Any]
    after: Version
    operations: frozenset[str] = frozenset()
    commits: tuple[int, int] = (1, 1)
    feed: list[Change] | None = None
    fresh: frozenset[int] = frozenset()
    updated: frozenset[int] = frozenset()
    restores: int | None = None
    moves_to: str | None = None
    vacuums: bool = False
    forgets: bool = False
    refused: bool = False
    syncs: bool = False

    def refuse(self) -> None:
        """An engine did not do it."""
        self.refused = True
        self.vacuums = self.forgets = False
        self.restores, self.fresh, self.updated = None, frozenset(), frozenset()


@dataclass
class World:
    """The table under test.

    Attributes:
        url: Where it is.
        versions: What each was when it was made.
        newest: The newest of them.
        readable: The oldest whose files nothing has deleted.
        logged: The oldest whose log entry nothing has deleted.
        aged: The newest whose log entry was made old.
        ids: Row id and last change of each live row, as last seen.
        ids_of: The same of each version that was seen with row tracking.
        used: Row ids that some row has had.
        numbers: Values of the identity column that some row has had.
        history: Version to operation and time, as first seen.
        clones: Clones that were made: path to the version that they are of.
        apart: Tables that nobody writes to any more and that have files of their own: path to what they must stay.
        next_key: Number of the next column.
    """

    url: str
    versions: dict[int, Version] = field(default_factory=dict)
    newest: int = -1
    readable: int = 0
    logged: int = 0
    aged: int = -1
    ids: dict[int, tuple[int, int]] | None = None
    ids_of: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)
    history: dict[int, tuple[str, Any]] = field(default_factory=dict)
    clones: dict[str, Version] = field(default_factory=dict)
    apart: dict[str, Version] = field(default_factory=dict)
    next_key: int = 0

    @property
    def now(self) -> Version:
        return self.versions[self.newest]

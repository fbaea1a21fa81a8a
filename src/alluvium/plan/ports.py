"""The ports: what engines and the commit loop ask of a format."""

from __future__ import annotations

from typing import Protocol

from alluvium.expr.tree import Expression
from alluvium.plan.changes import Committed, Replace, WrittenRows
from alluvium.plan.scan import ScanPlan
from alluvium.plan.write import WritePlan
from alluvium.schema.types import Struct
from alluvium.storage.store import Store


class ScanSource(Protocol):
    """One pinned version of a table, asked for its files as often as an engine likes.

    An engine asks once without a predicate, to learn the schema, and again whenever it knows a
    sharper predicate. The parts of each answer have the same keys.
    """

    @property
    def identity(self) -> tuple[str, ...]:
        """Equal for equal data: table URL, version, options. Two scans of equal identity are the same relation."""

    @property
    def size_bytes(self) -> int:
        """Total size of the live files, for the engine's choice of joins."""

    def plan_scan(self, where: Expression | None = None) -> ScanPlan:
        """The files that may hold a row for which `where` is true, and how to read them."""


class Target(Protocol):
    """A table that rows are written to, at the version it was opened at (or about to be created)."""

    @property
    def url(self) -> str: ...

    @property
    def store(self) -> Store:
        """The table's objects."""

    @property
    def schema(self) -> Struct:
        """The columns that rows must bring or leave out, in order."""

    @property
    def exists(self) -> bool:
        """False: the first commit creates the table."""

    def plan_write(self, replace: Replace | None, options: tuple[tuple[str, str], ...]) -> WritePlan:
        """How rows become files of this table.

        Raises:
            UnsupportedFeature: The table may not be written by this version of Alluvium.
            InvalidRequest: The table forbids the operation.
        """

    def commit(self, changes: WrittenRows) -> Committed:
        """Publishes the changes, rebasing them over winners where the format's rules allow it."""

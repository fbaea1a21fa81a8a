"""The ports: what engines and the commit loop ask of a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from alluvium.expr.tree import Expression
from alluvium.plan.changes import Committed, EditRows, Replace, RowChangeMode, RowColumns, WrittenRows
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


class FollowedSource(ScanSource, Protocol):
    """A version of a table for a reader who wants the newest one each time."""

    @property
    def place(self) -> str:
        """URL of the table."""

    @property
    def version(self) -> int: ...

    def at(self, version: int | None) -> FollowedSource:
        """Another version of the table; None: the newest, reading only what came since."""


class StreamSource(Protocol):
    """A table whose rows come bit by bit. Offsets are text that nobody but the format understands."""

    @property
    def name(self) -> str:
        """As the progress of a query shows it."""

    @property
    def schema(self) -> Struct:
        """The columns, which stay as they are."""

    def latest(self, start: str | None, *, limited: bool, until: str | None) -> str | None:
        """How far the rows from an offset on reach: an equal one where there are none; None: there is nothing yet.

        Args:
            start: The offset; None: nothing has been read.
            limited: Whether a batch is no larger than what was asked for.
            until: An offset of `end_of_run` that is not passed.
        """

    def end_of_run(self, start: str | None) -> str:
        """How far a run goes that reads what there is now, by as many batches as it takes."""

    def batch(self, start: str | None, end: str) -> Sequence[ScanSource]:
        """The rows between two offsets, by sources that have all columns of `schema`; none where there are none."""

    def started(self, find_place: Callable[[], str]) -> None:
        """A query begins to read.

        Args:
            find_place: Finds where its checkpoint has room for what it knows of this stream.
        """

    def committed(self, end: str) -> None:
        """A query has written down that all before an offset is done."""

    def metrics(self, offset: str) -> Mapping[str, str]:
        """What the progress of a query that has come so far tells beside."""


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


class RowPlaces(ScanSource, Protocol):
    """Numbered live files of one version whose rows a verb may change.

    Its rows have the table's columns, and those of `columns` where a row lies in one place; rows that merge by key do
    not, and whoever reads them numbers them.
    """

    @property
    def url(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def table_schema(self) -> Struct:
        """The table's columns as they are in this version."""

    @property
    def columns(self) -> RowColumns:
        """Under which names rows tell where they are."""

    @property
    def stored_ids(self) -> tuple[str, ...]:
        """Columns of the files that keep a row's lasting identity and version; none where rows have no identity."""

    @property
    def numbers(self) -> pa.Array:
        """One a file; stays with the file when `only` leaves others out."""

    @property
    def files(self) -> pa.Table:
        """The files, one row each: at least `path`, as the log names it, and `size`."""

    @property
    def paths(self) -> pa.Array | pa.ChunkedArray:
        """The files as plans name them."""

    @property
    def total_files(self) -> int:
        """How many files the version has."""

    def live_counts(self, files: pa.Table) -> pa.Array:
        """Rows that are not deleted, of each of some rows of `files`; null where a file does not say."""

    def only(self, numbers: pa.Array) -> RowPlaces:
        """Those of the files that have these numbers."""

    def places(self, numbers: pa.Array) -> pa.Array:
        """Where the files of these numbers stand in `files`."""


class RowTarget(Target, Protocol):
    """A table of whose rows single ones change."""

    @property
    def is_changed(self) -> bool:
        """Whether a commit says something new of the table itself."""

    @property
    def is_recorded(self) -> bool:
        """Whether the table keeps change data, which a commit has to say."""

    @property
    def before_columns(self) -> tuple[str, ...]:
        """Columns of rows that change which are wanted as they were, too; rows that go then keep all of theirs."""

    def plan_change_files(self) -> WritePlan:
        """How change data become files, where they are kept."""

    def commit(self, changes: WrittenRows | EditRows) -> Committed: ...


class RowTable(Protocol):
    """One version of a table, as a verb over its rows sees it."""

    @property
    def source(self) -> ScanSource:
        """All rows."""

    @property
    def schema(self) -> Struct:
        """The table's columns."""

    @property
    def partition_columns(self) -> Sequence[str]: ...

    def candidates(self, where: Expression | None) -> RowPlaces:
        """The files that may hold a row for which `where` is true."""

    def mode(self, candidates: RowPlaces) -> RowChangeMode:
        """How the table takes changed rows of these files."""

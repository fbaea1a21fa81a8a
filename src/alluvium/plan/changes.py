"""What a verb did to a table's files, in words that every format understands; and what came of it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from alluvium.codecs.parquet_footer import FileFooter
from alluvium.expr.tree import Expression
from alluvium.plan.write import WRITTEN_FILES
from alluvium.schema.types import JsonValue

#: One row a live file some of whose rows go. `path` as a scan plan names it; `mask` is a serialised 64-bit roaring
#: bitmap of the rows that go now; null: the file goes as a whole.
TOUCHED_FILES = pa.schema([pa.field("path", pa.string(), nullable=False), pa.field("mask", pa.binary())])


class ChangeKind(enum.IntEnum):
    """What a verb does to a row."""

    COPY = 0
    UPDATE = 1
    DELETE = 2
    INSERT = 3


class RowChangeMode(enum.Enum):
    """How a table takes changed rows: whole files anew; masks over the rows that go, beside files of new rows; or new
    rows alone, which win over the older ones of their keys when the table is read (`plan.scan.KeyMerge`).
    """

    REWRITE_FILES = "rewrite"
    MASK_ROWS = "mask"
    UPSERT_KEYS = "upsert"


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Names of the columns by which a row that may change tells where it comes from.

    Attributes:
        file: Number of its file.
        row: Its place in the file.
        row_id: Its lasting identity, where the table keeps one.
        row_version: The version that changed it last, where the table keeps that.
    """

    file: str = "__alluvium_file"
    row: str = "__alluvium_row"
    row_id: str | None = None
    row_version: str | None = None

    @classmethod
    def with_ids(cls) -> RowColumns:
        """For a table whose rows have identities."""
        return cls(row_id="__alluvium_row_id", row_version="__alluvium_row_version")

    @property
    def names(self) -> tuple[str, ...]:
        """All that there are."""
        return tuple(n for n in (self.file, self.row, self.row_id, self.row_version) if n is not None)


@dataclass(frozen=True, slots=True)
class ReadScope:
    """What the outcome depends on, and so what a concurrent commit may not have touched.

    There is no default: whoever commits says what was read, by one of the three names below.

    Attributes:
        is_nothing: No data of others can make the result wrong.
        where: The rows that were read; None: every row of the table, unless nothing was read.
    """

    is_nothing: bool
    where: Expression | None

    @classmethod
    def nothing(cls) -> ReadScope:
        """The outcome is the same whatever the table holds."""
        return cls(True, None)

    @classmethod
    def rows(cls, where: Expression | None) -> ReadScope:
        """Rows for which a condition is true, or may be; None: any row."""
        return cls(False, where)

    @classmethod
    def table(cls) -> ReadScope:
        """Every row."""
        return cls(False, None)


class Author(str):
    """An engine as the history names it, and what its session has to say of every commit."""

    note: str | None

    def __new__(cls, engine: str, note: str | None = None) -> Author:
        """The engine's name, with the note."""
        author = super().__new__(cls, engine)
        author.note = note
        return author


@dataclass(frozen=True, slots=True)
class Operation:
    """Provenance of a commit: name, parameters and metrics as the format's history shows them.

    Attributes:
        name: `"WRITE"`, ...
        parameters: How it was asked for.
        metrics: What it came to.
        engine: Who does it; an `Author` may have a note on all that it does.
        user_metadata: What the caller says of this one.
    """

    name: str
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    engine: str = ""
    user_metadata: str | None = None

    @property
    def note(self) -> str | None:
        """What is said of it: by the caller, else by the session."""
        if self.user_metadata is None and isinstance(self.engine, Author):
            return self.engine.note
        return self.user_metadata


@dataclass(frozen=True, slots=True)
class Replace:
    """Which live files an overwrite replaces.

    Attributes:
        where: Rows for which this is true; None: see `dynamic`.
        sql: The text of `where`.
        dynamic: Exactly the partitions that the new rows are in; without it and without `where`: all files.
        rows: Whether `where` may tell single rows apart, not only whole partitions.
        unchecked: Whether new rows may lie outside of `where`.
    """

    where: Expression | None = None
    sql: str | None = None
    dynamic: bool = False
    rows: bool = True
    unchecked: bool = False


@dataclass(frozen=True, slots=True)
class EditFigures:
    """What a change of rows came to in files.

    Attributes:
        files_added: Files of new rows.
        bytes_added: Their size.
        files_removed: Files that are gone.
        bytes_removed: Their size.
        masks_added: Files that got a mask, or another one.
        bytes_masked: Their size.
        masks_updated: Those of them that had one before.
        masks_removed: Masks that hold no longer: those that were updated, and those of files that are gone.
        change_files: Files of change data.
    """

    files_added: int = 0
    bytes_added: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    masks_added: int = 0
    bytes_masked: int = 0
    masks_updated: int = 0
    masks_removed: int = 0
    change_files: int = 0


def _no_metrics(figures: EditFigures) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Files that were written, and what becomes of the older ones.

    A commit that changes only what the table says of itself has no files: `FileChanges(None, (), operation)`.

    Attributes:
        written: Schema `WRITTEN_FILES`; None where no rows were to be written, and then there are no metrics of them.
        footers: One a row of `written`, in order.
        operation: Provenance.
        replace: None for an append.
        txn: An application's id and version, for idempotent writes.
        data_change: False when the commit only rearranges rows.
        read: What the outcome depends on, where that is more than what is replaced.
        reached: The number furthest from the first that the job wrote, for each column that it numbered itself.
        numbers: Whether the job numbered columns itself, be it of no row.
        touched: Live files some of whose rows go, schema `TOUCHED_FILES`; None where no row is changed.
        change_files: Files that say what became of each row, schema `WRITTEN_FILES`, for tables that keep such.
        describe: The verb's metrics, where rows were changed.
    """

    written: pa.Table | None
    footers: tuple[FileFooter, ...]
    operation: Operation
    replace: Replace | None = None
    txn: tuple[str, int] | None = None
    data_change: bool = True
    read: ReadScope | None = None
    reached: Mapping[str, int] = field(default_factory=dict)
    numbers: bool = False
    touched: pa.Table | None = None
    change_files: pa.Table | None = None
    describe: Callable[[EditFigures], Mapping[str, str]] = _no_metrics

    @property
    def files(self) -> pa.Table:
        """The files written, perhaps none."""
        return WRITTEN_FILES.empty_table() if self.written is None else self.written


@dataclass(frozen=True, slots=True)
class Committed:
    """What a verb came to.

    Attributes:
        version: The table version that the verb made, or found when there was nothing to do.
        files: Files added, one row each: `path`, `size`, `num_rows`, `partition`.
        metrics: Numbers under the names of the format's history (`numFiles`, `numOutputRows`, ...).
        attempts: Commits tried; 0 when nothing had to be committed.
    """

    version: int
    files: pa.Table
    metrics: Mapping[str, str]
    attempts: int

    @classmethod
    def nothing(cls, version: int) -> Committed:
        """The answer where there was nothing to do."""
        return cls(version, pa.table({"path": pa.array([], pa.string())}), {}, 0)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a verb would do, told by `dry_run=True`; nothing was written.

    Attributes:
        version: The version that the verb looked at; -1: there is no table.
        operation: Provenance as the history would show it.
        differences: What would change of the table's description: name to the texts before and after (None: absent).
        added: Files that would be added again, as paths of the log; those of rows to write are not known before.
        removed: Files that would be removed, as paths of the log.
        read: Files that may hold rows that change, and whose rows were looked at.
        masked: Files that would get a mask over some of their rows, or another one: they are among `added`.
        rewritten: Files of which some rows would be written anew, into other files: they are among `removed`.
    """

    version: int
    operation: Operation
    differences: Mapping[str, tuple[str | None, str | None]]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()

    def __str__(self) -> str:
        whole = len(self.removed) - len(self.rewritten)
        files = {
            "reads": len(self.read),
            "masks": len(self.masked),
            "rewrites": len(self.rewritten),
            "removes as a whole": whole,
        }
        lines = [f"{self.operation.name} at version {self.version}; nothing was written"]
        lines += [f"  {name:<20}{count} files" for name, count in files.items() if count]
        lines += [f"  {name:<20}{before} -> {after}" for name, (before, after) in self.differences.items()]
        rows = {k: v for k, v in self.operation.metrics.items() if "Rows" in k and v != "0"}
        return "\n".join([*lines, *(f"  {name:<40}{count}" for name, count in rows.items())])

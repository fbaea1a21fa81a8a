"""What a verb did to a table's files, in words that every format understands; and what came of it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from alluvium.codecs.footers.parquet_footer import FileFooter
from alluvium.expr.tree import Expression, Or
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
    """How a table takes changed rows: whole files anew; masks over the rows that go, beside files of new rows; new
    rows alone, which win over the older ones of their keys when the table is read (`plan.scan.KeyMerge`); or the
    columns that change, in files that stand for these columns of all rows of others.
    """

    REWRITE_FILES = "rewrite"
    MASK_ROWS = "mask"
    UPSERT_KEYS = "upsert"
    PATCH_COLUMNS = "patch"


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

    def beside(self, taken: Iterable[str]) -> RowColumns:
        """The same under names that no column of a table has, even where case does not count."""
        folded = {name.lower() for name in taken}

        def unused(name: str) -> str:
            return unused(f"{name}_") if name.lower() in folded else name

        tracked = (None if name is None else unused(name) for name in (self.row_id, self.row_version))
        return RowColumns(unused(self.file), unused(self.row), *tracked)

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

    def beside(self, other: ReadScope) -> ReadScope:
        """What depends on both."""
        if self.is_nothing or other.is_nothing:
            return other if self.is_nothing else self
        both = None if self.where is None or other.where is None else Or(self.where, other.where)
        return ReadScope.rows(both)

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
class NewFiles:
    """What a job has left.

    Attributes:
        table: Schema `WRITTEN_FILES`.
        footers: One a row of `table`, in order.
        reached: The number furthest from the first that the job wrote, for each column that it numbered itself.
        numbers: Whether the job numbered columns itself, be it of no row.
        assigned: What `AssignedBuckets.assign` has told the job.
        rebalanced: Whether rows were moved between tasks first, for few files of the right size.
    """

    table: pa.Table
    footers: tuple[FileFooter, ...]
    reached: Mapping[str, int] = field(default_factory=dict)
    numbers: bool = False
    assigned: pa.Table | None = None
    rebalanced: bool = False

    @classmethod
    def none(cls) -> NewFiles:
        """No job, or one that had no rows."""
        return cls(WRITTEN_FILES.empty_table(), ())


@dataclass(frozen=True, slots=True)
class Append:
    """New rows beside those that are there.

    Attributes:
        new: Their files.
        operation: Provenance.
        read: What the new rows depend on.
        txn: An application's id and version, for idempotent writes.
    """

    new: NewFiles
    operation: Operation
    read: ReadScope
    txn: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Overwrite:
    """New rows in the place of others.

    Attributes:
        new: Their files.
        replace: Which live files go.
        operation: Provenance.
        read: What the new rows depend on, beside what they replace.
        txn: An application's id and version, for idempotent writes.
    """

    new: NewFiles
    replace: Replace
    operation: Operation
    read: ReadScope
    txn: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Rearrange:
    """The rows of live files in other files. It depends on nothing but these, and they are removed.

    Attributes:
        new: The other files.
        replace: Which live files go.
        operation: Provenance.
        txn: An application's id and version, for idempotent writes.
    """

    new: NewFiles
    replace: Replace
    operation: Operation
    txn: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Patches:
    """Files of some columns of rows that are there, one for all rows of a live file.

    Attributes:
        new: The files.
        paths: Of each the file whose rows it is about, as the log names it; rows stand in its order.
        columns: What is in them.
    """

    new: NewFiles
    paths: pa.Array
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EditRows:
    """Rows of live files that go, and rows that come.

    Attributes:
        new: Files of rows that come, or that are copied.
        touched: Live files some of whose rows go, schema `TOUCHED_FILES`.
        operation: Provenance.
        read: What the outcome depends on.
        change_files: Files that say what became of each row, schema `WRITTEN_FILES`, for tables that keep such.
        describe: The verb's metrics.
        txn: An application's id and version, for idempotent verbs.
        fresh: Files of rows that come, where `new` has the identities of those that were there already
            (`plan.write.StoredIds.is_apart`).
        patches: Columns of rows that stay where they are.
    """

    new: NewFiles
    touched: pa.Table
    operation: Operation
    read: ReadScope
    change_files: pa.Table | None = None
    describe: Callable[[EditFigures], Mapping[str, str]] = _no_metrics
    txn: tuple[str, int] | None = None
    fresh: NewFiles | None = None
    patches: Patches | None = None


@dataclass(frozen=True, slots=True)
class RewriteFiles:
    """Live files written anew, the rows and their identities as they were.

    Attributes:
        new: The files in their place.
        touched: Those that go, schema `TOUCHED_FILES`.
        operation: Provenance.
        read: What the outcome depends on, beside the files that go.
        describe: The verb's metrics.
        marks: What the log says of each new file beside what is in it: columns under the log's own names.
    """

    new: NewFiles
    touched: pa.Table
    operation: Operation
    read: ReadScope
    describe: Callable[[EditFigures], Mapping[str, str]] = _no_metrics
    marks: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """What the table says of itself; it has no files.

    Attributes:
        operation: Provenance.
        read: What the outcome depends on.
        empties: Whether all rows of a table go, in whose place this one is put.
    """

    operation: Operation
    read: ReadScope
    empties: bool = False


#: What a job that writes rows comes to.
WrittenRows: TypeAlias = Append | Overwrite | Rearrange
#: All that may be committed.
FileChanges: TypeAlias = WrittenRows | EditRows | RewriteFiles | Describe


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
        missing: Files that the verb needs and that are gone, without which it would be refused.
        notes: What else should be known before, as who could still read the table.
    """

    version: int
    operation: Operation
    differences: Mapping[str, tuple[str | None, str | None]]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        whole = len(self.removed) - len(self.rewritten)
        files = {
            "reads": len(self.read),
            "masks": len(self.masked),
            "rewrites": len(self.rewritten),
            "removes as a whole": whole,
            "misses": len(self.missing),
        }
        lines = [f"{self.operation.name} at version {self.version}; nothing was written"]
        lines += [f"  {name:<20}{count} files" for name, count in files.items() if count]
        lines += [f"  {name:<20}{before} -> {after}" for name, (before, after) in self.differences.items()]
        lines += [f"  {note}" for note in self.notes]
        rows = {k: v for k, v in self.operation.metrics.items() if "Rows" in k and v != "0"}
        return "\n".join([*lines, *(f"  {name:<40}{count}" for name, count in rows.items())])

"""What a verb did to a table's files, in words that every format understands; and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from alluvium.codecs.parquet_footer import FileFooter
from alluvium.expr.tree import Expression
from alluvium.plan.write import WRITTEN_FILES
from alluvium.schema.types import JsonValue


@dataclass(frozen=True, slots=True)
class ReadScope:
    """What the outcome depends on, and so what a concurrent commit may not have touched.

    Attributes:
        blind: Nothing was read: no data of others can make the result wrong.
        where: The rows that were read; None (and not blind) is the whole table.
        app_ids: Transaction identifiers that were looked up.
    """

    blind: bool = True
    where: Expression | None = None
    app_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """Provenance of a commit: name, parameters and metrics as the format's history shows them."""

    name: str
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    engine: str = ""
    user_metadata: str | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """Which live files an overwrite replaces.

    Attributes:
        where: Rows of partitions for which this is true; None: see `dynamic`.
        sql: The text of `where`.
        dynamic: Exactly the partitions that the new rows are in; without it and without `where`: all files.
    """

    where: Expression | None = None
    sql: str | None = None
    dynamic: bool = False


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
    """

    written: pa.Table | None
    footers: tuple[FileFooter, ...]
    operation: Operation
    replace: Replace | None = None
    txn: tuple[str, int] | None = None
    data_change: bool = True
    read: ReadScope | None = None
    reached: Mapping[str, int] = field(default_factory=dict)

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


@dataclass(frozen=True, slots=True)
class Preview:
    """What a verb would do, told by `dry_run=True`; nothing was written.

    Attributes:
        version: The version that the verb looked at; -1: there is no table.
        operation: Provenance as the history would show it.
        differences: What would change of the table's description: name to the texts before and after (None: absent).
        added: Files that would be added again, as paths of the log; those of rows to write are not known before.
        removed: Files that would be removed, as paths of the log.
    """

    version: int
    operation: Operation
    differences: Mapping[str, tuple[str | None, str | None]]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

"""What a verb did to a table's files, in words that every format understands; and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from alluvium.codecs.parquet_footer import FileFooter
from alluvium.expr.tree import Expression


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
    parameters: Mapping[str, str] = field(default_factory=dict)
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

    Attributes:
        written: Schema `WRITTEN_FILES`.
        footers: One a row of `written`, in order.
        replace: None for an append.
        operation: Provenance.
        txn: An application's id and version, for idempotent writes.
        data_change: False when the commit only rearranges rows.
        reached: The number furthest from the first that the job wrote, for each column that it numbered itself.
    """

    written: pa.Table
    footers: tuple[FileFooter, ...]
    operation: Operation
    replace: Replace | None = None
    txn: tuple[str, int] | None = None
    data_change: bool = True
    reached: Mapping[str, int] = field(default_factory=dict)


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

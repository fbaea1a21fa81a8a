"""What DELETE, UPDATE and MERGE do to the rows of a Delta table: one description for both ways to apply it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from alluvium.delta.candidates import Candidates
from alluvium.delta.features import change_data_feed, deletion_vectors
from alluvium.delta.row_edits import live_counts
from alluvium.delta.target import DeltaTarget
from alluvium.expr.tree import Expression
from alluvium.plan.changes import EditFigures, EditRows, Operation, RowChangeMode
from alluvium.plan.write import Numbered
from alluvium.spark.positions import Located

#: A row before an update: a struct of the table's columns, where rows are to be recorded.
BEFORE = "__alluvium_before"


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows by what became of them, and how long that took; `unmatched` ones had no match in a source."""

    copied: int = 0
    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    unmatched_updated: int = 0
    unmatched_deleted: int = 0
    scan_ms: int = 0
    rewrite_ms: int = 0

    @property
    def is_nothing(self) -> bool:
        """Whether no row changes."""
        return not (self.updated or self.deleted or self.inserted)


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What a verb does to the rows of a table.

    Attributes:
        rows_of: The rows of some candidates as they are afterwards: the table's columns, `KIND`, `MATCHED`, the columns
            of `plan.changes.RowColumns`, and `BEFORE` where changes are recorded. Second argument: whether rows that
            stay as they are must be among them.
        candidates: Files that may hold rows that change.
        where: What rows that change have in common, for conflicts; None: any row may.
        writes: Whether there may be new rows: updated or inserted ones.
        inserts: Whether there may be inserted ones: then files with matches are looked at, too, when files are written
            anew.
        keeps: Whether the first pass keeps its rows for the second, where both need them; False: `rows_of` sees to it.
        joins: Whether rows come out of a join.
        numbered: Columns in which `rows_of` made numbers for inserted rows.
        ensure_single: Raises where a row was matched more often than it may be.
    """

    rows_of: Callable[[Candidates, bool], DataFrame]
    candidates: Candidates
    where: Expression | None
    writes: bool = True
    inserts: bool = False
    keeps: bool = True
    joins: bool = False
    numbered: tuple[Numbered, ...] = ()
    ensure_single: Callable[[Located], None] = field(default=lambda located: None)


@dataclass(frozen=True, slots=True)
class Verb:
    """How a verb names itself in the history.

    Attributes:
        operation: Name, parameters, engine.
        metrics: Under the history's names, from the counts of rows and files.
        started: When the verb began (`time.monotonic`).
        txn: An application's id and version, which the commit records, be it of no row.
        complete: What the same commit does beside, given the changes and the counts of rows; None: nothing. With it,
            there is a commit even where no row changes.
    """

    operation: Operation
    metrics: Callable[[Counts, EditFigures], Mapping[str, int]]
    started: float = field(default_factory=time.monotonic)
    complete: Callable[[EditRows, Counts], EditRows] | None = None
    txn: tuple[str, int] | None = None


def mode_of(target: DeltaTarget, candidates: Candidates) -> RowChangeMode:
    """How the table takes changed rows.

    "`delta.enableDeletionVectors`: [...] writers may write deletion vectors", and only for files that say how many rows
    they have.
    """
    config = target.config
    if not (deletion_vectors.is_used(config) and "deletionVectors" in (config.protocol.writer_features or ())):
        return RowChangeMode.REWRITE_FILES
    unknown = live_counts(candidates.snapshot, candidates.files).null_count if candidates.files.num_rows else 0
    return RowChangeMode.REWRITE_FILES if unknown else RowChangeMode.MASK_ROWS


def is_recorded(target: DeltaTarget) -> bool:
    """Whether the table keeps change data."""
    return change_data_feed.is_used(target.config)

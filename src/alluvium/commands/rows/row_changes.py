"""What DELETE, UPDATE and MERGE do to the rows of a table: one description for all ways to apply it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from alluvium.commands.any_rows import read_any
from alluvium.delta.rows.candidates import Candidates, choose_candidates
from alluvium.delta.rows.modes import row_change_mode
from alluvium.delta.view.snapshot import Snapshot
from alluvium.delta.view.source import DeltaSource
from alluvium.delta.write.target import DeltaTarget
from alluvium.expr.tree import Expression
from alluvium.plan.changes import ChangeKind, RowChangeMode
from alluvium.plan.ports import RowPlaces, RowTarget
from alluvium.plan.write import Numbered
from alluvium.schema.types import Struct
from alluvium.spark.kept import keep_rows, release_rows
from alluvium.spark.positions import Located, changed_rows
from alluvium.spark.sessions.session import default_parallelism
from alluvium.storage.store import OpenStore

#: How many tasks keep rows, where there are no more than so many files.
_TASKS_A_CORE, _FILES_A_CORE = 2, 8
#: Of a row's number within its task, as Spark makes numbers that increase.
_ROW_BITS = 33
#: A row before an update: a struct of the table's columns, where rows are to be recorded.
BEFORE = "__alluvium_before"


class Purpose(enum.Enum):
    """What the rows of the first pass are for.

    PLACES: to say where rows change, and how many.
    ROWS: also to be written.
    """

    PLACES = "places"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class FirstPass:
    """The first pass over the files that may hold rows that change, and what it leaves for a second.

    Rows are as they are afterwards: the table's columns, `KIND`, `MATCHED`, the columns of `plan.changes.RowColumns`,
    and `BEFORE` where changes are recorded. For `Purpose.PLACES` the table's columns, and `BEFORE`, may be left out.

    Attributes:
        rows: Those that change, or have a match; others may be among them.
        whole: All rows of some of the files, also those that stay, and those to insert: for a second pass, which writes
            these files anew.
        kept: What is to be freed when all is done.
    """

    rows: DataFrame
    whole: Callable[[RowPlaces], DataFrame]
    kept: tuple[DataFrame, ...] = ()

    def release(self) -> None:
        """Frees what was kept."""
        for rows in self.kept:
            release_rows(rows)


@dataclass(frozen=True, slots=True)
class Join:
    """What is different where rows come out of a join with a source.

    Attributes:
        inserts: Whether rows of the source may be inserted: then files with matches are looked at, too, when files are
            written anew.
        numbered: Columns in which inserted rows have got numbers.
        ensure_single: Raises where a row was matched more often than it may be.
    """

    inserts: bool
    numbered: tuple[Numbered, ...]
    ensure_single: Callable[[Located], None]


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What a verb does to the rows of a table.

    Attributes:
        first: The first pass over some candidates.
        candidates: Files that may hold rows that change.
        where: What rows that change have in common, for conflicts; None: any row may.
        join: Of MERGE.
        only: What becomes of each row of the first pass, where it has no others; None: `KIND` says it.
        assigned: Columns that may become something else in rows that stay.
    """

    first: Callable[[RowPlaces, Purpose], FirstPass]
    candidates: RowPlaces
    where: Expression | None
    join: Join | None = None
    only: ChangeKind | None = None
    assigned: tuple[str, ...] = ()

    @property
    def numbered(self) -> tuple[Numbered, ...]:
        """Columns in which inserted rows have got numbers."""
        return () if self.join is None else self.join.numbered


def kept_pass(rows: DataFrame, candidates: RowPlaces, *, numbered: bool = False) -> DataFrame:
    """The rows that change, computed once: both their positions and the new rows come out of them.

    Args:
        rows: All rows of the first pass.
        candidates: Where they come from.
        numbered: Whether tasks have numbers to make: they number by how many there are.
    """
    changed = changed_rows(rows)
    return keep_rows(changed if numbered else _in_few_tasks(changed, candidates))


def read_places(
    spark: SparkSession, candidates: RowPlaces, *, reads_whole: bool, open_store: OpenStore | None = None
) -> DataFrame:
    """The candidates' rows, each with its place.

    Rows that merge by key lie in several places at once, or in none: they are numbered as they come, which tells them
    apart as long as they are kept.
    """
    rows = read_any(spark, candidates, open_store, is_even=True, reads_whole=reads_whole)
    names = candidates.columns
    if names.file in rows.columns:
        return rows
    number = sf.monotonically_increasing_id()
    place = number.bitwiseAND(sf.lit((1 << _ROW_BITS) - 1))
    return rows.select("*", sf.shiftright(number, _ROW_BITS).alias(names.file), place.alias(names.row))


def _in_few_tasks(rows: DataFrame, candidates: RowPlaces) -> DataFrame:
    """Of few files: what a task keeps it measures again and again, at first with nearly every row."""
    cores = default_parallelism(rows.sparkSession)
    if cores is None:
        return rows
    return rows.coalesce(_TASKS_A_CORE * cores) if candidates.files.num_rows <= _FILES_A_CORE * cores else rows


@dataclass(frozen=True, slots=True)
class DeltaVersion:
    """Implements `plan.ports.RowTable` for a version of a Delta table."""

    target: RowTarget
    snapshot: Snapshot
    masks: bool

    @property
    def source(self) -> DeltaSource:
        return DeltaSource(self.snapshot)

    @property
    def schema(self) -> Struct:
        return self.snapshot.config.schema

    @property
    def partition_columns(self) -> Sequence[str]:
        return self.snapshot.config.partition_columns

    def candidates(self, where: Expression | None) -> Candidates:
        return choose_candidates(self.snapshot, where)

    def mode(self, candidates: RowPlaces) -> RowChangeMode:
        assert isinstance(self.target, DeltaTarget) and isinstance(candidates, Candidates)
        return row_change_mode(self.target.config, candidates, masks=self.masks)


def is_recorded(target: RowTarget) -> bool:
    """Whether the table keeps change data."""
    return target.is_recorded

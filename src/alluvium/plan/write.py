"""What to write: how rows become files, and what the files are once written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from alluvium.codecs.footers.parquet_footer import FooterColumn
from alluvium.plan.scan import KeyMerge
from alluvium.schema.types import DataType, Field, Struct

if TYPE_CHECKING:
    from alluvium.plan.crossing import Crossing, UnseenRows

#: One row a file that a write job left. `path` is decoded and relative to the table's root; `partition` holds
#: the values as text (null: null), in the order of `partition_by`; `bucket` is null where rows have none.
WRITTEN_FILES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("modification_time_ms", pa.int64(), nullable=False),
        pa.field("num_rows", pa.int64(), nullable=False),
        pa.field("partition", pa.list_(pa.string()), nullable=False),
        pa.field("bucket", pa.int32()),
    ]
)


#: From rows of whole keys, how they merge, and the columns of the result to one row a key; it is pickled.
MergeRows: TypeAlias = Callable[[pa.Table, KeyMerge, Sequence[str]], pa.Table]

#: Columns beside those of a table: the bucket of a row, the hash of its key, and the first number in a bucket.
BUCKET_COLUMN, HASH_COLUMN, FIRST_COLUMN = "__alluvium_bucket", "__alluvium_hash", "__alluvium_first"
#: In the code of a group, whose number is multiplied: what becomes of its rows (see `Regrouped`).
DROPS, REWRITES, LOGS, LOOKS, GROUP_STEP = 1, 2, 4, 8, 16
#: Directory of a job's files that tell how rows changed: before all others of theirs.
LOG_COLUMN = "__alluvium_log"
#: What stands before the values in the directories of a staged job, so that no value is empty.
STAGED_MARK = "v"
#: Size of files, where nobody says another.
TARGET_FILE_BYTES = 128 << 20
_NO_BOUND = 1 << 62


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that every written row must meet.

    Attributes:
        name: The constraint's name, for the error.
        sql: Boolean Spark SQL over the plan's columns; a row passes only where it is true (not null).
        columns: Columns that it names (members of structs dotted): the error shows their values.
        code: Of the error, by the kind of the condition.
        table_sql: Where the condition comes out of the table: the same, in the form that passed the gate
            (`RowExpression.canonical`); engines take this one, and trust it no further. None: it is ours, or the
            caller's.
        hint: What the caller can do; None: what helps with any constraint.
    """

    name: str
    sql: str
    columns: tuple[str, ...] = ()
    code: str = "constraint-violated"
    table_sql: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Derived:
    """A column whose value is computed where the data does not bring it.

    Attributes:
        column: Name of the column, at the top level.
        sql: Spark SQL as the table has it, for messages. A constant expression, or one over the plan's other columns.
        table_sql: The same in the form that passed the gate (`RowExpression.canonical`), for engines, which trust it
            no further. None: `sql` is no SQL but the value itself, as text.
        is_constant: Whether the expression names no column. Constants are filled in first, for the others to see.
        check: What must hold where the data does bring the column; None leaves the data its own way.
        fills_nulls: Whether it is the value, too, where the data brings the column and null in it. Only constants do.
    """

    column: str
    sql: str
    table_sql: str | None = None
    is_constant: bool = False
    check: Check | None = None
    fills_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Numbered:
    """A column of 64-bit integers that the job makes up where the data does not bring it.

    The numbers are `first + k * step` with k = 0, 1, ...; no number twice in a job, gaps allowed.

    Attributes:
        column: Name of the column, at the top level.
        first: The number that may come first.
        step: Never 0.
        accepts_data: Whether the data may bring the column; its values are then taken as they are.
    """

    column: str
    first: int
    step: int
    accepts_data: bool


@dataclass(frozen=True, slots=True)
class StoredIds:
    """Columns of files that keep a row's lasting identity, and the version that changed it last.

    Attributes:
        fields: Both, as `WritePlan.stored` has them.
        files: Both, as `WritePlan.files` has them.
        stats: What to take statistics of.
        is_apart: Whether new rows come into files of their own, which have none of these columns: a file gives its rows
            their identities, or stores them all.
    """

    fields: tuple[Field, Field]
    files: tuple[pa.Field, ...] = ()
    stats: tuple[FooterColumn, ...] = ()
    is_apart: bool = False


@dataclass(frozen=True, slots=True)
class BucketColumn:
    """A column that says in which bucket a row is: its logical type, and the digits of a timestamp's fraction."""

    name: str
    type: DataType
    precision: int = 0


@dataclass(frozen=True, slots=True)
class Bucketing:
    """Rows are divided into buckets, each with files of its own.

    Attributes:
        count: How many buckets there are.
        columns: By what, in order.
        function: `"hash"`: the absolute remainder of the hash of the columns' binary row
            (`codecs.binary_rows.binary_row_encode.hash_rows`); `"mod"`: the remainder that is not negative of the one
            column, an integer (null: 0).
    """

    count: int
    columns: tuple[BucketColumn, ...]
    function: str = "hash"


@dataclass(frozen=True, slots=True)
class Regrouped:
    """Rows of files that become others, each with its number, its kind, and what becomes of its file.

    Rows merge within a group of files. `KeyedRows.bucket` names the column of its code, which says, too, whether the
    rows come into new files, whether it is told how they changed, whether those that take others back go, and whether
    keys are looked up: a merge's functions see all rows of such a group, those of keys of one row, too. Of rows that
    were looked up it is null: they belong to the group in which their key is.

    Attributes:
        place: Column of numbers, one a bucket of a partition.
        level: Column of the level of a row's file.
        looks_up: Of the rows of a key those of level 0 count, and one of those above, of the lowest level.
        before: The level whose row of a key is what there was before; None: that of the lowest above 0.
        logs: Whether of any group it is told how rows changed.
        compared: Columns by which a row became another one; None: it did where it came.
        may_retract: Whether rows that take others back may be left.
        joins: Whether rows that were looked up are among them.
        merges: Merges rows of whole keys where an engine has no operator for it, in its workers; None: nobody does.
    """

    place: str
    level: str
    looks_up: bool = False
    before: int | None = None
    logs: bool = False
    compared: tuple[str, ...] | None = None
    may_retract: bool = False
    joins: bool = False
    merges: MergeRows | None = None

    @staticmethod
    def code(number: int, *, rewrites: bool, logs: bool, drops: bool, looks: bool) -> int:
        """Of a group."""
        return number * GROUP_STEP + REWRITES * rewrites + LOGS * logs + DROPS * drops + LOOKS * looks


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows of one key become one row before they are written, and files have them in the order of keys.

    The job makes the columns that `merge` names beside the plan's: the kind of each row, and the row's number, which is
    in its order. The rows of a partition's bucket are numbered on from the newest there.

    Attributes:
        merge: How the rows of a key become one; its rows say what becomes of the key, deletions stay.
        stored: Columns of the files before those of the plan: keys, number and kind, by their names in the files.
        stored_keys: Names of the files' columns that hold the keys, in order, be they in `stored` or the plan's own.
        number: The column of the rows' numbers.
        kind_text: Column that says the kind of a row (`+I`, `-U`, `+U`, `-D`); None: all are of `kind`.
        kind: As `KeyMerge.kind` has it.
        skipped_kinds: Rows of these kinds are not written.
        first_numbers: Where numbers do not begin at 0: columns of the partition, `BUCKET_COLUMN` and `FIRST_COLUMN`.
        bucket: Column of the rows' buckets; None: they are found by the plan's `bucket`.
        regrouped: Where the rows are those of files, with numbers and kinds.
        logs: Whether all rows that came are told beside those that they merge to.
        kind_column: Column of integers beside the table's, the last of the plan's, that says the kind of a row as
            `KeyMerge.kind` has it.
        waits: Whether rows are written as they come, for a later job to merge and to put in order.
        is_numbered: Whether rows bring their kinds and their numbers with them.
        is_ordered: Whether rows bring numbers that say in which order they came, and nothing of their kinds.
    """

    merge: KeyMerge
    stored: Struct
    stored_keys: tuple[str, ...]
    number: str
    kind_text: str | None = None
    kind: int = 0
    skipped_kinds: tuple[int, ...] = ()
    first_numbers: pa.Table | None = None
    bucket: str | None = None
    regrouped: Regrouped | None = None
    logs: bool = False
    kind_column: str | None = None
    waits: bool = False
    is_numbered: bool = False
    is_ordered: bool = False


@dataclass(frozen=True, slots=True)
class AssignedBuckets:
    """Rows stay in the bucket that their key's hash was once assigned to; new hashes are assigned before the rows are
    written.

    Attributes:
        columns: Of the hash, which is that of `Bucketing`.
        assign: From columns of partitions and `HASH_COLUMN`, each pair once, to the same rows with `BUCKET_COLUMN`.
    """

    columns: tuple[BucketColumn, ...]
    assign: Callable[[pa.Table], pa.Table]


@dataclass(frozen=True, slots=True)
class WritePlan:
    """All that an engine must know to write rows of a table as files.

    Attributes:
        root: URL of the table.
        directory: Fresh directory of this job, relative to `root`; everything in it is this job's.
        schema: Columns to write, in order, with the types they must have; partition columns included.
        partition_by: Names of the partition columns; their values go into directory names, not into files.
        materialize_partitions: Whether they go into the files, too, behind the other columns.
        rebalance: Whether rows are moved between tasks first, so that few files of about `target_file_bytes` come of
            them, each of one partition.
        target_file_bytes: Size that a file should have.
        most_tasks: Into so many tasks rows are moved at most; None: as many as the session has for shuffles.
        sort: Columns at the top level by which rows are sorted within each file.
        bucket: How rows are divided further, within their partition; the files of a job then are of one bucket each.
        assigned: How rows are divided where a hash alone does not tell their bucket; `bucket` is None then.
        crossing: How keys find their partition and bucket, where the partition does not belong to the key; `bucket` and
            `assigned` are None then.
        keyed: How rows merge by key, within their bucket; None: each row is written.
        unseen: Rows whose keys none of those to write may have.
        is_arranged: Whether each task's rows are of one partition, and stand as its file shall have them: nothing is
            moved or sorted any more.
        is_staged: The commit moves the files from `directory` to where they belong, so only their partitions' exact
            values count, not what directories say: null, empty and blank texts are different partitions, and what
            `WRITTEN_FILES` has as text is a number of days for dates and of microseconds since 1970 UTC for timestamps.
        checks: Conditions on every row, evaluated in the job itself.
        derived: Columns that are computed where the data does not bring them.
        computed: Names of the columns that are computed in the rows already, by the table's own expressions.
        numbered: Columns of numbers that the job makes up where the data does not bring them.
        stored: `schema` as the files have it, of the same shape: other names, numbers (`plan.scan.FIELD_ID`); None:
            as it is. Partition directories go by these names, too.
        files: The columns of the files as Arrow has them, field ids in their metadata, where Spark's own writer has no
            form for their types, or not for all rows; None: `stored` says all. Values are as `schema` has them.
        spark_writes_where: Beside `files`: what must hold of every row for Spark's own writer to write them; where it
            does not hold of one, workers write them all. None: Spark's own writer has no form for them.
        stats_columns: Leaves to take statistics of, by their paths in the files.
        file_format: `"parquet"`, `"orc"`, or with `files` `"avro"`. Of ORC and Avro that workers write they count the
            statistics themselves.
        options: The writer's options (compression, rows per file, ...).
    """

    root: str
    directory: str
    schema: Struct
    partition_by: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    derived: tuple[Derived, ...] = ()
    computed: tuple[str, ...] = ()
    numbered: tuple[Numbered, ...] = ()
    stored: Struct | None = None
    files: pa.Schema | None = None
    spark_writes_where: tuple[Check, ...] | None = None
    stats_columns: tuple[FooterColumn, ...] = ()
    file_format: str = "parquet"
    options: tuple[tuple[str, str], ...] = ()
    materialize_partitions: bool = False
    rebalance: bool = False
    target_file_bytes: int = TARGET_FILE_BYTES
    most_tasks: int | None = None
    sort: tuple[str, ...] = ()
    bucket: Bucketing | None = None
    assigned: AssignedBuckets | None = None
    crossing: Crossing | None = None
    keyed: KeyedRows | None = None
    unseen: UnseenRows | None = None
    is_arranged: bool = False
    is_staged: bool = False

    @property
    def has_buckets(self) -> bool:
        """Whether the last of a file's directories is that of its bucket."""
        return self.bucket is not None or (self.keyed is not None and not self.keyed.waits)

    def brought(self, bucket: str) -> WritePlan:
        """The plan for rows of keys that bring their kinds, numbers and buckets with them.

        Args:
            bucket: The column of the buckets.
        """
        assert self.keyed is not None, "rows of keys have kinds and numbers"
        schema = Struct(tuple(f for f in self.schema.fields if f.name != self.keyed.kind_column))
        keyed = replace(self.keyed, bucket=bucket, kind_column=None, is_numbered=True)
        return replace(self, schema=schema, bucket=None, assigned=None, crossing=None, keyed=keyed)

    @property
    def filled(self) -> tuple[Derived, ...]:
        """Columns in which a null that comes becomes another value."""
        return tuple(d for d in self.derived if d.fills_nulls)

    def keeping_nulls(self) -> WritePlan:
        """The plan for rows that are there already, whose nulls stay."""
        return replace(self, derived=tuple(replace(d, fills_nulls=False) for d in self.derived))

    def with_ids(self, ids: StoredIds | None) -> WritePlan:
        """The plan for rows that bring all columns, with those that keep rows' identities.

        Specification: "Row IDs [...] of a row must not change [...] when the row is copied or updated".
        """
        if ids is None:
            return replace(self, numbered=())
        return replace(
            self,
            schema=Struct((*self.schema.fields, *(Field(f.name, f.type) for f in ids.fields))),
            stored=None if self.stored is None else Struct((*self.stored.fields, *ids.fields)),
            files=None if self.files is None else pa.schema([*self.files, *ids.files]),
            stats_columns=(*self.stats_columns, *ids.stats),
            numbered=(),
        )

    def only(self, columns: Collection[str]) -> WritePlan:
        """The plan for some of the columns, of rows that are there already: each task's in one file, as they stand,
        however many they are.
        """
        stored = None
        if self.stored is not None:
            pairs = zip(self.schema.names, self.stored.fields, strict=True)
            stored = Struct(tuple(f for name, f in pairs if name in columns))
        return replace(
            self,
            schema=Struct(tuple(f for f in self.schema.fields if f.name in columns)),
            stored=stored,
            files=None if self.files is None else pa.schema([f for f in self.files if f.name in columns]),
            partition_by=(),
            materialize_partitions=False,
            rebalance=False,
            is_arranged=True,
            sort=(),
            target_file_bytes=_NO_BOUND,
            options=(*self.options, ("maxRecordsPerFile", "0")),
            derived=(),
            numbered=(),
            checks=_about(self.checks, columns),
            spark_writes_where=None if self.spark_writes_where is None else _about(self.spark_writes_where, columns),
            stats_columns=tuple(c for c in self.stats_columns if c.path[0] in columns),
        )

    def stored_name(self, column: str) -> str:
        """The name that a column has in the files."""
        return dict(zip(self.schema.names, (self.stored or self.schema).names, strict=True))[column]


def _about(checks: Sequence[Check], columns: Collection[str]) -> tuple[Check, ...]:
    """Those of conditions that are about some columns alone."""
    return tuple(check for check in checks if check.columns and set(check.columns) <= set(columns))

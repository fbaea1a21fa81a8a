"""What to write: how rows become files, and what the files are once written."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from alluvium.codecs.footers.parquet_footer import FooterColumn
from alluvium.schema.types import DataType, Struct

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


#: Size of files, where nobody says another.
TARGET_FILE_BYTES = 128 << 20


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
    """

    column: str
    sql: str
    table_sql: str | None = None
    is_constant: bool = False
    check: Check | None = None


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
    is_arranged: bool = False
    is_staged: bool = False

    def stored_name(self, column: str) -> str:
        """The name that a column has in the files."""
        return dict(zip(self.schema.names, (self.stored or self.schema).names, strict=True))[column]

"""What to read: files, and how each output column comes out of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Protocol, TypeAlias

import pyarrow as pa

from alluvium.schema.types import DataType, Struct

#: Key in a field's metadata of `read_schema` (and of structs in it): the file's column is the one with this number as
#: its Parquet `field_id`, whatever its name. Fields without it go by name. Spark's reader knows the key.
FIELD_ID = "parquet.field.id"
#: Key beside `FIELD_ID`, true where the field's name in the plan is a mere label, which no file has.
LABEL = "alluvium.label"

#: Key in a field's metadata of `read_schema`: SQL of a constant that rows have whose file lacks the column. Spark's
#: reader knows the key.
BEFORE = "EXISTS_DEFAULT"

#: Metadata column: the address of the file that a row is in.
FILE_COLUMN = "_file"
#: Field of `constants` where a part has `local_instants`: what the table knows of instants in the file, by its own
#: record: a struct with a field a column, named as in the file, of structs of `low` and `high`, UTC; null: not known.
INSTANT_BOUNDS = "_instant_bounds"

#: One row a data file. `path` is decoded (not URI-escaped): relative to the table's root, or absolute (with a scheme,
#: or from `/`) when the file lies elsewhere. `constants` is a struct of typed per-file values, one field a name that a
#: `FileConstant` asks for; `mask` a serialised 64-bit roaring bitmap of deleted row positions, or null: none, or not
#: loaded yet (see `ScanPart.masks`).
SCAN_FILES = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("modification_time_ms", pa.int64(), nullable=False),
        pa.field("num_rows", pa.int64()),
        pa.field("constants", pa.struct([])),
        pa.field("mask", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Physical:
    """A column of the data file, by its path of physical names; null, or what `BEFORE` says, where the file lacks it.

    Structs in `type` have physical names as well.
    """

    path: tuple[str, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class FileConstant:
    """A value that is the same for all rows of a file: a field of `constants`."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """The same value for all rows of all files."""

    value: object
    type: DataType


@dataclass(frozen=True, slots=True)
class RowPosition:
    """The row's index in its file, from 0."""


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The first value that is not null."""

    values: tuple[ColumnValue, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of integer values; null if one is null."""

    values: tuple[ColumnValue, ...]


class Conversion(Protocol):
    """Values of one type as values of another, by rules of the format; engines apply it and need not know them."""

    def convert(self, values: pa.Array, time_zone: str) -> pa.Array:
        """As many values, of the Arrow type of the target.

        Args:
            values: Of the Arrow type of the source.
            time_zone: The session's.

        Raises:
            InvalidRequest: A value cannot be converted, and the rules want an error.
        """

    def sql(self, operand: str) -> str | None:
        """The same in Spark SQL over a column's SQL; None where SQL cannot say it."""


@dataclass(frozen=True, slots=True)
class Converted:
    """A value under another type: the file was written before the column's type changed."""

    value: ColumnValue
    conversion: Conversion
    type: DataType


ColumnValue: TypeAlias = "Physical | FileConstant | Literal | RowPosition | Coalesce | Sum | Converted"


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the result, under its logical name.

    `type` has the shape of the value's: fields of structs correspond by their places, and may have other names.
    """

    name: str
    type: DataType
    nullable: bool
    value: ColumnValue


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column that orders the rows of a key, the later winning; null is before every value, in both directions."""

    name: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class MergeRule:
    """How one column of the rows of a key becomes one value.

    Attributes:
        column: Its name in the parts' output.
        function: `"last"`, `"last_non_null"`, or an aggregate function (`"sum"`, `"listagg"`, ...).
        parameters: Of the function, by name (`"delimiter"`, `"distinct"`, ...).
        ignores_retract: Rows that take a value back leave the column alone.
        sequence: Columns that decide whether a row is newer for this column; empty: rows come in order.
    """

    column: str
    function: str
    parameters: tuple[tuple[str, str], ...] = ()
    ignores_retract: bool = False
    sequence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyMerge:
    """Rows that are merged by key while reading. Parts whose `merge` is equal are merged together.

    Rows of a key stand in the order of `order`; columns in `order` and `keys`, `kind` and `group` are in every part's
    output, be they in the plan's schema or not. A key whose row is a deletion after merging has no row in the result.

    Attributes:
        group: A file constant: rows merge only with rows of files where it is equal, so engines work group by group.
        keys: Columns that make rows one.
        order: Oldest first.
        kind: Column of the change's kind, int8: 0 insert, 1 update before, 2 update after, 3 delete; None: all inserts.
        engine: `"deduplicate"` (the last row), `"first-row"`, `"partial-update"`, `"aggregation"`, or `"patch"`: each
            column comes from the last row among those of parts whose output has the column.
        rules: Of the columns that are not keys, for `partial-update` and `aggregation`.
        ignores_delete: Rows of kind 1 and 3 take nothing back; the values of one that a key begins with stay where
            updates are partial.
        removes_on_delete: A row of kind 3 removes what came before it.
        removing_groups: Sequence columns: a delete that is newest by one of them removes the row.
        keeps_deletes: Keys whose row is a deletion stay in the result, as that row.
        has_retracts: False: the files are known to hold no row of kind 1 or 3.
        level: A file constant: of the rows of a key all of level 0 count, and those of the lowest level above, which
            were merged with all above them already; None: all rows do.
        lone: Boolean column of rows that become files, the same for all rows of a key: whether its row stays as it is,
            seen by no function; None: the row of a key that has no other does. `partial-update` and `aggregation`
            alone look at it.
    """

    group: str
    keys: tuple[str, ...]
    order: tuple[SortColumn, ...]
    kind: str | None
    engine: str
    rules: tuple[MergeRule, ...] = ()
    ignores_delete: bool = False
    removes_on_delete: bool = False
    removing_groups: tuple[str, ...] = ()
    keeps_deletes: bool = False
    has_retracts: bool = True
    level: str | None = None
    lone: str | None = None


class MaskSource(Protocol):
    """Deleted rows that are kept apart from the data files, and read only for files that an engine will open."""

    def load_masks(self, files: pa.Table) -> pa.Table:
        """Some files of the part, with `mask` filled in.

        Raises:
            CorruptTable: What says which rows are deleted is damaged.
            NotFound: It is missing (code `missing-file`).
        """


@dataclass(frozen=True, slots=True)
class ScanPart:
    """Files that are read in the same way.

    Attributes:
        key: Stable name of the part within its table, so that an engine that planned once can ask again
            with a sharper predicate and find the same part.
        files: Schema `SCAN_FILES` (with the fields of `constants` filled in).
        file_format: `"parquet"`, `"orc"`, `"avro"`, or `"blob"` (a file of one column of large values).
        read_schema: Physical columns to read from the files.
        output: The result's columns, in order.
        merge: How rows of equal keys merge, together with those of the other parts that have the same; None where rows
            are independent.
        masks: Where deleted rows are listed; None where `mask` says all. An engine that reads the files without
            calling it returns rows that are gone.
        is_complete: False: the files are so many that they are named only in the answer to a predicate.
        keeps_masked: Turns the masks round: only the rows that they list are read, and none of a file without one.
        held: The columns that the files hold, read or not, by the schema they were written with; None: not known.
        earliest_date: What is known to come before no date that is read from the files, at any depth; None: nothing is.
        local_instants: Whether files of ORC's library for Java hold, for an instant, the one at which its writer's
            clock showed what UTC's shows at the true one; `constants` then have `INSTANT_BOUNDS`.
        is_exact: Whether a file that is gone, or damaged, is an error whatever the session's settings say: who writes
            files anew would lose for good what he did not see.
    """

    key: str
    files: pa.Table
    file_format: str
    read_schema: Struct
    output: tuple[OutputColumn, ...]
    merge: KeyMerge | None = None
    masks: MaskSource | None = None
    keeps_masked: bool = False
    is_complete: bool = True
    held: Struct | None = None
    earliest_date: date | None = None
    local_instants: bool = False
    is_exact: bool = False

    @property
    def is_masked(self) -> bool:
        """Whether the files' masks decide which of their rows are read."""
        return self.keeps_masked or self.masks is not None or self.files["mask"].null_count < self.files.num_rows

    def load_masks(self, files: pa.Table) -> pa.Table:
        """Some of the part's files with `mask` filled in; errors as of `MaskSource`."""
        return files if self.masks is None or not files.num_rows else self.masks.load_masks(files)


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """All that an engine must know to produce the rows of one table version.

    Attributes:
        root: URL of the table.
        parts: Disjoint sets of files; the result is their union.
        schema: Logical schema of the result.
        partition_columns: Logical names of the columns whose value is one per file.
        skipped: How many files were left out, by reason (`"partition"`, `"statistics"`).
    """

    root: str
    parts: tuple[ScanPart, ...]
    schema: Struct
    partition_columns: tuple[str, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()

    def exactly(self) -> ScanPlan:
        """The same, for those who go on from all rows: no file is passed over (`ScanPart.is_exact`)."""
        return replace(self, parts=tuple(replace(part, is_exact=True) for part in self.parts))

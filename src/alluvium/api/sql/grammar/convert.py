"""CONVERT TO DELTA: a folder of Parquet becomes a table where it lies."""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.api.sql.text.cursor import Cursor
from alluvium.api.sql.text.names import read_part, read_table_name
from alluvium.api.sql.text.terms import Named, Statement
from alluvium.errors import InvalidRequest, suggest
from alluvium.schema.ddl import Declared, parse_ddl_type

SYNTAX = "CONVERT TO DELTA parquet.`path` | t [NO STATISTICS] [PARTITIONED BY (column type, ...)]"

#: What a partition column may be; delta-spark takes these, and all but the last two by these names only.
_TYPES = (
    "boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real", "double",
    "date", "timestamp", "string", "char", "varchar", "binary", "decimal", "dec", "numeric", "timestamp_ntz",
    "timestamp_ltz",
)  # fmt: skip
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A column whose values are the names of folders.

    Attributes:
        name: Without quotes.
        type_text: Its type as Spark writes it: `decimal(10,2)`.
        nullable: False for NOT NULL.
        comment: What is said of it.
    """

    name: str
    type_text: str
    nullable: bool = True
    comment: str | None = None

    @property
    def declared(self) -> Declared:
        """The type: CHAR and VARCHAR as strings, their length beside."""
        return parse_ddl_type(self.type_text)


@dataclass(frozen=True, slots=True)
class ConvertToDelta(Statement):
    """`CONVERT TO DELTA`.

    Attributes:
        target: A table, or ``parquet.`path` ``.
        statistics: False for NO STATISTICS.
        partitioned_by: The partition columns in the order of the folders; None where none are said.
    """

    target: Named
    statistics: bool = True
    partitioned_by: tuple[PartitionColumn, ...] | None = None


def parse_convert(cursor: Cursor) -> ConvertToDelta:
    """Parses the statement from its first word on.

    Raises:
        SqlSyntaxError: It is none, or a type is none.
    """
    cursor.expect("CONVERT", "TO", "DELTA")
    target = read_table_name(cursor)
    statistics = not cursor.take("NO", "STATISTICS")
    columns = None
    if cursor.take("PARTITIONED", "BY"):
        cursor.expect("(")
        found = [_read_column(cursor)]
        while cursor.take(","):
            found.append(_read_column(cursor))
        cursor.expect(")")
        columns = tuple(found)
    cursor.expect_end()
    return ConvertToDelta(target, statistics, columns)


def _read_column(cursor: Cursor) -> PartitionColumn:
    name = read_part(cursor, "a column", free=True)
    type_text = _read_type(cursor)
    nullable = not (cursor.take("NOT", "NULL") or cursor.take("!", "NULL"))
    comment = None
    if cursor.take("COMMENT"):
        comment = cursor.string()
        if comment is None:
            cursor.fail()
    return PartitionColumn(name, type_text, nullable, comment)


def _read_type(cursor: Cursor) -> str:
    token = cursor.peek()
    name = read_part(cursor, "a type", free=True).lower()
    if name not in _TYPES:
        raise cursor.refused(f"{name[:80]} is no type of a partition column", token=token, hint=suggest(name, _TYPES))
    numbers = []
    if cursor.take("("):
        while True:
            number = cursor.integer("a number", 10**_DIGITS)
            if number is None:
                cursor.fail()
            numbers.append(str(number))
            if not cursor.take(","):
                break
        cursor.expect(")")
    text = f"{name}({','.join(numbers)})" if numbers else name
    try:
        parse_ddl_type(text)
    except InvalidRequest as error:
        raise cursor.refused(f"{text} is no type: {error.message}", token=token, hint=error.hint) from error
    return text

"""What statements are made of: names, paths, points in time, conditions, parameters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a session that change what a text says.

    Attributes:
        escaped_string_literals: `spark.sql.parser.escapedStringLiterals`: backslashes in strings stand for themselves.
        double_quoted_identifiers: `spark.sql.ansi.doubleQuotedIdentifiers` under `spark.sql.ansi.enabled`: what stands
            in double quotes is a name, not a string.
    """

    escaped_string_literals: bool = False
    double_quoted_identifiers: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that is given beside the text: `:name`, or the n-th `?`.

    Attributes:
        name: Of a named one.
        position: Of a positional one, from 0, counted over the whole statement.
        start: In a `SqlText`, where its text begins.
        end: In a `SqlText`, the character after it.
    """

    name: str | None = None
    position: int | None = None
    start: int = 0
    end: int = 0

    def __str__(self) -> str:
        return f":{self.name}" if self.name is not None else f"? number {(self.position or 0) + 1}"


@dataclass(frozen=True, slots=True)
class SqlText:
    """A condition or query, character by character as it was written: Spark reads it.

    Attributes:
        text: Without blanks and comments around it.
        parameters: Those within, in their order.
    """

    text: str
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class TableName:
    """A name of up to three parts and more, or ``delta.`path` ``; what it names is for the catalog to say.

    Attributes:
        parts: Without quotes; `path@v3` stands in the last one as it was written.
    """

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathLiteral:
    """A table by its path in quotes: `VACUUM '/tables/t'`."""

    path: str | Parameter


@dataclass(frozen=True, slots=True)
class NamedBy:
    """A table by a name that is given beside the text: `IDENTIFIER(:table)`."""

    parameter: Parameter


Named = TableName | NamedBy
Target = TableName | PathLiteral | NamedBy

#: A column, or a field of one, without quotes.
ColumnName = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AsOf:
    """A point in a table's history; one of the two is given.

    Attributes:
        version: A version.
        timestamp: A time as text, read in the session's time zone.
    """

    version: int | Parameter | None = None
    timestamp: str | Parameter | None = None


class Statement:
    """A statement that only Delta knows, parsed; each is a frozen dataclass."""

    __slots__ = ()

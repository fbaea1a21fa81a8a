"""Errors of DeltaTable that are also what delta-spark raises in their place, so that `except` clauses still fit."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException

from alluvium.errors import InvalidRequest, NotFound


class WrongValue(InvalidRequest, ValueError):
    """An argument that the method does not take; a ValueError, too, as in delta-spark."""


class NotATable(NotFound, AnalysisException):
    """There is no Delta table of that name or path; an AnalysisException, too, as in delta-spark."""


class TableExists(InvalidRequest, AnalysisException):
    """There is a table already; an AnalysisException, too, as in delta-spark."""


class UnknownType(InvalidRequest, ParseException):
    """The text of a column's type does not parse; a ParseException, too, as in delta-spark."""


def ensure_value(condition: bool, message: str) -> None:
    """Refuses an argument (`wrong-type`) of which a condition does not hold."""
    if not condition:
        raise WrongValue(message, code="wrong-type")


def not_a_table(shown: str, url: str | None = None) -> NotATable:
    """What is told of a path or name where there is no Delta table."""
    return NotATable(
        f"{shown!r} is not a Delta table", code="not-a-table", url=url, hint="a table is what holds a folder _delta_log"
    )

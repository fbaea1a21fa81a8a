"""Errors of DeltaTable that are also what delta-spark raises in their place, so that `except` clauses still fit."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException

from alluvium.errors import InvalidRequest, NotFound


class WrongType(InvalidRequest, TypeError):
    """An argument of another type than the method takes; a TypeError, too, as in delta-spark."""


class WrongValue(InvalidRequest, ValueError):
    """An argument that the method does not take; a ValueError, too, as in delta-spark."""


class NotATable(NotFound, AnalysisException):
    """There is no Delta table of that name or path; an AnalysisException, too, as in delta-spark."""


class TableExists(InvalidRequest, AnalysisException):
    """There is a table already; an AnalysisException, too, as in delta-spark."""


class UnknownType(InvalidRequest, ParseException):
    """The text of a column's type does not parse; a ParseException, too, as in delta-spark."""

"""Arguments of the row verbs of DeltaTable: expressions and SET lists, of the types that delta-spark takes."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from alluvium.api.delta.delta_errors import WrongValue
from alluvium.errors import WrongType


def expression_argument(given: object, argument: str) -> Column | str:
    """A condition or value.

    Raises:
        InvalidRequest: It is neither SQL text nor a column (a TypeError, too).
    """
    if isinstance(given, (Column, str)):
        return given
    raise WrongType(
        f"{argument} must be a Spark SQL Column or a string (expression in SQL syntax), "
        f"found to be of type {type(given)}",
    )


def set_argument(given: object, argument: str) -> dict[str, Column | str]:
    """Columns and their values.

    Raises:
        InvalidRequest: There are none (a ValueError, too), or they are of other types (a TypeError, too).
    """
    if given is None:
        raise WrongValue(f"{argument} cannot be None", code="wrong-type")
    if not isinstance(given, Mapping):
        raise WrongType(f"{argument} must be a dict, found to be {type(given)}")
    checked: dict[str, Column | str] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise WrongType(
                f"Keys of dict in {argument} must contain only strings with column names, "
                f"found {name!r} of type {type(name)}",
            )
        if not isinstance(value, (Column, str)):
            raise WrongType(
                f"Values of dict in {argument} must contain only Spark SQL Columns or strings (expressions in SQL "
                f"syntax) as values, found {value!r} of type {type(value)}",
            )
        checked[name] = value
    return checked

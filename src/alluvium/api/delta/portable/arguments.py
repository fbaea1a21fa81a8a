"""Arguments of the row verbs without a session: SQL as text, and columns with their values."""

from __future__ import annotations

from collections.abc import Mapping

from alluvium.api.arguments import plain
from alluvium.errors import WrongType


def text_argument(given: object, what: str) -> str | None:
    """A condition, where there is one.

    Raises:
        WrongType: It is no text.
    """
    if given is None:
        return None
    if isinstance(given, str):
        return plain(given)
    raise WrongType(
        f"{what} must be SQL text, not {type(given).__name__}",
        hint="columns of PySpark need a session: DeltaTable.forPath(spark, path)",
    )


def values_argument(given: object, what: str) -> dict[str, str]:
    """Columns and their values.

    Raises:
        WrongType: There are none, or they are no texts.
    """
    if not isinstance(given, Mapping) or not all(isinstance(each, str) for pair in given.items() for each in pair):
        raise WrongType(
            f"{what} must map columns to SQL text, not be {given!r}",
            hint='{"n": "n + 1", "name": "\'x\'"}',
        )
    return {plain(name): plain(value) for name, value in given.items()}

"""Predicates from text: the door to `sql_reader`, which is loaded when the first predicate comes.

sqlglot takes 0.1 s and 15 MB to load, and many programs open tables without ever writing a predicate.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Collection
from typing import Protocol, cast

from alluvium.errors import WrongType
from alluvium.expr.tree import Expression
from alluvium.schema.types import DataType, Struct


class _Reader(Protocol):
    def parse_predicate(self, text: str, schema: Struct, time_zone: str, rows: Collection[str]) -> Expression: ...

    def parse_engine_filter(self, text: str, schema: Struct, time_zone: str) -> Expression: ...

    def parse_value(
        self, text: str, schema: Struct, target: DataType, time_zone: str, rows: Collection[str]
    ) -> Expression: ...


@functools.cache
def _reader() -> _Reader:
    return cast(_Reader, importlib.import_module("alluvium.expr.sql.sql_reader"))


def parse_predicate(text: str, schema: Struct, time_zone: str = "UTC", rows: Collection[str] = ()) -> Expression:
    """Parses a predicate that a user wrote as Spark SQL.

    A part that Spark may understand and we do not (a function that is not known here, an array element) becomes
    `Unknown`; whether that will do is the caller's decision.

    Args:
        text: Such as `"day >= '2024-01-01' and n in (1, 2)"`.
        schema: The columns that it may name, without regard to case.
        time_zone: In which times without a zone are read.
        rows: Columns of the schema that stand for rows: their members are columns, as `t.a` is of a table called t.

    Raises:
        InvalidRequest: `"invalid-predicate"`: not SQL, not boolean, types that do not match, or a subquery,
            aggregate or window; `"unknown-column"`; it is no text (`WrongType`).
    """
    if not isinstance(text, str):
        raise WrongType(f"a condition must be SQL text, not {text!r:.80} of type {type(text).__name__}")
    return _reader().parse_predicate(text, schema, time_zone, rows)


def parse_engine_filter(text: str, schema: Struct, time_zone: str = "UTC") -> Expression:
    """Parses what Spark's Catalyst prints of a filter (`Expression.sql`); never raises.

    Whatever is not understood, or could mean two things, becomes `Unknown`.
    """
    return _reader().parse_engine_filter(text, schema, time_zone)


def parse_value(
    text: str, schema: Struct, target: DataType, time_zone: str = "UTC", rows: Collection[str] = ()
) -> Expression:
    """Parses an expression of any type, and casts it: what Spark computes for a column of that type.

    Args:
        text: Spark SQL, such as `"year(day) * 100 + month(day)"`.
        schema: The columns that it may name, without regard to case.
        target: The type of the result.
        time_zone: In which times without a zone are read.
        rows: Columns of the schema that stand for rows: their members are columns, as `t.a` is of a table called t.

    Returns:
        The expression; `Unknown` where Spark may understand a part of it and we do not. A column of structs, arrays or
        maps alone is not cast: its values are of its own type.

    Raises:
        InvalidRequest: `"invalid-predicate"`: not SQL, or a subquery, aggregate or window; `"unknown-column"`.
    """
    return _reader().parse_value(text, schema, target, time_zone, rows)

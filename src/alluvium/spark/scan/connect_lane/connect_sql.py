"""A Connect `Column` as Spark SQL text, as far as predicates need it.

The client holds a column as a tree of unresolved names, functions and literals. What is not known here makes the whole
text None: Spark evaluates the column, and no file is skipped by it.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as s
from pyspark.sql.connect.expressions import (
    CastExpression,
    ColumnAlias,
    ColumnReference,
    Expression,
    LiteralExpression,
    SQLExpression,
    UnresolvedFunction,
)
from pyspark.sql.types import DataType

from alluvium.errors import InvalidRequest
from alluvium.schema.ddl import parse_column_path
from alluvium.spark.naming.names import quote

_INFIX: Mapping[str, str] = {
    "==": "=", "=": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>", "and": "and",
    "or": "or", "+": "+", "-": "-", "*": "*", "/": "/", "%": "%", "like": "like",
}  # fmt: skip


class _Unprintable(Exception):
    """A node that has no text here."""


def to_sql(column: Column) -> str | None:
    """The column as SQL that means the same; None where it holds what this module does not know."""
    node = getattr(column, "_expr", None)
    try:
        return _text(node) if isinstance(node, Expression) else None
    except _Unprintable:
        return None


def _text(node: Expression) -> str:
    if isinstance(node, ColumnReference):
        if node._is_metadata_column:
            raise _Unprintable
        return _name(node._unparsed_identifier)
    if isinstance(node, LiteralExpression):
        return _literal(node._value, node._dataType)
    if isinstance(node, SQLExpression):
        return f"({node._expr})"
    if isinstance(node, ColumnAlias):
        return _text(node._child)
    if isinstance(node, CastExpression):
        return _cast(node)
    if isinstance(node, UnresolvedFunction) and not node._is_distinct:
        return _call(node._name, [_text(arg) for arg in node._args])
    raise _Unprintable


def _call(name: str, args: list[str]) -> str:
    folded = name.lower()
    if folded in _INFIX and len(args) == 2:
        return f"({args[0]} {_INFIX[folded]} {args[1]})"
    if folded in ("not", "!") and len(args) == 1:
        return f"(not {args[0]})"
    if folded == "in" and len(args) > 1:
        return f"({args[0]} in ({', '.join(args[1:])}))"
    if folded in ("isnull", "isnotnull") and len(args) == 1:
        return f"({args[0]} is {'not ' if folded == 'isnotnull' else ''}null)"
    if not name.isidentifier():
        raise _Unprintable
    return f"{name}({', '.join(args)})"


def _cast(node: CastExpression) -> str:
    mode = getattr(node, "_eval_mode", None)
    if mode not in (None, "try"):
        raise _Unprintable
    kind = node._data_type if isinstance(node._data_type, str) else node._data_type.simpleString()
    return f"{'try_cast' if mode else 'cast'}({_text(node._expr)} as {kind})"


def _literal(value: object, data_type: DataType) -> str:
    """A literal; the client holds times as numbers since 1970."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(data_type, s.StringType):
        # For our own reader, whatever the session makes of backslashes.
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, (bytes, bytearray)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, decimal.Decimal):
        return _decimal(value, data_type)
    if isinstance(value, float) and math.isfinite(value):
        return f"cast({value!r}D as {data_type.simpleString()})"
    if not isinstance(value, int):
        raise _Unprintable
    if isinstance(data_type, s.DateType):
        return f"date'{_printed(value, pa.date32())}'"
    if isinstance(data_type, s.TimestampType):
        return f"timestamp'{_printed(value, pa.timestamp('us'))}+00:00'"
    if isinstance(data_type, s.TimestampNTZType):
        return f"timestamp_ntz'{_printed(value, pa.timestamp('us'))}'"
    if isinstance(data_type, s.IntegralType):
        return f"{value}L" if isinstance(data_type, s.LongType) else f"{value}"
    raise _Unprintable


def _name(text: str) -> str:
    """A name as Spark takes it apart, which is by its dots alone: `a-b` is a column, and no difference."""
    try:
        return ".".join(map(quote, parse_column_path(text)))
    except InvalidRequest:
        raise _Unprintable from None


def _decimal(value: decimal.Decimal, data_type: DataType) -> str:
    """A decimal with the type that the server makes of the client's: by it products are rounded."""
    if not isinstance(data_type, s.DecimalType) or not value.is_finite():
        raise _Unprintable
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    whole = len(digits) + max(int(exponent), 0)
    scale, precision = max(scale, data_type.scale), max(whole, scale, data_type.precision)
    return f"cast({value:f}BD as decimal({max(precision, scale)},{scale}))"


def _printed(value: int, arrow_type: pa.DataType) -> str:
    return str(pa.scalar(value, arrow_type).cast(pa.string()).as_py())

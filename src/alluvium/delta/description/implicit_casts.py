"""Which types go into which without a word: Spark's implicit casts, by which a MERGE merges schemas."""

from __future__ import annotations

from alluvium.schema import types as t
from alluvium.schema.types import DataType, Decimal, Primitive

_NUMBERS = (*t.INTEGRAL, *t.FLOATING)
_TIMES = (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)


def is_cast_implicitly(source: DataType, target: DataType) -> bool:
    """Whether Spark casts a value that is no struct, array or map into another type where nobody asks for a cast.

    The rules of `TypeCoercion.implicitCast`, which know neither `spark.sql.ansi.enabled` nor the policy of store
    assignment. Whether the value itself may be stored is asked when it is.
    """
    if source in (t.VOID, target):
        return True
    if target == t.STRING:
        return isinstance(source, Primitive | Decimal)
    if source == t.STRING:
        return _is_number(target) or target in (*_TIMES, t.BINARY)
    return (_is_number(source) and _is_number(target)) or (source in _TIMES and target in _TIMES)


def _is_number(data_type: DataType) -> bool:
    return data_type in _NUMBERS or isinstance(data_type, Decimal)

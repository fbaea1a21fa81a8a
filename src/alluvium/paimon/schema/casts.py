"""Which types a column may change to: old files are read with a cast, so there must be one."""

from __future__ import annotations

from collections.abc import Mapping

from alluvium.paimon.schema.types import (
    BINARY,
    CHARACTER,
    CONSTRUCTED,
    DATETIME,
    INTEGRAL,
    MAX_LENGTH,
    NUMERIC,
    ROOTS,
    TIMESTAMPS,
    DataType,
)

_FROM_NUMBER_LIKE = CHARACTER | TIMESTAMPS | {"BOOLEAN"}

#: Target root: the roots whose values it takes without loss (itself, always).
_IMPLICIT: Mapping[str, frozenset[str]] = {
    "VARCHAR": CHARACTER,
    "VARBINARY": BINARY,
    "DECIMAL": NUMERIC,
    "SMALLINT": frozenset({"TINYINT"}),
    "INTEGER": frozenset({"TINYINT", "SMALLINT"}),
    "BIGINT": INTEGRAL,
    "FLOAT": INTEGRAL | {"DECIMAL"},
    "DOUBLE": NUMERIC,
    "DATE": frozenset({"TIMESTAMP_WITHOUT_TIME_ZONE"}),
    "TIME_WITHOUT_TIME_ZONE": frozenset({"TIMESTAMP_WITHOUT_TIME_ZONE"}),
    "TIMESTAMP_WITHOUT_TIME_ZONE": TIMESTAMPS,
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": TIMESTAMPS,
}
#: Target root: the roots that it also takes where SQL's CAST does.
_EXPLICIT: Mapping[str, frozenset[str]] = {
    "CHAR": ROOTS,
    "VARCHAR": ROOTS,
    "BOOLEAN": CHARACTER | INTEGRAL,
    "BINARY": CHARACTER | BINARY,
    "VARBINARY": CHARACTER | BINARY,
    **dict.fromkeys(INTEGRAL | {"DECIMAL", "FLOAT", "DOUBLE"}, NUMERIC | _FROM_NUMBER_LIKE),
    "DATE": TIMESTAMPS | CHARACTER,
    "TIME_WITHOUT_TIME_ZONE": TIMESTAMPS | CHARACTER,
    "TIMESTAMP_WITHOUT_TIME_ZONE": DATETIME | CHARACTER | NUMERIC,
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": DATETIME | CHARACTER | NUMERIC,
}
#: Numbers that count seconds of a timestamp.
_COUNTING = frozenset({"INTEGER", "BIGINT"})
#: Nothing is cast from these, not even to themselves.
_FIXED = frozenset({"VARIANT", "BLOB", "GEOMETRY", "GEOGRAPHY", "VECTOR", "MULTISET"})
#: To themselves there is no cast; Paimon refuses to restate them.
_NOT_TO_THEMSELVES = frozenset({"BOOLEAN", "DATE", "TIME_WITHOUT_TIME_ZONE"})


def may_cast(source: DataType, target: DataType, allow_explicit: bool) -> bool:
    """Whether Paimon's rules allow the cast; implicit ones lose nothing, explicit ones may."""
    if source.nullable and not target.nullable and not allow_explicit:
        return False
    if source.shape == target.shape or source.root == target.root:
        return True
    if source.root in _IMPLICIT.get(target.root, ()):
        return True
    return allow_explicit and source.root in _EXPLICIT.get(target.root, ())


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether there is an implementation of the cast; a rule that allows it is not enough."""
    a, b = source.root, target.root
    if a in _FIXED or (a in _NOT_TO_THEMSELVES and a == b):
        return False
    if b in CONSTRUCTED:
        return a in CHARACTER and b in ("ARRAY", "MAP", "ROW")
    if a in DATETIME and b in CHARACTER:
        return b == "VARCHAR" and target.length == MAX_LENGTH
    if a in TIMESTAMPS and b in NUMERIC:
        return b in _COUNTING
    if b in TIMESTAMPS and a in NUMERIC:
        return a in _COUNTING
    return a == b or a in _IMPLICIT.get(b, ()) or a in _EXPLICIT.get(b, ())

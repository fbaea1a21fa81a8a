"""The default values of columns, as what a write plan derives: what engines read as Java reads the texts of the table.

Specification: `org.apache.paimon.casting.DefaultValueRow`, `org.apache.paimon.casting.CastExecutors` from STRING.
"""

from __future__ import annotations

import pyarrow as pa

from alluvium.errors import InvalidRequest
from alluvium.paimon.casts.cast import cast
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import BINARY, MAX_LENGTH, DataType
from alluvium.plan.write import Derived
from alluvium.schema.types import Array, Map, Struct

_TEXT = DataType("VARCHAR", length=MAX_LENGTH)
#: Of no day or hour is it asked here: texts are the wall clock's, and the engine's session knows the zone.
_ZONE = "UTC"


def derived_defaults(schema: TableSchema) -> tuple[Derived, ...]:
    """ "defaultValue": what writers put where the rows do not have the column, or null in it (`DefaultValueRow`)."""
    found = []
    for f in schema.fields:
        if f.default is not None and not isinstance(to_logical(f.type), (Array, Map, Struct)):
            quoted = len(f.default) > 1 and f.default.startswith("'") and f.default.endswith("'")
            sql, table_sql = _as_cast(f.default[1:-1] if quoted else f.default, f.type)
            if sql is not None:
                # "checkNullability" comes first: a null that may not be is none that becomes another value.
                found.append(Derived(f.name, sql, table_sql, is_constant=True, fills_nulls=f.type.nullable))
    return tuple(found)


def _as_cast(text: str, kind: DataType) -> tuple[str | None, str | None]:
    """The value that Java makes of a text, as a text that any engine reads as that value (None: it is null), and as SQL
    where texts do not have all values.
    """
    try:
        value = cast(pa.array([text], pa.string()), _TEXT, kind, _ZONE)
        if kind.root in BINARY:
            return text, f"X'{value[0].as_py().hex()}'"
        if kind.root == "TIME_WITHOUT_TIME_ZONE":
            # Rows bring its milliseconds.
            return str(value.cast(pa.int32())[0].as_py()), None
        return cast(value, kind, _TEXT, _ZONE)[0].as_py(), None
    except InvalidRequest:
        # Java fails over it, too, once a row needs it: so does the engine.
        return text, None

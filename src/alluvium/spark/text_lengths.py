"""Lengths of text: columns of type char(n) and varchar(n), and such members of them.

Spark keeps such columns as strings, and the type that was declared in the metadata of the column at the top level. Its
readers pad char(n) with blanks; writers, like the reference, refuse what is longer and otherwise write the text of a
DataFrame, or of a merge, as it is. An update fits its values first (`within_length`).
"""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as s
from pyspark.sql.types import DataType, _parse_datatype_string

from alluvium.errors import CorruptTable
from alluvium.plan.write import Check
from alluvium.schema.types import Field, Struct
from alluvium.spark.scan.names import quote

KEY = "__CHAR_VARCHAR_TYPE_STRING"
_MAX_LENGTH = (1 << 31) - 1


def length_checks(schema: Struct) -> tuple[Check, ...]:
    """Conditions on the columns whose texts have a greatest length.

    Raises:
        CorruptTable: The declared type is none (code `"invalid-text-type"`).
    """
    found = []
    for f in schema.fields:
        if KEY in f.metadata:
            condition = _condition(_declared(f), quote(f.name), 0)
            if condition is not None:
                found.append(Check(f"{f.name} {f.metadata[KEY]}", condition, (f.name,), "text-too-long"))
    return tuple(found)


def within_length(value: Column, f: Field) -> Column:
    """A new value of a column, as Spark's own UPDATE makes it: blanks that are too many go, char(n) is padded.

    Args:
        value: Text, where the column is text of limited length; members of nested columns stay as they are.
        f: The column.
    """
    declared = _declared(f) if KEY in f.metadata else None
    if not isinstance(declared, (s.CharType, s.VarcharType)):
        return value
    limit, length = declared.length, sf.length(value)
    surplus = sf.substring(value, limit + 1, _MAX_LENGTH)
    fitted = sf.when((length > limit) & (sf.trim(surplus) == ""), sf.substring(value, 1, limit))
    if isinstance(declared, s.CharType):
        fitted = fitted.when(length < limit, sf.rpad(value, limit, " "))
    return fitted.otherwise(value)


def _declared(f: Field) -> DataType:
    try:
        return _parse_datatype_string(str(f.metadata[KEY]))
    except PySparkException as error:
        raise CorruptTable(
            f"the declared type of the column is none: {str(f.metadata[KEY])[:200]!r}",
            code="invalid-text-type",
            column=f.name,
            hint=f"the field's metadata {KEY} must hold a type such as varchar(10)",
        ) from error


def _condition(declared: DataType, value: str, depth: int) -> str | None:
    """True where no text in the value is too long, and where the value is null; None where nothing is limited."""
    element = f"e{depth}"
    if isinstance(declared, (s.CharType, s.VarcharType)):
        return f"({value} is null or length({value}) <= {declared.length})"
    if isinstance(declared, s.ArrayType):
        inner = _condition(declared.elementType, element, depth + 1)
        return None if inner is None else f"({value} is null or forall({value}, {element} -> {inner}))"
    if isinstance(declared, s.MapType):
        parts = [
            f"forall({function}({value}), {element} -> {inner})"
            for function, of in (("map_keys", declared.keyType), ("map_values", declared.valueType))
            if (inner := _condition(of, element, depth + 1)) is not None
        ]
        return f"({value} is null or ({' and '.join(parts)}))" if parts else None
    if isinstance(declared, s.StructType):
        members = [_condition(f.dataType, f"{value}.{quote(f.name)}", depth) for f in declared.fields]
        parts = [member for member in members if member is not None]
        return f"({value} is null or ({' and '.join(parts)}))" if parts else None
    return None

"""Lengths of text: columns of type char(n) and varchar(n), and such members of them.

Spark keeps such columns as strings, and the type that was declared in the metadata of the column at the top level. Its
readers pad char(n) with blanks; writers, like the reference, refuse what is longer and otherwise write the text of a
DataFrame, or of a merge, as it is. An update fits its values first (`within_length`).
"""

from __future__ import annotations

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from alluvium.plan.write import Check
from alluvium.schema.ddl import CHAR_VARCHAR
from alluvium.schema.text_lengths import char_lengths, declared_type, text_limit
from alluvium.schema.types import Array, DataType, Field, Map, Struct
from alluvium.spark.naming.names import quote

_MAX_LENGTH = (1 << 31) - 1
_PADDING = ("spark.sql.readSideCharPadding", "spark.sql.legacy.charVarcharAsString")


def pads_when_reading(spark: SparkSession) -> bool:
    """Whether Spark itself pads the texts of char(n) that it reads, as it does unless it is told not to."""
    padding, as_string = (str(spark.conf.get(name)).casefold() for name in _PADDING)
    return padding == "true" and as_string != "true"


def length_checks(schema: Struct) -> tuple[Check, ...]:
    """Conditions on the columns whose texts have a greatest length.

    Raises:
        CorruptTable: The declared type is none (code `"invalid-text-type"`).
    """
    found = []
    for f in schema.fields:
        declared = declared_type(f)
        condition = None if declared is None else _condition(declared, quote(f.name), 0)
        if condition is not None:
            found.append(Check(f"{f.name} {f.metadata[CHAR_VARCHAR]}", condition, (f.name,), "text-too-long"))
    return tuple(found)


def padded_char(value: Column, f: Field) -> Column:
    """A text of type char(n) as Spark pads those that it reads itself; any other value as it is."""
    length = char_lengths(f).get(())
    return value if length is None else sf.when(sf.length(value) < length, sf.rpad(value, length, " ")).otherwise(value)


def padded_text(value: str, f: Field) -> str:
    """As `padded_char`, of an SQL text."""
    length = char_lengths(f).get(())
    return value if length is None else f"if(length({value}) < {length}, rpad({value}, {length}, ' '), {value})"


def within_length(value: Column, f: Field) -> Column:
    """A new value of a column, as Spark's own UPDATE makes it: blanks that are too many go, char(n) is padded.

    Args:
        value: Text, where the column is text of limited length; members of nested columns stay as they are.
        f: The column.
    """
    declared = declared_type(f)
    found = None if declared is None else text_limit(declared)
    if found is None:
        return value
    (kind, limit), length = found, sf.length(value)
    surplus = sf.substring(value, limit + 1, _MAX_LENGTH)
    fitted = sf.when((length > limit) & (sf.trim(surplus) == ""), sf.substring(value, 1, limit))
    if kind == "char":
        fitted = fitted.when(length < limit, sf.rpad(value, limit, " "))
    return fitted.otherwise(value)


def _condition(declared: DataType, value: str, depth: int) -> str | None:
    """True where no text in the value is too long, and where the value is null; None where nothing is limited."""
    element = f"e{depth}"
    if (limit := text_limit(declared)) is not None:
        return f"({value} is null or length({value}) <= {limit[1]})"
    if isinstance(declared, Array):
        inner = _condition(declared.element, element, depth + 1)
        return None if inner is None else f"({value} is null or forall({value}, {element} -> {inner}))"
    if isinstance(declared, Map):
        parts = [
            f"forall({function}({value}), {element} -> {inner})"
            for function, of in (("map_keys", declared.key), ("map_values", declared.value))
            if (inner := _condition(of, element, depth + 1)) is not None
        ]
        return f"({value} is null or ({' and '.join(parts)}))" if parts else None
    if isinstance(declared, Struct):
        members = [_condition(f.type, f"{value}.{quote(f.name)}", depth) for f in declared.fields]
        parts = [member for member in members if member is not None]
        return f"({value} is null or ({' and '.join(parts)}))" if parts else None
    return None

"""Lengths of text: columns of type char(n) and varchar(n), and such members of them.

Spark keeps such columns as strings, and the type that was declared in the metadata of the column at the top level. Its
readers pad char(n) with blanks; writers, like the reference, refuse what is longer and otherwise write the text of a
DataFrame, or of a merge, as it is. An update fits its values first (`within_length`).
"""

from __future__ import annotations

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from alluvium.schema.text_lengths import char_lengths, declared_type, text_limit
from alluvium.schema.types import Field

_MAX_LENGTH = (1 << 31) - 1
_PADDING = ("spark.sql.readSideCharPadding", "spark.sql.legacy.charVarcharAsString")


def pads_when_reading(spark: SparkSession) -> bool:
    """Whether Spark itself pads the texts of char(n) that it reads, as it does unless it is told not to."""
    padding, as_string = (str(spark.conf.get(name)).lower() for name in _PADDING)
    return padding == "true" and as_string != "true"


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

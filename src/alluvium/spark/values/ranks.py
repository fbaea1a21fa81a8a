"""Ranks of values among bounds, found by binary search in the JVM, be it the driver's or a server's."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from alluvium.schema import types as t
from alluvium.schema.types import DataType
from alluvium.spark.jvm.gateway import Java, JavaObject, java_of
from alluvium.spark.naming.names import quote
from alluvium.spark.sessions.session import is_connect

#: How bounds travel: the code of `struct`, the view of a byte buffer, the Java type.
_BULK = {int: ("q", "asLongBuffer", "long"), float: ("d", "asDoubleBuffer", "double")}


#: So much of a text counts: the driver holds a sample of some 50,000 of them.
_TEXT_BYTES = 256


@dataclass(frozen=True, slots=True)
class RankKey:
    """What stands for a column's values when they are ordered.

    Attributes:
        column: A bigint, a double or a text for each value; null stays null.
        kind: Which of them; a text is bytes, for what Spark holds as text need not be UTF-8.
    """

    column: Column
    kind: type[int] | type[float] | type[bytes]

    @property
    def sampled(self) -> Column:
        """The key as Arrow can carry it."""
        return self.column.cast("binary") if self.kind is bytes else self.column


def has_ranks(data_type: DataType) -> bool:
    """Whether values of a type have an order."""
    return not isinstance(data_type, t.Map) and data_type not in (t.VOID, t.VARIANT)


def rank_key(path: Sequence[str], data_type: DataType) -> RankKey | None:
    """The key of a column at a path through structs; None: its values have no order."""
    if not has_ranks(data_type):
        return None
    column = sf.col(".".join(quote(name) for name in path))
    if data_type in (t.BOOLEAN, t.BYTE, t.SHORT, t.INTEGER, t.LONG):
        return RankKey(column.cast("bigint"), int)
    if data_type == t.DATE:
        return RankKey(sf.unix_date(column).cast("bigint"), int)
    if data_type in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return RankKey(sf.unix_micros(column.cast("timestamp")), int)
    if data_type in (t.FLOAT, t.DOUBLE) or isinstance(data_type, t.Decimal):
        return RankKey(column.cast("double"), float)
    if data_type == t.BINARY:
        return RankKey(sf.hex(sf.substring(column, 1, _TEXT_BYTES)), bytes)
    return RankKey(_beginning(column.cast("string")), bytes)


def _beginning(text: Column) -> Column:
    # Bytes are cut without counting characters.
    return sf.substring(text.cast("binary"), 1, _TEXT_BYTES).cast("string")


def rank_among(
    spark: SparkSession, key: RankKey, bounds: Sequence[int | float | bytes], starts: Sequence[int]
) -> Column:
    """The rank of a value by the first bound that it is not greater than; 0 for null.

    Args:
        spark: A session. Over Spark Connect the search is put together of functions that can be named, and slower.
        key: The values.
        bounds: Of the key's kind, different ones in order; NaN is greater than all.
        starts: What is to stand for values up to each bound, then for those above all of them: their ranks, say.
    """
    if not bounds:
        return sf.when(key.column.isNull(), 0).otherwise(starts[-1])
    if is_connect(spark):
        place = _count_less(key, bounds)
        return sf.when(~key.column.isNull(), sf.get(constant_array(spark, starts), place)).otherwise(0)
    java = java_of(spark)
    values, array_class = _java_array(java, key.kind, bounds)
    arrays = java.jvm.java.lang.Class.forName("java.util.Arrays")
    literal = java.jvm.org.apache.spark.sql.catalyst.expressions.Literal(values, java.object_type(array_class))
    # Never asked for null: it stands behind a condition.
    value = java.expression_utils.expression(key.column._jc)
    found = java.static_invoke(
        arrays, java.integer_type, "binarySearch", java.seq([literal, value]), java.seq([]), False, False, True,
        java.none,
    )  # fmt: skip
    place = Column(java.expression_utils.column(found))
    # "index of the search key [...]; otherwise, (-(insertion point) - 1)". One look at a table of all that it may be:
    # in the branches of a condition Spark would search once more for each time that the place is named.
    told = [*reversed(starts), *starts[: len(bounds)]]
    # In `array[...]` Spark 4.0 takes a column for the session's variable of that name, if there is one.
    return sf.when(~key.column.isNull(), sf.get(constant_array(spark, told), place + len(starts))).otherwise(0)


def _count_less(key: RankKey, bounds: Sequence[int | float | bytes]) -> Column:
    """How many bounds are less than a value: from the greatest power of two down, as long as they are."""
    if key.kind is bytes:
        # The order of bytes is that of their digits, and these can stand in a text.
        value = sf.hex(key.column.cast("binary"))
        known = _parsed([bytes(b).hex().upper() for b in bounds if isinstance(b, bytes)], "string")
    else:
        value, known = key.column, _parsed(bounds, "bigint" if key.kind is int else "double")

    def further(found: Column, step: Column) -> Column:
        is_less = (found + step <= len(bounds)) & (sf.get(known, found + step - 1) < value)
        return sf.when(is_less, found + step).otherwise(found)

    steps = [1 << n for n in reversed(range(len(bounds).bit_length()))]
    return sf.aggregate(sf.array(*map(sf.lit, steps)), sf.lit(0), further)


def _parsed(values: Sequence[object], kind: str) -> Column:
    """Values as one constant: the server parses the text when it plans, and never again."""
    # `Infinity` and the like are numbers of Spark's within quotes; without them they are not for every reader of JSON.
    told = [json.dumps(v) if isinstance(v, float) and not math.isfinite(v) else v for v in values]
    return sf.from_json(sf.lit(json.dumps(told)), f"array<{kind}>")


def constant_array(spark: SparkSession, numbers: Sequence[int]) -> Column:
    """Whole numbers as one constant: a thousand constants in an array are looked at one by one whenever Spark plans."""
    if is_connect(spark):
        return _parsed(numbers, "int" if max(numbers) < 1 << 31 else "bigint")
    java = java_of(spark)
    code, view, name = ("i", "asIntBuffer", "int") if max(numbers) < 1 << 31 else _BULK[int]
    values = java.gateway.new_array(getattr(java.jvm, name), len(numbers))
    data = struct.pack(f">{len(numbers)}{code}", *numbers)
    getattr(java.jvm.java.nio.ByteBuffer.wrap(data), view)().get(values)
    array = java.jvm.org.apache.spark.sql.catalyst.expressions.UnsafeArrayData.fromPrimitiveArray(values)
    kind = java.jvm.org.apache.spark.sql.types.ArrayType(java.type_of_text("int" if code == "i" else "bigint"), False)
    return Column(java.expression_utils.column(java.jvm.org.apache.spark.sql.catalyst.expressions.Literal(array, kind)))


def _java_array(java: Java, kind: type, bounds: Sequence[int | float | bytes]) -> tuple[JavaObject, JavaObject]:
    """The bounds as a Java array, and its class."""
    if kind is bytes:
        text_class = java.jvm.org.apache.spark.unsafe.types.UTF8String
        texts = java.gateway.new_array(text_class, len(bounds))
        for n, bound in enumerate(bounds):
            texts[n] = text_class.fromBytes(bound)
        return texts, texts.getClass()
    code, view, name = _BULK[kind]
    numbers = java.gateway.new_array(getattr(java.jvm, name), len(bounds))
    data = struct.pack(f">{len(bounds)}{code}", *bounds)
    getattr(java.jvm.java.nio.ByteBuffer.wrap(data), view)().get(numbers)
    return numbers, numbers.getClass()

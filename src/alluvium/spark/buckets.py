"""The bucket of a row as an expression of Spark's: the hash of its key's binary row, computed without leaving the JVM.

The bytes are those of `codecs.binary_rows.binary_row_encode`, and Spark's own Murmur3 over them is the hash: rows of
bytes are whole words, and only in what follows the last word do the two differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from alluvium.codecs.binary_rows.binary_row import null_bytes
from alluvium.errors import UnsupportedFeature
from alluvium.plan.write import BucketColumn, Bucketing
from alluvium.schema import types as t
from alluvium.schema.types import DataType, Decimal
from alluvium.spark.jvm.gateway import Java, JavaObject, java_of
from alluvium.spark.naming.names import quote
from alluvium.spark.naming.types import to_spark
from alluvium.spark.sessions.session import ensure_native

#: Digits of decimals, and of fractions of seconds, that lie in the slot itself.
_MAX_COMPACT, _MILLIS = 18, 3
#: Bytes of a text that lie in the slot itself.
_NEAR = 7
_BITS = {t.BYTE: 0xFF, t.SHORT: 0xFFFF, t.INTEGER: 0xFFFFFFFF}
_ZERO = "cast(0 as bigint)"


@dataclass(frozen=True, slots=True)
class _Slot:
    """A column in the row: its 8 bytes, and what it has in the variable part (None: nothing), with its length."""

    word: Column
    far: Column | None = None
    reserved: Column | None = None


def bucket_of(spark: SparkSession, bucketing: Bucketing, count: Column | None = None) -> Column:
    """The number of each row's bucket, int.

    Args:
        spark: A classic session.
        bucketing: By which columns of the rows, by their names.
        count: How many buckets there are where a row is; None: as many as `bucketing` says.

    Raises:
        UnsupportedFeature: A column of a type that is in no key (`"unsupported-type"`).
        InvalidRequest: `"no-jvm"`: a session of Spark Connect, whose server has nothing of ours.
    """
    count = sf.lit(bucketing.count) if count is None else count
    if bucketing.function == "mod":
        key = sf.coalesce(sf.col(quote(bucketing.columns[0].name)).cast("bigint"), sf.lit(0))
        return sf.pmod(key, count).cast("int")
    return sf.abs(hash_of(spark, bucketing.columns) % count)


def hash_of(spark: SparkSession, columns: tuple[BucketColumn, ...]) -> Column:
    """The hash of the binary row of some columns, int.

    Raises:
        UnsupportedFeature: As of `bucket_of`.
        InvalidRequest: As of `bucket_of`.
    """
    ensure_native(spark)
    return sf.hash(_Row(java_of(spark)).encode(columns))


class _Row:
    """Makes the bytes of rows (without the arity before them)."""

    def __init__(self, java: Java) -> None:
        self._java = java
        self._class = java.jvm.java.lang.Class.forName

    def encode(self, columns: tuple[BucketColumn, ...]) -> Column:
        end: Column = sf.lit(null_bytes(len(columns)) + 8 * len(columns)).cast("bigint")
        slots = []
        for column in columns:
            slot = self._slot(column, end)
            slots.append(slot)
            if slot.reserved is not None:
                end = end + slot.reserved
        words = [self._bytes(word) for word in _null_words(columns)] + [slot.word for slot in slots]
        return sf.concat(*words, *(slot.far for slot in slots if slot.far is not None))

    def _slot(self, column: BucketColumn, end: Column) -> _Slot:
        value, kind = sf.col(quote(column.name)), column.type
        if kind in (t.STRING, t.BINARY):
            return self._text(value, end)
        if isinstance(kind, Decimal) and kind.precision > _MAX_COMPACT:
            return self._wide_decimal(value, end)
        if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
            return self._timestamp(value, kind, column.precision, end)
        return _Slot(self._bytes(sf.coalesce(self._number(value, kind), sf.expr(_ZERO))))

    def _number(self, value: Column, kind: DataType) -> Column:
        """What lies in the slot, as 64 bits."""
        if kind in _BITS:
            return value.cast("bigint").bitwiseAND(sf.lit(_BITS[kind]))
        if kind == t.DATE:
            return sf.unix_date(value).cast("bigint").bitwiseAND(sf.lit(_BITS[t.INTEGER]))
        if kind in (t.LONG, t.BOOLEAN):
            return value.cast("bigint")
        if kind == t.FLOAT:
            bits = self._call("java.lang.Float", "floatToRawIntBits", t.INTEGER, value)
            return bits.cast("bigint").bitwiseAND(sf.lit(_BITS[t.INTEGER]))
        if kind == t.DOUBLE:
            return self._call("java.lang.Double", "doubleToRawLongBits", t.LONG, value)
        if isinstance(kind, Decimal):
            unscaled = self._java.jvm.org.apache.spark.sql.catalyst.expressions.UnscaledValue
            return self._column(unscaled(self._expression(value)))
        raise UnsupportedFeature(f"buckets by a column of type {kind}", code="unsupported-type")

    def _text(self, value: Column, end: Column) -> _Slot:
        """ "strings/bytes <= 7 bytes: data from slot byte 0, slot byte 7 = 0x80|len; longer: offset<<32 | len"."""
        data = sf.coalesce(value.cast("binary"), sf.expr("x''"))
        length = sf.octet_length(data).cast("bigint")
        marks = sf.unhex(sf.lit("".join(f"{0x80 | n:02X}" for n in range(_NEAR + 1))))
        mark = sf.substring(marks, (length + 1).cast("int"), sf.lit(1))
        near = sf.concat(sf.rpad(data, sf.lit(_NEAR), sf.expr("x'00'")), mark)
        far = self._bytes(_place(end) + length)
        is_far = length > sf.lit(_NEAR)
        reserved = sf.when(is_far, (length + 7) - (length + 7) % sf.lit(8)).otherwise(sf.expr(_ZERO))
        padded = sf.rpad(data, reserved.cast("int"), sf.expr("x'00'"))
        word = sf.when(value.isNull(), self._bytes(sf.expr(_ZERO))).when(is_far, far).otherwise(near)
        return _Slot(word, padded, reserved)

    def _timestamp(self, value: Column, kind: DataType, precision: int, end: Column) -> _Slot:
        """ "TIMESTAMP p<=3 epoch millis"; "p>3: 8 bytes millis in the variable part, slot = offset<<32 | nanoOfMilli;
        null likewise reserves 8".
        """
        conversion = self._java.jvm.org.apache.spark.sql.catalyst.expressions.PreciseTimestampConversion
        micros = self._column(conversion(self._expression(value), self._type(kind), self._type(t.LONG)))
        micros = sf.coalesce(micros, sf.expr(_ZERO))
        millis = self._call("java.lang.Math", "floorDiv", t.LONG, micros, sf.expr("cast(1000 as bigint)"))
        if precision <= _MILLIS:
            return _Slot(self._bytes(millis))
        nanos = sf.pmod(micros, sf.lit(1000)) * sf.lit(1000)
        return _Slot(self._bytes(_place(end) + nanos), self._bytes(millis), sf.lit(8).cast("bigint"))

    def _wide_decimal(self, value: Column, end: Column) -> _Slot:
        """ "DECIMAL p>18: 16 bytes reserved in the variable part, big-endian two's complement, slot = offset<<32|len;
        null still reserves the 16 bytes and stores offset<<32".
        """
        objects, empty = self._java.object_type, self._java.seq([])
        invoke = self._java.invoke
        found = self._expression(value)
        for name, result in (
            ("toJavaBigDecimal", objects(self._class("java.math.BigDecimal"))),
            ("unscaledValue", objects(self._class("java.math.BigInteger"))),
            ("toByteArray", self._type(t.BINARY)),
        ):
            found = invoke(found, name, result, empty, empty, True, True, True)
        data = sf.coalesce(self._column(found), sf.expr("x''"))
        word = self._bytes(_place(end) + sf.octet_length(data).cast("bigint"))
        return _Slot(word, sf.rpad(data, sf.lit(16), sf.expr("x'00'")), sf.lit(16).cast("bigint"))

    def _bytes(self, number: Column) -> Column:
        """The 8 bytes of a number, little endian."""
        swapped = self._call("java.lang.Long", "reverseBytes", t.LONG, number)
        return self._call("org.apache.spark.sql.catalyst.util.NumberConverter", "toBinary", t.BINARY, swapped)

    def _call(self, java_class: str, method: str, result: DataType, *arguments: Column) -> Column:
        java = self._java
        values = java.seq([self._expression(argument) for argument in arguments])
        call = java.static_invoke(
            self._class(java_class), self._type(result), method, values, java.seq([]), True, True, True,
            java.none,
        )  # fmt: skip
        return self._column(call)

    def _type(self, kind: DataType) -> JavaObject:
        return self._java.jvm.org.apache.spark.sql.types.DataType.fromJson(to_spark(kind).json())

    def _expression(self, column: Column) -> JavaObject:
        return self._java.expression_utils.expression(column._jc)

    def _column(self, expression: JavaObject) -> Column:
        return Column(self._java.expression_utils.column(expression))


def _null_words(columns: tuple[BucketColumn, ...]) -> list[Column]:
    """The head of a row: a byte of row kind and a bit a field, as words of 64 bits."""
    words = []
    for first in range(0, null_bytes(len(columns)) * 8, 64):
        word = sf.expr(_ZERO)
        for index, column in enumerate(columns):
            if 0 <= (bit := index + 8 - first) < 64:
                flag = sf.lit(1 << bit if bit < 63 else -(1 << 63)).cast("bigint")
                word = word.bitwiseOR(sf.when(sf.col(quote(column.name)).isNull(), flag).otherwise(sf.expr(_ZERO)))
        words.append(word)
    return words


def _place(offset: Column) -> Column:
    return offset * sf.lit(1 << 32)

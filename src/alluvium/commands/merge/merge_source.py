"""The source of a MERGE: computed once, its rows numbered, measured, and sent to the table's rows if it is small."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as s

from alluvium.commands.own_reads import own_reads, scope_of
from alluvium.expr import tree
from alluvium.plan.changes import ReadScope
from alluvium.schema import types as t
from alluvium.schema.text_lengths import char_lengths
from alluvium.schema.types import COLLATIONS, Field, Struct
from alluvium.spark.kept import keep_rows, release_rows
from alluvium.spark.naming.names import unused_name
from alluvium.spark.naming.text_lengths import pads_when_reading
from alluvium.spark.naming.types import from_spark
from alluvium.spark.scan.own_table import OwnTable
from alluvium.spark.statements.resolve import Resolved, equal_keys, outputs, resolve
from alluvium.spark.statements.table_reads import TableRead

#: By which a row of the source is known behind a join: a number of its own, never null.
NUMBER = "__alluvium_number"
#: Of a source up to this size each executor gets a copy: the table, which is the larger side, then stays where it is.
BROADCAST_BYTES = 64 * 1024 * 1024
#: What a value of fixed width takes in Spark's rows, and what one of a nested type is taken for.
_FIXED_BYTES, _NESTED_BYTES = 8, 256
_NESTED = (s.ArrayType, s.MapType, s.StructType, s.VariantType)
#: Types whose smallest and greatest value skip files, and mean the same to Python.
ORDERED = (t.BYTE, t.SHORT, t.INTEGER, t.LONG, t.STRING, t.DATE)
_EPOCH = datetime.date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (datetime.date.min - _EPOCH).days, (datetime.date.max - _EPOCH).days


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """What one aggregate over a source tells.

    Attributes:
        rows: How many there are.
        size_bytes: What they take in memory, roughly.
        ranges: Columns of the table, each with the smallest and the greatest value that it must equal; None: there is
            no value, so that nothing matches.
    """

    rows: int
    size_bytes: int
    ranges: tuple[tuple[Field, object, object], ...]

    @property
    def bounds(self) -> Iterator[tree.Expression]:
        """What the keys say of the table's rows that the source can meet."""
        for f, low, high in self.ranges:
            column = tree.Column((f.name,), f.type, char_lengths(f).get(()))
            if low is None:
                yield tree.Literal(False, t.BOOLEAN)
            elif isinstance(low, (int, str, Decimal, datetime.date)):
                yield tree.Compare(">=", column, tree.Literal(low, f.type))
                yield tree.Compare("<=", column, tree.Literal(high, f.type))


@dataclass(frozen=True, slots=True)
class MergeSource:
    """Rows that come, the same and under the same numbers whenever they are read.

    A source may say something else each time that it is computed: because of `rand()`, or only because of a `limit`
    without an order. Both passes of a merge must see the same rows, and those that have no match are found by number.

    Attributes:
        rows: As they were given; expressions are resolved over them.
        numbered: With their numbers.
        reads: What they have read of the table that they are merged into.
        scope: Which of its rows these scans ask for.
        number: The column of the numbers.
    """

    rows: DataFrame
    numbered: DataFrame
    reads: tuple[TableRead, ...] = ()
    scope: ReadScope = field(default_factory=ReadScope.nothing)
    number: str = NUMBER

    @property
    def outputs(self) -> list[Column]:
        """The columns, in order."""
        return [column for _, column in outputs(self.rows)]

    def measure(self, table: DataFrame, condition: Resolved | None, schema: Struct) -> SourceFigures:
        """Counts the rows, and finds the bounds of their keys: one job, the first that computes the source.

        Args:
            table: The rows of the table.
            condition: Of the merge; None: keys do not matter.
            schema: Of the table.
        """
        return self.measure_keys([] if condition is None else list(self._keys(table, condition, schema)))

    def measure_keys(self, keys: list[tuple[Field, Column]]) -> SourceFigures:
        """The same, of columns of the table and what they must equal."""
        # By a collation the smallest text is another one than that of the statistics, which go by bytes.
        keys = [(f, value) for f, value in keys if COLLATIONS not in f.metadata]
        try:
            return self._measured(keys)
        except (PySparkException, Py4JJavaError):
            # Bounds only leave files out. A key may fail in rows that the rest of the condition rules out.
            if not keys:
                raise
            return self._measured([])

    def _measured(self, keys: list[tuple[Field, Column]]) -> SourceFigures:
        columns = zip(self.outputs, self.rows.schema.fields, strict=True)
        texts = [column for column, f in columns if isinstance(f.dataType, (s.StringType, s.BinaryType))]
        ends = [_to_python(f, end) for f, value in keys for end in (sf.min(value), sf.max(value))]
        lengths = [sf.sum(sf.octet_length(column)) for column in texts]
        count, *found = self.numbered.agg(sf.count(sf.lit(1)), *ends, *lengths).collect()[0]
        bounds = zip((f for f, _ in keys), found[: len(ends) : 2], found[1 : len(ends) : 2], strict=True)
        ranges = ((f, _from_spark(f, low), _from_spark(f, high)) for f, low, high in bounds if _is_known(f, low, high))
        size = self._size(int(count)) + sum(length or 0 for length in found[len(ends) :])
        return SourceFigures(int(count), size, tuple(ranges))

    def _keys(self, table: DataFrame, condition: Resolved, schema: Struct) -> list[tuple[Field, Column]]:
        keys = []
        for name, value in equal_keys(condition, table):
            f = schema.find(name)
            if f is None or (char_lengths(f) and not pads_when_reading(self.rows.sparkSession)):
                continue
            if f.type in ORDERED or isinstance(f.type, t.Decimal):
                found = resolve(self.rows, value, "a key of MERGE")
                if from_spark(found.type, name) == f.type:
                    keys.append((f, value))
        return keys

    def _size(self, count: int) -> int:
        widths = [_NESTED_BYTES if isinstance(f.dataType, _NESTED) else _FIXED_BYTES for f in self.rows.schema.fields]
        return count * (sum(widths) + _FIXED_BYTES)

    def release(self) -> None:
        """Frees what was kept."""
        release_rows(self.numbered)


def _to_python(key: Field, end: Column) -> Column:
    """The end of a key's range, so that it can be collected: dates as days, for Python has no year 0, and no 10000."""
    return sf.unix_date(end) if key.type == t.DATE else end


def _is_known(key: Field, low: object, high: object) -> bool:
    """Whether Python has both ends; without them a key bounds nothing."""
    ends = [end for end in (low, high) if isinstance(end, int)]
    return key.type != t.DATE or all(_FIRST_DAY <= end <= _LAST_DAY for end in ends)


def _from_spark(key: Field, end: object) -> object:
    return _EPOCH + datetime.timedelta(days=end) if key.type == t.DATE and isinstance(end, int) else end


def keep_source(source: DataFrame, own: OwnTable, columns: Sequence[str]) -> MergeSource:
    """Numbers a source, and sees to it that it is computed once, by the first job that asks for it.

    Args:
        source: The rows.
        own: The table that they are merged into.
        columns: Of the table.
    """
    reads = own_reads(source, own)
    scope = scope_of(source, reads)
    name = unused_name(NUMBER, [*source.columns, *columns])
    number = sf.monotonically_increasing_id().alias(name)
    numbered = keep_rows(source.select("*", number))
    return MergeSource(numbered.drop(name), numbered, reads, scope, name)

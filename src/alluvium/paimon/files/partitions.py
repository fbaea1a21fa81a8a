"""Partition values out of manifests, and the directories that they are written to.

Values come "from `_PARTITION`, never from the path": null, empty and blank text share a directory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alluvium.codecs.binary_rows.binary_row import decode_rows
from alluvium.codecs.temporal_text import format_date, format_instant
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.paimon.casts.numbers import each
from alluvium.paimon.files.manifest_write import EMPTY_ROW
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.table_schema import TableSchema
from alluvium.paimon.schema.types import DataField
from alluvium.paimon.terms.java_text import float_text
from alluvium.paimon.terms.options import DATA_FILE_DIRECTORY, PARTITION_DEFAULT_NAME, PARTITION_LEGACY_NAME
from alluvium.schema.arrow import to_arrow

#: `PartitionPathUtils`: controls, and what Hive escapes; beyond ASCII nothing.
#: `Character.isWhitespace`: neither blanks that do not break (U+00A0, U+2007, U+202F) nor U+0085.
_JAVA_BLANKS = (
    "\t\n\x0b\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)
_TO_ESCAPE = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{}\\[\\]^]")


#: The only partition of a table without keys: a row of no fields, which is the same at each commit.
_UNPARTITIONED = pa.array([EMPTY_ROW], pa.binary())
_NO_VALUES, _NO_DIRECTORIES = pa.table({"_": pa.nulls(1)}), pa.array([""], pa.string())


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of some entries.

    Attributes:
        values: One row a partition, one column a partition key, typed.
        indices: Of each entry, its partition's row.
        directories: Of each partition, its directory (`a=1/b=2`), empty where there are no partition keys.
    """

    values: pa.Table
    indices: pa.Array
    directories: pa.Array

    def column(self, name: str) -> pa.Array:
        """A partition key's value of each entry."""
        return self.values[name].combine_chunks().take(self.indices)


def partitions_of(entries: pa.Table, schema: TableSchema) -> Partitions:
    """The partitions of entries.

    Raises:
        CorruptTable: A partition is no row of the partition keys.
    """
    encoded = entries["partition"].combine_chunks().dictionary_encode()
    rows = encoded.dictionary
    if not schema.partition_keys and rows.equals(_UNPARTITIONED):
        return Partitions(_NO_VALUES, encoded.indices, _NO_DIRECTORIES)
    fields = [_field(schema, name) for name in schema.partition_keys]
    columns = decode_rows(rows, [(to_logical(f.type), f.type.precision) for f in fields])
    names = list(schema.partition_keys)
    values = pa.table(dict(zip(names, columns, strict=True))) if names else pa.table({"_": pa.nulls(len(rows))})
    directories = _directories(values, fields, schema) if names else pa.repeat(pa.scalar(""), len(rows))
    return Partitions(values, encoded.indices, directories)


def _field(schema: TableSchema, name: str) -> DataField:
    found = schema.find(name)
    if found is None:
        raise CorruptTable(f"the partition key {name!r} is no column", code="invalid-schema", column=name)
    return found


def _directories(values: pa.Table, fields: list[DataField], schema: TableSchema) -> pa.Array:
    default = PARTITION_DEFAULT_NAME.get(schema.options)
    legacy = PARTITION_LEGACY_NAME.get(schema.options)
    texts = [partition_text(values[f.name].combine_chunks(), f, legacy) for f in fields]
    lines = []
    for row in zip(*(column.to_pylist() for column in texts), strict=True):
        values = (text if text is not None and text.strip(_JAVA_BLANKS) else default for text in row)
        parts = (
            f"{escape_path_name(f.name)}={escape_path_name(value)}" for f, value in zip(fields, values, strict=True)
        )
        lines.append("/".join(parts))
    return pa.array(lines, pa.string())


def escape_path_name(text: str) -> str:
    return _TO_ESCAPE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def partition_text(values: pa.Array, column: DataField, legacy: bool) -> pa.Array:
    """Partition values as text, as directories have them; null stays.

    Args:
        values: Typed.
        column: The partition key.
        legacy: Dates as days since 1970 (`partition.legacy-name`).

    Raises:
        UnsupportedFeature: A type whose text is not known here.
    """
    root = column.type.root
    if root == "DATE":
        days = values.cast(pa.int32())
        return days.cast(pa.string()) if legacy else each(days, format_date, pa.string())
    if root in ("FLOAT", "DOUBLE"):
        return each(values, lambda value: float_text(value, single=root == "FLOAT"), pa.string())
    if root == "BOOLEAN":
        return values.cast(pa.string())
    if root == "TIME_WITHOUT_TIME_ZONE":
        return (
            values.cast(pa.int32()).cast(pa.string())
            if legacy
            else each(values.cast(pa.int32()), _time_text, pa.string())
        )
    if root.startswith("TIMESTAMP"):
        return _timestamp_text(values, column, legacy)
    if root == "DECIMAL":
        # `BigDecimal.toPlainString`: never an exponent.
        return each(values, lambda value: format(value, "f"), pa.string())
    if root in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "CHAR", "VARCHAR"):
        return values.cast(pa.string())
    raise UnsupportedFeature(f"a partition key of type {root}", code="unsupported-type", column=column.name)


def _timestamp_text(values: pa.Array, column: DataField, legacy: bool) -> pa.Array:
    nanos = to_nanoseconds(values)
    if legacy:
        # `Timestamp.toString`: ISO local time, its seconds and fraction only as far as they are not zero.
        return pa.array([None if v is None else iso_text(v) for v in nanos], pa.string())
    precision = column.type.precision

    def text(value: int) -> str:
        front, _ = format_instant(value // 1000, " ")
        fraction = f"{value % 1_000_000_000:09d}"[:precision]
        return f"{front}.{fraction}" if precision else front

    return pa.array([None if v is None else text(v) for v in nanos], pa.string())


def to_nanoseconds(values: pa.Array) -> list[int | None]:
    """Timestamps as nanoseconds since 1970, however far away."""
    per_unit = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[values.type.unit]
    return [None if value is None else value * per_unit for value in values.cast(pa.int64()).to_pylist()]


def iso_text(nanos: int) -> str:
    """`LocalDateTime.toString`: seconds and their fraction only as far as they are not zero."""
    front, _ = format_instant(nanos // 1000, "T")
    fraction = f"{nanos % 1_000_000_000:09d}"
    if fraction == "000000000":
        return front[:-3] if front.endswith(":00") else front
    digits = 3 if fraction.endswith("000000") else 6 if fraction.endswith("000") else 9
    return f"{front}.{fraction[:digits]}"


def _time_text(millis: int) -> str:
    """Zeros at the end of the fraction are left out, but for the first."""
    seconds, rest = divmod(millis, 1000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{clock}.{f'{rest:03d}'.rstrip('0') or '0'}"


def data_paths(entries: pa.Table, partitions: Partitions, schema: TableSchema) -> pa.Array:
    """Where the data files are, relative to the table's root, or absolute where `_EXTERNAL_PATH` says so.

    Raises:
        CorruptTable: A file's name leads elsewhere.
    """
    names = entries["file_name"].combine_chunks()
    if pc.any(pc.match_substring_regex(names, r"/|\x00|^\.{0,2}$")).as_py():
        raise CorruptTable("a manifest names a data file by a path", code="path-escapes-root")
    external = entries["external_path"].combine_chunks()
    return pc.coalesce(
        external, pc.binary_join_element_wise(bucket_directories(entries, partitions, schema), names, "/")
    )


def bucket_directories(entries: pa.Table, partitions: Partitions, schema: TableSchema) -> pa.Array:
    """The directory of each entry's bucket."""
    front = DATA_FILE_DIRECTORY.get(schema.options)
    if front and not {"", ".", ".."}.isdisjoint(front.split("/")):
        raise CorruptTable(
            f'the option data-file.path-directory leads out of the table: "{front}"', code="path-escapes-root"
        )
    buckets = entries["bucket"].combine_chunks()
    bucket = pc.if_else(pc.equal(buckets, -2), pa.scalar("postpone"), pc.cast(buckets, pa.string()))
    bucket = pc.binary_join_element_wise("bucket", bucket, "-")
    directory = partitions.directories.take(partitions.indices)
    joined = pc.if_else(pc.equal(directory, ""), bucket, pc.binary_join_element_wise(directory, bucket, "/"))
    return pc.binary_join_element_wise(front, joined, "/") if front else joined


def typed_nulls(column: DataField, count: int) -> pa.Array:
    """Nulls of a column."""
    return pa.nulls(count, to_arrow(to_logical(column.type)))

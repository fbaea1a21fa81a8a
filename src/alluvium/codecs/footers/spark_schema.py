"""The schema of a Parquet file, as Spark reads it.

What Spark wrote says so itself (a key of the footer, with comments and lengths of texts); for other writers' files
Spark's rules of its Parquet types hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.arrow import from_arrow
from alluvium.schema.spark_json import parse_schema
from alluvium.schema.types import Array, DataType, Field, Map, Struct

_WRITTEN_BY_SPARK = b"org.apache.spark.sql.parquet.row.metadata"


def stored_schema(metadata: pq.FileMetaData, path: str | None = None) -> Struct:
    """The columns of a file by its footer.

    Raises:
        UnsupportedFeature: A column has a type that Spark does not read (`unsupported-type`).
    """
    said = (metadata.metadata or {}).get(_WRITTEN_BY_SPARK)
    found = None if said is None else _parsed(said)
    if found is not None:
        return found
    try:
        arrow = metadata.schema.to_arrow_schema()
    except pa.ArrowException as error:
        raise UnsupportedFeature(
            f"the file has a column of a type that cannot be read: {error}", code="unsupported-type", path=path
        ) from None
    physical = iter(metadata.schema.column(i).physical_type for i in range(metadata.num_columns))
    try:
        return Struct(tuple(Field(f.name, _type_of(f.type, f.name, physical)) for f in arrow))
    except UnsupportedFeature as error:
        error.path = error.path or path
        raise
    except UnicodeDecodeError as error:
        raise UnsupportedFeature(
            f"the file has a time zone that is no text: {error}", code="unsupported-type", path=path
        ) from None


@lru_cache(maxsize=64)
def _parsed(said: bytes) -> Struct | None:
    """A table's files say the same, mostly. What does not parse is an older or newer Spark's: the types tell, then."""
    try:
        return parse_schema(said)
    except CorruptTable:
        return None


def _type_of(data_type: pa.DataType, column: str, physical: Iterator[str]) -> DataType:
    """A type by Spark's rules; of each leaf the physical type is taken along."""
    kinds = pa.types
    if isinstance(data_type, pa.BaseExtensionType):
        data_type = data_type.storage_type
    if kinds.is_dictionary(data_type):
        data_type = data_type.value_type
    if kinds.is_struct(data_type):
        return Struct(tuple(Field(f.name, _type_of(f.type, f"{column}.{f.name}", physical)) for f in data_type))
    if kinds.is_map(data_type):
        key = _type_of(data_type.key_type, f"{column}.key", physical)
        return Map(key, _type_of(data_type.item_type, f"{column}.value", physical))
    if kinds.is_list(data_type) or kinds.is_large_list(data_type) or kinds.is_fixed_size_list(data_type):
        return Array(_type_of(data_type.value_type, f"{column}.element", physical))
    stored_as = next(physical)
    if stored_as == "INT96":
        return t.TIMESTAMP
    if kinds.is_duration(data_type):
        # A type of Arrow's own, told beside the columns: to Parquet it is a number.
        return t.LONG
    if kinds.is_timestamp(data_type) and data_type.unit == "ns":
        raise UnsupportedFeature(
            "Spark does not read timestamps in nanoseconds",
            code="unsupported-type",
            column=column,
            hint="write the files with microseconds",
        )
    return from_arrow(data_type, column)

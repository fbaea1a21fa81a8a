"""The schema as users see it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from alluvium.schema.arrow import schema_to_arrow
from alluvium.schema.types import Field, Struct

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class Schema:
    """The logical schema of a table; `str()` is a readable tree."""

    struct: Struct

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return self.struct.names

    @property
    def fields(self) -> tuple[Field, ...]:
        """Columns in order: name, type, nullable, metadata."""
        return self.struct.fields

    def __iter__(self) -> Iterator[Field]:
        return iter(self.struct.fields)

    def __len__(self) -> int:
        return len(self.struct.fields)

    def __str__(self) -> str:
        return self.struct.tree()

    def to_arrow(self) -> pa.Schema:
        """The schema in Arrow's types; timestamps in microseconds, those with a zone in UTC."""
        return schema_to_arrow(self.struct)

    def to_spark(self) -> StructType:
        """The schema in Spark's types; needs pyspark, but no session."""
        # Loaded by name: tables are opened where pyspark is not installed.
        spark_types = importlib.import_module("alluvium.spark.naming.types")
        schema: StructType = spark_types.to_spark(self.struct)
        return schema

"""Columns of a CREATE TABLE, as Spark's parser has them, as columns of a table of ours."""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark.sql.types import StructType

from alluvium.api.delta.delta_columns import GENERATION, IDENTITY, fields_of
from alluvium.schema.types import Field
from alluvium.spark.jvm.gateway import Java, JavaObject

#: What Spark calls a column's generation and counting, and what the log does.
_GENERATED, _COUNTED = "GENERATION_EXPRESSION", "identity."


def columns_of(java: Java, definitions: JavaObject) -> tuple[Field, ...]:
    """The columns with their comments, defaults, generation and lengths.

    Args:
        java: The classes behind the session.
        definitions: A Scala `Seq` of `ColumnDefinition`.

    Raises:
        UnsupportedFeature: A type that no table can hold.
    """
    types = java.jvm.org.apache.spark.sql.types
    count = definitions.size()
    fields = java.gateway.new_array(types.StructField, count)
    for n in range(count):
        fields[n] = definitions.apply(n).toV1Column()
    parsed = StructType.fromJson(json.loads(str(types.StructType(fields).json())))
    return tuple(replace(f, metadata={_key(k): v for k, v in f.metadata.items()}) for f in fields_of(parsed))


def _key(name: str) -> str:
    if name == _GENERATED:
        return GENERATION
    return IDENTITY + name[len(_COUNTED) :] if name.startswith(_COUNTED) else name

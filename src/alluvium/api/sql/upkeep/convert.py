"""CONVERT TO DELTA."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from alluvium.api.counterparts.raising import counterparts
from alluvium.api.delta.upkeep.convert import ConvertSaid, convert_in_session
from alluvium.api.sql.grammar.convert import ConvertToDelta, PartitionColumn
from alluvium.api.sql.text.terms import TableName
from alluvium.schema.types import Field, JsonValue


def run(spark: SparkSession, statement: ConvertToDelta) -> DataFrame:
    """Carries it out; the answer has no columns."""
    assert isinstance(statement.target, TableName)  # parameters are bound
    said = statement.partitioned_by
    partitions = None if said is None else tuple(_field(column) for column in said)
    with counterparts("convertToDelta"):
        convert_in_session(spark, statement.target.parts, ConvertSaid(partitions, statement.statistics))
    return spark.createDataFrame([], StructType())


def _field(column: PartitionColumn) -> Field:
    declared = column.declared
    comment: dict[str, JsonValue] = {} if column.comment is None else {"comment": column.comment}
    return Field(column.name, declared.type, column.nullable, {**declared.metadata, **comment})

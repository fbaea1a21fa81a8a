"""TableConfig: protocol, metadata and schema of one version, parsed and consistent from birth."""

from __future__ import annotations

from dataclasses import dataclass

from alluvium.delta.spec import Metadata, Protocol
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema.spark_json import parse_schema
from alluvium.schema.types import Array, Map, Struct


@dataclass(frozen=True, slots=True)
class TableConfig:
    """What a version says about itself, beside its files.

    Attributes:
        protocol: The latest protocol action.
        metadata: The latest metaData action.
        schema: The logical schema, partition columns included.
        partition_columns: Names as the schema spells them, in partition order.
    """

    protocol: Protocol
    metadata: Metadata
    schema: Struct
    partition_columns: tuple[str, ...]

    @property
    def data_columns(self) -> Struct:
        """The columns that stand in the data files."""
        return Struct(tuple(f for f in self.schema.fields if f.name not in self.partition_columns))


def parse_config(protocol: Protocol, metadata: Metadata) -> TableConfig:
    """Parses and cross-checks the two actions.

    Raises:
        CorruptTable: The schema does not parse, or a partition column is not a simple column of it.
        UnsupportedFeature: Data files of another format than Parquet.
    """
    if metadata.format.provider.casefold() != "parquet":
        raise UnsupportedFeature(
            f"data files of format {metadata.format.provider!r}: only parquet is supported", code="unsupported-format"
        )
    schema = parse_schema(metadata.schema_string)
    partition_columns = []
    for name in metadata.partition_columns:
        found = schema.find(name)
        if found is None or isinstance(found.type, (Struct, Array, Map)):
            raise CorruptTable(
                f"partition column {name!r} is not a simple column of the schema",
                code="invalid-partition-column",
                column=name,
            )
        partition_columns.append(found.name)
    return TableConfig(protocol, metadata, schema, tuple(partition_columns))

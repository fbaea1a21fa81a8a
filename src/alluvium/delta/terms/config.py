"""TableConfig: protocol, metadata and schema of one version, parsed and consistent from birth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from alluvium.delta.terms.mapping import MappingMode, mapping_mode, physical_paths, physical_schema
from alluvium.delta.terms.spec import Metadata, Protocol
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema.spark_json import parse_schema
from alluvium.schema.types import VARIANT, Array, Map, Struct


@dataclass(frozen=True, slots=True)
class TableConfig:
    """What a version says about itself, beside its files.

    Attributes:
        protocol: The latest protocol action.
        metadata: The latest metaData action.
        schema: The logical schema, partition columns included.
        partition_columns: Names in partition order.
        mapping_mode: How columns are found in data files.
        physical_schema: `schema` under the names that files, partition values and statistics have; of the same shape.
    """

    protocol: Protocol
    metadata: Metadata
    schema: Struct
    partition_columns: tuple[str, ...]
    mapping_mode: MappingMode
    physical_schema: Struct

    @property
    def data_columns(self) -> Struct:
        """The columns that stand in the data files."""
        return Struct(tuple(f for f in self.schema.fields if f.name not in self.partition_columns))

    @property
    def physical_names(self) -> Mapping[str, str]:
        """Physical name of each top-level column, by logical name."""
        return dict(zip(self.schema.names, self.physical_schema.names, strict=True))

    @property
    def physical_paths(self) -> Mapping[tuple[str, ...], tuple[str, ...]]:
        """Physical path of each logical path through structs; empty where they do not differ."""
        return {} if self.mapping_mode == "none" else physical_paths(self.schema, self.physical_schema)


def parse_config(protocol: Protocol, metadata: Metadata) -> TableConfig:
    """Parses and cross-checks the two actions.

    Raises:
        CorruptTable: The schema does not parse, a partition column is not a simple column of it, or a mapped column
            lacks its physical name.
        UnsupportedFeature: Data files of another format than Parquet, an unknown mode of column mapping.
    """
    if metadata.format.provider.lower() != "parquet":
        raise UnsupportedFeature(
            f"data files of format {metadata.format.provider!r}: only parquet is supported", code="unsupported-format"
        )
    schema = parse_schema(metadata.schema_string)
    partition_columns = []
    for name in metadata.partition_columns:
        # By its exact name: the values of partitions stand under the schema's, and another spelling finds none of them.
        found = next((f for f in schema.fields if f.name == name), None)
        # "Variant is not a comparable data type, so it cannot be included in a partition column."
        if found is None or isinstance(found.type, (Struct, Array, Map)) or found.type == VARIANT:
            raise CorruptTable(
                f"partition column {name!r} is not a simple column of the schema",
                code="invalid-partition-column",
                column=name,
            )
        partition_columns.append(found.name)
    mode = mapping_mode(protocol, metadata)
    return TableConfig(protocol, metadata, schema, tuple(partition_columns), mode, physical_schema(schema, mode))

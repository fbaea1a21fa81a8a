"""materializePartitionColumns. Specification: "Materialize Partition Columns"."""

from __future__ import annotations

from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.description.evolve import add_feature, set_properties
from alluvium.delta.features.iceberg.materialize_partition_columns import ENABLED
from alluvium.delta.write.write import plan_write
from alluvium.schema.types import LONG, STRING, Field, Struct

SCHEMA = Struct((Field("p", STRING), Field("id", LONG)))


def test_the_property_brings_the_feature() -> None:
    """ "The writer feature `materializePartitionColumns` is auto-supported when this property is set to `true`." """
    config = table_config(NewTable(SCHEMA, ["p"]))
    assert not plan_write(config, "url").materialize_partitions
    config = set_properties(config, {ENABLED: "true"}).config
    assert (config.protocol.min_reader_version, config.protocol.min_writer_version) == (1, 7)
    assert "materializePartitionColumns" in (config.protocol.writer_features or ())
    assert plan_write(config, "url").materialize_partitions


def test_the_feature_obliges_without_the_property() -> None:
    """ "When the writer feature `materializePartitionColumns` is set in the protocol, writers must require that partition
    column values are materialized into any newly created data file".
    """
    config = add_feature(table_config(NewTable(SCHEMA, ["p"])), "materializePartitionColumns").config
    assert plan_write(config, "url").materialize_partitions
    assert plan_write(set_properties(config, {ENABLED: "false"}).config, "url").materialize_partitions

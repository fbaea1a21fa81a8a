"""TableConfig: what protocol and metadata must agree on."""

from __future__ import annotations

import msgspec
import pytest
from delta_values import LEGACY, make_config, make_metadata

from alluvium.delta.terms.config import parse_config
from alluvium.delta.terms.spec import Format
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema.types import LONG, STRING, Array, Field, Struct

SCHEMA = Struct(
    (Field("id", LONG), Field("Day", STRING), Field("tags", Array(STRING)), Field("s", Struct((Field("x", LONG),))))
)


def test_partition_columns_keep_their_order():
    config = make_config(SCHEMA, ["Day", "id"])
    assert config.partition_columns == ("Day", "id")
    assert config.data_columns.names == ("tags", "s")


def test_a_table_without_partitions_has_all_its_columns_in_the_files():
    config = make_config(SCHEMA)
    assert config.partition_columns == ()
    assert config.data_columns == config.schema == SCHEMA


@pytest.mark.parametrize("name", ["gone", "tags", "s", "s.x", "day", "ID"])
def test_a_partition_column_must_be_a_simple_column(name: str):
    """By its exact name: delta-spark refuses another spelling, and whose values would be meant nobody knows."""
    with pytest.raises(CorruptTable) as caught:
        make_config(SCHEMA, [name])
    assert (caught.value.code, caught.value.column) == ("invalid-partition-column", name)


def test_data_files_of_another_format_are_refused():
    metadata = msgspec.structs.replace(make_metadata(), format=Format(provider="orc"))
    with pytest.raises(UnsupportedFeature) as caught:
        parse_config(LEGACY, metadata)
    assert caught.value.code == "unsupported-format"
    assert "'orc'" in caught.value.message


def test_the_name_of_the_format_is_read_without_regard_to_case():
    metadata = msgspec.structs.replace(make_metadata(), format=Format(provider="PARQUET"))
    assert parse_config(LEGACY, metadata).metadata is metadata


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"long"', '{"type":"struct"}', '{"type":"struct","fields":[{"name":"a"}]}']
)
def test_a_schema_that_does_not_parse_is_reported(text: str):
    with pytest.raises(CorruptTable) as caught:
        parse_config(LEGACY, msgspec.structs.replace(make_metadata(), schema_string=text))
    assert caught.value.code == "invalid-schema"

"""TableConfig: what protocol and metadata must agree on."""

from __future__ import annotations

import msgspec
import pytest
from delta_values import LEGACY, make_config, make_metadata
from mapped_table import features, mapped

from alluvium.delta.terms.config import parse_config
from alluvium.delta.terms.spec import Format
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema.types import LONG, STRING, VARIANT, Array, DataType, Field, Map, Struct

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


MAPPED = {"delta.columnMapping.mode": "name"}


def test_names_of_columns_in_the_files():
    inner = Struct((mapped("x", LONG, "p3", 3),))
    schema = Struct((mapped("a", LONG, "p1", 1), mapped("s", inner, "p2", 2)))
    config = make_config(schema, ["a"], MAPPED, features("columnMapping"))
    assert config.physical_names == {"a": "p1", "s": "p2"}
    assert config.physical_paths == {("a",): ("p1",), ("s",): ("p2",), ("s", "x"): ("p2", "p3")}
    assert (config.mapping_mode, config.data_columns.names, config.physical_schema.names) == (
        "name",
        ("s",),
        ("p1", "p2"),
    )
    plain = make_config(schema, ["a"])
    assert plain.physical_names == {"a": "a", "s": "s"} and plain.physical_paths == {}
    assert plain.physical_schema is plain.schema and plain.mapping_mode == "none"


@pytest.mark.parametrize("data_type", [VARIANT, Array(LONG), Map(STRING, LONG), Struct((Field("x", LONG),))], ids=str)
def test_types_that_partition_no_table(data_type: DataType):
    with pytest.raises(CorruptTable) as caught:
        make_config(Struct((Field("id", LONG), Field("c", data_type))), ["id", "c"])
    assert (caught.value.code, caught.value.column) == ("invalid-partition-column", "c")
    assert "'c' is not a simple column" in caught.value.message

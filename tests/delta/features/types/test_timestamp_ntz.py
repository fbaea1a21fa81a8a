"""timestampNtz. Specification: "Timestamp without timezone (TimestampNTZ)"."""

from __future__ import annotations

import pytest
from delta_values import make_config

from alluvium.delta.features.registry import BY_NAME, ensure_readable, ensure_writable
from alluvium.delta.features.types.timestamp_ntz import FEATURE, contains_timestamp_ntz, is_used
from alluvium.delta.terms.spec import Protocol
from alluvium.schema.types import LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, Array, DataType, Field, Map, Struct


@pytest.mark.parametrize(
    "data_type",
    [
        TIMESTAMP_NTZ,
        Array(TIMESTAMP_NTZ),
        Map(TIMESTAMP_NTZ, LONG),
        Map(STRING, TIMESTAMP_NTZ),
        Struct((Field("a", LONG), Field("b", Array(Struct((Field("c", TIMESTAMP_NTZ),)))))),
    ],
)
def test_the_type_is_found_at_any_depth(data_type: DataType):
    assert contains_timestamp_ntz(data_type)
    assert is_used(make_config(Struct((Field("x", data_type),))))


@pytest.mark.parametrize("data_type", [TIMESTAMP, Array(TIMESTAMP), Map(STRING, LONG), Struct(())])
def test_other_types_do_not_ask_for_it(data_type: DataType):
    assert not contains_timestamp_ntz(data_type)


@pytest.mark.parametrize("name", ["timestampNtz", "timestampNTZ"])
def test_both_spellings_open_the_table(name: str):
    """ "A feature name `timestampNTZ` must exist in the table's `readerFeatures` and `writerFeatures`." Released writers
    spell it `timestampNtz`.
    """
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=(name,), writer_features=(name,))
    config = make_config(Struct((Field("x", TIMESTAMP_NTZ),)), protocol=protocol)
    ensure_readable(config)
    ensure_writable(config)
    assert BY_NAME[name] is FEATURE
    assert FEATURE.reader

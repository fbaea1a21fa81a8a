"""icebergCompatV2. Specification: "Iceberg Compatibility V2"."""

from __future__ import annotations

from dataclasses import replace

import pytest
from iceberg_tables import config_of, refusal
from msgspec import structs

from alluvium.delta.description.evolve import add_feature, set_properties
from alluvium.delta.features.iceberg.iceberg_compat_v2 import ensure_compatible
from alluvium.delta.write.write import plan_write
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.types import (
    LONG,
    STRING,
    VARIANT,
    Array,
    DataType,
    Field,
    Map,
    Struct,
)

VERSION = 2


@pytest.mark.parametrize("data_type", [VARIANT, Struct((Field("x", VARIANT),))], ids=str)
def test_types(data_type: DataType) -> None:
    """ "Require that the table schema contains only data types in the following allow-list" """
    assert "the type of" in refusal(config_of(VERSION, Struct((Field("c", data_type),)))).message


@pytest.mark.parametrize("data_type", [Array(LONG), Map(STRING, LONG), Struct((Field("x", Array(LONG)),))], ids=str)
def test_elements_that_would_need_numbers(data_type: DataType) -> None:
    """ "Require that the nested `element` field of ArrayTypes and the nested `key` and `value` fields of MapTypes be
    assigned 32 bit integer identifiers": what we cannot do is refused, with the reason.
    """
    with pytest.raises(UnsupportedFeature) as caught:
        plan_write(config_of(VERSION, Struct((Field("c", data_type),))), "url")
    assert caught.value.features == ("icebergCompatV2",) and "numbers" in caught.value.message


def test_deletion_vectors_may_be_supported_but_not_active() -> None:
    """ "either the `deletionVectors` table feature is not present in the table protocol or the table property
    `delta.enableDeletionVectors` is not set to `true`"
    """
    config = add_feature(config_of(VERSION), "deletionVectors").config
    ensure_compatible(config)
    with pytest.raises(InvalidRequest) as caught:
        set_properties(config, {"delta.enableDeletionVectors": "true"})
    assert caught.value.code == "contradicting-properties"
    metadata = config.metadata
    broken = {**metadata.configuration, "delta.enableDeletionVectors": "true"}
    assert "vectors" in refusal(replace(config, metadata=structs.replace(metadata, configuration=broken))).message

"""Features of writers alone: tables that have them are read, whatever they are."""

from __future__ import annotations

import pytest
from delta_values import make_config

from alluvium.delta.features.registry import ensure_readable
from alluvium.delta.terms.spec import Protocol
from alluvium.schema.types import LONG, Field, JsonValue, Struct


@pytest.mark.parametrize("reader", [1, 3])
@pytest.mark.parametrize(
    ("name", "properties", "metadata"),
    [
        ("identityColumns", {}, {"delta.identity.start": 1, "delta.identity.step": 1}),
        ("generatedColumns", {}, {"delta.generationExpression": "1"}),
        ("checkConstraints", {"delta.constraints.positive": "x > 0"}, {}),
        ("allowColumnDefaults", {}, {"CURRENT_DEFAULT": "5"}),
        ("changeDataFeed", {"delta.enableChangeDataFeed": "true"}, {}),
        ("icebergCompatV1", {"delta.enableIcebergCompatV1": "true"}, {}),
        ("icebergCompatV2", {"delta.enableIcebergCompatV2": "true"}, {}),
        ("icebergCompatV3", {"delta.enableIcebergCompatV3": "true"}, {}),
        ("icebergWriterCompatV1", {}, {}),
        ("checkpointProtection", {"delta.requireCheckpointProtectionBeforeVersion": "3"}, {}),
        ("collations-preview", {}, {"__COLLATIONS": {"x": "ICU.DE"}}),
        ("materializePartitionColumns", {}, {}),
        ("rowTracking", {"delta.enableRowTracking": "true"}, {}),
        ("inCommitTimestamp", {"delta.enableInCommitTimestamps": "true"}, {}),
        ("clustering", {}, {}),
        ("fromTheFuture", {}, {}),
    ],
)
def test_readers_need_not_know_them(
    reader: int, name: str, properties: dict[str, str], metadata: dict[str, JsonValue]
) -> None:
    """ "to read a table, readers must implement and respect all features listed in `readerFeatures`" """
    protocol = Protocol(
        min_reader_version=reader,
        min_writer_version=7,
        reader_features=() if reader == 3 else None,
        writer_features=(name,),
    )
    ensure_readable(make_config(Struct((Field("x", LONG, True, metadata),)), properties=properties, protocol=protocol))

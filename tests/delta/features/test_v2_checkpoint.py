"""v2Checkpoint. Specification: "V2 Checkpoint Table Feature". Reading them: tests/delta/log/test_sidecar.py."""

from __future__ import annotations

import pytest
from delta_values import make_config

from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.features.v2_checkpoint import FEATURE
from alluvium.delta.spec import Protocol
from alluvium.errors import UnsupportedFeature


def test_such_tables_are_read_and_not_written() -> None:
    """ "A feature name `v2Checkpoint` must exist in the table's `readerFeatures` and `writerFeatures`." """
    listed = (FEATURE.name,)
    config = make_config(
        protocol=Protocol(min_reader_version=3, min_writer_version=7, reader_features=listed, writer_features=listed)
    )
    ensure_readable(config)
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_writable(config)
    assert caught.value.features == ("v2Checkpoint",)

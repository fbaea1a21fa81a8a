"""vacuumProtocolCheck. Specification: "VACUUM Protocol Check"."""

from __future__ import annotations

from delta_values import make_config

from alluvium.delta.features.log.vacuum_protocol_check import FEATURE
from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.terms.spec import Protocol


def test_readers_need_only_know_that_it_exists() -> None:
    """ "readers don't need to understand or change anything new; they just need to acknowledge the feature exists" """
    listed = (FEATURE.name,)
    config = make_config(
        protocol=Protocol(min_reader_version=3, min_writer_version=7, reader_features=listed, writer_features=listed)
    )
    ensure_readable(config)
    assert (FEATURE.on_scan, FEATURE.on_metadata) == (None, None)
    # "Writers that do not implement VACUUM do not need to change anything"
    ensure_writable(config)

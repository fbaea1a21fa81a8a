"""v2Checkpoint. Specification: "V2 Checkpoint Table Feature". Reading them: tests/delta/log/test_sidecar.py; writing
them: tests/delta/log/test_checkpoint.py.
"""

from __future__ import annotations

import pytest
from delta_values import LEGACY, make_config

from alluvium.delta.features.log.v2_checkpoint import FEATURE, is_used
from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import Protocol

LISTED = Protocol(
    min_reader_version=3, min_writer_version=7, reader_features=(FEATURE.name,), writer_features=(FEATURE.name,)
)


def config_of(protocol: Protocol, policy: str | None) -> TableConfig:
    return make_config(properties={} if policy is None else {"delta.checkpointPolicy": policy}, protocol=protocol)


def test_such_tables_are_read_and_written() -> None:
    """ "A feature name `v2Checkpoint` must exist in the table's `readerFeatures` and `writerFeatures`." """
    ensure_readable(config_of(LISTED, "v2"))
    ensure_writable(config_of(LISTED, "v2"))


@pytest.mark.parametrize(
    ("protocol", "policy", "expected"),
    [(LISTED, "v2", True), (LISTED, "classic", False), (LISTED, None, False), (LEGACY, "v2", False)],
)
def test_the_policy_decides_and_the_feature_allows(protocol: Protocol, policy: str | None, expected: bool) -> None:
    """ "Writers are allowed to create v2 spec checkpoints [...] if v2 checkpoint table feature is enabled." """
    assert is_used(config_of(protocol, policy)) is expected

"""checkpointProtection. Specification: "Checkpoint Protection". Clean-up: tests/delta/log_upkeep/test_log_cleanup.py."""

from __future__ import annotations

import pytest
from delta_values import LEGACY, make_config

from alluvium.delta.features.log.checkpoint_protection import PROPERTY, may_clean_up_to, protected_before
from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.terms.spec import Protocol
from alluvium.errors import CorruptTable

LISTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("checkpointProtection",))


def test_such_tables_are_read_and_written() -> None:
    config = make_config(properties={PROPERTY: "4"}, protocol=LISTED)
    ensure_readable(config)
    ensure_writable(config)
    assert protected_before(config) == 4


def test_history_goes_up_to_the_version_in_one_go() -> None:
    """ "writers to clean up metadata iff metadata can be cleaned up to the `requireCheckpointProtectionBeforeVersion`
    table property in one go" """
    config = make_config(properties={PROPERTY: "4"}, protocol=LISTED)
    assert [may_clean_up_to(config, version) for version in (3, 4, 5)] == [False, True, True]


def test_without_the_feature_the_property_means_nothing() -> None:
    assert may_clean_up_to(make_config(properties={PROPERTY: "4"}, protocol=LEGACY), 1)


@pytest.mark.parametrize("value", ["-1", "x", "", "1.5"])
def test_a_property_that_is_no_version(value: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        ensure_readable(make_config(properties={PROPERTY: value}, protocol=LISTED))
    assert caught.value.code == "invalid-property"

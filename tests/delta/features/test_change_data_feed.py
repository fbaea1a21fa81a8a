"""changeDataFeed. Specification: "Add CDC File". Reading the feed itself is tested in `tests/delta/changes`."""

from __future__ import annotations

import pytest
from delta_values import make_config

from alluvium.delta.features.change_data_feed import ENABLED, FEATURE, is_used
from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.spec import Protocol
from alluvium.errors import UnsupportedFeature

LISTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=(FEATURE.name,))
LEGACY = Protocol(min_reader_version=1, min_writer_version=4)


@pytest.mark.parametrize(("value", "used"), [("true", True), ("TRUE", True), ("false", False), ("", False)])
def test_the_property_decides(value: str, used: bool) -> None:
    """ "all writers must respect the `delta.enableChangeDataFeed` configuration flag in the metadata of the table" """
    assert is_used(make_config(properties={ENABLED: value})) is used
    assert not is_used(make_config())


@pytest.mark.parametrize("protocol", [LISTED, LEGACY])
def test_writers_must_record_changes_which_we_do_not_yet(protocol: Protocol) -> None:
    """ "When `delta.enableChangeDataFeed` is `true`, writers must produce the relevant `AddCDCFile`'s for any operation
    that changes data"
    """
    on = make_config(properties={ENABLED: "true"}, protocol=protocol)
    ensure_readable(on)
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_writable(on)
    assert caught.value.features == (FEATURE.name,)


@pytest.mark.parametrize("protocol", [LISTED, LEGACY])
def test_tables_on_which_it_lies_idle_are_written(protocol: Protocol) -> None:
    ensure_writable(make_config(protocol=protocol))
    ensure_writable(make_config(properties={ENABLED: "false"}, protocol=protocol))

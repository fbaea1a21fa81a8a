"""changeDataFeed. Specification: "Add CDC File". Reading the feed itself is tested in `tests/delta/changes`."""

from __future__ import annotations

import pytest
from delta_values import make_config, make_metadata

from alluvium.delta.features.registry import ensure_readable, ensure_writable
from alluvium.delta.features.rows.change_data_feed import ENABLED, FEATURE, ensure_no_reserved_columns, is_used
from alluvium.delta.terms.spec import Protocol
from alluvium.errors import InvalidRequest
from alluvium.schema.types import LONG, Field, Struct

LISTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=(FEATURE.name,))
LEGACY = Protocol(min_reader_version=1, min_writer_version=4)


@pytest.mark.parametrize(("value", "used"), [("true", True), ("TRUE", True), ("false", False), ("", False)])
def test_the_property_decides(value: str, used: bool) -> None:
    """ "all writers must respect the `delta.enableChangeDataFeed` configuration flag in the metadata of the table" """
    assert is_used(make_config(properties={ENABLED: value})) is used
    assert not is_used(make_config())


@pytest.mark.parametrize("protocol", [LISTED, LEGACY])
def test_tables_with_a_feed_are_written(protocol: Protocol) -> None:
    """ "If an operation only adds new data or removes existing data without updating any existing rows, a writer can
    write only data files"
    """
    on = make_config(properties={ENABLED: "true"}, protocol=protocol)
    ensure_readable(on)
    ensure_writable(on)


@pytest.mark.parametrize("name", ["_change_type", "_COMMIT_VERSION", "_commit_timestamp"])
def test_columns_that_the_feed_adds_are_nobody_else_s(name: str) -> None:
    schema = Struct((Field(name, LONG),))
    metadata = make_metadata(schema, properties={ENABLED: "true"})
    with pytest.raises(InvalidRequest) as caught:
        ensure_no_reserved_columns(metadata, None)
    assert caught.value.code == "reserved-column"
    off = make_metadata(schema)
    assert ensure_no_reserved_columns(off, None) is off


@pytest.mark.parametrize("protocol", [LISTED, LEGACY])
def test_tables_on_which_it_lies_idle_are_written(protocol: Protocol) -> None:
    ensure_writable(make_config(protocol=protocol))
    ensure_writable(make_config(properties={ENABLED: "false"}, protocol=protocol))

"""The gate: tables that we would misread or damage are refused, and the missing features named."""

from __future__ import annotations

import pytest
from delta_values import make_config

from alluvium.delta.features.registry import FEATURES, ensure_readable, ensure_readable_protocol, ensure_writable
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import Protocol
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema.types import LONG, Field, JsonValue, Struct


def protocol(
    reader: int,
    writer: int,
    reader_features: tuple[str, ...] | None = None,
    writer_features: tuple[str, ...] | None = None,
) -> Protocol:
    return Protocol(
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=reader_features,
        writer_features=writer_features,
    )


def column(metadata: dict[str, JsonValue]) -> Struct:
    return Struct((Field("x", LONG, True, metadata),))


PLAIN = column({})


def config(found: Protocol, schema: Struct = PLAIN, **properties: str) -> TableConfig:
    names = {name.replace("__", "."): value for name, value in properties.items()}
    return make_config(schema, properties=names, protocol=found)


@pytest.mark.parametrize("reader", [1, 2])
@pytest.mark.parametrize("writer", [1, 2, 3, 4, 5, 6])
def test_legacy_versions_are_served_where_nothing_missing_is_used(reader: int, writer: int):
    ensure_readable(config(protocol(reader, writer)))
    ensure_writable(config(protocol(reader, writer)))


@pytest.mark.parametrize(("reader", "writer"), [(4, 7), (99, 99)])
def test_readers_of_the_future_are_needed(reader: int, writer: int):
    """ "The minimum version of the Delta read protocol that a client must implement in order to correctly *read* this
    table"
    """
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_readable_protocol(protocol(reader, writer, (), ()))
    assert f"reader version {reader}" in caught.value.message


def test_writers_of_the_future_are_needed_for_writing_only():
    future = config(protocol(1, 8))
    ensure_readable(future)
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_writable(future)
    assert "writer version 8" in caught.value.message


@pytest.mark.parametrize(("reader", "writer"), [(0, 2), (1, 0), (-1, -1)])
def test_versions_start_at_one(reader: int, writer: int):
    with pytest.raises(CorruptTable) as caught:
        ensure_readable_protocol(protocol(reader, writer))
    assert caught.value.code == "invalid-protocol"


def test_reader_3_needs_its_list():
    """ "When the table's Reader Version is 3, `readerFeatures` must exist in the `protocol` action" """
    with pytest.raises(CorruptTable) as caught:
        ensure_readable_protocol(protocol(3, 7, None, ()))
    assert caught.value.code == "invalid-protocol"


def test_writer_7_needs_its_list():
    """ "when the Writer Version is 7, `writerFeatures` must exist in the `protocol` action" """
    with pytest.raises(CorruptTable):
        ensure_readable_protocol(protocol(3, 7, (), None))
    with pytest.raises(CorruptTable) as caught:
        ensure_writable(config(protocol(1, 7)))
    assert caught.value.code == "invalid-protocol"


def test_reader_3_needs_writer_7():
    """ "Creating a table with a Reader Version 3 and Writer Version less than 7 is not allowed." """
    with pytest.raises(CorruptTable) as caught:
        ensure_readable_protocol(protocol(3, 6, ()))
    assert "writer version 7" in caught.value.message


def test_a_feature_for_readers_alone_is_an_error():
    """ "It is not allowed to add features only to `readerFeatures` but not to `writerFeatures`." """
    with pytest.raises(CorruptTable) as caught:
        ensure_readable_protocol(protocol(3, 7, ("timestampNtz",), ("appendOnly",)))
    assert "timestampNtz" in caught.value.message


def test_every_listed_reader_feature_is_needed():
    """ "to read a table, readers must implement and respect all features listed in `readerFeatures`" """
    features = ("anotherOne", "timestampNtz", "fromTheFuture")
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_readable_protocol(protocol(3, 7, features, features))
    assert caught.value.features == ("anotherOne", "fromTheFuture")
    assert "fromTheFuture" in caught.value.message


def test_writer_features_do_not_keep_readers_away():
    ensure_readable(config(protocol(1, 7, None, ("rowTracking", "fromTheFuture"))))


def test_every_listed_writer_feature_is_needed():
    """ "to write a table, writers must implement and respect all features listed in `writerFeatures`" """
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_writable(config(protocol(1, 7, None, ("appendOnly", "anotherOne", "fromTheFuture"))))
    assert caught.value.features == ("anotherOne", "fromTheFuture")


def test_listed_features_that_are_implemented_are_served():
    found = protocol(3, 7, ("timestampNtz",), ("timestampNtz", "appendOnly", "columnInvariants"))
    ensure_readable(config(found))
    ensure_writable(config(found))


def test_the_hint_says_where_to_look():
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_readable_protocol(protocol(3, 7, ("x",), ("x",)))
    assert "docs/features" in (caught.value.hint or "")


def test_records_are_complete():
    assert all(f.spec and (f.legacy_reader is None or f.reader) for f in FEATURES)

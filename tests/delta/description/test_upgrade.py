"""Which protocol a table needs; the expectations were measured on delta-spark 4.4 (see `protocol_matrix`)."""

from __future__ import annotations

import pytest
from protocol_matrix import CHANGES, MATRIX, Case

from alluvium.delta.description.upgrade import (
    configure,
    find_droppable,
    find_feature,
    implied_features,
    protocol_of,
    required_protocol,
    split_protocol_request,
    supported_features,
    with_required,
    without_feature,
)
from alluvium.delta.features.registry import BY_NAME, FEATURES
from alluvium.delta.terms.properties import settable_properties
from alluvium.delta.terms.spec import Format, Metadata, Protocol
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.ddl import parse_ddl_type
from alluvium.schema.spark_json import format_schema
from alluvium.schema.types import INTEGER, TIMESTAMP_NTZ, Field, Struct

LEGACY = [Protocol(min_reader_version=r, min_writer_version=w) for w in range(1, 7) for r in (1, 2)]


def metadata_of(case: Case, properties: dict[str, str]) -> Metadata:
    fields = []
    for name, text in case.columns:
        declared = parse_ddl_type(text)
        generation = {"delta.generationExpression": case.generated[name]} if name in case.generated else {}
        fields.append(Field(name, declared.type, case.nullable, {**declared.metadata, **generation}))
    return metadata(Struct(tuple(fields)), settable_properties(properties))


def metadata(schema: Struct, configuration: dict[str, str] | None = None) -> Metadata:
    return Metadata(
        id="x",
        format=Format(provider="parquet"),
        schema_string=format_schema(schema),
        partition_columns=(),
        configuration=configuration or {},
    )


def seen(protocol: Protocol) -> tuple[int, int, frozenset[str] | None, frozenset[str] | None]:
    def names(listed: tuple[str, ...] | None) -> frozenset[str] | None:
        return None if listed is None else frozenset(listed)

    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        names(protocol.reader_features),
        names(protocol.writer_features),
    )


@pytest.mark.parametrize("case", MATRIX, ids=str)
def test_a_new_table_gets_the_weakest_protocol_that_it_needs(case: Case):
    request, rest = split_protocol_request(case.properties)
    assert seen(required_protocol(metadata_of(case, rest), None, request)) == case.protocol
    assert not any(name.startswith(("delta.feature.", "delta.min")) for name in rest)


@pytest.mark.parametrize(("before", "then", "after"), CHANGES, ids=str)
def test_an_existing_table_gets_what_a_change_needs_and_loses_nothing(before: dict, then: dict, after: Case):
    request, rest = split_protocol_request(before)
    current = required_protocol(metadata_of(after, rest), None, request)
    more, properties = split_protocol_request(then)
    changed = required_protocol(metadata_of(after, {**rest, **properties}), current, more)
    assert seen(changed) == after.protocol
    assert supported_features(changed) >= supported_features(current)
    if supported_features(changed) == supported_features(current):
        assert changed is current


def test_reader_3_takes_writer_7():
    """ "Creating a table with a Reader Version 3 and Writer Version less than 7 is not allowed." """
    request, _ = split_protocol_request({"delta.minReaderVersion": "3", "delta.minWriterVersion": "6"})
    with pytest.raises(InvalidRequest):
        required_protocol(metadata(Struct((Field("a", INTEGER),))), LEGACY[0], request)


@pytest.mark.parametrize("protocol", LEGACY, ids=str)
def test_a_legacy_protocol_is_a_set_of_features_and_back(protocol: Protocol):
    names = supported_features(protocol)
    back = protocol_of(names)
    assert supported_features(back) == names
    assert back.min_writer_version <= protocol.min_writer_version
    assert (back.reader_features, back.writer_features) == (None, None)


@pytest.mark.parametrize("name", [f.name for f in FEATURES])
def test_any_feature_can_be_listed_beside_the_legacy_ones(name: str):
    """ "It is not allowed to add features only to `readerFeatures` but not to `writerFeatures`." """
    names = with_required((*implied_features(1, 2), name))
    protocol = protocol_of(names)
    assert supported_features(protocol) == names
    assert set(protocol.reader_features or ()) <= set(protocol.writer_features or ())
    if BY_NAME[name].reader and BY_NAME[name].legacy_reader is None:
        assert protocol.min_reader_version == 3


def test_requirements_are_features():
    assert all(required in BY_NAME for f in FEATURES for required in f.requires)


def test_a_type_that_existing_tables_get_by_request_only():
    current = Protocol(min_reader_version=1, min_writer_version=2)
    wanted = metadata(Struct((Field("t", TIMESTAMP_NTZ),)))
    with pytest.raises(InvalidRequest) as caught:
        required_protocol(wanted, current)
    assert caught.value.code == "feature-not-enabled"
    request, _ = split_protocol_request({"delta.feature.timestampNtz": "supported"})
    assert "timestampNtz" in (required_protocol(wanted, current, request).reader_features or ())


def test_what_we_do_not_write_is_refused_by_name():
    unwritable = [f for f in FEATURES if not f.writable and f.name == "icebergCompatV1"]
    for feature in unwritable:
        wanted = metadata(Struct((Field("a", INTEGER),)), {"delta.enableIcebergCompatV1": "true"})
        with pytest.raises(UnsupportedFeature) as caught:
            configure(wanted)
        assert feature.name in caught.value.features


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"delta.feature.fooBar": "supported"}, "unknown-feature"),
        ({"delta.feature.deletionVectors": "x"}, "invalid-property"),
        ({"delta.feature.clustering": "supported"}, "feature-not-by-name"),
        ({"delta.feature.catalogManaged": "supported"}, "feature-not-by-name"),
        ({"delta.minReaderVersion": "4"}, "invalid-property"),
        ({"delta.minReaderVersion": "0"}, "invalid-property"),
        ({"delta.minWriterVersion": "8"}, "invalid-property"),
        ({"delta.minWriterVersion": "x"}, "invalid-property"),
    ],
)
def test_requests_that_make_no_sense(properties: dict[str, str], code: str):
    with pytest.raises(InvalidRequest) as caught:
        split_protocol_request(properties)
    assert caught.value.code == code


def test_an_unknown_feature_is_told_the_nearest():
    with pytest.raises(InvalidRequest) as caught:
        find_feature("deletionVector")
    assert caught.value.hint == "did you mean 'deletionVectors'?"


@pytest.mark.parametrize(
    ("features", "name", "after"),
    [
        (("appendOnly", "invariants", "checkConstraints"), "checkConstraints", (1, 2, None, None)),
        (
            ("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
            "checkConstraints",
            (1, 7, None, frozenset(("appendOnly", "invariants", "changeDataFeed", "generatedColumns"))),
        ),
        (("appendOnly", "invariants", "domainMetadata"), "domainMetadata", (1, 2, None, None)),
    ],
)
def test_dropping_a_feature_leaves_the_weakest_protocol(features: tuple[str, ...], name: str, after: tuple):
    assert seen(without_feature(protocol_of(features), name)) == after


def test_a_feature_that_another_needs_is_not_dropped():
    with pytest.raises(InvalidRequest) as caught:
        without_feature(protocol_of(("rowTracking", "domainMetadata")), "domainMetadata")
    assert caught.value.code == "feature-in-use"
    with pytest.raises(InvalidRequest) as caught:
        without_feature(protocol_of(("appendOnly",)), "rowTracking")
    assert caught.value.code == "feature-not-supported"


@pytest.mark.parametrize(
    ("name", "error", "code"),
    [
        ("nope", InvalidRequest, "unknown-feature"),
        ("appendOnly", InvalidRequest, "feature-not-droppable"),
        ("changeDataFeed", InvalidRequest, "feature-not-droppable"),
    ],
)
def test_features_that_cannot_be_dropped_here(name: str, error: type[Exception], code: str):
    with pytest.raises(error) as caught:
        find_droppable(name, ("checkConstraints",))
    assert caught.value.code == code

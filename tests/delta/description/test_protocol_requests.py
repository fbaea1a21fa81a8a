"""What a caller may say of a protocol, what a copy takes over, and what stays when a feature goes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from delta_values import make_config, make_metadata
from msgspec import structs

from alluvium.delta.description.upgrade import (
    FEATURE_PREFIX,
    MIN_READER,
    MIN_WRITER,
    ProtocolRequest,
    configure,
    ensure_defaults_supported,
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
from alluvium.delta.features.registry import FEATURES
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import Protocol
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.types import LONG, TIMESTAMP_NTZ, Field, JsonValue, Struct

LEGACY = Protocol(min_reader_version=1, min_writer_version=2)


def listed(*names: str, reader: int = 1, readers: tuple[str, ...] | None = None) -> Protocol:
    return Protocol(min_reader_version=reader, min_writer_version=7, reader_features=readers, writer_features=names)


@pytest.mark.parametrize(
    ("properties", "request_", "rest"),
    [
        ({}, ProtocolRequest(), {}), ({"a": "b", "Delta.X": "1"}, ProtocolRequest(), {"a": "b", "Delta.X": "1"}),
        ({"delta.minReaderVersion": "2"}, ProtocolRequest(reader=2), {}), ({"DELTA.MINREADERVERSION": " 3 "}, ProtocolRequest(reader=3), {}),
        ({"delta.minWriterVersion": "7", "k": "v"}, ProtocolRequest(writer=7), {"k": "v"}), ({"delta.MinWriterVersion": "1"}, ProtocolRequest(writer=1), {}),
        ({"delta.minReaderVersion": "1", "delta.minWriterVersion": "5"}, ProtocolRequest(1, 5), {}),
        ({"delta.feature.deletionVectors": "supported"}, ProtocolRequest(features=("deletionVectors",)), {}),
        ({"DELTA.Feature.ROWTRACKING": " Enabled "}, ProtocolRequest(features=("rowTracking",)), {}),
        ({"delta.feature.timestampNTZ": "SUPPORTED", "delta.feature.v2checkpoint": "enabled"}, ProtocolRequest(features=("timestampNtz", "v2Checkpoint")), {}),
        ({"delta.ignoreProtocolDefaults": "true"}, ProtocolRequest(bare=True), {}), ({"delta.IGNOREprotocoldefaults": " TRUE "}, ProtocolRequest(bare=True), {}),
        ({"delta.ignoreProtocolDefaults": "false"}, ProtocolRequest(), {}), ({"delta.ignoreProtocolDefaults": "x"}, ProtocolRequest(), {}),
    ],
    ids=str,
)  # fmt: skip
def test_what_speaks_of_the_protocol(
    properties: dict[str, str], request_: ProtocolRequest, rest: dict[str, str]
) -> None:
    assert split_protocol_request(properties) == (request_, rest)


@pytest.mark.parametrize(("name", "last"), [(MIN_READER, 3), (MIN_WRITER, 7)])
def test_versions_that_there_are(name: str, last: int) -> None:
    for version in range(1, last + 1):
        found, _ = split_protocol_request({name: str(version)})
        assert (found.reader, found.writer) == ((version, None) if name == MIN_READER else (None, version))
    for text in ("0", str(last + 1), "-1", "1.0", "", "x", "+1"):
        with pytest.raises(InvalidRequest) as caught:
            split_protocol_request({name.upper(): text})
        assert caught.value.code == "invalid-property"
        assert caught.value.message == f"{name} must be one of {', '.join(map(str, range(1, last + 1)))}, not {text!r}"


def test_features_that_are_not_asked_for_so() -> None:
    for value in ("", "true", "support", "1"):
        with pytest.raises(InvalidRequest) as caught:
            split_protocol_request({"delta.feature.appendOnly": value})
        assert (
            caught.value.code == "invalid-property" and f"delta.feature.appendOnly = {value!r}" in caught.value.message
        )
    for name, hint in (("clustering", "clusterBy"), ("CATALOGmanaged", "catalog"), ("catalogOwned", "catalog")):
        with pytest.raises(InvalidRequest) as caught:
            find_feature(name)
        assert caught.value.code == "feature-not-by-name" and hint in str(caught.value.hint)
    assert FEATURE_PREFIX == "delta.feature." and find_feature("APPENDONLY").name == "appendOnly"
    assert find_feature("columninvariants").name == "invariants"


IMPLIED = {
    1: set(), 2: {"appendOnly", "invariants"}, 3: {"appendOnly", "invariants", "checkConstraints"},
    4: {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"},
}  # fmt: skip
IMPLIED |= {5: IMPLIED[4] | {"columnMapping"}, 6: IMPLIED[4] | {"columnMapping", "identityColumns"}}


@pytest.mark.parametrize("writer", range(1, 7))
def test_what_legacy_versions_stand_for(writer: int) -> None:
    """ "Writer Version 2 implies appendOnly and invariants", and so on; column mapping needs a reader, too."""
    assert implied_features(2, writer) == IMPLIED[writer]
    assert implied_features(1, writer) == IMPLIED[writer] - {"columnMapping"}
    for reader in (1, 2):
        protocol = Protocol(min_reader_version=reader, min_writer_version=writer)
        assert supported_features(protocol) == implied_features(reader, writer)
        names = supported_features(protocol)
        found = protocol_of(names)
        assert (
            supported_features(found) == names
            and found.min_writer_version <= writer
            and found.min_reader_version <= reader
        )


@pytest.mark.parametrize(
    ("names", "protocol"),
    [
        ((), Protocol(min_reader_version=1, min_writer_version=1)), (("appendOnly",), listed("appendOnly")), (("invariants", "appendOnly"), LEGACY),
        (("columnMapping",), listed("columnMapping", reader=2)), (("rowTracking", "domainMetadata"), listed("domainMetadata", "rowTracking")),
        (("columnMapping", "deletionVectors", "appendOnly"), listed("appendOnly", "columnMapping", "deletionVectors", reader=3, readers=("columnMapping", "deletionVectors"))),
        (("fromTheFuture",), listed("fromTheFuture")),
    ],
    ids=str,
)  # fmt: skip
def test_the_weakest_protocol(names: tuple[str, ...], protocol: Protocol) -> None:
    assert protocol_of(names) == protocol


def test_features_bring_those_that_they_need() -> None:
    assert with_required(["rowTracking"]) == {"rowTracking", "domainMetadata"}
    assert with_required(["icebergCompatV3"]) == {"icebergCompatV3", "columnMapping", "rowTracking", "domainMetadata"}
    assert with_required(["unknown", "variantShredding"]) == {"unknown", "variantShredding", "variantType"}
    assert with_required([]) == frozenset()


def test_a_copy_supports_what_it_copies() -> None:
    plain = make_metadata()
    rich = listed("deletionVectors", "rowTracking", "domainMetadata", reader=3, readers=("deletionVectors",))
    # A new table: no more than that, not even what new tables have.
    assert supported_features(required_protocol(plain, None, None, rich)) == {
        "deletionVectors",
        "rowTracking",
        "domainMetadata",
    }
    assert required_protocol(plain, None, None, LEGACY) is LEGACY
    # In the place of another: what both have.
    assert supported_features(required_protocol(plain, LEGACY, None, rich)) == {
        "deletionVectors", "rowTracking", "domainMetadata", "appendOnly", "invariants",
    }  # fmt: skip
    # What the copy's own description asks for is asked for by name where it must be, but not of a copy.
    wanted = make_metadata(Struct((Field("t", TIMESTAMP_NTZ),)))
    with pytest.raises(InvalidRequest):
        required_protocol(wanted, LEGACY)
    assert "timestampNtz" in supported_features(required_protocol(wanted, LEGACY, None, LEGACY))


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (ProtocolRequest(), {"appendOnly", "invariants"}), (ProtocolRequest(bare=True), set()), (ProtocolRequest(bare=True, writer=4), set()),
        (ProtocolRequest(writer=1), set()), (ProtocolRequest(writer=3), IMPLIED[3]), (ProtocolRequest(writer=7), set()), (ProtocolRequest(reader=2, writer=5), IMPLIED[5]),
        (ProtocolRequest(writer=5), IMPLIED[5] - {"columnMapping"}), (ProtocolRequest(reader=3, writer=7, features=("rowTracking",)), {"rowTracking", "domainMetadata"}),
        (ProtocolRequest(reader=2), {"appendOnly", "invariants"}),
    ],
    ids=str,
)  # fmt: skip
def test_what_new_and_older_tables_begin_with(request_: ProtocolRequest, names: set[str]) -> None:
    assert supported_features(required_protocol(make_metadata(), None, request_)) == names
    # A table that is there loses nothing, and what is said of defaults is not for it.
    kept = supported_features(
        required_protocol(make_metadata(), listed("v2Checkpoint", reader=3, readers=("v2Checkpoint",)), request_)
    )
    asked = set() if request_.writer is None or request_.bare else names
    if request_.bare and request_.writer is not None:
        asked = IMPLIED[request_.writer]
    assert kept == {"v2Checkpoint"} | asked


@pytest.mark.parametrize(
    ("reader", "writer", "fits"), [(3, 7, True), (3, 6, False), (3, None, False), (2, 6, True), (1, 7, True)]
)
def test_readers_of_lists_need_writers_of_lists(reader: int, writer: int | None, fits: bool) -> None:
    request = ProtocolRequest(reader=reader, writer=writer)
    if fits:
        required_protocol(make_metadata(), LEGACY, request)
        return
    with pytest.raises(InvalidRequest) as caught:
        required_protocol(make_metadata(), LEGACY, request)
    assert (caught.value.code, caught.value.message) == (
        "invalid-property",
        "reader version 3 requires writer version 7",
    )


def test_features_under_other_names_are_there() -> None:
    """A table that lists a draft's name has the feature, and it goes by either name."""
    protocol = listed("columnInvariants", "typeWidening-preview", reader=3, readers=("typeWidening-preview",))
    wanted = make_metadata(properties={"delta.enableTypeWidening": "true"})
    assert required_protocol(wanted, protocol) is protocol
    for name in ("typeWidening", "typeWidening-preview"):
        assert supported_features(without_feature(protocol, name)) == {"columnInvariants"}
    assert without_feature(protocol, "invariants").writer_features == ("typeWidening-preview",)


def test_what_a_dropped_feature_leaves() -> None:
    protocol = listed("rowTracking", "domainMetadata", "clustering", "fromTheFuture")
    with pytest.raises(InvalidRequest) as caught:
        without_feature(protocol, "domainMetadata")
    assert caught.value.code == "feature-in-use"
    assert "needed by clustering, rowTracking" in caught.value.message and caught.value.hint == "drop clustering first"
    assert without_feature(protocol, "rowTracking").writer_features == ("clustering", "domainMetadata", "fromTheFuture")
    assert without_feature(protocol, "fromTheFuture").writer_features == ("clustering", "domainMetadata", "rowTracking")
    for empty, hint in (
        (LEGACY, "it supports: appendOnly, invariants"),
        (Protocol(min_reader_version=1, min_writer_version=1), "it supports: none"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            without_feature(empty, "rowTracking")
        assert (caught.value.code, caught.value.hint) == ("feature-not-supported", hint)


def test_features_that_may_be_dropped() -> None:
    known = ("rowTracking", "typeWidening")
    for name, found in (
        ("ROWtracking", "rowTracking"),
        ("typeWidening-PREVIEW", "typeWidening"),
        ("typeWidening", "typeWidening"),
    ):
        assert find_droppable(name, known) == found
    with pytest.raises(InvalidRequest) as caught:
        find_droppable("clustering", known)
    assert caught.value.code == "feature-not-droppable" and "rowTracking, typeWidening" in str(caught.value.hint)
    with pytest.raises(InvalidRequest) as caught:
        find_droppable("rowTrackin", known)
    assert caught.value.code == "unknown-feature" and "rowTracking" in str(caught.value.hint)


def table(default: JsonValue = None, *, protocol: Protocol = LEGACY) -> TableConfig:
    said: dict[str, JsonValue] = {} if default is None else {"CURRENT_DEFAULT": default}
    return make_config(Struct((Field("a", LONG), Field("b", LONG, True, said))), (), {}, protocol)


def test_defaults_need_their_feature_and_do_not_bring_it() -> None:
    able = listed("allowColumnDefaults")
    for before, after, refused in (
        (None, table("1"), True), (table(), table("1"), True), (table("1"), table("1"), False), (table("1"), table("2"), True), (table("1"), table(), False),
        (table(protocol=able), table("1"), False),
    ):  # fmt: skip
        if not refused:
            assert configure(after.metadata, before).schema == after.schema
            continue
        with pytest.raises(InvalidRequest) as caught:
            configure(after.metadata, before)
        assert (caught.value.code, caught.value.column) == ("feature-not-enabled", "b")
    # A copy has those of what it copies.
    assert configure(table("1").metadata, None, None, table("1")).schema == table("1").schema
    asked = ProtocolRequest(features=("allowColumnDefaults",))
    assert "allowColumnDefaults" in supported_features(configure(table("1").metadata, None, asked).protocol)
    ensure_defaults_supported(table(protocol=able), "x")
    with pytest.raises(InvalidRequest) as caught:
        ensure_defaults_supported(table(), "x")
    assert caught.value.column == "x"


def test_what_nobody_here_writes() -> None:
    refused = make_metadata(properties={"delta.enableIcebergCompatV3": "true"})
    with pytest.raises(UnsupportedFeature) as caught:
        configure(refused)
    assert tuple(caught.value.features) == ("icebergCompatV3",)
    names = [f.name for f in FEATURES if not f.writable]
    with pytest.raises(UnsupportedFeature) as caught:
        configure(make_metadata(), replace(table(), protocol=listed(*names)))
    assert set(caught.value.features) <= set(names)


def test_features_complete_the_description() -> None:
    asked = ProtocolRequest(features=("rowTracking",))
    made = configure(make_metadata(properties={"k": "v"}), None, asked)
    assert set(made.metadata.configuration) == {
        "k", "delta.rowTracking.materializedRowIdColumnName", "delta.rowTracking.materializedRowCommitVersionColumnName",
    }  # fmt: skip
    again = configure(structs.replace(made.metadata, configuration={"k": "w"}), made)
    assert {**again.metadata.configuration, "k": "v"} == made.metadata.configuration
    assert again.protocol is made.protocol

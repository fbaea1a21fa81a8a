"""Every feature of the protocol as it is registered: names, versions, what it needs, and which properties ask for it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from delta_values import make_config

from alluvium.delta.description.upgrade import supported_features
from alluvium.delta.features.feature import Feature, is_supported_for_writers
from alluvium.delta.features.registry import (
    BY_NAME,
    CHANGE_PASSES,
    COMMIT_PASSES,
    FEATURES,
    SCAN_PASSES,
    WRITE_PASSES,
    ensure_readable,
    ensure_readable_protocol,
    ensure_writable,
    is_supported,
)
from alluvium.delta.terms.config import TableConfig
from alluvium.delta.terms.spec import Protocol
from alluvium.errors import AlluviumError, CorruptTable, UnsupportedFeature
from alluvium.schema.types import LONG, TIMESTAMP_NTZ, VARIANT, Array, DataType, Field, JsonValue, Map, Struct

W, R = False, True
#: Name, whether readers need it, the legacy versions of readers and writers that imply it, other names, what it needs.
EVERY: list[tuple[str, bool, int | None, int | None, tuple[str, ...], tuple[str, ...]]] = [
    ("appendOnly", W, None, 2, (), ()), ("allowColumnDefaults", W, None, None, (), ()), ("generatedColumns", W, None, 4, (), ()),
    ("identityColumns", W, None, 6, (), ()), ("invariants", W, None, 2, ("columnInvariants",), ()), ("checkConstraints", W, None, 3, (), ()),
    ("icebergCompatV1", W, None, None, (), ("columnMapping",)), ("icebergCompatV2", W, None, None, (), ("columnMapping",)),
    ("columnMapping", R, 2, 5, (), ()), ("materializePartitionColumns", W, None, None, (), ()), ("timestampNtz", R, None, None, ("timestampNTZ",), ()),
    ("typeWidening", R, None, None, ("typeWidening-preview",), ()), ("deletionVectors", R, None, None, (), ()), ("v2Checkpoint", R, None, None, (), ()),
    ("vacuumProtocolCheck", R, None, None, (), ()), ("checkpointProtection", W, None, None, (), ()), ("inCommitTimestamp", W, None, None, (), ()),
    ("domainMetadata", W, None, None, (), ()), ("clustering", W, None, None, (), ("domainMetadata",)), ("rowTracking", W, None, None, (), ("domainMetadata",)),
    ("catalogManaged", R, None, None, ("catalogManaged-preview", "catalogOwned", "catalogOwned-preview"), ()),
    ("variantType", R, None, None, ("variantType-preview",), ()), ("variantShredding", R, None, None, ("variantShredding-preview",), ("variantType",)),
    ("changeDataFeed", W, None, 4, (), ()), ("icebergCompatV3", W, None, None, (), ("columnMapping", "rowTracking")),
]  # fmt: skip
#: What we neither read nor write, and types that a table must ask for by name.
REFUSED, BY_REQUEST = {"catalogManaged", "icebergCompatV3"}, {"timestampNtz", "variantType"}


def test_features_are_those_of_the_protocol() -> None:
    told = [(f.name, f.reader, f.legacy_reader, f.legacy_writer, f.aliases, f.requires) for f in FEATURES]
    assert told == EVERY
    assert {f.name for f in FEATURES if not f.readable} == {f.name for f in FEATURES if not f.writable} == REFUSED
    assert {f.name for f in FEATURES if f.refusal is not None} == REFUSED
    assert {f.name for f in FEATURES if not f.automatic} == BY_REQUEST
    assert {name: BY_NAME[name].name for name in BY_NAME} == {
        name: f.name for f in FEATURES for name in (f.name, *f.aliases)
    }


def test_passes_run_in_the_order_of_the_features() -> None:
    for passes, of in (
        (SCAN_PASSES, lambda f: f.on_scan), (WRITE_PASSES, lambda f: f.on_write), (CHANGE_PASSES, lambda f: f.on_change), (COMMIT_PASSES, lambda f: f.on_commit),
    ):  # fmt: skip
        hook: Callable[[Feature], object] = of
        assert passes == tuple(found for f in FEATURES if (found := hook(f)) is not None)
    names = [f.name for f in FEATURES]
    for first, then in (("icebergCompatV2", "columnMapping"), ("columnMapping", "deletionVectors"), ("columnMapping", "rowTracking"),
                        ("allowColumnDefaults", "invariants"), ("generatedColumns", "checkConstraints")):  # fmt: skip
        assert names.index(first) < names.index(then)


@pytest.mark.parametrize("name", [one[0] for one in EVERY])
def test_who_must_obey_it(name: str) -> None:
    feature = BY_NAME[name]
    for reader, writer in itertools.product((1, 2), range(1, 7)):
        protocol = Protocol(min_reader_version=reader, min_writer_version=writer, writer_features=(name,))
        legacy = feature.legacy_writer is not None and feature.legacy_writer <= writer
        assert is_supported_for_writers(feature, protocol) == legacy
        for_readers = feature.legacy_reader is None or feature.legacy_reader <= reader
        assert (name in supported_features(protocol)) == (legacy and for_readers)
    for spelled in (feature.name, *feature.aliases):
        for listed in ((), (spelled,), ("other", spelled)):
            both = Protocol(min_reader_version=3, min_writer_version=7, reader_features=listed, writer_features=listed)
            writers = Protocol(min_reader_version=1, min_writer_version=7, writer_features=listed)
            readers = Protocol(min_reader_version=3, min_writer_version=7, reader_features=listed, writer_features=())
            found = bool(listed)
            assert [is_supported_for_writers(feature, p) for p in (both, writers, readers)] == [found, found, False]
            assert [is_supported(feature, p) for p in (both, writers, readers)] == [found, found, found]
    bare = Protocol(min_reader_version=1, min_writer_version=7)
    assert not is_supported_for_writers(feature, bare) and not is_supported(feature, bare)


@pytest.mark.parametrize("name", [name for one in EVERY for name in (one[0], *one[4])])
def test_the_gates(name: str) -> None:
    """What is listed for readers keeps readers away that do not know it; what is listed for writers, writers."""
    is_refused = BY_NAME[name].name in REFUSED
    for readers, keeps_readers in (((name,), is_refused), ((), False)):
        protocol = Protocol(
            min_reader_version=3, min_writer_version=7, reader_features=readers, writer_features=(name, "appendOnly")
        )
        config = make_config(protocol=protocol)
        gates: list[tuple[Callable[[], None], bool]] = [
            (lambda p=protocol: ensure_readable_protocol(p), keeps_readers),  # type: ignore[misc]
            (lambda c=config: ensure_readable(c), keeps_readers),  # type: ignore[misc]
            (lambda c=config: ensure_writable(c), is_refused),  # type: ignore[misc]
        ]
        for gate, refuses in gates:
            if not refuses:
                gate()
                continue
            with pytest.raises(UnsupportedFeature) as caught:
                gate()
            assert tuple(caught.value.features) == (name,)
            assert caught.value.hint == BY_NAME[name].refusal


def test_several_features_that_are_not_known() -> None:
    names = ("zebra", "catalogManaged", "icebergCompatV3", "ant")
    protocol = Protocol(min_reader_version=1, min_writer_version=7, writer_features=names)
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_writable(make_config(protocol=protocol))
    assert tuple(caught.value.features) == ("ant", "catalogManaged", "icebergCompatV3", "zebra")
    hint = caught.value.hint or ""
    assert hint == f"{BY_NAME['catalogManaged'].refusal}; {BY_NAME['icebergCompatV3'].refusal}"
    assert "cannot be written without" in caught.value.message


@pytest.mark.parametrize(
    ("protocol", "code"),
    [
        (Protocol(min_reader_version=3, min_writer_version=8, reader_features=(), writer_features=()), "invalid-protocol"),
        (Protocol(min_reader_version=3, min_writer_version=7, reader_features=(), writer_features=()), None),
        (Protocol(min_reader_version=2, min_writer_version=7, writer_features=()), None),
        (Protocol(min_reader_version=1, min_writer_version=1), None), (Protocol(min_reader_version=1, min_writer_version=0), "invalid-protocol"),
        (Protocol(min_reader_version=2, min_writer_version=2, reader_features=("zebra",)), "unsupported-feature"),
        (Protocol(min_reader_version=4, min_writer_version=0), "unsupported-feature"),
        (Protocol(min_reader_version=3, min_writer_version=7, reader_features=("b", "a"), writer_features=("c",)), "invalid-protocol"),
    ],
)  # fmt: skip
def test_protocols_that_contradict_themselves(protocol: Protocol, code: str | None) -> None:
    if code is None:
        ensure_readable_protocol(protocol)
        return
    with pytest.raises(AlluviumError) as caught:
        ensure_readable_protocol(protocol)
    assert caught.value.code == code
    assert isinstance(caught.value, CorruptTable) == (code == "invalid-protocol")
    if protocol.reader_features == ("b", "a"):
        assert "among the writer features: a, b" in caught.value.message


NTZ: tuple[DataType, ...] = (
    TIMESTAMP_NTZ, Array(TIMESTAMP_NTZ), Map(TIMESTAMP_NTZ, LONG), Map(LONG, TIMESTAMP_NTZ), Struct((Field("x", LONG), Field("y", Array(TIMESTAMP_NTZ)))),
)  # fmt: skip


def used(
    name: str, data_type: DataType = LONG, metadata: dict[str, JsonValue] | None = None, **properties: str
) -> tuple[bool, bool]:
    """Whether a table makes use of a feature that it supports, and whether it asks for it."""
    feature = BY_NAME[name]
    listed = (name,)
    protocol = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=listed if feature.reader else (),
        writer_features=listed,
    )
    told = {key.replace("__", "."): text for key, text in properties.items()}
    config: TableConfig = make_config(Struct((Field("c", data_type, True, metadata or {}),)), (), told, protocol)
    return feature.is_used(config), (feature.is_requested or feature.is_used)(config)


#: By feature the property that asks for it, and whether the table uses it then.
ASKED = {
    "appendOnly": ("delta.appendOnly", True), "icebergCompatV1": ("delta.enableIcebergCompatV1", True), "icebergCompatV2": ("delta.enableIcebergCompatV2", True),
    "materializePartitionColumns": ("delta.enableMaterializePartitionColumnsFeature", True), "typeWidening": ("delta.enableTypeWidening", False),
    "deletionVectors": ("delta.enableDeletionVectors", True), "inCommitTimestamp": ("delta.enableInCommitTimestamps", True),
    "rowTracking": ("delta.enableRowTracking", True), "variantShredding": ("delta.enableVariantShredding", False), "changeDataFeed": ("delta.enableChangeDataFeed", True),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_flags_that_ask_for_a_feature(name: str) -> None:
    key, uses = ASKED[name]
    for text in ("true", "TRUE", " True "):
        assert used(name, **{key: text}) == (uses, True), text
    for text in ("false", "FALSE", " false "):
        assert used(name, **{key: text}) == (False, False), text
    assert used(name) == (False, False)
    assert used(name, **{f"{key}x": "true"}) == (False, False)


@pytest.mark.parametrize(
    ("name", "metadata"),
    [
        ("generatedColumns", {"delta.generationExpression": "1"}), ("identityColumns", {"delta.identity.start": 1}), ("typeWidening", {"delta.typeChanges": []}),
        ("allowColumnDefaults", {"CURRENT_DEFAULT": "1"}), ("invariants", {"delta.invariants": '{"expression":{"expression":"c > 1"}}'}),
    ],
)  # fmt: skip
def test_what_columns_say(name: str, metadata: dict[str, JsonValue]) -> None:
    asks = name != "allowColumnDefaults"
    assert used(name, metadata=metadata) == (True, asks)
    assert used(name, metadata={f"x{key}": value for key, value in metadata.items()}) == (False, False)
    inside = Struct((Field("i", LONG, True, metadata),))
    nested = name in ("generatedColumns", "identityColumns", "typeWidening")
    if name != "invariants":
        assert used(name, inside) == (nested, nested)
        assert used(name, Array(Map(LONG, inside))) == (nested, nested)


@pytest.mark.parametrize("data_type", NTZ, ids=str)
def test_types_ask_for_their_features(data_type: DataType) -> None:
    assert used("timestampNtz", data_type) == (True, True) and used("timestampNtz") == (False, False)
    assert used("variantType", Array(VARIANT)) == (True, True) and used("variantType", data_type) == (False, False)
    # Its files may be shredded, whatever is asked of writers.
    assert used("variantShredding", Array(VARIANT)) == (True, False)


def test_properties_of_their_own() -> None:
    assert used("checkConstraints", **{"delta.constraints.c": "c > 1"}) == (True, True)
    assert used("checkConstraints", **{"delta.constraint.c": "c > 1"}) == (False, False)
    assert used("v2Checkpoint", **{"delta.checkpointPolicy": "V2"}) == (True, True)
    assert used("v2Checkpoint", **{"delta.checkpointPolicy": "classic"}) == (False, False)
    assert used("checkpointProtection", **{"delta.requireCheckpointProtectionBeforeVersion": "1"}) == (True, True)
    assert used("checkpointProtection", **{"delta.requireCheckpointProtectionBeforeVersion": "0"}) == (False, False)
    assert used("icebergCompatV3", **{"delta.enableIcebergCompatV3": "TRUE"}) == (False, True)
    assert (
        used("icebergCompatV3", **{"delta.enableIcebergCompatV3": "False"}) == used("icebergCompatV3") == (False, False)
    )
    for name in ("domainMetadata", "clustering", "vacuumProtocolCheck", "catalogManaged"):
        assert used(name) == (False, False)

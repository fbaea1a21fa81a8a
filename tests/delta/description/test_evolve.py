"""Changes of properties, protocol and constraints; names and parameters are delta-spark's, measured on 4.4."""

from __future__ import annotations

import json

import pytest

from alluvium.delta.description.create import new_config
from alluvium.delta.description.evolve import (
    add_constraint,
    add_feature,
    drop_constraint,
    set_properties,
    unset_properties,
    upgrade_protocol,
)
from alluvium.delta.features.registry import BY_NAME
from alluvium.delta.terms.spec import Protocol
from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.schema.types import INTEGER, STRING, Field, Struct

CONFIG = new_config(Struct((Field("a", INTEGER), Field("b", STRING))), [], {"x": "1"})


def test_properties_are_set_under_their_own_names():
    change = set_properties(CONFIG, {"DELTA.appendonly": "true", "y": "2"})
    assert change.config.metadata.configuration == {"x": "1", "delta.appendOnly": "true", "y": "2"}
    assert change.config.protocol == CONFIG.protocol
    assert change.operation.name == "SET TBLPROPERTIES"
    shown = json.loads(str(change.operation.parameters["properties"]))
    assert shown == {"delta.appendOnly": "true", "y": "2"}


def test_a_comment_is_the_table_s_description():
    change = set_properties(CONFIG, {"comment": "new"})
    assert change.config.metadata.description == "new"
    assert change.config.metadata.configuration == {"x": "1"}


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({"delta.zzz": "1"}, "unknown-property"),
        ({"delta.checkpointInterval": "q"}, "invalid-property"),
        ({"delta.checkpointPolicy": "v3"}, "invalid-property"),
        ({"delta.enableRowTracking": "yes"}, "invalid-property"),
        ({"delta.constraints.c": "a > 0"}, "reserved-property"),
        ({"delta.columnMapping.maxColumnId": "5"}, "reserved-property"),
        ({"delta.dataSkippingStatsColumns": "zz"}, "unknown-column"),
        ({"delta.logRetentionDuration": "interval 3 days"}, "contradicting-properties"),
        ({"delta.enableIcebergCompatV1": "true", "delta.enableIcebergCompatV2": "true"}, "contradicting-properties"),
        ({"delta.enableIcebergCompatV2": "true", "delta.enableDeletionVectors": "true"}, "contradicting-properties"),
        ({"delta.appendOnly": "true", "DELTA.APPENDONLY": "false"}, "invalid-property"),
    ],
)
def test_properties_that_are_refused(properties: dict[str, str], code: str):
    with pytest.raises(InvalidRequest) as caught:
        set_properties(CONFIG, properties)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("name", "text"),
    [(f.name, f"delta.feature.{f.name}") for f in BY_NAME.values() if not f.writable and f.legacy_writer is None][:3],
)
def test_features_without_a_writer_are_not_added(name: str, text: str):
    if name in ("clustering", "catalogManaged"):
        with pytest.raises(InvalidRequest):
            set_properties(CONFIG, {text: "supported"})
    else:
        with pytest.raises(UnsupportedFeature):
            set_properties(CONFIG, {text: "supported"})


def test_properties_are_unset_in_any_case():
    both = set_properties(CONFIG, {"X": "2", "comment": "said"}).config
    assert unset_properties(both, ["X"]).config.metadata.configuration == {"x": "1"}
    assert unset_properties(both, ["comment"], if_exists=False).config.metadata.description is None
    change = unset_properties(CONFIG, ["X"])
    assert change.config.metadata.configuration == {}
    assert change.operation.parameters == {"properties": '["X"]', "ifExists": True}
    assert unset_properties(CONFIG, ["nope"]).config == CONFIG
    with pytest.raises(InvalidRequest) as caught:
        unset_properties(CONFIG, ["nope"], if_exists=False)
    assert caught.value.code == "unknown-property"


def test_versions_never_fall():
    change = upgrade_protocol(CONFIG, 1, 1)
    assert change.config.protocol is CONFIG.protocol
    assert change.operation.parameters == {"properties": '{"delta.minReaderVersion":"1","delta.minWriterVersion":"1"}'}
    assert upgrade_protocol(CONFIG, 1, 3).config.protocol == Protocol(min_reader_version=1, min_writer_version=3)


def test_a_feature_is_added_under_its_own_name():
    change = add_feature(CONFIG, "TIMESTAMPntz")
    assert change.config.protocol.reader_features == ("timestampNtz",)
    assert change.config.metadata == CONFIG.metadata
    assert change.operation.parameters == {"properties": '{"delta.feature.timestampNtz":"supported"}'}


def test_constraints_come_and_go():
    if not BY_NAME["checkConstraints"].writable:
        with pytest.raises(UnsupportedFeature) as refused:
            add_constraint(CONFIG, "Cap", "a > 0")
        assert refused.value.features == ("checkConstraints",)
        return
    added = add_constraint(CONFIG, "Cap", "a > 0")
    assert added.config.metadata.configuration["delta.constraints.cap"] == "a > 0"
    assert added.config.protocol == Protocol(min_reader_version=1, min_writer_version=3)
    assert added.operation.parameters == {"name": "Cap", "expr": "a > 0"}
    # Rows that others add meanwhile have not been checked.
    assert added.reads
    with pytest.raises(InvalidRequest) as caught:
        add_constraint(added.config, "CAP", "a > 1")
    assert caught.value.code == "constraint-exists"
    dropped = drop_constraint(added.config, "cAp")
    assert dropped.config.metadata.configuration == {"x": "1"}
    assert dropped.operation.parameters == {"name": "cAp", "expr": "a > 0", "existed": "true"}


def test_a_constraint_that_is_not_there():
    with pytest.raises(InvalidRequest) as caught:
        drop_constraint(CONFIG, "nope")
    assert caught.value.code == "unknown-constraint"
    assert drop_constraint(CONFIG, "nope", if_exists=True).operation.parameters == {"name": "nope", "existed": "false"}


@pytest.mark.parametrize("name", ["", "a.b", "."])
def test_names_that_no_constraint_has(name: str) -> None:
    """A dot would make another property of it."""
    with pytest.raises(InvalidRequest) as caught:
        add_constraint(CONFIG, name, "a > 0")
    assert caught.value.code == "invalid-constraint"


def test_constraints_come_and_go_in_any_case() -> None:
    config = CONFIG
    made = add_constraint(config, "Small", "a < 10")
    assert made.config.metadata.configuration["delta.constraints.small"] == "a < 10" and made.reads
    assert made.operation.parameters == {"name": "Small", "expr": "a < 10"}
    with pytest.raises(InvalidRequest) as caught:
        add_constraint(made.config, "SMALL", "a < 5")
    assert caught.value.code == "constraint-exists"
    gone = drop_constraint(made.config, "sMALL")
    assert "delta.constraints.small" not in gone.config.metadata.configuration
    assert gone.operation.parameters == {"name": "sMALL", "expr": "a < 10", "existed": "true"}
    assert drop_constraint(config, "small", if_exists=True).operation.parameters == {
        "name": "small",
        "existed": "false",
    }
    for known, hint in ((config, "the table has none"), (made.config, "there are: small")):
        with pytest.raises(InvalidRequest) as caught:
            drop_constraint(known, "other")
        assert (caught.value.code, caught.value.hint) == ("unknown-constraint", hint)

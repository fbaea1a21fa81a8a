"""Properties, protocol and constraints: what the history says of their changes, and what is passed on to the table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from delta_values import make_config

from alluvium.delta.description.create import new_config
from alluvium.delta.description.evolve import (
    Change,
    add_constraint,
    add_feature,
    constraint_key,
    drop_constraint,
    set_properties,
    to_json,
    unset_properties,
    upgrade_protocol,
    with_schema,
)
from alluvium.delta.description.upgrade import supported_features
from alluvium.delta.terms.spec import Protocol
from alluvium.errors import InvalidRequest
from alluvium.plan.changes import Operation
from alluvium.schema.types import LONG, STRING, TIMESTAMP_NTZ, Field, Struct

SCHEMA = Struct((Field("a", LONG), Field("b", STRING)))
CONFIG = make_config(SCHEMA, (), {"x": "1", "delta.appendOnly": "true"})


def shown(change: Change) -> tuple[str, dict[str, Any]]:
    said = dict(change.operation.parameters)
    if "properties" in said:
        said["properties"] = json.loads(str(said["properties"]))
    return change.operation.name, said


@pytest.mark.parametrize(
    ("given", "told", "stored"),
    [
        ({"y": "2"}, {"y": "2"}, {"y": "2"}), ({"DELTA.AppendONLY": "false"}, {"delta.appendOnly": "false"}, {"delta.appendOnly": "false"}), ({"X": "2"}, {"X": "2"}, {"X": "2"}),
        ({"delta.MINreaderversion": "2", "Delta.minWriterVersion": "5"}, {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}, {}),
        ({"delta.feature.RowTracking": "supported"}, {"delta.feature.rowtracking": "supported"}, None), ({"comment": "c", "owner": "o"}, {"comment": "c", "owner": "o"}, {}),
        ({}, {}, {}),
    ],
    ids=str,
)  # fmt: skip
def test_properties_in_the_history_and_in_the_table(
    given: dict[str, str], told: dict[str, str], stored: dict[str, str] | None
) -> None:
    change = set_properties(CONFIG, given)
    assert shown(change) == ("SET TBLPROPERTIES", {"properties": told})
    assert not change.reads and change.domains == ()
    if stored is not None:
        assert change.config.metadata.configuration == {**CONFIG.metadata.configuration, **stored}
    assert CONFIG.metadata.configuration == {"x": "1", "delta.appendOnly": "true"}
    assert change.config.metadata.description == given.get("comment")


def test_a_description_stays_until_it_is_said_anew() -> None:
    said = set_properties(CONFIG, {"comment": "one"}).config
    assert set_properties(said, {"y": "2"}).config.metadata.description == "one"
    assert set_properties(said, {"comment": ""}).config.metadata.description == ""
    assert unset_properties(said, ["x"]).config.metadata.description == "one"
    assert unset_properties(said, ["COMMENT"]).config.metadata.description == "one"
    assert unset_properties(said, ["x", "comment"]).config.metadata.description is None


def test_constraints_are_no_properties() -> None:
    for name in ("delta.constraints.C", "DELTA.constraints.c"):
        with pytest.raises(InvalidRequest) as caught:
            set_properties(CONFIG, {"y": "2", name: "a > 0", "zz": "1"})
        assert caught.value.code == "reserved-property" and name in caught.value.message


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["x"], {"delta.appendOnly"}), (["X"], {"delta.appendOnly"}), (["delta.APPENDonly", "nope"], {"x"}), ([], {"x", "delta.appendOnly"}), (["x", "x"], {"delta.appendOnly"}),
        (iter(["x", "delta.appendOnly"]), set()),
    ],
)  # fmt: skip
def test_properties_that_go(names: Any, left: set[str]) -> None:
    given = [*names]
    change = unset_properties(CONFIG, iter(given))
    assert set(change.config.metadata.configuration) == left
    assert shown(change) == ("UNSET TBLPROPERTIES", {"properties": given, "ifExists": True})


def test_properties_that_must_be_there_to_go() -> None:
    change = unset_properties(CONFIG, ["X", "comment"], if_exists=False)
    assert shown(change)[1] == {"properties": ["X", "comment"], "ifExists": False}
    with pytest.raises(InvalidRequest) as caught:
        unset_properties(CONFIG, ["x", "gone"], if_exists=False)
    assert caught.value.code == "unknown-property" and "'gone' is not set" in caught.value.message
    both = make_config(SCHEMA, (), {"x": "1", "X": "2"})
    assert unset_properties(both, ["x"]).config.metadata.configuration == {"X": "2"}
    assert unset_properties(both, ["X"]).config.metadata.configuration == {"x": "1"}


def test_what_goes_must_leave_a_table_that_may_be() -> None:
    config = new_config(
        SCHEMA, [], {"delta.logRetentionDuration": "90 days", "delta.deletedFileRetentionDuration": "60 days"}
    )
    with pytest.raises(InvalidRequest) as caught:
        unset_properties(config, ["delta.logRetentionDuration"])
    assert caught.value.code == "contradicting-properties"
    assert (
        unset_properties(
            config, ["delta.logRetentionDuration", "delta.deletedFileRetentionDuration"]
        ).config.metadata.configuration
        == {}
    )
    with pytest.raises(InvalidRequest):
        set_properties(config, {"delta.deletedFileRetentionDuration": "91 days"})
    with pytest.raises(InvalidRequest) as caught:
        set_properties(config, {"delta.dataSkippingStatsColumns": "a,nope"})
    assert (caught.value.code, caught.value.column) == ("unknown-column", "nope")


@pytest.mark.parametrize(
    ("reader", "writer", "grows"), [(1, 2, False), (1, 1, False), (1, 3, True), (2, 5, True), (1, 4, True)]
)
def test_versions_that_a_table_is_given(reader: int, writer: int, grows: bool) -> None:
    change = upgrade_protocol(CONFIG, reader, writer)
    assert shown(change)[1] == {
        "properties": {"delta.minReaderVersion": str(reader), "delta.minWriterVersion": str(writer)}
    }
    wanted = Protocol(min_reader_version=reader, min_writer_version=writer)
    assert change.config.protocol == (wanted if grows else CONFIG.protocol)
    assert change.config.metadata == CONFIG.metadata


@pytest.mark.parametrize(
    ("name", "told", "brings"),
    [
        ("ROWtracking", "rowTracking", {"rowTracking", "domainMetadata"}),
        ("timestampNTZ", "timestampNtz", {"timestampNtz"}),
    ],
)
def test_a_feature_that_is_added(name: str, told: str, brings: set[str]) -> None:
    change = add_feature(CONFIG, name)
    assert shown(change) == ("SET TBLPROPERTIES", {"properties": {f"delta.feature.{told}": "supported"}})
    assert supported_features(change.config.protocol) == {"appendOnly", "invariants"} | brings
    again = add_feature(change.config, name)
    assert again.config.protocol is change.config.protocol
    assert with_schema(change.config, SCHEMA).protocol is change.config.protocol


def test_constraints_by_their_names() -> None:
    one = add_constraint(CONFIG, "Small", "a < 10")
    assert one.operation == Operation("ADD CONSTRAINT", {"name": "Small", "expr": "a < 10"}) and one.reads
    odd = make_config(SCHEMA, (), {"delta.constraints.ODD": "a > 0", "delta.constraints.b": "a > 1"})
    assert [constraint_key(odd, name) for name in ("odd", "B", "c")] == [
        "delta.constraints.ODD",
        "delta.constraints.b",
        None,
    ]
    with pytest.raises(InvalidRequest) as caught:
        add_constraint(odd, "odd", "a > 5")
    assert caught.value.code == "constraint-exists" and "already: a > 0" in caught.value.message
    gone = drop_constraint(odd, "oDD")
    assert (
        gone.operation == Operation("DROP CONSTRAINT", {"name": "oDD", "expr": "a > 0", "existed": "true"})
        and not gone.reads
    )
    assert gone.config.metadata.configuration == {"delta.constraints.b": "a > 1"}
    with pytest.raises(InvalidRequest) as caught:
        drop_constraint(odd, "c")
    assert caught.value.hint == "there are: ODD, b"
    nothing = drop_constraint(odd, "c", if_exists=True)
    assert nothing.operation == Operation("DROP CONSTRAINT", {"name": "c", "existed": "false"})
    assert nothing.config.metadata == odd.metadata


def test_columns_that_are_passed_on_with_what_they_need() -> None:
    wider = with_schema(CONFIG, Struct((*SCHEMA.fields, Field("c", LONG))))
    assert wider.schema.names == ("a", "b", "c") and wider.metadata.configuration == CONFIG.metadata.configuration
    for schema, code in (
        (Struct((Field("a b", LONG),)), "invalid-column-name"),
        (Struct((Field("t", TIMESTAMP_NTZ),)), "feature-not-enabled"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            with_schema(CONFIG, schema)
        assert caught.value.code == code
    other = set_properties(CONFIG, {"z": "9"}).config.metadata
    assert with_schema(CONFIG, SCHEMA, other).metadata.configuration["z"] == "9"
    assert to_json({"a": [1, None, "é"]}) == '{"a":[1,null,"é"]}'

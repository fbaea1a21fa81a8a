"""Table properties: defaults, values, spellings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alluvium.delta.terms.properties import (
    _OTHERS,
    TableProperties,
    canonical_property,
    ensure_consistent,
    parse_interval_ms,
    parse_names,
    parse_properties,
    settable_properties,
)
from alluvium.errors import InvalidRequest

DAY = 86_400_000


def test_defaults_are_the_reference_implementation_s():
    found = parse_properties({})
    assert found == TableProperties()
    assert (found.checkpoint_interval, found.num_indexed_cols) == (10, 32)
    assert (found.deleted_file_retention_ms, found.log_retention_ms) == (7 * DAY, 30 * DAY)
    assert found.txn_retention_ms is None
    assert (found.write_stats_as_json, found.write_stats_as_struct) == (True, False)


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("delta.appendOnly", "true", "append_only", True),
        ("delta.appendOnly", " FALSE ", "append_only", False),
        ("DELTA.APPENDONLY", "True", "append_only", True),
        ("delta.checkpointInterval", "3", "checkpoint_interval", 3),
        ("delta.dataSkippingNumIndexedCols", "-1", "num_indexed_cols", -1),
        ("delta.dataSkippingNumIndexedCols", "0", "num_indexed_cols", 0),
        ("delta.dataSkippingStatsColumns", "a, b.c", "stats_columns", ("a", "b.c")),
        ("delta.dataSkippingStatsColumns", "`x,y`,`tick``s` ,z", "stats_columns", ("`x,y`", "`tick``s`", "z")),
        ("delta.deletedFileRetentionDuration", "interval 2 weeks", "deleted_file_retention_ms", 14 * DAY),
        ("delta.logRetentionDuration", "interval 1 day 12 hours", "log_retention_ms", 36 * 3_600_000),
        ("delta.setTransactionRetentionDuration", "90 minutes", "txn_retention_ms", 5_400_000),
        ("delta.checkpoint.writeStatsAsJson", "false", "write_stats_as_json", False),
        ("delta.checkpoint.writeStatsAsStruct", "true", "write_stats_as_struct", True),
        ("delta.isolationLevel", "writeserializable", "isolation_level", "WriteSerializable"),
    ],
)
def test_a_value_is_read(name: str, text: str, attribute: str, value: object):
    assert getattr(parse_properties({name: text}), attribute) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("delta.appendOnly", "yes"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "ten"),
        ("delta.dataSkippingNumIndexedCols", "-2"),
        ("delta.logRetentionDuration", "30"),
        ("delta.logRetentionDuration", "interval 1 month"),
        ("delta.logRetentionDuration", "interval -1 days"),
        ("delta.logRetentionDuration", "interval 1 day and a bit"),
        ("delta.logRetentionDuration", ""),
        ("delta.isolationLevel", "SnapshotIsolation"),
    ],
)
def test_a_value_that_does_not_parse_names_the_property(name: str, text: str):
    with pytest.raises(InvalidRequest) as caught:
        parse_properties({name: text})
    assert caught.value.code == "invalid-property"
    assert name in caught.value.message
    assert repr(text) in caught.value.message


def test_what_is_not_ours_is_left_alone():
    assert (
        parse_properties({"owner": "me", "delta.someThing": "x", "delta.columnMapping.mode": "?"}) == TableProperties()
    )


@given(st.integers(0, 5_000), st.integers(0, 5_000), st.booleans())
def test_parts_of_an_interval_add_up(days: int, seconds: int, plural: bool):
    s = "s" if plural else ""
    assert parse_interval_ms(f"interval {days} day{s} {seconds} second{s}") == days * DAY + seconds * 1000


@pytest.mark.parametrize("name", sorted(_OTHERS))
def test_names_get_the_spelling_of_the_reference(name: str):
    assert canonical_property(name.upper()) == name


def test_names_outside_of_delta_stay_as_they_are():
    assert canonical_property("Owner.Of.This") == "Owner.Of.This"


def test_an_unknown_name_is_refused_and_the_nearest_suggested():
    with pytest.raises(InvalidRequest) as caught:
        canonical_property("delta.apendOnly")
    assert caught.value.code == "unknown-property"
    assert caught.value.hint == "did you mean 'delta.appendOnly'?"


def test_names_of_columns_may_hold_commas_and_backticks() -> None:
    assert parse_names("a, `b, c`,`d``e` ,f.g") == ("a", "b, c", "d`e", "f.g")
    assert parse_names(" , ") == ()


@pytest.mark.parametrize(("text", "is_known"), [("hudi", True), ("", True), ("nope", False), ("Iceberg,hudi ", False)])
def test_formats_to_be_readable_in_are_known_ones(text: str, is_known: bool):
    properties = {"delta.universalFormat.enabledFormats": text}
    if is_known:
        assert settable_properties(properties) == properties
        return
    with pytest.raises(InvalidRequest) as caught:
        settable_properties(properties)
    assert caught.value.code == "invalid-property"


def test_iceberg_needs_tables_that_it_can_read():
    properties = {"delta.universalFormat.enabledFormats": "iceberg"}
    with pytest.raises(InvalidRequest, match="needs one of"):
        ensure_consistent(properties)
    ensure_consistent({**properties, "delta.enableIcebergCompatV2": "true"})

"""allowColumnDefaults. Specification: "Default Columns"."""

from __future__ import annotations

from dataclasses import replace

import pytest
from delta_values import make_config

from alluvium.delta.features.columns.column_defaults import (
    FEATURE,
    KEY,
    default_of,
    defaults,
    derive,
    is_used,
    without_defaults,
    without_past,
)
from alluvium.delta.features.registry import WRITE_PASSES, ensure_writable
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.write.write import plan_write
from alluvium.errors import UnsupportedFeature
from alluvium.schema.types import LONG, STRING, VARIANT, Array, DataType, Field, JsonValue, Struct

LISTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("allowColumnDefaults",))


def schema(default: JsonValue, data_type: DataType = LONG) -> Struct:
    return Struct((Field("a", LONG), Field("b", data_type, True, {"CURRENT_DEFAULT": default})))


@pytest.mark.parametrize("sql", ["7", "7.5", "null", "concat('x', 'y')", "current_timestamp()", "array(1, 2)", "-1"])
def test_a_default_is_derived_where_the_data_lacks_the_column(sql: str):
    """ "The value of `CURRENT_DEFAULT` SHOULD be parsed as a SQL expression."

    "Writers MUST enforce that before writing any rows to the table, for each such requested row that lacks any explicit
    value (including NULL) for columns with default values, the writing system will assign the result of evaluating the
    default value expression for each such column as the value for that column in the row."
    """
    config = make_config(schema(sql), protocol=LISTED)
    ensure_writable(config)
    assert is_used(config)
    # No check: an explicit value, null too, is the row's own.
    (derived,) = plan_write(config, "memory://t").derived
    assert (derived.column, derived.sql, derived.is_constant, derived.check) == ("b", sql, True, None)
    # What Spark sees is written anew out of the tokens.
    assert (derived.table_sql or "").replace(" ", "") == sql.replace(" ", "")
    assert FEATURE.on_write in WRITE_PASSES


@pytest.mark.parametrize("version", [2, 6, 7])
def test_only_tables_that_list_the_feature_have_defaults(version: int):
    """ "The table must be on Writer Version 7, and a feature name `allowColumnDefaults` must exist in the table
    `protocol`'s `writerFeatures`."
    """
    features = () if version == 7 else None
    protocol = Protocol(min_reader_version=1, min_writer_version=version, writer_features=features)
    assert plan_write(make_config(schema("7"), protocol=protocol), "memory://t").derived == ()


@pytest.mark.parametrize("sql", ["a + 1)", "(select 1)", "rand()", "reflect('a','b')", "sum(1)", "", 7, None])
def test_what_is_no_constant_expression_is_refused(sql: JsonValue):
    with pytest.raises(UnsupportedFeature) as caught:
        plan_write(make_config(schema(sql), protocol=LISTED), "memory://t")
    assert (caught.value.code, caught.value.column) == ("unsupported-default", "b")


def test_a_variant_defaults_to_null():
    """ "All columns of `variant` type must default to null." """
    config = make_config(schema("parse_json('1')", VARIANT), protocol=LISTED)
    with pytest.raises(UnsupportedFeature, match="variant"):
        FEATURE.on_write(plan_write(make_config(), "memory://t"), config)  # type: ignore[misc]
    FEATURE.on_write(plan_write(make_config(), "memory://t"), make_config(schema("NULL", VARIANT), protocol=LISTED))  # type: ignore[misc]


SAID: dict[str, JsonValue] = {"CURRENT_DEFAULT": "1", "EXISTS_DEFAULT": "2", "comment": "c"}
INNER = Struct((Field("x", LONG, False, SAID),))


def test_what_rows_of_another_table_bring_along() -> None:
    """Defaults, and what stood for them in rows of before, at any depth."""
    whole = Struct(
        (Field("a", LONG, True, SAID), Field("s", Array(INNER)), Field("p", LONG, True, {"CURRENT_DEFAULTS": "1"}))
    )
    bare, past = (
        Field("x", LONG, False, {"comment": "c"}),
        Field("x", LONG, False, {"CURRENT_DEFAULT": "1", "comment": "c"}),
    )
    others = Field("p", LONG, True, {"CURRENT_DEFAULTS": "1"})
    assert without_defaults(whole) == Struct(
        (replace(bare, name="a", nullable=True), Field("s", Array(Struct((bare,)))), others)
    )
    assert without_past(whole) == Struct(
        (replace(past, name="a", nullable=True), Field("s", Array(Struct((past,)))), others)
    )


def test_every_default_at_the_top_is_derived_and_no_other() -> None:
    columns = Struct(
        (
            Field("a", LONG, True, {KEY: "1 + 1"}),
            Field("s", INNER),
            Field("b", STRING, True, {KEY: "'x'"}),
            Field("c", LONG),
        )
    )
    assert [(one.column, one.sql, one.is_constant, one.check) for one in defaults(columns)] == [
        ("a", "1 + 1", True, None),
        ("b", "'x'", True, None),
    ]
    config = make_config(columns, protocol=LISTED)
    plan = plan_write(config, "memory://t")
    assert derive(plan, config).derived == plan.derived * 2
    assert not is_used(make_config(Struct((Field("s", INNER),)), protocol=LISTED))


@pytest.mark.parametrize(
    ("default", "data_type", "words"),
    [
        (7, LONG, "CURRENT_DEFAULT is not text"),
        ("1", VARIANT, "a variant can only default to null"),
        ("a", LONG, "cannot be computed"),
    ],
)
def test_what_is_said_of_a_default_that_cannot_be(default: JsonValue, data_type: DataType, words: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        default_of(Field("b", data_type, True, {KEY: default}))
    assert (caught.value.code, caught.value.column, tuple(caught.value.features)) == (
        "unsupported-default",
        "b",
        ("allowColumnDefaults",),
    )
    assert words in caught.value.message and "column 'b'" in caught.value.message
    assert default_of(Field("v", VARIANT, True, {KEY: " Null "})).sql == " Null "

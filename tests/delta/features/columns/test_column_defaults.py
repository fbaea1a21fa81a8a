"""allowColumnDefaults. Specification: "Default Columns"."""

from __future__ import annotations

import pytest
from delta_values import make_config

from alluvium.delta.features.columns.column_defaults import FEATURE, is_used
from alluvium.delta.features.registry import WRITE_PASSES, ensure_writable
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.write.write import plan_write
from alluvium.errors import UnsupportedFeature
from alluvium.schema.types import LONG, VARIANT, DataType, Field, JsonValue, Struct

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

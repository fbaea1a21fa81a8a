"""generatedColumns. Specification: "Generated Columns"."""

from __future__ import annotations

from dataclasses import replace

import pytest
from delta_values import make_config

from alluvium.delta.features.columns.generated_columns import FEATURE, derived_columns, is_used
from alluvium.delta.features.registry import WRITE_PASSES
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.write.write import plan_write
from alluvium.errors import UnsupportedFeature
from alluvium.plan.write import Check, Derived
from alluvium.schema.types import DATE, LONG, TIMESTAMP, Field, JsonValue, Struct

LISTED = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("generatedColumns",))


def generated(sql: JsonValue) -> dict[str, JsonValue]:
    return {"delta.generationExpression": sql}


def schema(sql: JsonValue) -> Struct:
    member = Struct((Field("x", LONG),))
    return Struct((Field("ts", TIMESTAMP), Field("s", member), Field("d", DATE, True, generated(sql))))


def versions() -> list[Protocol]:
    return [*(Protocol(min_reader_version=1, min_writer_version=v) for v in (4, 5, 6)), LISTED]


@pytest.mark.parametrize("protocol", versions())
def test_a_generated_column_is_derived_and_checked(protocol: Protocol):
    """ "The value of `delta.generationExpression` SHOULD be parsed as a SQL expression."

    "Writers MUST enforce that any data writing to the table satisfy the condition
    `(<value> <=> <generation expression>) IS TRUE`."
    """
    config = make_config(schema("cast(ts as date)"), protocol=protocol)
    check = Check(
        "generated column d",
        "`d` <=> (cast(ts as date))",
        ("d", "ts"),
        "generated-column-violated",
        "`d` <=> ( cast ( `ts` as date ) )",
    )
    derived = Derived("d", "cast(ts as date)", "cast ( `ts` as date )", check=check)
    assert plan_write(config, "memory://t").derived == (derived,)
    assert is_used(config)
    assert FEATURE.on_write in WRITE_PASSES


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(min_reader_version=1, min_writer_version=3),
        Protocol(min_reader_version=1, min_writer_version=7, writer_features=()),
    ],
)
def test_without_the_feature_the_key_means_nothing(protocol: Protocol):
    """ "If the table is on a Writer Version starting from 4 up to 6, Generated Columns are always supported." "If the
    table is on Writer Version 7, a feature name `generatedColumns` must exist in the table `protocol`'s
    `writerFeatures`."
    """
    assert plan_write(make_config(schema("cast(ts as date)"), protocol=protocol), "memory://t").derived == ()


@pytest.mark.parametrize(
    "sql",
    ["rand()", "current_date()", "sum(s.x)", "(select 1)", "reflect('a','b')", "my_udf(ts)", "d", "1)", "", 7, None],
)
def test_what_is_no_expression_over_the_other_columns_is_refused(sql: JsonValue):
    with pytest.raises(UnsupportedFeature) as caught:
        plan_write(make_config(schema(sql), protocol=LISTED), "memory://t")
    assert (caught.value.code, caught.value.column) == ("unsupported-generation", "d")
    assert caught.value.features == ("generatedColumns",)


def test_a_generated_column_may_not_be_computed_from_another():
    two = Struct((*schema("cast(ts as date)").fields, Field("y", LONG, True, generated("year(d)"))))
    with pytest.raises(UnsupportedFeature, match="generated column 'd'"):
        derived_columns(two)


def test_members_of_structs_cannot_be_generated():
    inner = Struct((Field("x", LONG, True, generated("1")),))
    with pytest.raises(UnsupportedFeature) as caught:
        plan_write(make_config(Struct((Field("s", inner),)), protocol=LISTED), "memory://t")
    assert caught.value.column == "s.x"


def test_members_of_structs_may_be_named():
    (derived,) = derived_columns(schema("date_add(cast(ts as date), cast(S.X as int))"))
    assert derived.check is not None
    assert derived.check.columns == ("d", "ts", "s.x")


def test_a_partition_column_may_be_generated():
    config = make_config(schema("cast(ts as date)"), ["d"], protocol=LISTED)
    plan = plan_write(config, "memory://t")
    assert plan.partition_by == ("d",)
    assert replace(plan, derived=()) != plan

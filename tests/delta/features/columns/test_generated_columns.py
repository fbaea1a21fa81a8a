"""generatedColumns. Specification: "Generated Columns"."""

from __future__ import annotations

from dataclasses import replace

import pytest
from delta_values import make_config, make_files

from alluvium.delta.features.columns.generated_columns import (
    FEATURE,
    derive,
    derived_columns,
    generation_expressions,
    is_used,
    on_scan,
)
from alluvium.delta.features.feature import ScanContext
from alluvium.delta.features.registry import WRITE_PASSES
from alluvium.delta.terms.spec import Protocol
from alluvium.delta.write.write import plan_write
from alluvium.errors import UnsupportedFeature
from alluvium.plan.scan import ScanPlan
from alluvium.plan.write import Check, Derived
from alluvium.schema.types import DATE, LONG, TIMESTAMP, Array, Field, JsonValue, Struct
from alluvium.storage.stores.memory import MemoryStore

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


def test_every_generated_column_with_what_it_is_computed_from() -> None:
    columns = Struct(
        (
            Field("a", LONG), Field("B c", LONG, True, generated("a + A")), Field("s", Struct((Field("X", LONG),))), Field("one", LONG, True, generated("1")),
            Field("d", LONG, True, generated("s.x + a")),
        )
    )  # fmt: skip
    assert generation_expressions(columns) == {"B c": "a + A", "one": "1", "d": "s.x + a"}
    found = derived_columns(columns)
    assert [one.column for one in found] == ["B c", "one", "d"]
    checks = [one.check for one in found]
    assert [check and (check.name, check.sql, check.columns, check.code) for check in checks] == [
        ("generated column B c", "`B c` <=> (a + A)", ("B c", "a"), "generated-column-violated"),
        ("generated column one", "`one` <=> (1)", ("one",), "generated-column-violated"),
        ("generated column d", "`d` <=> (s.x + a)", ("d", "s.X", "a"), "generated-column-violated"),
    ]
    assert [check and check.table_sql for check in checks] == [
        f"`{one.column}` <=> ( {one.table_sql} )" for one in found
    ]
    config = make_config(columns, protocol=LISTED)
    plan = plan_write(config, "memory://t")
    assert derive(plan, config).derived == plan.derived * 2 == found * 2


def test_who_reads_sees_no_expression() -> None:
    """A copy of the column is not generated."""
    config = make_config(schema("cast(ts as date)"), protocol=LISTED)
    plan = ScanPlan(
        "memory://t",
        (),
        Struct(
            (
                Field("d", DATE, True, {**generated("x"), "comment": "c"}),
                Field("l", Array(Struct((Field("i", LONG, True, generated("1")),)))),
            )
        ),
    )
    context = ScanContext(config, make_files(), MemoryStore("generated", "/t"), "UTC")
    shown = on_scan(plan, context).schema
    assert shown == Struct((Field("d", DATE, True, {"comment": "c"}), Field("l", Array(Struct((Field("i", LONG),))))))
    plain = make_config(Struct((Field("d", DATE),)), protocol=LISTED)
    assert not is_used(plain) and on_scan(plan, replace(context, config=plain)) is plan


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (7, "delta.generationExpression is not text"),
        ("other", "computed from the generated column 'other'"),
        ("d", "computed from the generated column 'd'"),
        ("rand()", "rand"),
    ],
)
def test_what_is_said_of_a_column_that_cannot_be_computed(sql: JsonValue, words: str) -> None:
    columns = Struct((*schema(sql).fields, Field("other", DATE, True, generated("cast(ts as date)"))))
    with pytest.raises(UnsupportedFeature) as caught:
        derived_columns(columns)
    assert caught.value.column == "d" and "the generated column 'd' cannot be computed" in caught.value.message
    assert words in caught.value.message

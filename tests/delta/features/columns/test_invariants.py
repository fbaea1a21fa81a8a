"""invariants. Specification: "Column Invariants"."""

from __future__ import annotations

import msgspec
import pytest
from delta_values import make_config

from alluvium.delta.features.columns.invariants import FEATURE, enforce, invariants, is_used
from alluvium.delta.features.registry import BY_NAME, WRITE_PASSES
from alluvium.delta.write.write import plan_write
from alluvium.errors import CorruptTable
from alluvium.schema.types import LONG, STRING, Array, DataType, Field, Map, Struct


def invariant(sql: str) -> dict[str, str]:
    return {"delta.invariants": msgspec.json.encode({"expression": {"expression": sql}}).decode()}


def conditions(*fields: Field) -> list[str]:
    return [check.sql for check in invariants(Struct(fields))]


def test_the_condition_stands_at_expression_expression():
    """ "The value of `delta.invariants` SHOULD be parsed as a JSON string containing a boolean SQL expression at the key
    `expression.expression`."
    """
    (check,) = invariants(Struct((Field("x", LONG, True, invariant("x > 3")),)))
    assert check.sql == "x > 3"
    assert check.columns == ("x",)
    assert check.name == "x: x > 3"


def test_writers_get_the_conditions_as_checks_of_their_plan():
    """ "Writers MUST abort any transaction that adds a row to the table, where an invariant evaluates to `false` or
    `null`.": a row passes a `Check` only where it is true.
    """
    config = make_config(Struct((Field("x", LONG, True, invariant("x > 3")), Field("y", STRING, False))))
    plan = plan_write(config, "memory://t")
    assert [check.sql for check in plan.checks] == ["`y` is not null", "x > 3"]
    assert FEATURE.on_write in WRITE_PASSES


def test_nested_columns_have_invariants_too():
    inner = Struct((Field("a", LONG, True, invariant("s.a < 9")),))
    (check,) = invariants(Struct((Field("s", inner),)))
    assert (check.name, check.sql, check.columns) == ("s.a: s.a < 9", "s.a < 9", ("s.a",))


def test_a_member_is_required_even_where_its_struct_is_null():
    """As the reference, which refuses the row: tests/interop."""
    inner = Field("b", Struct((Field("c", LONG, False),)), False)
    assert conditions(Field("a", Struct((inner,)))) == ["`a`.`b` is not null", "`a`.`b`.`c` is not null"]


def test_names_are_quoted():
    assert conditions(Field("odd`na.me", LONG, False)) == ["`odd``na.me` is not null"]


@pytest.mark.parametrize(
    ("nested", "condition"),
    [
        (Array(Struct((Field("x", LONG, False),))),
         "(`a` is null or forall(`a`, e0 -> (e0 is null or (e0.`x` is not null))))"),
        (Map(STRING, Struct((Field("x", LONG, False), Field("y", LONG)))),
         "(`a` is null or (forall(map_values(`a`), e0 -> (e0 is null or (e0.`x` is not null)))))"),
        (Map(STRING, Array(Struct((Field("x", LONG, False),)))),
         "(`a` is null or (forall(map_values(`a`), e0 -> (e0 is null or "
         "forall(e0, e1 -> (e1 is null or (e1.`x` is not null)))))))"),
    ],
)  # fmt: skip
def test_not_null_is_enforced_inside_of_arrays_and_maps(nested: DataType, condition: str):
    assert conditions(Field("a", nested)) == [condition]
    assert conditions(Field("a", Array(LONG, False))) == []


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "x > 3",
        "{}",
        '{"expression":"x > 3"}',
        '{"expression":{"expression":null}}',
        '{"expression":{"expression":3}}',
        "[1]",
        7,
    ],
)
def test_what_is_no_condition_is_reported_with_its_column(stored: object):
    with pytest.raises(CorruptTable) as caught:
        conditions(Field("x", LONG, True, {"delta.invariants": stored}))  # type: ignore[dict-item]
    assert (caught.value.code, caught.value.column) == ("invalid-invariant", "x")


@pytest.mark.parametrize(
    "sql", ["reflect('java.lang.Runtime', 'x')", "JAVA_METHOD ('a', 'b')", "x > try_reflect('a','b')"]
)
def test_a_condition_must_not_reach_into_the_jvm(sql: str):
    with pytest.raises(CorruptTable) as caught:
        conditions(Field("x", LONG, True, invariant(sql)))
    assert caught.value.code == "invalid-invariant"


@pytest.mark.parametrize("sql", ["x >", "nobody > 3", "x > 3; drop"])
def test_a_condition_that_does_not_parse_is_found_before_a_row_is_written(sql: str):
    with pytest.raises(CorruptTable) as caught:
        conditions(Field("x", LONG, True, invariant(sql)))
    assert caught.value.code == "invalid-invariant"


def test_a_table_without_invariants_is_not_checked():
    config = make_config()
    assert plan_write(config, "memory://t").checks == ()
    assert not is_used(config)


def test_the_draft_s_name_is_known():
    """ "the feature `columnInvariants` must exist in the table `protocol`'s `writerFeatures`" (text), `invariants`
    (appendix, and all tables).
    """
    assert BY_NAME["columnInvariants"] is BY_NAME["invariants"] is FEATURE


def test_all_that_a_row_must_meet_in_order() -> None:
    """NOT NULL first, from left to right and from the outside in, then conditions in the same order."""
    inner = Struct((Field("x", LONG, False, invariant("S.x > 1")), Field("y", LONG)))
    schema = Struct(
        (
            Field("a", LONG, True, invariant("a < 5")), Field("s", inner, False), Field("l", Array(Struct((Field("i", LONG, False),))), False),
            Field("one", LONG, True, invariant("1 = 1")), Field("b", LONG, False),
        )
    )  # fmt: skip
    found = [(check.name, check.sql, check.columns, check.code) for check in invariants(schema)]
    assert found == [
        ("NOT NULL s", "`s` is not null", ("s",), "not-null-violated"), ("NOT NULL s.x", "`s`.`x` is not null", ("s.x",), "not-null-violated"),
        ("NOT NULL l", "`l` is not null", ("l",), "not-null-violated"),
        ("NOT NULL l (inside)", "(`l` is null or forall(`l`, e0 -> (e0 is null or (e0.`i` is not null))))", ("l",), "not-null-violated"),
        ("NOT NULL b", "`b` is not null", ("b",), "not-null-violated"), ("a: a < 5", "a < 5", ("a",), "constraint-violated"),
        ("s.x: S.x > 1", "S.x > 1", ("s.x",), "constraint-violated"),
        # A condition that names no column is its own column's.
        ("one: 1 = 1", "1 = 1", ("one",), "constraint-violated"),
    ]  # fmt: skip
    canonical = [check.table_sql for check in invariants(schema)][-3:]
    assert canonical == ["`a` < 5", "`S` . `x` > 1", "1 = 1"]
    config = make_config(schema)
    plan = plan_write(config, "memory://t")
    assert enforce(plan, config).checks == plan.checks + invariants(schema)
    assert is_used(config) and not is_used(make_config(Struct((Field("b", LONG, False),))))


def test_a_condition_of_a_column_within_a_column_that_is_damaged() -> None:
    for metadata, words in (
        ({"delta.invariants": "x" * 300}, "x" * 200 + "'"),
        (invariant("s.nobody > 3"), "cannot be enforced"),
        (invariant("rand() > 1"), "rand"),
    ):
        schema = Struct((Field("s", Struct((Field("x", LONG, True, metadata),))),))
        with pytest.raises(CorruptTable) as caught:
            invariants(schema)
        assert (caught.value.code, caught.value.column) == (
            "invalid-invariant",
            "s.x",
        ) and words in caught.value.message
    # Nothing is said: nothing is asked.
    assert invariants(Struct((Field("x", LONG, True, {"delta.invariants": None}),))) == ()


def test_what_is_required_within_a_member_is_its_own() -> None:
    deep = Struct((Field("l", Array(Struct((Field("i", LONG, False),)))),))
    (check,) = invariants(Struct((Field("s", deep),)))
    assert (check.name, check.columns, check.code) == ("NOT NULL s.l (inside)", ("s.l",), "not-null-violated")
    assert check.sql == "(`s`.`l` is null or forall(`s`.`l`, e0 -> (e0 is null or (e0.`i` is not null))))"

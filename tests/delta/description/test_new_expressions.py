"""What a change brings into a table must be what writers can compute; what stood there before is let be."""

from __future__ import annotations

import msgspec
import pytest
from delta_values import make_config

from alluvium.delta.description.create import NewTable, new_config, table_config
from alluvium.delta.description.evolve import add_constraint, set_properties
from alluvium.delta.description.new_expressions import ensure_computable
from alluvium.delta.terms.config import TableConfig, parse_config
from alluvium.errors import InvalidRequest
from alluvium.schema.types import INTEGER, LONG, Field, Struct

CONFIG = new_config(Struct((Field("a", INTEGER),)), [], {})


@pytest.mark.parametrize(
    "sql", ["rand() > 0", "a > 0 -- c", "a in (select 1)", "b > 0", "myf(a)", "a > 0) or (true", ""]
)
def test_a_constraint_that_no_writer_could_check_is_refused(sql):
    with pytest.raises(InvalidRequest) as caught:
        add_constraint(CONFIG, "c", sql)
    assert caught.value.code == "invalid-constraint"
    with pytest.raises(InvalidRequest) as caught:
        new_config(CONFIG.schema, [], {"delta.constraints.c": sql})
    assert caught.value.code == "invalid-constraint"


@pytest.mark.parametrize(
    ("metadata", "properties"),
    [
        ({"CURRENT_DEFAULT": "uuid()"}, {"delta.feature.allowColumnDefaults": "supported"}),
        ({"CURRENT_DEFAULT": "a"}, {"delta.feature.allowColumnDefaults": "supported"}),
        ({"delta.generationExpression": "rand()"}, {}),
        ({"delta.generationExpression": "a /* c */"}, {}),
    ],
)
def test_a_column_that_no_writer_could_compute_is_refused(metadata, properties):
    schema = Struct((Field("a", LONG), Field("b", LONG, True, metadata)))
    with pytest.raises(InvalidRequest) as caught:
        table_config(NewTable(schema, properties=properties))
    assert (caught.value.code, caught.value.column) == ("invalid-expression", "b")


def test_what_another_engine_left_keeps_nobody_from_changing_the_rest():
    odd = {"delta.constraints.odd": "rand() > 0"}
    metadata = msgspec.structs.replace(CONFIG.metadata, configuration=odd)
    config = parse_config(CONFIG.protocol, metadata)
    assert set_properties(config, {"x": "1"}).config.metadata.configuration == {**odd, "x": "1"}
    with pytest.raises(InvalidRequest):
        add_constraint(config, "more", "rand() > 1")


def with_columns(*fields: Field, **configuration: str) -> TableConfig:
    return make_config(Struct(fields), (), {name.replace("__", "."): text for name, text in configuration.items()})


def test_only_what_is_new_is_looked_at() -> None:
    """By its name and its text: another text under a name that was there is new, and so is an old text elsewhere."""
    odd = {"CURRENT_DEFAULT": "rand()"}
    before = with_columns(Field("a", LONG), Field("b", LONG, True, odd), delta__constraints__c="rand() > 0")
    ensure_computable(before, before)
    for after, code, column in (
        (
            with_columns(Field("a", LONG), Field("b", LONG, True, odd), delta__constraints__c="rand() > 1"),
            "invalid-constraint",
            None,
        ),
        (
            with_columns(Field("a", LONG), Field("b", LONG, True, odd), delta__constraints__d="rand() > 0"),
            "invalid-constraint",
            None,
        ),
        (with_columns(Field("a", LONG, True, odd), Field("b", LONG, True, odd)), "invalid-expression", "a"),
        (with_columns(Field("b", LONG, True, {"CURRENT_DEFAULT": "rand() + 1"})), "invalid-expression", "b"),
    ):
        for known in (before, None):
            with pytest.raises(InvalidRequest) as caught:
                ensure_computable(after, known)
            assert (caught.value.code, caught.value.column) == (code, column)
            assert "functions that depend on nothing but their arguments" in str(caught.value.hint)
    with pytest.raises(InvalidRequest) as caught:
        ensure_computable(before, None)
    assert caught.value.code == "invalid-constraint"


def test_generated_columns_are_looked_at_together() -> None:
    """A new one may be computed from one that was plain; those that are there must be computable, too."""

    def generated(sql: str) -> dict[str, str]:
        return {"delta.generationExpression": sql}

    before = with_columns(Field("a", LONG), Field("g", LONG, True, generated("rand()")))
    ensure_computable(before, before)
    ensure_computable(
        with_columns(Field("a", LONG), Field("g", LONG, True, generated("rand()")), Field("n", LONG)), before
    )
    with pytest.raises(InvalidRequest) as caught:
        ensure_computable(
            with_columns(
                Field("a", LONG),
                Field("g", LONG, True, generated("rand()")),
                Field("n", LONG, True, generated("a + 1")),
            ),
            before,
        )
    assert (caught.value.code, caught.value.column) == ("invalid-expression", "g")
    ensure_computable(with_columns(Field("a", LONG), Field("g", LONG, True, generated("a + 1"))), before)
    ensure_computable(
        with_columns(Field("a", LONG, True, {"CURRENT_DEFAULT": "1 + 1"}), delta__constraints__c="a > 1"), None
    )

"""What a change brings into a table must be what writers can compute; what stood there before is let be."""

from __future__ import annotations

import msgspec
import pytest

from alluvium.delta.description.create import NewTable, new_config, table_config
from alluvium.delta.description.evolve import add_constraint, set_properties
from alluvium.delta.terms.config import parse_config
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

from __future__ import annotations

import pytest

from alluvium.delta.terms.sort_order import SORT_BY, ensure_sortable, parse_sort, sort_columns
from alluvium.errors import InvalidRequest
from alluvium.schema.types import LONG, STRING, VARIANT, Array, Field, Struct

SCHEMA = Struct(
    (Field("a", LONG), Field("B c", STRING), Field("x,y`", LONG), Field("v", VARIANT), Field("l", Array(LONG)))
)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", ()),
        ("A", ("a",)),
        ("`b c`, a, A", ("B c", "a")),
        ("`x,y```", ("x,y`",)),
        ("a, gone, B c", ("a",)),
        ("gone", ()),
        ("a, v", ("a",)),
    ],
)
def test_a_table_keeps_the_order_that_its_columns_allow(text, columns):
    assert sort_columns({SORT_BY: text}, SCHEMA) == columns
    assert sort_columns({}, SCHEMA) == ()


@pytest.mark.parametrize("name", ["gone", "v", "l"])
def test_who_asks_for_an_order_is_told_what_does_not_fit(name):
    with pytest.raises(InvalidRequest) as raised:
        parse_sort(f"a,{name}", SCHEMA)
    assert (raised.value.code, raised.value.column) == ("invalid-sort-column", name)
    assert ensure_sortable(SCHEMA, ["b C"]) == ("B c",)

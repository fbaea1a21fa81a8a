"""Which schemas go together in one feed."""

from __future__ import annotations

import pytest
from delta_values import make_config
from mapped_table import features

from alluvium.delta.changes.schema import choose_config, ensure_compatible, ensure_recorded
from alluvium.errors import InvalidRequest
from alluvium.schema.types import DOUBLE, INTEGER, LONG, STRING, Array, Field, Map, Struct

ON = {"delta.enableChangeDataFeed": "true"}


def nested(inner: Struct) -> Struct:
    return Struct((Field("a", Array(inner)), Field("m", Map(STRING, inner)), Field("s", inner)))


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        (Struct((Field("x", LONG),)), Struct((Field("x", LONG), Field("y", LONG))), None),
        (Struct((Field("x", LONG), Field("y", LONG))), Struct((Field("x", LONG),)), "y"),
        (Struct((Field("X", LONG),)), Struct((Field("x", LONG),)), None),
        (Struct((Field("x", LONG, False),)), Struct((Field("x", LONG),)), None),
        (Struct((Field("x", INTEGER),)), Struct((Field("x", LONG),)), "x"),
        (nested(Struct((Field("x", LONG),))), nested(Struct((Field("x", LONG), Field("y", LONG)))), None),
        (nested(Struct((Field("x", LONG), Field("y", LONG)))), nested(Struct((Field("x", LONG),))), "a.element.y"),
        (Struct((Field("m", Map(LONG, LONG)),)), Struct((Field("m", Map(STRING, LONG)),)), "m.key"),
        (Struct((Field("m", Map(LONG, LONG)),)), Struct((Field("m", Map(LONG, STRING)),)), "m.value"),
        (Struct((Field("s", Struct((Field("x", LONG),))),)), Struct((Field("s", LONG),)), "s"),
    ],
)
def test_compatible_schemas(old: Struct, new: Struct, column: str | None) -> None:
    configs = ((3, make_config(old)),)
    if column is None:
        ensure_compatible(make_config(new), configs, 3, 5)
        return
    with pytest.raises(InvalidRequest) as caught:
        ensure_compatible(make_config(new), configs, 3, 5)
    assert (caught.value.code, caught.value.column, caught.value.version) == ("incompatible-schema", column, 3)


@pytest.mark.parametrize(("kind", "fits"), [(LONG, True), (DOUBLE, True), (STRING, False)])
def test_types_are_widened_where_the_table_says_so(kind: object, fits: bool) -> None:
    old = make_config(Struct((Field("x", INTEGER),)))
    new = make_config(Struct((Field("x", kind),)), protocol=features("typeWidening"))  # type: ignore[arg-type]
    if fits:
        ensure_compatible(new, ((0, old),), 0, 1)
        return
    with pytest.raises(InvalidRequest):
        ensure_compatible(new, ((0, old),), 0, 1)


def test_the_hint_names_the_versions_that_can_be_read() -> None:
    on, off = make_config(properties=ON), make_config()
    ensure_recorded(((1, on), (4, on)), 1, 9)
    with pytest.raises(InvalidRequest) as caught:
        ensure_recorded(((1, on), (4, off)), 1, 9)
    assert caught.value.hint == "ask for changes up to version 3"
    with pytest.raises(InvalidRequest) as caught:
        ensure_recorded(((1, off),), 1, 9)
    assert caught.value.hint is not None
    assert "set it" in caught.value.hint


def test_without_column_mapping_the_latest_columns_are_shown() -> None:
    latest, first = make_config(Struct((Field("x", LONG), Field("y", LONG)))), make_config(Struct((Field("x", LONG),)))
    assert choose_config(latest, ((0, first),), "endVersion") is latest

"""Types that become wider at every place of a column, each recorded with the nearest field."""

from __future__ import annotations

from typing import Any

import pytest
from delta_values import make_config
from mapped_table import features

from alluvium.delta.description.change_columns import widen
from alluvium.errors import InvalidRequest
from alluvium.schema.edit import find_path
from alluvium.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Struct,
)

ON = {"delta.enableTypeWidening": " True "}
PROTOCOL = features("typeWidening", "timestampNtz")
#: A column around a type: how it is made, where the type stands, its nearest field, and the way from there.
SHAPES: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...], str | None]] = {
    "column": (lambda k: k, ("c",), ("c",), None), "element": (Array, ("c", "element"), ("c",), "element"), "key": (lambda k: Map(k, STRING), ("c", "key"), ("c",), "key"),
    "value": (lambda k: Map(STRING, k), ("c", "value"), ("c",), "value"), "member": (lambda k: Struct((Field("x", k),)), ("c", "x"), ("c", "x"), None),
    "member of elements": (lambda k: Array(Struct((Field("x", k),))), ("c", "element", "x"), ("c", "element", "x"), None),
    "key of values": (lambda k: Map(STRING, Map(k, k)), ("c", "value", "key"), ("c",), "value.key"),
    "value of keys": (lambda k: Map(Map(STRING, k), k), ("c", "key", "value"), ("c",), "key.value"),
    "elements of elements": (lambda k: Array(Array(k)), ("c", "element", "element"), ("c",), "element.element"),
    "element of a member": (lambda k: Struct((Field("x", Map(k, Array(k))),)), ("c", "x", "value", "element"), ("c", "x"), "value.element"),
}  # fmt: skip


def config(data_type: DataType, metadata: dict[str, Any] | None = None, **properties: str) -> Any:
    schema = Struct((Field("a", INTEGER), Field("c", data_type, True, metadata or {}), Field("z", INTEGER)))
    return make_config(schema, (), properties or ON, PROTOCOL)


@pytest.mark.parametrize("name", SHAPES)
def test_at_every_place(name: str) -> None:
    shape, path, owner, inside = SHAPES[name]
    before = config(shape(INTEGER))
    after = widen(before, before.schema, path, LONG)
    assert find_path(after, path)[1] == LONG
    found = find_path(after, owner)[2]
    assert found is not None
    entry = {"toType": "long", "fromType": "integer"} | ({} if inside is None else {"fieldPath": inside})
    assert found.metadata["delta.typeChanges"] == [entry]
    # Nothing else has changed.
    assert after.names == before.schema.names and after.fields[0] == before.schema.fields[0]
    assert str(after).count("bigint") == 1


def test_changes_are_recorded_one_after_the_other() -> None:
    known = [{"toType": "short", "fromType": "byte"}]
    before = config(SHORT, {"delta.typeChanges": known, "comment": "so"})
    after = widen(before, before.schema, ("c",), LONG).fields[1]
    assert after.metadata == {"comment": "so", "delta.typeChanges": [*known, {"toType": "long", "fromType": "short"}]}


PAIRS: list[tuple[DataType, DataType, bool]] = [
    (BYTE, SHORT, True), (BYTE, DOUBLE, True), (INTEGER, DOUBLE, True), (LONG, DOUBLE, False), (LONG, INTEGER, False), (FLOAT, DOUBLE, True), (DOUBLE, FLOAT, False),
    (DATE, TIMESTAMP_NTZ, True), (INTEGER, Decimal(10, 0), True), (INTEGER, Decimal(10, 1), False), (LONG, Decimal(20, 0), True), (LONG, Decimal(19, 0), False),
    (Decimal(5, 2), Decimal(6, 3), True), (Decimal(5, 2), Decimal(6, 2), True), (Decimal(5, 2), Decimal(5, 3), False), (Decimal(5, 2), Decimal(6, 1), False),
    (STRING, LONG, False), (INTEGER, STRING, False), (Array(INTEGER), Array(LONG), False), (Map(STRING, INTEGER), Map(STRING, LONG), False), (INTEGER, Array(INTEGER), False),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "fits"), PAIRS, ids=str)
def test_only_to_wider_types(old: DataType, new: DataType, fits: bool) -> None:
    before = config(old)
    if fits:
        assert widen(before, before.schema, ("C",), new).fields[1].type == new
        return
    with pytest.raises(InvalidRequest) as caught:
        widen(before, before.schema, ("c",), new)
    assert (caught.value.code, caught.value.column) == ("type-change", "c")


@pytest.mark.parametrize("value", ["false", "", "yes"])
def test_only_where_the_table_allows_it(value: str) -> None:
    before = config(INTEGER, **{"delta.enableTypeWidening": value})
    with pytest.raises(InvalidRequest) as caught:
        widen(before, before.schema, ("c",), LONG)
    assert caught.value.code == "no-type-widening"

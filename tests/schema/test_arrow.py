"""Types of a table and Arrow's: what has no counterpart is refused, by the place where it stands."""

from __future__ import annotations

import pyarrow as pa
import pytest

from alluvium.errors import UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.arrow import from_arrow, schema_from_arrow, schema_to_arrow, to_arrow
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Struct

NO_TYPE = pa.time64("us")


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (NO_TYPE, "a"),
        (pa.struct([("b", NO_TYPE)]), "a.b"),
        (pa.list_(NO_TYPE), "a.element"),
        (pa.map_(pa.string(), NO_TYPE), "a.value"),
        (pa.map_(NO_TYPE, pa.string()), "a.key"),
        (pa.large_list(pa.struct([("c", pa.decimal256(50, 2))])), "a.element.c"),
        (pa.decimal128(3, -1), "a"),
    ],
)
def test_what_no_type_holds_is_refused_by_its_place(kind: pa.DataType, column: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        schema_from_arrow(pa.schema([("a", kind)]))
    assert (caught.value.code, caught.value.column) == ("unsupported-type", column)


def test_a_type_without_a_column_names_none() -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        from_arrow(NO_TYPE)
    assert caught.value.column is None


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (pa.decimal128(38, 0), Decimal(38, 0)), (pa.decimal256(38, 38), Decimal(38, 38)),
        (pa.timestamp("ns"), t.TIMESTAMP_NTZ), (pa.timestamp("s", "Asia/Tokyo"), t.TIMESTAMP),
        (pa.dictionary(pa.int8(), pa.string()), t.STRING), (pa.list_(pa.int64(), 3), Array(t.LONG, True)),
        (pa.list_(pa.field("item", pa.int64(), nullable=False)), Array(t.LONG, False)),
        (pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)), Map(t.STRING, t.INTEGER, False)),
    ],
)  # fmt: skip
def test_what_holds_every_value(kind: pa.DataType, wanted: DataType) -> None:
    assert from_arrow(kind) == wanted


def test_whether_values_may_be_null_survives_the_way_there_and_back() -> None:
    inner = Struct((Field("x", t.LONG, False), Field("y", Decimal(5, 5))))
    schema = Struct((
        Field("a", Array(inner, False), False), Field("m", Map(t.STRING, Array(t.DATE, True), False)), Field("b", t.BINARY),
    ))  # fmt: skip
    assert schema_from_arrow(schema_to_arrow(schema)) == schema
    assert to_arrow(inner).field("x").nullable is False

"""Paimon's types as Arrow's and the house's, and back."""

from __future__ import annotations

import pyarrow as pa
import pytest

from alluvium.errors import InvalidRequest, UnsupportedFeature
from alluvium.paimon.schema import DataField, DataType, parse_type
from alluvium.paimon.schema.arrow import fields_from_arrow, from_arrow, schema_to_arrow, to_arrow
from alluvium.paimon.schema.logical import as_brought, declared_text, fields_from_logical, from_logical, to_logical
from alluvium.schema import types as t

BOTH_WAYS = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "DATE": pa.date32(),
    "TIME(3)": pa.time32("ms"),
    "DECIMAL(10, 2)": pa.decimal128(10, 2),
    "TIMESTAMP(3)": pa.timestamp("ms"),
    "TIMESTAMP(6)": pa.timestamp("us"),
    "TIMESTAMP(9)": pa.timestamp("ns"),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": pa.timestamp("us", "UTC"),
}


@pytest.mark.parametrize(("text", "arrow"), BOTH_WAYS.items())
def test_both_ways(text: str, arrow: pa.DataType) -> None:
    assert to_arrow(parse_type(text)) == arrow
    assert from_arrow(arrow) == parse_type(text)


@pytest.mark.parametrize(
    ("text", "arrow"),
    [
        ("CHAR(3)", pa.string()),
        ("VARBINARY(3)", pa.binary()),
        ("BLOB", pa.binary()),
        ("TIME(0)", pa.time32("ms")),
        ("TIMESTAMP(0)", pa.timestamp("ms")),
        ("TIMESTAMP(4)", pa.timestamp("us")),
        ("TIMESTAMP_LTZ(9)", pa.timestamp("ns", "UTC")),
        ("INT NOT NULL MULTISET", pa.map_(pa.int32(), pa.field("value", pa.int32(), False))),
        ("VECTOR<FLOAT, 3>", pa.list_(pa.field("element", pa.float32()))),
    ],
)
def test_to_arrow(text: str, arrow: pa.DataType) -> None:
    assert to_arrow(parse_type(text)) == arrow


@pytest.mark.parametrize(
    ("arrow", "text"),
    [
        (pa.uint8(), "SMALLINT"),
        (pa.uint64(), "DECIMAL(20, 0)"),
        (pa.large_string(), "STRING"),
        (pa.binary(4), "BINARY(4)"),
        (pa.dictionary(pa.int8(), pa.string()), "STRING"),
        (pa.timestamp("s", "Europe/Berlin"), "TIMESTAMP(0) WITH LOCAL TIME ZONE"),
        (pa.list_(pa.field("item", pa.int32(), False)), "ARRAY<INT NOT NULL>"),
        (pa.map_(pa.string(), pa.int32()), "MAP<STRING NOT NULL, INT>"),
        (pa.struct([pa.field("x", pa.int32(), False)]), "ROW<`x` INT NOT NULL>"),
    ],
)
def test_from_arrow(arrow: pa.DataType, text: str) -> None:
    assert str(from_arrow(arrow)) == text


@pytest.mark.parametrize("arrow", [pa.time64("us"), pa.null(), pa.duration("s"), pa.decimal256(50, 2)])
def test_what_no_table_holds(arrow: pa.DataType) -> None:
    with pytest.raises(UnsupportedFeature) as error:
        fields_from_arrow(pa.schema([pa.field("c", arrow)]))
    assert (error.value.code, error.value.column) == ("unsupported-type", "c")


def test_schemas() -> None:
    schema = pa.schema([pa.field("k", pa.int32(), False), pa.field("v", pa.string())])
    assert schema_to_arrow(fields_from_arrow(schema)) == schema


def test_logical_types() -> None:
    nested = t.Map(
        t.STRING, t.Array(t.Struct((t.Field("a b", t.STRING), t.Field("n", t.LONG), t.Field("s", t.STRING))))
    )
    declared = "map<varchar(2),array<struct<`a b`:char(3),`n`:bigint,`s`:string>>>"
    struct = t.Struct(
        (
            t.Field("a", t.LONG, False, {"comment": "the key"}),
            t.Field("b", t.Array(t.Decimal(5, 2), False)),
            t.Field("c", t.Map(t.STRING, t.TIMESTAMP)),
            t.Field("d", t.Struct((t.Field("e", t.TIMESTAMP_NTZ),))),
            t.Field("f", t.STRING, True, {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
            t.Field("g", t.VARIANT),
            t.Field("h", nested, True, {"__CHAR_VARCHAR_TYPE_STRING": declared}),
        )
    )
    fields = fields_from_logical(struct)
    assert [str(f.type) for f in fields] == [
        "BIGINT NOT NULL", "ARRAY<DECIMAL(5, 2) NOT NULL>",
        "MAP<STRING NOT NULL, TIMESTAMP(6) WITH LOCAL TIME ZONE>", "ROW<`e` TIMESTAMP(6)>", "CHAR(3)", "VARIANT",
        "MAP<VARCHAR(2) NOT NULL, ARRAY<ROW<`a b` CHAR(3), `n` BIGINT, `s` STRING>>>",
    ]  # fmt: skip
    assert fields[0].description == "the key"
    assert [declared_text(f.type) for f in fields[-3:]] == ["char(3)", None, declared]
    assert [to_logical(f.type) for f in fields] == [f.type for f in struct.fields]
    assert to_logical(parse_type("INT MULTISET")) == t.Map(t.INTEGER, t.INTEGER, False)
    with pytest.raises(UnsupportedFeature):
        to_logical(parse_type("GEOMETRY"))
    with pytest.raises(UnsupportedFeature):
        from_logical(t.VOID)


@pytest.mark.parametrize(
    "arguments",
    [
        {"root": "FOO"},
        {"root": "CHAR", "length": 0},
        {"root": "DECIMAL", "precision": 5, "scale": 6},
        {"root": "ARRAY"},
        {"root": "MAP", "key": DataType("DATE")},
        {"root": "VECTOR", "length": 2, "element": DataType("DATE")},
        {"root": "ROW", "fields": (DataField(0, " ", DataType("DATE")),)},
        {"root": "ROW", "fields": (DataField(0, "a", DataType("DATE")), DataField(1, "a", DataType("DATE")))},
        {"root": "GEOGRAPHY", "crs": "OGC:CRS84", "algorithm": "flat"},
    ],
)
def test_types_that_cannot_be(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as error:
        DataType(**arguments)
    assert error.value.code == "invalid-type"


#: Every type, as the house's, and what comes back of that; None: the type itself. And what rows bring.
LOGICAL: list[tuple[str, t.DataType, str | None, t.DataType | None]] = [
    ("BOOLEAN", t.BOOLEAN, None, None), ("TINYINT", t.BYTE, None, None), ("SMALLINT", t.SHORT, None, None), ("INT", t.INTEGER, None, None),
    ("BIGINT", t.LONG, None, None), ("FLOAT", t.FLOAT, None, None), ("DOUBLE", t.DOUBLE, None, None), ("DATE", t.DATE, None, None),
    ("STRING", t.STRING, None, None), ("CHAR(3)", t.STRING, "STRING", None), ("VARCHAR(3)", t.STRING, "STRING", None),
    ("BYTES", t.BINARY, None, None), ("BINARY(3)", t.BINARY, "BYTES", None), ("VARBINARY(3)", t.BINARY, "BYTES", None), ("BLOB", t.BINARY, "BYTES", None),
    ("VARIANT", t.VARIANT, None, None), ("DECIMAL(10, 2)", t.Decimal(10, 2), None, None), ("TIME(0)", t.TIME, "TIME(0)", t.INTEGER),
    *((f"TIMESTAMP({n})", t.TIMESTAMP_NTZ, "TIMESTAMP(6)", None) for n in (0, 3, 6)),
    *((f"TIMESTAMP({n})", t.TIMESTAMP_NTZ_NANOS, "none", t.TIMESTAMP_NTZ) for n in (7, 9)),
    *((f"TIMESTAMP_LTZ({n})", t.TIMESTAMP, "TIMESTAMP_LTZ(6)", None) for n in (0, 3, 6)),
    *((f"TIMESTAMP_LTZ({n})", t.TIMESTAMP_NANOS, "none", t.TIMESTAMP) for n in (7, 9)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "ours", "back", "brought"), LOGICAL, ids=[text for text, *_ in LOGICAL])
def test_every_type_is_one_of_the_houses(
    text: str, ours: t.DataType, back: str | None, brought: t.DataType | None
) -> None:
    data_type = parse_type(text)
    shapes = [
        (data_type, lambda kind: kind), (DataType("ARRAY", element=data_type), t.Array),
        (DataType("MAP", key=DataType("INTEGER", False), value=data_type), lambda kind: t.Map(t.INTEGER, kind)),
        (DataType("MAP", key=data_type.with_nullable(False), value=DataType("INTEGER")), lambda kind: t.Map(kind, t.INTEGER)),
        (DataType("ROW", fields=(DataField(0, "x", data_type.with_nullable(False)),)), lambda kind: t.Struct((t.Field("x", kind, False),))),
    ]  # fmt: skip
    for place, (own, shape) in enumerate(shapes):
        assert to_logical(own) == shape(ours)
        assert as_brought(shape(ours)) == shape(brought or ours)
        if back == "none":
            with pytest.raises(UnsupportedFeature):
                from_logical(shape(ours))
        elif place == 0:
            assert from_logical(ours) == parse_type(back or text)
        elif back is None:
            assert from_logical(shape(ours)) == own


def test_nullability_is_kept() -> None:
    for nullable in (False, True):
        element = DataType("INTEGER", nullable)
        assert to_logical(DataType("ARRAY", element=element)) == t.Array(t.INTEGER, nullable)
        assert to_logical(DataType("MAP", key=DataType("INTEGER", False), value=element)) == t.Map(
            t.INTEGER, t.INTEGER, nullable
        )
        assert as_brought(t.Array(t.TIME, nullable)) == t.Array(t.INTEGER, nullable)
        assert as_brought(t.Map(t.TIME, t.TIME, nullable)) == t.Map(t.INTEGER, t.INTEGER, nullable)
        assert from_logical(t.Array(t.INTEGER, nullable)) == DataType("ARRAY", element=element)
    counted = to_logical(DataType("MULTISET", element=DataType("DATE", False)))
    assert counted == t.Map(t.DATE, t.INTEGER, False)


@pytest.mark.parametrize("text", ["GEOMETRY", "GEOGRAPHY"])
def test_types_that_are_none_of_the_houses(text: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        to_logical(parse_type(text))
    assert caught.value.code == "unsupported-type"

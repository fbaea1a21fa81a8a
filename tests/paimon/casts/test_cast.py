"""Casts against what Paimon's Java makes of the same values."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from paimon_values import array_of, json_of, parse_column_type

from alluvium.errors import AlluviumError, InvalidRequest, UnsupportedFeature
from alluvium.paimon.casts.cast import cast, cast_between
from alluvium.paimon.schema.logical import to_logical
from alluvium.paimon.schema.types import DataField, DataType
from alluvium.schema.arrow import to_arrow

ROOT = Path(__file__).resolve().parents[3]
NAMED = os.environ.get("ALLUVIUM_CONFORMANCE")
FILE = (Path(NAMED) if NAMED else ROOT.parent / "shared" / "conformance") / "paimon" / "vectors" / "casts.json"
#: "odd string -> DATE/TIMESTAMP inputs in the vectors are engine quirks, not rules"; floats as JDKs before 19 print them.
QUIRKS = {" 42 ", "99999999999"}
OLD_JDK = {("INT", "FLOAT", 2147483647)}


def vectors() -> list[object]:
    if not FILE.exists():
        return [pytest.param(None, marks=pytest.mark.skip("no corpus: set ALLUVIUM_CONFORMANCE"))]
    found = json.loads(FILE.read_text(encoding="utf-8"))["vectors"]
    return [pytest.param(v, id=f"{v['from']}->{v['to']}") for v in found if v.get("values")]


@pytest.mark.parametrize("vector", vectors())
def test_casts_of_java(vector) -> None:
    source, target = parse_column_type(vector["from"]), parse_column_type(vector["to"])
    if source == target:
        return
    cast_between(source, target)
    for given, expected in vector["values"]:
        if given in QUIRKS or (vector["from"], vector["to"], given) in OLD_JDK:
            continue
        values = array_of([given], source)
        if isinstance(expected, dict):
            with pytest.raises(InvalidRequest):
                cast(values, source, target, "UTC")
        else:
            assert json_of(cast(values, source, target, "UTC")[0], target) == expected, given


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (1.25, "DECIMAL(5, 1)", "1.3"), (-1.25, "DECIMAL(5, 1)", "-1.3"), (1e5, "DECIMAL(5, 0)", None),
        (99999.4, "DECIMAL(5, 0)", "99999"), (0.1, "DECIMAL(38, 37)", "0.1" + "0" * 36),
        (float("inf"), "DECIMAL(5, 1)", InvalidRequest), (float("-inf"), "DECIMAL(5, 1)", InvalidRequest),
        (float("nan"), "DECIMAL(5, 1)", InvalidRequest), (float("nan"), "INT", 0), (1e300, "INT", 2**31 - 1),
        (-1e300, "BIGINT", -(2**63)), (2.0**63, "BIGINT", 2**63 - 1), (-(2.0**63), "BIGINT", -(2**63)),
        (300.7, "TINYINT", 44), (-1.9, "INT", -1), (2.0**31, "INT", 2**31 - 1), (float("-inf"), "SMALLINT", 0),
    ],
)  # fmt: skip
def test_numbers_that_are_beyond_a_type(value: float, target: str, expected: object) -> None:
    """Java: NaN is 0, what is too large is the largest, narrow types cut the bits of an int, decimals become null."""
    source, kind = parse_column_type("DOUBLE"), parse_column_type(target)
    values = pa.array([value, None], pa.float64())
    if expected is InvalidRequest:
        with pytest.raises(InvalidRequest) as caught:
            cast(values, source, kind, "UTC")
        assert caught.value.code == "invalid-cast"
        return
    found = cast(values, source, kind, "UTC").to_pylist()
    assert found[1] is None
    assert (str(found[0]) if isinstance(expected, str) else found[0]) == expected


def test_no_executor_is_refused() -> None:
    """ "DATE/TIME/TIMESTAMP to CHAR(n) ... have no executor and are refused" in part; FLOAT to BOOLEAN in all."""
    for source, target in (("FLOAT", "BOOLEAN"), ("DATE", "INT"), ("BOOLEAN", "DATE"), ("BYTES", "INT")):
        with pytest.raises(UnsupportedFeature) as caught:
            cast_between(parse_column_type(source), parse_column_type(target))
        assert caught.value.code == "unsupported-cast"


def test_texts_that_only_grow_need_no_cast() -> None:
    assert cast_between(parse_column_type("VARCHAR(3)"), parse_column_type("STRING")) is None
    assert cast_between(parse_column_type("VARCHAR(5)"), parse_column_type("VARCHAR(3)")) is not None


def test_zones_have_a_say_between_wall_clocks_and_instants() -> None:
    instants = array_of(["1700000000000000000"], parse_column_type("TIMESTAMP(6) WITH LOCAL TIME ZONE"))
    wall = cast(
        instants,
        parse_column_type("TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        parse_column_type("TIMESTAMP(6)"),
        "Asia/Tokyo",
    )
    assert str(wall[0]) == "2023-11-15 07:13:20"


def test_fields_of_rows_go_by_id() -> None:
    old = DataType(
        "ROW",
        fields=(DataField(1, "a", DataType("INTEGER")), DataField(2, "b", DataType("VARCHAR", length=9))),
    )
    new = DataType(
        "ROW",
        fields=(
            DataField(3, "a", DataType("DOUBLE")),
            DataField(1, "z", DataType("BIGINT")),
        ),
    )
    values = pa.array([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.int32()), ("b", pa.string())]))
    assert cast(values, old, new, "UTC").to_pylist() == [{"a": None, "z": 1}, None]
    lists = pa.array([[{"a": 5, "b": "y"}], None, []], pa.list_(values.type))
    made = cast(lists, DataType("ARRAY", element=old), DataType("ARRAY", element=new), "UTC")
    assert made.to_pylist() == [[{"a": None, "z": 5}], None, []]


def test_errors_name_the_value() -> None:
    with pytest.raises(AlluviumError, match="'abc' cannot be cast"):
        cast(pa.array(["abc"]), parse_column_type("STRING"), parse_column_type("INT"), "UTC")


@pytest.mark.parametrize(
    ("source", "values", "texts"),
    [
        (
            DataType("ARRAY", element=parse_column_type("INT")),
            pa.array([[9], [1, None, 3], None, []], pa.list_(pa.int32())).slice(1),
            ["[1, null, 3]", None, "[]"],
        ),
        (
            DataType("ARRAY", element=parse_column_type("DOUBLE")),
            pa.array([[1.5, 1e10]], pa.list_(pa.float64())),
            ["[1.5, 1.0E10]"],
        ),
        (
            DataType("MAP", key=parse_column_type("STRING"), value=parse_column_type("INT")),
            pa.array([[("a", 1), ("b", None)], None], pa.map_(pa.string(), pa.int32())),
            ["{a -> 1, b -> null}", None],
        ),
        (
            DataType("ROW", fields=(DataField(0, "x", parse_column_type("INT")),
                                    DataField(1, "y", parse_column_type("STRING")))),
            pa.array([{"x": 1, "y": "q"}, None], pa.struct([("x", pa.int32()), ("y", pa.string())])),
            ["{1, q}", None],
        ),
    ],
)  # fmt: skip
def test_values_of_several_parts_as_java_spells_them(source: DataType, values: pa.Array, texts: list[str]) -> None:
    """Asked of Paimon 1.4.2 by altering such a column to STRING."""
    target = parse_column_type("STRING")
    conversion = cast_between(source, target)
    assert conversion is not None
    assert conversion.convert(values, "UTC").to_pylist() == texts


LTZ = "TIMESTAMP(6) WITH LOCAL TIME ZONE"


@pytest.mark.parametrize(
    ("source", "value", "target", "expected"),
    [
        ("TIMESTAMP(6)", "9999-12-31 23:59:59.999999", "STRING", "9999-12-31 23:59:59.999999"),
        ("TIMESTAMP(6)", "0001-01-01 00:00:00.000001", "STRING", "0001-01-01 00:00:00.000001"),
        ("TIMESTAMP(6)", "9999-12-31 23:59:59.999999", "TIMESTAMP(3)", "9999-12-31 23:59:59.999000"),
        ("TIMESTAMP(6)", "0001-01-01 00:00:00.999999", "TIMESTAMP(3)", "0001-01-01 00:00:00.999000"),
        ("TIMESTAMP(6)", "9999-12-31 23:59:59.999999", "DATE", "9999-12-31"),
        ("TIMESTAMP(6)", "0001-01-01 23:59:59.999999", "DATE", "0001-01-01"),
        ("TIMESTAMP(6)", "9999-12-31 12:34:56.789", "TIME", "12:34:56.789000"),
        ("TIMESTAMP(6)", "9999-12-31 23:59:59", "BIGINT", "253402300799"),
        ("TIMESTAMP(6)", "0001-01-01 00:00:00", "BIGINT", "-62135596800"),
        ("DATE", "9999-12-31", "TIMESTAMP(6)", "9999-12-31 00:00:00"),
        ("DATE", "0001-01-01", LTZ, "0001-01-01 00:00:00+00:00"),
        ("STRING", "9999-12-31 23:59:59.123456789", "TIMESTAMP(6)", "9999-12-31 23:59:59.123456"),
        ("STRING", "0001-01-01", "TIMESTAMP(6)", "0001-01-01 00:00:00"),
        ("BIGINT", "253402300799", "TIMESTAMP(3)", "9999-12-31 23:59:59"),
        ("TIMESTAMP(6)", "9999-12-31 10:00:00", LTZ, "9999-12-31 10:00:00+00:00"),
    ],
)
def test_years_that_nanoseconds_do_not_hold(source: str, value: str, target: str, expected: str) -> None:
    logical = {name: to_arrow(to_logical(parse_column_type(name))) for name in (source, target)}
    values = pa.array([None, value]).cast(logical[source])
    made = cast(values, parse_column_type(source), parse_column_type(target), "UTC")
    assert made.type == logical[target]
    assert [None if v is None else str(v) for v in made.to_pylist()] == [None, expected]


def test_one_year_beyond_all_times_among_others() -> None:
    days = pa.array([0, 200_000_000, None], pa.int32()).cast(pa.date32())
    with pytest.raises(InvalidRequest):
        cast(days, parse_column_type("DATE"), parse_column_type("TIMESTAMP(6)"), "UTC")


def test_zones_of_far_years() -> None:
    wall, there = parse_column_type("TIMESTAMP(6)"), parse_column_type(LTZ)
    values = pa.array(["9999-12-30 23:00:00", None]).cast(pa.timestamp("us"))
    instants = cast(values, wall, there, "Asia/Tokyo")
    assert str(instants[0].as_py()) == "9999-12-30 14:00:00+00:00"
    assert cast(instants, there, wall, "Asia/Tokyo").equals(values)


def test_nanoseconds_refuse_what_they_do_not_hold() -> None:
    fine, coarse = parse_column_type("TIMESTAMP(9)"), parse_column_type("TIMESTAMP(6)")
    for text in ("2262-04-12 00:00:00", "1677-09-20 00:00:00", "9999-12-31 00:00:00"):
        with pytest.raises(InvalidRequest) as caught:
            cast(pa.array([text]).cast(pa.timestamp("us")), coarse, fine, "UTC")
        assert caught.value.code == "invalid-cast"
        assert text in caught.value.message
    kept = pa.array(["2262-04-11 00:00:00", None, "1677-09-22 00:00:00"]).cast(pa.timestamp("us"))
    assert cast(kept, coarse, fine, "UTC").cast(pa.timestamp("us")).equals(kept)
    # The digits below a microsecond of times before 1970 are cut downwards.
    nanos = pa.array([-1, 1_999]).cast(pa.timestamp("ns"))
    assert cast(nanos, fine, coarse, "UTC").cast(pa.int64()).to_pylist() == [-1, 1]
    assert cast(nanos, fine, parse_column_type("TIMESTAMP(8)"), "UTC").cast(pa.int64()).to_pylist() == [-10, 1_990]


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_last_microseconds_of_which_64_bits_hold_all_nanoseconds(sign: int) -> None:
    fine, coarse = parse_column_type("TIMESTAMP(9)"), parse_column_type("TIMESTAMP(6)")
    # Every nanosecond of it: from m * 1000 to m * 1000 + 999.
    held = -9_223_372_036_854_775 if sign < 0 else 9_223_372_036_854_774
    assert held * 1000 >= -(2**63)
    assert held * 1000 + 999 < 2**63
    for micros in (held - sign, held):
        values = pa.array([micros, None]).cast(pa.timestamp("us"))
        assert cast(values, coarse, fine, "UTC").cast(pa.int64()).to_pylist() == [micros * 1000, None]
    with pytest.raises(InvalidRequest):
        cast(pa.array([held + sign]).cast(pa.timestamp("us")), coarse, fine, "UTC")


#: Of pairs one way at most has an executor.
ONE_WAY = [
    ("TIMESTAMP(3)", "DATE", "DATE", "BIGINT"), ("TIMESTAMP(3)", "INT", "TIMESTAMP(3)", "SMALLINT"),
    ("INT", "TIMESTAMP(3)", "SMALLINT", "TIMESTAMP(3)"), ("STRING", "BYTES", "INT", "BYTES"),
    ("INT", "BOOLEAN", "DECIMAL(9, 2)", "BOOLEAN"), ("BOOLEAN", "DECIMAL(9, 2)", "BOOLEAN", "TIMESTAMP(3)"),
    ("TIMESTAMP(3)", "TIME", "DATE", "TIME"), ("TIME", "TIMESTAMP(3)", "TIME", "DATE"), ("BYTES", "STRING", "VARIANT", "STRING"),
    ("DATE", "STRING", "DATE", "DOUBLE"), ("STRING", "TIME", "INT", "TIME"), ("STRING", "BOOLEAN", "BYTES", "BOOLEAN"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "refused", "wanted"), ONE_WAY)
def test_casts_that_there_are_and_their_neighbours_that_there_are_not(
    source: str, target: str, refused: str, wanted: str
) -> None:
    assert cast_between(parse_column_type(source), parse_column_type(target)) is not None
    with pytest.raises(UnsupportedFeature) as caught:
        cast_between(parse_column_type(refused), parse_column_type(wanted))
    assert caught.value.code == "unsupported-cast"


@pytest.mark.parametrize(
    ("source", "target", "is_sparks"),
    [
        ("INT", "STRING", True), ("BIGINT", "VARCHAR(20)", True), ("INT", "VARCHAR(10)", False),
        ("TINYINT", "VARCHAR(4)", True), ("INT", "CHAR(20)", False), ("DOUBLE", "STRING", False),
        ("INT", "DECIMAL(12, 2)", True), ("INT", "DECIMAL(11, 2)", False), ("BIGINT", "DECIMAL(19, 0)", True),
        ("DECIMAL(10, 2)", "DECIMAL(12, 4)", True), ("DECIMAL(10, 2)", "DECIMAL(12, 1)", False),
        ("DECIMAL(10, 2)", "DECIMAL(11, 4)", False), ("FLOAT", "DOUBLE", True), ("BIGINT", "DOUBLE", True),
    ],
)  # fmt: skip
def test_what_spark_casts_alike(source: str, target: str, is_sparks: bool) -> None:
    """Where no value is cut, rounded or spelled in another way; of others it asks Python workers."""
    cast_of = cast_between(parse_column_type(source), parse_column_type(target))
    assert cast_of is not None and (cast_of.sql("`c`") is not None) == is_sparks


def test_rows_are_put_together_in_sql() -> None:
    """What Spark's own reader can do of a row that changed its members; of others it asks Python workers."""
    old = DataType(
        "ROW", fields=(DataField(1, "x", DataType("INTEGER")), DataField(2, "b`", DataType("VARCHAR", length=5)))
    )
    wide, gone = DataField(1, "y", DataType("BIGINT")), DataField(9, "n", DataType("DECIMAL", precision=5, scale=2))
    cast_of = cast_between(old, DataType("ROW", fields=(gone, old.fields[1], wide)))
    assert cast_of is not None
    assert cast_of.sql("`s`") == (
        "if(`s` is null, null, named_struct('n', cast(null as decimal(5,2)), 'b`', `s`.`b```, 'y', cast(`s`.`x` as bigint)))"
    )
    for member in (
        DataField(1, "x", DataType("VARCHAR", length=9)),  # a cast that Spark does otherwise
        DataField(7, "new", old),
        DataField(7, "it's", DataType("INTEGER")),
    ):
        cast_of = cast_between(old, DataType("ROW", fields=(member,)))
        assert cast_of is not None and cast_of.sql("`s`") is None


@pytest.mark.parametrize("source", [DataType("MULTISET", element=DataType("INTEGER")), DataType("VECTOR", element=DataType("FLOAT"), length=2)],
                         ids=["multiset", "vector"])  # fmt: skip
def test_collections_that_java_casts_to_no_text(source: DataType) -> None:
    with pytest.raises(UnsupportedFeature, match="there is no cast"):
        cast_between(source, parse_column_type("STRING"))

"""Data of any origin under the columns of a table: values stay what they are, or are refused."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pytest

from alluvium.errors import AlluviumError, InvalidRequest, UnsupportedFeature
from alluvium.portable.writing.fit import fit_columns, fit_values
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Decimal, Field, Map, Struct

UTC = dt.timezone.utc
ROW = Struct((Field("a", t.INTEGER), Field("b", Array(t.STRING))))
AT = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)


def fitted(values: pa.Array, target: DataType) -> list[object]:
    rows = pa.RecordBatch.from_arrays([values], names=["C"])
    found = fit_columns(rows.schema, Struct((Field("c", target), Field("d", t.LONG))))
    assert found["d"].of(rows).to_pylist() == [None] * len(values)
    return found["c"].of(rows).to_pylist()


def of(values: list[object], data_type: pa.DataType) -> pa.Array:
    """A slice, so that offsets count."""
    return pa.array([None, *values, None], data_type).slice(1, len(values))


@pytest.mark.parametrize(
    ("values", "target", "expected"),
    [
        (of([1, None, -128], pa.int64()), t.BYTE, [1, None, -128]),
        (of([2**63 - 1], pa.uint64()), t.LONG, [2**63 - 1]),
        (of([7], pa.uint8()), t.SHORT, [7]),
        (of([1.5, None], pa.float32()), t.DOUBLE, [1.5, None]),
        (of([12, None], pa.int32()), Decimal(5, 2), [decimal.Decimal("12.00"), None]),
        (of([decimal.Decimal("1.2")], pa.decimal128(3, 1)), Decimal(10, 4), [decimal.Decimal("1.2000")]),
        (of([decimal.Decimal("1.20")], pa.decimal128(9, 2)), Decimal(3, 1), [decimal.Decimal("1.2")]),
        (of(["x", None], pa.large_string()), t.STRING, ["x", None]),
        (of(["x", None], pa.string_view()), t.STRING, ["x", None]),
        (of(["x", None, "x"], pa.dictionary(pa.int8(), pa.string())), t.STRING, ["x", None, "x"]),
        (of([b"\xff"], pa.large_binary()), t.BINARY, [b"\xff"]),
        (of([dt.date(2024, 2, 29)], pa.date64()), t.DATE, [dt.date(2024, 2, 29)]),
        (of([AT], pa.timestamp("ns")), t.TIMESTAMP_NTZ, [AT]),
        (of([AT.replace(microsecond=0)], pa.timestamp("s")), t.TIMESTAMP_NTZ, [AT.replace(microsecond=0)]),
        (of([AT], pa.timestamp("us", "Asia/Tokyo")), t.TIMESTAMP, [AT.replace(tzinfo=UTC)]),
        (of([], pa.null()), t.TIMESTAMP, []),
        (of([None, None], pa.null()), ROW, [None, None]),
        (of([[1, None], None, []], pa.large_list(pa.int64())), Array(t.INTEGER), [[1, None], None, []]),
        (of([[1, 2], None], pa.list_(pa.int64(), 2)), Array(t.LONG), [[1, 2], None]),
        (
            of([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            Map(t.STRING, t.INTEGER),
            [[("k", 1)], None, []],
        ),
        (
            of([{"B": ["x", None]}, None, {"B": None}], pa.struct([("B", pa.large_list(pa.large_string()))])),
            ROW,
            [{"a": None, "b": ["x", None]}, None, {"a": None, "b": None}],
        ),
        (
            of([[{"b": ["x"], "a": 1}, None], None], pa.list_(pa.struct([("b", pa.list_(pa.string())), ("a", pa.int64())]))),
            Array(ROW),
            [[{"a": 1, "b": ["x"]}, None], None],
        ),
    ],
    ids=str,
)  # fmt: skip
def test_values_stay_what_they_are(values: pa.Array, target: DataType, expected: list[object]) -> None:
    assert fitted(values, target) == expected


@pytest.mark.parametrize(
    ("values", "target", "code"),
    [
        (of([128], pa.int64()), t.BYTE, "invalid-data"),
        (of([2**63], pa.uint64()), t.LONG, "invalid-data"),
        (of([decimal.Decimal("1.25")], pa.decimal128(9, 2)), Decimal(3, 1), "invalid-data"),
        (of([1000], pa.int64()), Decimal(3, 1), "invalid-data"),
        (of([1], pa.timestamp("ns")), t.TIMESTAMP_NTZ, "invalid-data"),
        (of([1], pa.date64()), t.DATE, "invalid-data"),
        (of([[1, 300]], pa.list_(pa.int64())), Array(t.BYTE), "invalid-data"),
        (of([1.0], pa.float64()), t.LONG, "schema-mismatch"),
        (of([1.0], pa.float64()), t.FLOAT, "schema-mismatch"),
        (of([1], pa.int64()), t.DOUBLE, "schema-mismatch"),
        (of(["1"], pa.string()), t.LONG, "schema-mismatch"),
        (of([1], pa.int64()), t.STRING, "schema-mismatch"),
        (of([AT], pa.timestamp("us")), t.TIMESTAMP, "schema-mismatch"),
        (of([AT], pa.timestamp("us", "UTC")), t.TIMESTAMP_NTZ, "schema-mismatch"),
        (of([AT], pa.timestamp("us")), t.DATE, "schema-mismatch"),
        (of([b"x"], pa.binary()), t.STRING, "schema-mismatch"),
        (of([{"z": 1}], pa.struct([("z", pa.int64())])), ROW, "schema-mismatch"),
        (of([{"a": 1, "A": 2}], pa.struct([("a", pa.int64()), ("A", pa.int64())])), ROW, "schema-mismatch"),
        (of([[1]], pa.list_(pa.int64())), t.LONG, "schema-mismatch"),
        (of([1], pa.int64()), ROW, "schema-mismatch"),
        (of([1], pa.int64()), Map(t.STRING, t.LONG), "schema-mismatch"),
        (of([1], pa.int64()), Array(t.LONG), "schema-mismatch"),
        (of([1], pa.duration("s")), t.LONG, "unsupported-type"),
    ],
    ids=str,
)  # fmt: skip
def test_values_that_would_change_are_refused(values: pa.Array, target: DataType, code: str) -> None:
    with pytest.raises(AlluviumError) as caught:
        fitted(values, target)
    assert caught.value.code == code
    assert caught.value.column is not None and caught.value.column.casefold().startswith("c")


def test_what_is_beside_a_slice_or_behind_a_null_needs_no_place() -> None:
    valid, hidden = pa.array([False, True]), pa.array([1, 2, 300, 4])
    ends, two = pa.array([0, 2, 4], pa.int32()), pa.array(["a", "b", "c", "d"])
    lists = pa.ListArray.from_arrays(ends, hidden)
    behind = pa.ListArray.from_arrays(ends, hidden, mask=valid)
    fixed = pa.FixedSizeListArray.from_arrays(hidden, 2, mask=valid)
    maps = pa.MapArray.from_arrays(ends, two, hidden)
    masked = pa.MapArray.from_arrays(ends, two, hidden, mask=valid)
    assert fitted(lists.slice(0, 1), Array(t.BYTE)) == [[1, 2]]
    assert fitted(behind, Array(t.BYTE)) == fitted(fixed, Array(t.BYTE)) == [[1, 2], None]
    assert fitted(maps.slice(0, 1), Map(t.STRING, t.BYTE)) == [[("a", 1), ("b", 2)]]
    assert fitted(masked, Map(t.STRING, t.BYTE)) == [[("a", 1), ("b", 2)], None]
    nested = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), behind).slice(1)
    assert fitted(nested, Array(Array(t.BYTE))) == [[None]]
    for values in (lists, maps):
        with pytest.raises(AlluviumError) as caught:
            fitted(values, Map(t.STRING, t.BYTE) if values is maps else Array(t.BYTE))
        assert caught.value.code == "invalid-data"


def test_entries_of_maps_may_have_other_names() -> None:
    own = pa.map_(pa.field("k", pa.string(), False), pa.field("v", pa.int8()))
    assert fitted(of([[("a", 1)], None, []], own), Map(t.STRING, t.LONG)) == [[("a", 1)], None, []]


@pytest.mark.parametrize(
    ("values", "target", "said"),
    [
        (of([1.0], pa.float64()), t.LONG, "say astype('Int64')"), (of([1.0], pa.float32()), t.BYTE, "say astype('Int64')"),
        (of([AT], pa.timestamp("us")), t.TIMESTAMP, "give the times a zone"), (of([AT], pa.timestamp("us", "UTC")), t.TIMESTAMP_NTZ, "give the times a zone"),
        (of([1.0], pa.float64()), t.STRING, None), (of([1], pa.int64()), t.DOUBLE, None), (of([1.0], pa.float64()), t.FLOAT, None), (of([AT], pa.timestamp("us")), t.DATE, None),
        (of(["1"], pa.string()), t.LONG, None), (of([1.0], pa.float64()), Decimal(5, 2), None),
    ],
    ids=str,
)  # fmt: skip
def test_what_helps_is_said(values: pa.Array, target: DataType, said: str | None) -> None:
    with pytest.raises(AlluviumError) as caught:
        fitted(values, target)
    hints = ("say astype('Int64')", "give the times a zone")
    assert [hint for hint in hints if hint in str(caught.value)] == ([] if said is None else [said])
    assert "column 'c' is " in str(caught.value)


DEEP = Struct((Field("l", Array(ROW)), Field("m", Map(t.STRING, ROW)), Field("k", Map(ROW, t.LONG))))


@pytest.mark.parametrize(
    ("kind", "place", "said"),
    [
        (pa.struct([("z", pa.int64())]), "C.z", "it has no column 'C.z'"),
        (pa.struct([("a", pa.int64()), ("A", pa.int64())]), "C.A", "'C.A' comes twice"),
        (pa.struct([("a", pa.string())]), "C.a", "column 'C.a' is string, the table's int"),
        (pa.struct([("b", pa.string())]), "C.b", "column 'C.b' is string, the table's array<string>"),
        (pa.struct([("b", pa.list_(pa.int64()))]), "C.b.element", "column 'C.b.element' is bigint, the table's string"),
    ],
    ids=str,
)  # fmt: skip
def test_where_in_a_column_it_does_not_fit(kind: pa.DataType, place: str, said: str) -> None:
    """By the path in the table, of which the data's own spelling is shown where the table has none."""
    with pytest.raises(InvalidRequest) as caught:
        fit_columns(pa.schema([("C", kind)]), Struct((Field("C", ROW),)))
    assert (caught.value.code, caught.value.column) == ("schema-mismatch", place)
    assert f"{said}\n" in str(caught.value)
    for member, wrapped, path in (
        ("l", pa.list_(kind), "l.element"),
        ("m", pa.map_(pa.string(), kind), "m.value"),
        ("k", pa.map_(kind, pa.int64()), "k.key"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            fit_columns(pa.schema([(member, wrapped)]), DEEP)
        assert caught.value.column == f"{path}{place[1:]}"


@pytest.mark.parametrize(
    ("names", "column", "said"),
    [
        (["a", "zz"], "zz", "it has no column 'zz'"),
        (["a", "b", "A"], "A", "'A' comes twice"),
        (["b", "b"], "b", "'b' comes twice"),
    ],
)
def test_columns_that_a_table_lacks_or_that_come_twice(names: list[str], column: str, said: str) -> None:
    table = Struct((Field("a", t.LONG), Field("b", t.LONG)))
    with pytest.raises(InvalidRequest) as caught:
        fit_columns(pa.schema([(name, pa.int64()) for name in names]), table)
    assert (caught.value.code, caught.value.column) == ("schema-mismatch", column)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "target", "place"),
    [
        (pa.duration("s"), t.LONG, "c"),
        (pa.struct([("a", pa.duration("s"))]), ROW, "c.a"),
        (pa.list_(pa.duration("s")), Array(t.LONG), "c.element"),
        (pa.map_(pa.string(), pa.duration("s")), Map(t.STRING, t.LONG), "c.value"),
    ],
    ids=str,
)
def test_types_that_no_table_has_are_told_where_they_are(kind: pa.DataType, target: DataType, place: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        fit_columns(pa.schema([("c", kind)]), Struct((Field("c", target),)))
    assert (caught.value.code, caught.value.column) == ("unsupported-type", place)


def test_each_column_comes_from_its_place() -> None:
    table = Struct(tuple(Field(name, t.LONG) for name in "abcd"))
    rows = pa.RecordBatch.from_pydict({"C": [1, None], "a": [3, 4], "D": pa.array([5, 6], pa.int8())})
    found = fit_columns(rows.schema, table)
    assert list(found) == ["a", "b", "c", "d"] and [found[n].place for n in "abcd"] == [1, None, 0, 2]
    assert {n: found[n].of(rows).to_pylist() for n in "abcd"} == {"a": [3, 4], "b": [None, None], "c": [1, None], "d": [5, 6]}  # fmt: skip
    assert all(found[n].of(rows).type == pa.int64() for n in "abcd")


@pytest.mark.parametrize("kind", [t.VARIANT, Array(t.VARIANT), Struct((Field("v", t.VARIANT),)), Map(t.STRING, t.VARIANT)], ids=str)  # fmt: skip
def test_variants_are_nulls_or_sparks(kind: DataType) -> None:
    table = Struct((Field("c", kind),))
    rows = pa.RecordBatch.from_pydict({"c": pa.nulls(2)})
    assert fit_columns(rows.schema, table)["c"].of(rows).to_pylist() == [None, None]
    with pytest.raises(UnsupportedFeature) as caught:
        fit_columns(pa.schema([("c", pa.string())]), table)
    assert (caught.value.code, caught.value.column) == ("unsupported-type", "c")


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2), pa.list_view(pa.int64()),
     pa.large_list_view(pa.int64())],
    ids=str,
)  # fmt: skip
def test_lists_of_every_kind(kind: pa.DataType) -> None:
    rows = [[1, 2], None, [3, None], [4, 5]]
    values = pa.array([[8, 9], *rows], kind).slice(1)
    assert fitted(values, Array(t.INTEGER)) == rows


@pytest.mark.parametrize("kind", [pa.ListViewArray, pa.LargeListViewArray])
def test_views_that_overlap_and_go_backwards(kind: type[pa.Array]) -> None:
    values = kind.from_arrays([2, 0, 1, 0], [1, 3, 2, 0], pa.array([7, 8, 9], pa.int64()))
    assert fitted(values, Array(t.LONG)) == [[9], [7, 8, 9], [8, 9], []]


def test_values_of_a_column_that_is_computed() -> None:
    values = pa.array([{"x": 1, "a": 300}, None], pa.struct([("x", pa.int64()), ("a", pa.int64())]))
    target = Field("r", Struct((Field("A", t.INTEGER), Field("X", t.LONG), Field("y", t.STRING))))
    made = fit_values(values, target)
    assert made.to_pylist() == [{"A": 300, "X": 1, "y": None}, None]
    with pytest.raises(InvalidRequest) as caught:
        fit_values(values, Field("r", Struct((Field("a", t.BYTE), Field("x", t.LONG)))))
    assert (caught.value.code, caught.value.column) == ("invalid-data", "r.a")
    with pytest.raises(InvalidRequest) as caught:
        fit_values(values, Field("r", Struct((Field("a", t.LONG),))))
    assert (caught.value.code, caught.value.column) == ("schema-mismatch", "r.x")
    assert "it has no column 'r.x'" in str(caught.value)

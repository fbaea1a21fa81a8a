"""typeWidening. Specification: "Type Widening", "Reader Requirements for Type Widening"."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D
from pathlib import Path

import pyarrow as pa
import pytest
from delta_values import make_config
from mapped_table import Log, features

import alluvium
from alluvium.delta.features.registry import BY_NAME, ensure_readable, ensure_writable
from alluvium.delta.features.types.type_widening import FEATURE, is_used, is_widening
from alluvium.delta.view.scan import plan_scan
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.errors import CorruptTable, UnsupportedFeature
from alluvium.schema import types as t
from alluvium.schema.types import Array, DataType, Decimal, Field, JsonValue, Map, Struct
from alluvium.storage.open import open_store

PROTOCOL = features("typeWidening")


def change(source: str, target: str, path: str | None = None) -> dict[str, JsonValue]:
    return {"fromType": source, "toType": target, **({} if path is None else {"fieldPath": path})}


def widened(name: str, data_type: DataType, *changes: dict[str, JsonValue]) -> Field:
    return Field(name, data_type, True, {"delta.typeChanges": list(changes)})


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (t.BYTE, t.SHORT), (t.BYTE, t.INTEGER), (t.BYTE, t.LONG), (t.SHORT, t.INTEGER), (t.SHORT, t.LONG),
        (t.INTEGER, t.LONG), (t.FLOAT, t.DOUBLE), (t.BYTE, t.DOUBLE), (t.SHORT, t.DOUBLE), (t.INTEGER, t.DOUBLE),
        (t.DATE, t.TIMESTAMP_NTZ), (Decimal(5, 2), Decimal(6, 2)), (Decimal(5, 2), Decimal(7, 4)),
        (t.BYTE, Decimal(10, 0)), (t.SHORT, Decimal(12, 2)), (t.INTEGER, Decimal(38, 28)), (t.LONG, Decimal(20, 0)),
        (t.LONG, Decimal(38, 18)), (t.LONG, t.LONG),
    ],
)  # fmt: skip
def test_the_supported_type_changes(source: DataType, target: DataType):
    """ "The supported type changes are: [...]" """
    assert is_widening(source, target)
    assert source == target or not is_widening(target, source)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (t.LONG, t.DOUBLE), (t.LONG, t.INTEGER), (t.INTEGER, t.FLOAT), (t.DATE, t.TIMESTAMP), (t.STRING, t.BINARY),
        (Decimal(5, 2), Decimal(6, 4)), (Decimal(5, 2), Decimal(7, 1)), (t.BYTE, Decimal(9, 0)),
        (t.INTEGER, Decimal(11, 2)), (t.LONG, Decimal(19, 0)), (t.LONG, Decimal(21, 2)), (t.FLOAT, Decimal(38, 0)),
        (t.TIMESTAMP_NTZ, t.TIMESTAMP),
    ],
)  # fmt: skip
def test_other_type_changes_are_none(source: DataType, target: DataType):
    assert not is_widening(source, target)


SCHEMA = Struct(
    (
        widened("n", t.LONG, change("byte", "short"), change("short", "long")),
        widened("f", t.DOUBLE, change("float", "double")),
        widened("i", Decimal(12, 2), change("integer", "decimal(12, 2)")),
        widened("d", t.TIMESTAMP_NTZ, change("date", "timestamp_ntz")),
        Field("s", Struct((widened("x", Decimal(10, 4), change("decimal(6, 2)", "decimal(10,4)")),))),
        widened("l", Array(Map(t.LONG, t.DOUBLE)), change("integer", "long", "element.key")),
    )
)
OLD = pa.table(
    {
        "n": pa.array([-5, None], pa.int8()),
        "f": pa.array([0.1, 1.5], pa.float32()),
        "i": pa.array([7, 8], pa.int32()),
        "d": pa.array([dt.date(2024, 2, 29), None]),
        "s": pa.array([{"x": D("1.25")}, None], pa.struct([("x", pa.decimal128(6, 2))])),
        "l": pa.array([[[(1, 2)]], []], pa.list_(pa.map_(pa.int32(), pa.int32()))),
    }
)
OLD_STATS = {
    "numRecords": 2,
    "minValues": {"n": -5, "f": 0.1, "i": 7, "d": "2024-02-29", "s": {"x": 1.25}},
    "maxValues": {"n": -5, "f": 1.5, "i": 8, "d": "2024-02-29", "s": {"x": 1.25}},
    "nullCount": {"n": 1, "f": 0, "i": 0, "d": 1, "s": {"x": 1}},
}


def test_values_are_converted_to_the_type_of_today(tmp_path: Path):
    """ "Readers must allow reading data files written before the table underwent any supported type change, and must
    convert such values to the current, wider type."
    """
    Log(open_store(str(tmp_path))).commit(SCHEMA, features("typeWidening", "timestampNtz"), files=[(OLD, {}, None)])
    rows = alluvium.open(str(tmp_path)).to_arrow().to_pylist()
    assert rows[0] == {
        "n": -5, "f": 0.10000000149011612, "i": D("7.00"), "d": dt.datetime(2024, 2, 29),
        "s": {"x": D("1.2500")}, "l": [[(1, 2.0)]],
    }  # fmt: skip
    assert rows[1] == {"n": None, "f": 1.5, "i": D("8.00"), "d": None, "s": None, "l": []}


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("n = -5", 1), ("n = 3000000000", 0), ("f > 1.4999999", 1), ("f > 1.6 and not isnan(f)", 0), ("i = 7.0", 1), ("i > 8.5", 0),
        ("d = timestamp_ntz'2024-02-29 00:00:00'", 1), ("d > timestamp_ntz'2024-03-01'", 0),
        ("s.x = 1.25", 1), ("s.x = 1.2501", 0),
        # The text of the float is 0.1; widened it is a little more, and must not be skipped.
        ("f = cast(0.10000000149011612 as double)", 1),
    ],
)  # fmt: skip
def test_statistics_of_older_files_still_skip(tmp_path: Path, where: str, kept: int):
    Log(open_store(str(tmp_path))).commit(
        SCHEMA, features("typeWidening", "timestampNtz"), files=[(OLD, {}, OLD_STATS)]
    )
    assert alluvium.open(str(tmp_path)).files(where).num_rows == kept


@pytest.mark.parametrize(
    ("data_type", "text", "expected"),
    [
        (t.LONG, "-7", -7),
        (t.DOUBLE, "7", 7.0),
        (Decimal(12, 3), "-999.9", D("-999.900")),
        (Decimal(10, 0), "7", D(7)),
        (t.TIMESTAMP_NTZ, "2024-02-29", dt.datetime(2024, 2, 29)),
    ],
)
def test_partition_values_keep_the_old_text(tmp_path: Path, data_type: DataType, text: str, expected: object):
    schema = Struct((Field("v", t.LONG), Field("p", data_type)))
    rows = pa.table({"v": pa.array([1], pa.int64())})
    Log(open_store(str(tmp_path))).commit(
        schema, features("typeWidening", "timestampNtz"), partition_by=["p"], files=[(rows, {"p": text}, None)]
    )
    assert alluvium.open(str(tmp_path)).to_arrow().to_pylist() == [{"v": 1, "p": expected}]


@pytest.mark.parametrize("name", ["typeWidening", "typeWidening-preview"])
def test_both_spellings_open_the_table(name: str):
    config = make_config(Struct((widened("x", t.LONG, change("integer", "long")),)), protocol=features(name))
    ensure_readable(config)
    assert BY_NAME[name] is FEATURE
    assert is_used(config)
    ensure_writable(config)


@pytest.mark.parametrize(
    "field",
    [
        widened("x", t.STRING, change("integer", "string")),
        widened("x", t.DOUBLE, change("long", "double")),
        widened("x", Array(t.STRING), change("integer", "string", "element")),
    ],
)
def test_unsupported_type_changes_are_refused(field: Field):
    """ "Readers must validate that they support all type changes in the `delta.typeChanges` field in the table schema
    for the table version they are reading and fail when finding any unsupported type change."
    """
    deep = Struct((Field("s", Array(Struct((field,)))),))
    with pytest.raises(UnsupportedFeature) as caught:
        ensure_readable(make_config(deep, protocol=PROTOCOL))
    assert (caught.value.code, caught.value.column) == ("unsupported-type-change", "s.element.x")
    # Without the feature the key means nothing.
    ensure_readable(make_config(deep))


@pytest.mark.parametrize("changes", ["x", [1], [{"fromType": "integer"}], [{"fromType": "what", "toType": "long"}]])
def test_a_damaged_record_is_reported(changes: JsonValue):
    schema = Struct((Field("x", t.LONG, True, {"delta.typeChanges": changes}),))
    with pytest.raises(CorruptTable) as caught:
        ensure_readable(make_config(schema, protocol=PROTOCOL))
    assert caught.value.column == "x"


def test_the_schema_that_readers_see_has_no_history(tmp_path: Path):
    Log(open_store(str(tmp_path))).commit(SCHEMA, features("typeWidening", "timestampNtz"))
    snapshot = load_snapshot(open_store(str(tmp_path)))
    assert "typeChanges" in repr(snapshot.config.schema)
    assert "typeChanges" not in repr(plan_scan(snapshot).schema)


@pytest.mark.parametrize(
    "changes",
    [
        7,
        True,
        "x",
        {},
        {"fromType": "byte", "toType": "long"},
        [7],
        ["x"],
        [{"fromType": "byte"}],
        [{"toType": "long"}],
        [[]],
    ],
)
def test_a_history_that_is_none(changes: object) -> None:
    """Whatever stands there, it is told as damage of the table."""
    field = Field("c", t.LONG, metadata={"delta.typeChanges": changes})  # type: ignore[dict-item]
    for given in (field, Field("s", Struct((field,))), Field("a", Array(Struct((field,))))):
        config = make_config(Struct((given,)), protocol=PROTOCOL)
        with pytest.raises(CorruptTable) as caught:
            ensure_readable(config)
        assert caught.value.code == "invalid-type-changes"
        assert caught.value.column == {"c": "c", "s": "s.c", "a": "a.element.c"}[given.name]

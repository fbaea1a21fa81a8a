"""Columns of live files in checkpoints. Specification: "Checkpoints"."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from delta_values import make_config, make_files

from alluvium.delta.log_upkeep.file_columns import checkpoint_files
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.terms.spec import FILES, Protocol
from alluvium.schema import types as t
from alluvium.schema.types import Array, Field, Struct
from alluvium.schema.types import Decimal as DecimalType

SCHEMA = Struct(
    (
        Field("id", t.LONG),
        Field("s", Struct((Field("day", t.DATE), Field("flag", t.BOOLEAN)))),
        Field("at", t.TIMESTAMP),
        Field("price", DecimalType(10, 2)),
        Field("tags", Array(t.STRING)),
        Field("region", t.STRING),
        Field("year", t.INTEGER),
    )
)
STATS = {
    "numRecords": 5,
    "minValues": {"id": 1, "s": {"day": "2024-01-01"}, "at": "2024-01-01T00:00:00.001Z", "price": 1.25},
    "maxValues": {"id": 9, "s": {"day": "2024-02-01"}, "at": "2024-02-01T00:00:00.002Z", "price": 99.5},
    "nullCount": {"id": 0, "s": {"day": 1, "flag": 2}, "at": 3, "price": 0, "tags": 4},
}
AS_STRUCT = {"delta.checkpoint.writeStatsAsStruct": "true"}
ONLY_STRUCT = {**AS_STRUCT, "delta.checkpoint.writeStatsAsJson": "false"}


def columns_of(files: pa.Table, properties: dict[str, str]) -> pa.Table:
    config = make_config(SCHEMA, ["region", "year"], properties)
    return checkpoint_files(files, config, parse_properties(properties))


def files() -> pa.Table:
    partition = {"region": "eu", "year": "2024"}
    return make_files(
        {"path": "a", "partitionValues": partition, "stats": json.dumps(STATS)},
        {"path": "b", "partitionValues": {"region": None, "year": "7"}},
        {"path": "c", "partitionValues": partition, "stats": '{"numRecords":2,"tightBounds":false}'},
    )


def test_by_default_there_is_text_alone() -> None:
    """ "When this property is set to `false` (which is the default), this field should be omitted" """
    assert set(columns_of(files(), {}).column_names) == set(FILES.names)


def test_statistics_as_columns() -> None:
    """ "stats_parsed: The stats can be stored in their original format." """
    made = columns_of(files(), ONLY_STRUCT)
    # "When this property is set to `false`, this field should be omitted from the checkpoint."
    assert "stats" not in made.column_names
    first, second, third = made.column("stats_parsed").to_pylist()
    utc = dt.timezone.utc
    assert first == {
        "numRecords": 5,
        "tightBounds": None,
        "minValues": {
            "id": 1, "s": {"day": dt.date(2024, 1, 1)}, "at": dt.datetime(2024, 1, 1, 0, 0, 0, 1000, utc),
            "price": Decimal("1.25"),
        },
        "maxValues": {
            "id": 9, "s": {"day": dt.date(2024, 2, 1)}, "at": dt.datetime(2024, 2, 1, 0, 0, 0, 2000, utc),
            "price": Decimal("99.50"),
        },
        "nullCount": {"id": 0, "s": {"day": 1, "flag": 2}, "at": 3, "price": 0, "tags": 4},
    }  # fmt: skip
    assert second is None
    assert (third["numRecords"], third["tightBounds"], third["minValues"]["id"]) == (2, False, None)


def test_partition_values_as_columns() -> None:
    """ "the column names correspond to the partition columns and the values are stored in their corresponding data
    type. This is a required field when the table is partitioned and [...] `writeStatsAsStruct` is set to `true`." """
    parsed = columns_of(files(), AS_STRUCT).column("partitionValues_parsed")
    assert parsed.type == pa.struct([pa.field("region", pa.string()), pa.field("year", pa.int32())])
    expected = [{"region": "eu", "year": 2024}, {"region": None, "year": 7}, {"region": "eu", "year": 2024}]
    assert parsed.to_pylist() == expected


def test_only_the_columns_with_statistics() -> None:
    few = {**AS_STRUCT, "delta.dataSkippingNumIndexedCols": "1"}
    parsed = columns_of(files(), few).column("stats_parsed").type
    assert [f.name for f in parsed.field("nullCount").type] == ["id"]


def test_statistics_that_exist_as_columns_only_become_text() -> None:
    """A change of the properties loses no statistics."""
    as_columns = columns_of(files(), ONLY_STRUCT)
    stored = as_columns.append_column(FILES.field("stats"), pa.nulls(3, pa.string()))
    stored = stored.select([*FILES.names, "stats_parsed"])
    made = columns_of(stored, {})
    assert "stats_parsed" not in made.column_names
    first, second, third = made.column("stats").to_pylist()
    assert json.loads(first) == STATS
    assert second is None
    assert json.loads(third)["numRecords"] == 2
    again = columns_of(stored, ONLY_STRUCT).column("stats_parsed").to_pylist()
    assert again == as_columns.column("stats_parsed").to_pylist()


def test_pruning_sees_the_same_in_both_forms() -> None:
    as_columns = columns_of(files(), ONLY_STRUCT).append_column(FILES.field("stats"), pa.nulls(3, pa.string()))
    for path in (("id",), ("s", "day"), ("at",), ("price",)):
        text = AddStatistics(files(), SCHEMA, ["region", "year"])
        parsed = AddStatistics(as_columns, SCHEMA, ["region", "year"])
        for bound in ("lower", "upper", "null_count"):
            assert getattr(parsed, bound)(path).equals(getattr(text, bound)(path)), (path, bound)


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("struct", [True, False])
@pytest.mark.parametrize("has_columns", [True, False])
def test_which_columns_there_are(text: bool, struct: bool, has_columns: bool) -> None:
    said = {
        "delta.checkpoint.writeStatsAsJson": str(text).lower(),
        "delta.checkpoint.writeStatsAsStruct": str(struct).lower(),
    }
    given = files()
    if has_columns:
        parsed = columns_of(given, ONLY_STRUCT).column("stats_parsed")
        given = given.append_column("stats_parsed", parsed)
    made = columns_of(given, said)
    expected = {*FILES.names} - ({"stats"} if not text else set()) | (
        {"stats_parsed", "partitionValues_parsed"} if struct else set()
    )
    assert set(made.column_names) == expected and made["path"].to_pylist() == ["a", "b", "c"]
    if text:
        assert made["stats"].to_pylist() == given["stats"].to_pylist()
    if struct:
        assert [row and row["numRecords"] for row in made["stats_parsed"].to_pylist()] == [5, None, 2]
    assert (made is given) == (text and not struct and not has_columns)
    plain = checkpoint_files(given, make_config(SCHEMA, [], said), parse_properties(said))
    assert "partitionValues_parsed" not in plain.column_names


def test_columns_and_texts_stand_in_for_each_other() -> None:
    """File by file: the text counts where there is one."""
    given = files()
    parsed = pa.array([{"numRecords": 77, "tightBounds": True}, {"numRecords": 88, "tightBounds": True}, None])
    given = given.append_column("stats_parsed", parsed)
    found = columns_of(given, AS_STRUCT)["stats_parsed"].to_pylist()
    assert [(row["numRecords"], row["tightBounds"]) for row in found] == [(5, None), (88, True), (2, False)]
    assert found[1]["minValues"] == {"id": None, "s": {"day": None}, "at": None, "price": None}
    quiet = pa.array([{"numRecords": 77}, None, None], pa.struct([("numRecords", pa.int64())]))
    none = make_files({"path": "a"}, {"path": "b"}, {"path": "c"}).append_column("stats_parsed", quiet)
    made = columns_of(none, ONLY_STRUCT)["stats_parsed"]
    # That bounds are tight is said where a file says it.
    assert made.type.get_field_index("tightBounds") == -1
    assert [row and row["numRecords"] for row in made.to_pylist()] == [77, None, None]


def test_mapped_columns_go_by_the_names_of_files() -> None:
    mapped = Struct(
        (
            Field("id", t.LONG, True, {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c1"}),
            Field("at", t.TIMESTAMP, True, {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "c2"}),
        )
    )
    properties = {**ONLY_STRUCT, "delta.columnMapping.mode": "name"}
    protocol = Protocol(min_reader_version=2, min_writer_version=5)
    config = make_config(mapped, ["at"], properties, protocol)
    stats = '{"numRecords":1,"minValues":{"c1":3},"maxValues":{"c1":4},"nullCount":{"c1":0}}'
    given = make_files({"path": "a", "partitionValues": {"c2": "2024-01-01 09:00:00"}, "stats": stats})
    (row,) = checkpoint_files(given, config, parse_properties(properties), "Asia/Tokyo").to_pylist()
    assert row["stats_parsed"]["minValues"] == {"c1": 3} and row["stats_parsed"]["nullCount"] == {"c1": 0}
    # A time without a zone is the session's.
    assert row["partitionValues_parsed"] == {"c2": dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)}


@pytest.mark.parametrize("kind", [t.BINARY, t.BOOLEAN, Array(t.LONG)], ids=str)
def test_types_without_bounds_have_counts_alone(kind: t.DataType) -> None:
    schema = Struct((Field("x", kind), Field("n", t.LONG)))
    given = make_files({"path": "a", "stats": '{"numRecords":1,"minValues":{"x":"q","n":1},"nullCount":{"x":1,"n":0}}'})
    parsed = checkpoint_files(given, make_config(schema, [], ONLY_STRUCT), parse_properties(ONLY_STRUCT))[
        "stats_parsed"
    ]
    assert [f.name for f in parsed.type.field("minValues").type] == ["n"]
    assert parsed.to_pylist()[0]["nullCount"] == {"x": 1, "n": 0}

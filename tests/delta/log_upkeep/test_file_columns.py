"""Columns of live files in checkpoints. Specification: "Checkpoints"."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
from delta_values import make_config, make_files

from alluvium.delta.log_upkeep.file_columns import checkpoint_files
from alluvium.delta.statistics.stats import AddStatistics
from alluvium.delta.terms.properties import parse_properties
from alluvium.delta.terms.spec import FILES
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

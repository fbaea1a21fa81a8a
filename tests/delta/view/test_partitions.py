"""Partitions of files, as columns, as keys and as predicates."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pytest

from alluvium.delta.description.create import new_config
from alluvium.delta.view.partitions import partition_constants, partition_fields, partition_keys, partitions_predicate
from alluvium.errors import CorruptTable
from alluvium.expr.tree import And, Column, Compare, Expression, Literal, Or
from alluvium.schema.types import BINARY, DATE, LONG, STRING, TIMESTAMP, DataType, Field, Struct


def test_years_that_python_has_not() -> None:
    """What a dynamic overwrite has read is then the whole table."""
    config = new_config(Struct((Field("id", LONG), Field("p", DATE))), ["p"], {})
    for text, told in (("2024-01-01", True), ("+10000-01-01", False), ("-0001-01-01", False)):
        files = pa.table({"partitionValues": pa.array([[("p", text)]], pa.map_(pa.string(), pa.string()))})
        assert (partitions_predicate(files, config, "UTC") is not None) == told, text


def files_of(*rows: dict[str, str | None]) -> pa.Table:
    maps = [list(row.items()) for row in rows]
    return pa.table({"partitionValues": pa.array(maps, pa.map_(pa.string(), pa.string()))})


SCHEMA = Struct((Field("id", LONG), Field("p", DATE), Field("q", LONG), Field("s", STRING), Field("b", BINARY)))


def test_columns_of_partitions_in_their_own_order() -> None:
    config = new_config(SCHEMA, ["q", "p"], {})
    assert [f.name for f in partition_fields(config)] == ["q", "p"]
    assert partition_fields(new_config(SCHEMA, [], {})) == ()
    found = partition_constants(files_of({"p": "2024-01-01", "q": "7"}, {"q": ""}), config, "UTC")
    assert found.to_pylist() == [{"q": 7, "p": dt.date(2024, 1, 1)}, {"q": None, "p": None}]
    none = partition_constants(files_of({}, {}), new_config(SCHEMA, [], {}), "UTC")
    assert (len(none), none.null_count, none.type.num_fields) == (2, 0, 0)


def test_values_stand_under_the_names_of_the_files() -> None:
    config = new_config(SCHEMA, ["p"], {"delta.columnMapping.mode": "name"})
    physical = config.physical_names["p"]
    assert physical != "p"
    found = partition_constants(files_of({physical: "2024-01-01"}, {"p": "2024-01-01"}), config, "UTC")
    assert found.to_pylist() == [{"p": dt.date(2024, 1, 1)}, {"p": None}]


def test_times_without_a_zone_are_of_the_session_s() -> None:
    config = new_config(Struct((Field("id", LONG), Field("t", TIMESTAMP))), ["t"], {})
    files = files_of({"t": "2024-01-01 00:00:00"})
    moments = {}
    for zone in ("UTC", "+01:00"):
        (moments[zone],) = partition_constants(files, config, zone).field("t").cast("int64").to_pylist()
        predicate = partitions_predicate(files, config, zone)
        assert isinstance(predicate, Compare) and isinstance(predicate.right, Literal)
    assert moments["UTC"] - moments["+01:00"] == 3_600_000_000
    assert partition_keys(files, config, "UTC") != partition_keys(files, config, "+01:00")


def test_a_value_that_is_none_names_its_column() -> None:
    with pytest.raises(CorruptTable) as caught:
        partition_constants(files_of({"q": "x"}), new_config(SCHEMA, ["q"], {}), "UTC")
    assert (caught.value.code, caught.value.column) == ("invalid-partition-value", "q")


def test_keys_are_equal_where_all_values_are() -> None:
    """Beside the values themselves: texts and bytes of any kind, numbers and days however they are written."""
    config = new_config(SCHEMA, ["s", "b", "q", "p"], {})
    lot = random.Random(3)
    texts = ["a", "b", "ab", "1", ":", "1:a", ";", "n", "nn", "1:a;", None]
    rows = [
        {"s": lot.choice(texts), "b": lot.choice(texts), "q": lot.choice(["1", "01", "+1", "2", None]), "p": lot.choice(["2024-01-01", "2024-1-1", None])}
        for _ in range(300)
    ]  # fmt: skip
    values = [tuple(row.values()) for row in partition_constants(files_of(*rows), config, "UTC").to_pylist()]
    keys = partition_keys(files_of(*rows), config, "UTC").to_pylist()
    assert len(set(zip(values, keys, strict=True))) == len(set(values)) == len(set(keys))


def test_the_predicate_says_each_partition_once() -> None:
    config = new_config(SCHEMA, ["q", "s"], {})
    files = files_of({"q": "1", "s": "x"}, {"q": "01", "s": "x"}, {"q": None, "s": "y"})

    def same(name: str, data_type: DataType, value: object) -> Expression:
        return Compare("<=>", Column((name,), data_type), Literal(value, data_type))

    first = And(same("q", LONG, 1), same("s", STRING, "x"))
    assert partitions_predicate(files, config, "UTC") == Or(first, And(same("q", LONG, None), same("s", STRING, "y")))
    assert partitions_predicate(files.slice(0, 2), config, "UTC") == first
    one = new_config(SCHEMA, ["q"], {})
    assert partitions_predicate(files.slice(0, 1), one, "UTC") == same("q", LONG, 1)
    # Without partition columns there is nothing to say.
    assert partitions_predicate(files, new_config(SCHEMA, [], {}), "UTC") is None

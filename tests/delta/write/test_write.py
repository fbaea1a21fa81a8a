"""Rows to files to actions: what a plan takes from a table's properties, and what an add says of a file."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from delta_values import make_config

from alluvium.codecs.footers.parquet_footer import ColumnStats, FileFooter, FooterColumn
from alluvium.delta.terms.file_properties import FileLayout
from alluvium.delta.terms.spec import CHANGE_FILES, FILES, Protocol
from alluvium.delta.write.write import added_files, change_files, partition_maps, plan_change_files, plan_write
from alluvium.plan.write import TARGET_FILE_BYTES, WRITTEN_FILES, Check, Derived, Numbered, WritePlan
from alluvium.schema.types import BINARY, DATE, LONG, STRING, TIMESTAMP, Field, Struct

SCHEMA = Struct((Field("id", LONG), Field("s", Struct((Field("x", LONG), Field("y", STRING)))), Field("p", STRING)))


def plan_of(
    schema: Struct = SCHEMA, partition_by: Sequence[str] = (), properties: Mapping[str, str] | None = None
) -> WritePlan:
    return plan_write(make_config(schema, partition_by, properties), "memory://x/t")


def test_a_plan_without_wishes() -> None:
    config = make_config(SCHEMA, ["p"])
    plan = plan_write(config, "memory://x/t")
    assert (plan.root, plan.schema, plan.partition_by) == ("memory://x/t", SCHEMA, ("p",))
    assert (plan.checks, plan.options, plan.sort, plan.most_tasks) == ((), (), (), None)
    assert (plan.rebalance, plan.target_file_bytes) == (False, TARGET_FILE_BYTES)
    assert plan.stats_columns == (
        FooterColumn(("id",), LONG), FooterColumn(("s", "x"), LONG), FooterColumn(("s", "y"), STRING)
    )  # fmt: skip
    # Each job has a folder of its own.
    assert len({str(uuid.UUID(plan_write(config, "memory://x/t").directory)) for _ in range(3)}) == 3


def test_wishes_of_a_table() -> None:
    plan = plan_of(properties={
        "delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "3", "delta.targetFileSize": "4096",
        "delta.parquet.compression.codec": "zstd", "delta.autoOptimize.optimizeWrite": "true",
    })  # fmt: skip
    prefix, _, name = plan.directory.partition("/")
    assert len(prefix) == 3 and prefix.isalnum() and uuid.UUID(name)
    assert (plan.target_file_bytes, plan.rebalance) == (4096, True)
    assert [name for name, _ in plan.options] == ["compression"] and plan.options[0][1].casefold() == "zstd"


def test_what_the_caller_and_the_session_say_counts_more() -> None:
    properties = {
        "delta.targetFileSize": "4096", "delta.parquet.compression.codec": "zstd",
        "delta.autoOptimize.optimizeWrite": "true",
    }  # fmt: skip
    config = make_config(SCHEMA, (), properties)
    mine = (("compression", "snappy"), ("maxRecordsPerFile", "3"))
    assert plan_write(config, "u", options=mine).options == mine
    options = plan_write(config, "u", options=mine[1:]).options
    assert options[0] == mine[1] and [name for name, _ in options] == ["maxRecordsPerFile", "compression"]
    plan = plan_write(config, "u", layout=FileLayout(optimize_write=False, bin_bytes=77, most_tasks=5))
    assert (plan.rebalance, plan.target_file_bytes, plan.most_tasks) == (False, 77, 5)
    plan = plan_write(make_config(SCHEMA), "u", layout=FileLayout(optimize_write=True))
    assert (plan.rebalance, plan.target_file_bytes) == (True, TARGET_FILE_BYTES)


def test_binary_partition_values_must_be_text() -> None:
    schema = Struct((Field("id", LONG), Field("b`c", BINARY), Field("other", BINARY)))
    asked = Check("mine", "id > 0", ("id",))
    first, check = plan_write(make_config(schema, ["b`c"]), "u", [asked]).checks
    assert first is asked and (check.name, check.columns) == ("partition b`c", ("b`c",))
    assert check.code == "unrepresentable-partition-value"
    assert check.sql == (
        "(`b``c` is null or (is_valid_utf8(cast(`b``c` as string)) "
        "and instr(cast(`b``c` as string), cast(X'00' as string)) = 0))"
    )
    assert plan_of(schema, ["id"]).checks == ()


def names(plan: WritePlan) -> list[str]:
    return [".".join(column.path) for column in plan.stats_columns]


@pytest.mark.parametrize(
    ("properties", "indexed", "expected"),
    [
        ({}, [], ["id", "s.x", "s.y"]),
        ({"delta.dataSkippingNumIndexedCols": "1"}, [], ["id"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, [], []),
        ({"delta.dataSkippingNumIndexedCols": "0"}, [("s", "y"), ("id",)], ["id", "s.y"]),
        ({"delta.dataSkippingNumIndexedCols": "1"}, [("s", "y"), ("id",)], ["id", "s.y"]),
        ({"delta.dataSkippingStatsColumns": "s"}, [], ["s.x", "s.y"]),
        ({"delta.dataSkippingStatsColumns": "s"}, [("id",), ("s", "x")], ["s.x", "s.y", "id"]),
        ({"delta.dataSkippingNumIndexedCols": "0"}, [("p",), ("missing",)], []),
    ],
)
def test_columns_with_statistics(
    properties: dict[str, str], indexed: list[tuple[str, ...]], expected: list[str]
) -> None:
    """ "Writers must write out per-file statistics for clustering columns", wherever they stand; once each."""
    assert names(plan_write(make_config(SCHEMA, ["p"], properties), "u", indexed=indexed)) == expected


# --- actions --------------------------------------------------------------------------------------------------------


def written(*rows: tuple[str, int, list[str | None]]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"path": path, "size": size, "modification_time_ms": 50 + size, "num_rows": 3, "partition": values}
            for path, size, values in rows
        ],
        schema=WRITTEN_FILES,
    )


FOOTERS = (
    FileFooter(3, {("id",): ColumnStats(LONG, 1, 7, 0)}),
    FileFooter(4, {("s", "y"): ColumnStats(STRING, "a", "b", 2)}),
)


def test_adds_of_files() -> None:
    config = make_config(SCHEMA, ["p"])
    found = added_files(config, written(("d/a b.parquet", 11, ["x"]), ("d/%.parquet", 22, [None])), FOOTERS)
    assert found.schema == FILES and all(column.num_chunks <= 1 for column in found.columns)
    first, second = found.to_pylist()
    assert (first["path"], first["size"], first["modificationTime"]) == ("d/a%20b.parquet", 11, 61)
    assert (second["path"], second["size"], second["modificationTime"]) == ("d/%25.parquet", 22, 72)
    assert (first["partitionValues"], second["partitionValues"]) == ([("p", "x")], [("p", None)])
    assert json.loads(first["stats"]) == {
        "numRecords": 3, "minValues": {"id": 1}, "maxValues": {"id": 7}, "nullCount": {"id": 0}
    }  # fmt: skip
    assert json.loads(second["stats"])["nullCount"] == {"s": {"y": 2}}
    told = {"path", "size", "modificationTime", "partitionValues", "stats", "dataChange"}
    assert all(row["dataChange"] is True for row in (first, second))
    assert all(row[name] is None for row in (first, second) for name in FILES.names if name not in told)


def test_adds_that_change_no_data_and_say_more() -> None:
    config = make_config(SCHEMA, ["p"])
    tags = pa.array([[("a", "b")], None], FILES.field("tags").type)
    marks = pa.table({"tags": pa.chunked_array([tags.slice(0, 1), tags.slice(1)])})
    found = added_files(config, written(("a", 1, ["x"]), ("b", 2, ["y"])), FOOTERS, False, marks)
    assert found["tags"].to_pylist() == [[("a", "b")], None] and found["dataChange"].to_pylist() == [False, False]


@pytest.mark.parametrize(("features", "tight"), [(("deletionVectors",), True), (("appendOnly",), None)])
def test_bounds_say_that_they_are_tight_where_vectors_may_loosen_them(
    features: tuple[str, ...], tight: bool | None
) -> None:
    reader = ("deletionVectors",) if tight else ()
    protocol = Protocol(min_reader_version=3, min_writer_version=7, reader_features=reader, writer_features=features)
    config = make_config(SCHEMA, (), None, protocol)
    (text,) = added_files(config, written(("a", 1, [])), FOOTERS[:1])["stats"].to_pylist()
    assert json.loads(text).get("tightBounds") is tight


def test_records_of_changes() -> None:
    config = make_config(SCHEMA, ["p"])
    found = change_files(config, written(("_change_data/a b", 5, ["é"]), ("_change_data/c", 6, [None])))
    assert found.schema == CHANGE_FILES
    shown = [{name: value for name, value in row.items() if value is not None} for row in found.to_pylist()]
    assert shown == [
        {"path": "_change_data/a%20b", "partitionValues": [("p", "é")], "size": 5, "dataChange": False},
        {"path": "_change_data/c", "partitionValues": [("p", None)], "size": 6, "dataChange": False},
    ]
    assert change_files(config, written()).num_rows == 0


def test_records_of_changes_are_written_without_what_rows_are_checked_and_measured_for() -> None:
    plan = replace(
        plan_of(partition_by=["p"], properties={"delta.randomizeFilePrefixes": "true"}),
        checks=(Check("c", "id > 0"),),
        derived=(Derived("id", "1"),),
        numbered=(Numbered("id", 1, 1, False),),
        sort=("id",),
        rebalance=True,
        options=(("compression", "zstd"),),
    )
    found = plan_change_files(plan)
    folder, _, name = found.directory.partition("/")
    assert folder == "_change_data" and uuid.UUID(name) and found.directory != plan_change_files(plan).directory
    assert found.schema == Struct((*SCHEMA.fields, Field("_change_type", STRING))) and found.stored is None
    unlike = {"directory", "schema", "checks", "derived", "numbered", "sort", "stats_columns"}
    assert all(getattr(found, name) == () for name in unlike - {"directory", "schema"})
    assert all(getattr(found, name) == getattr(plan, name) for name in plan.__slots__ if name not in unlike)
    stored = Struct((Field("c1", LONG), Field("c2", STRING)))
    assert plan_change_files(replace(plan, stored=stored)).stored == Struct(
        (*stored.fields, Field("_change_type", STRING))
    )


def test_values_of_partitions() -> None:
    """ "An empty string as a partition value [...] is translated to null"; instants are said with their zone."""
    lot = random.Random(5)
    schema = Struct((Field("id", LONG), Field("d", DATE), Field("q", STRING), Field("w", TIMESTAMP)))
    logged = {"": None, "2024-01-01 00:00:00": "2024-01-01T00:00:00.000000Z"}
    pool = {"d": ["2020-01-31", None], "q": ["x", "", "é/ü", None], "w": ["2024-01-01 00:00:00", None]}
    keys = {"d": "col-1", "q": "col-2", "w": "col-3"}
    for count in (0, 1, 2, 5):
        for columns in ([], ["q"], ["w", "q"], ["q", "d", "w"]):
            rows = [[lot.choice(pool[name]) for name in columns] for _ in range(count)]
            config = make_config(schema, columns)
            partitions = pa.chunked_array([pa.array(rows, pa.list_(pa.string()))])
            found = partition_maps(config, partitions)
            values = [[None if text is None else logged.get(text, text) for text in row] for row in rows]
            assert found.type == FILES.field("partitionValues").type
            assert found.to_pylist() == [list(zip(columns, row, strict=True)) for row in values]
            named = partition_maps(config, partitions, keys)
            physical = [keys[name] for name in columns]
            assert named.to_pylist() == [list(zip(physical, row, strict=True)) for row in values]

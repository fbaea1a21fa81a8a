"""Rows that Spark's operators merge are those that the lane without Spark makes of the same files."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from paimon_tables import HandWritten
from pyspark.sql import SparkSession

import alluvium
from alluvium.paimon import PaimonTable
from alluvium.paimon.log.snapshot import load_snapshot
from alluvium.paimon.view.source import PaimonSource
from alluvium.spark.scan.merged import unmergeable
from alluvium.spark.scan.native_lane.native import unreadable
from alluvium.storage.open import open_store

pytestmark = pytest.mark.spark

TYPES = {
    "i": pa.int32(), "b": pa.int8(), "l": pa.int64(), "f": pa.float32(), "d": pa.float64(), "s": pa.string(),
    "t": pa.bool_(), "g": pa.int32(), "h": pa.string(), "m": pa.list_(pa.int32()),
}  # fmt: skip
VALUES: dict[str, Sequence[Any]] = {
    "i": (1, -7, 2**31 - 1, -(2**31), None), "b": (1, 100, -128, None), "l": (5, 2**63 - 1, -(2**63), 2**33, None),
    "f": (0.1, 0.7, 1e30, None), "d": (0.1, 0.2, 0.3, 1e300, -1e300, None), "s": ("a", "b", "", None),
    "t": (True, False, None), "g": (1, 2, 3, None), "h": ("x", "y", None), "m": ([1], [1, 2], None),
}  # fmt: skip
AGGREGATION = {"merge-engine": "aggregation"}
PARTIAL = {"merge-engine": "partial-update"}
INSERTS, ANY = ("+I", "+U"), ("+I", "+U", "-U", "-D")


def functions(**names: str) -> dict[str, str]:
    return {f"fields.{column}.aggregate-function": name for column, name in names.items()}


MERGES: dict[str, tuple[dict[str, str], Sequence[str]]] = {
    "deduplicate": ({}, ANY),
    "deduplicate-inserts": ({}, INSERTS),
    "sequence": ({"sequence.field": "g,h"}, ANY),
    "descending": ({"sequence.field": "g", "sequence.field.sort-order": "descending"}, ANY),
    "ignore-delete": ({"ignore-delete": "true"}, ANY),
    "partial": (PARTIAL, INSERTS),
    "partial-ignoring": ({**PARTIAL, "ignore-delete": "true"}, INSERTS),
    "groups": ({**PARTIAL, "fields.g.sequence-group": "i,s", "fields.h,l.sequence-group": "d,m"}, INSERTS),
    "groups-functions": (
        {**PARTIAL, "fields.g.sequence-group": "i,b,s,t,l",
         **functions(i="sum", b="max", s="last_value", t="bool_or", l="min")},
        INSERTS,
    ),
    "sums": ({**AGGREGATION, **functions(i="sum", b="sum", l="sum", f="sum", d="sum", s="max", t="bool_and")}, INSERTS),
    "choices": (
        {**AGGREGATION, **functions(i="min", b="max", l="first_value", f="product", d="product", s="listagg",
                                    t="bool_or", g="first_non_null_value", h="last_value", m="last_non_null_value")},
        INSERTS,
    ),
    "choices-by-sequence": (
        {**AGGREGATION, "sequence.field": "g", "fields.h.list-agg-delimiter": "--",
         **functions(i="first_value", h="listagg", d="sum", m="last_value")},
        INSERTS,
    ),
}  # fmt: skip


def write_table(root: Path, options: dict[str, str], kinds: Sequence[str], commits: int = 6) -> None:
    schema = pa.schema([pa.field("k", pa.int64(), False), *(pa.field(n, kind) for n, kind in TYPES.items())])
    table = HandWritten(root, schema, keys=("k",), **options)
    pick = random.Random(commits)
    for _ in range(commits):
        keys = sorted(pick.sample(range(40), 25))
        rows = [{"k": k, **{n: pick.choice(values) for n, values in VALUES.items()}} for k in keys]
        table.commit(rows, [pick.choice(kinds) for _ in rows])


def plan_of(root: Path) -> Any:
    return PaimonSource(load_snapshot(open_store(str(root)))).plan_scan(None)


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())


@pytest.mark.parametrize("name", MERGES)
def test_merges(name: str, spark: SparkSession, tmp_path: Path) -> None:
    options, kinds = MERGES[name]
    write_table(tmp_path / "t", options, kinds)
    assert unreadable(plan_of(tmp_path / "t")) is None
    frame = alluvium.read(spark, str(tmp_path / "t"))
    expected = alluvium.open(str(tmp_path / "t")).to_arrow()
    assert expected.num_rows > 10
    assert frame.columns == expected.column_names
    assert sorted_rows(frame.toArrow()) == sorted_rows(expected)


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation"])
def test_rows_of_equal_sequence_numbers_do_not_mix(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    """Two writers at a time give equal numbers: of a key all columns come from one file, the same in every lane."""
    schema = pa.schema([pa.field("k", pa.int64(), False), *(pa.field(n, pa.int64()) for n in "abcdef")])
    functions_ = {"fields.default-aggregate-function": "last_value"} if engine == "aggregation" else {}
    table = HandWritten(tmp_path / "t", schema, keys=("k",), **{"merge-engine": engine, **functions_})
    for number in range(5):
        table._sequence = 0
        table.commit([{"k": k, **dict.fromkeys("abcdef", number)} for k in range(200)])
    found = alluvium.read(spark, str(tmp_path / "t")).repartition(7).toArrow()
    assert {tuple(row.values())[1:] for row in found.to_pylist()} == {(4,) * 6}
    assert alluvium.open(str(tmp_path / "t")).to_arrow()["a"].unique().to_pylist() == [4]


def test_zero_is_greater_than_its_negative(spark: SparkSession, tmp_path: Path) -> None:
    """As in Java; Spark calls them equal, and keeps the first that it meets."""
    schema = pa.schema([pa.field("k", pa.int64(), False), pa.field("f", pa.float32()), pa.field("d", pa.float64())])
    for name, expected in (("max", [0.0, 0.0, -0.0, 0.0, None, 1.0]), ("min", [-0.0, -0.0, -0.0, 0.0, None, 1.0])):
        table = HandWritten(tmp_path / name, schema, keys=("k",), **AGGREGATION, **functions(f=name, d=name))
        for values in ((-0.0, 0.0, -0.0, 0.0, None, 1.0), (0.0, -0.0, -0.0, 0.0, None, 1.0)):
            table.commit([{"k": k, "f": value, "d": value} for k, value in enumerate(values)])
        assert unreadable(plan_of(tmp_path / name)) is None
        found = alluvium.read(spark, str(tmp_path / name)).orderBy("k").toArrow()
        assert [repr(found[column].to_pylist()) for column in "fd"] == [repr(expected)] * 2
        assert sorted_rows(found) == sorted_rows(alluvium.open(str(tmp_path / name)).to_arrow())


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_sums_wrap_in_any_session(spark: SparkSession, tmp_path: Path, ansi: str) -> None:
    write_table(tmp_path / "t", MERGES["sums"][0], INSERTS, commits=12)
    before = spark.conf.get("spark.sql.ansi.enabled")
    try:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        found = alluvium.read(spark, str(tmp_path / "t")).toArrow()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    assert sorted_rows(found) == sorted_rows(alluvium.open(str(tmp_path / "t")).to_arrow())


def test_filters_on_keys_skip_files_and_filters_on_values_do_not(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.string())])
    table = HandWritten(tmp_path / "t", schema, keys=("k",))
    for start in (0, 5, 100, 105, 1000):
        table.commit([{"k": start + i, "v": f"{start}"} for i in range(10)])
    frame = alluvium.read(spark, str(tmp_path / "t"))
    assert frame.where("k = 7").collect() == [(7, "5")]
    assert sum(scan.files for scan in alluvium.explain(frame.where("k = 101"))) == 1
    assert sum(scan.files for scan in alluvium.explain(frame.where("k = 107"))) == 2
    assert frame.where("v = '0'").count() == 5
    # What stands alone is read as it is.
    assert sum(scan.files for scan in alluvium.explain(frame.where("k = 1000"))) == 1
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Exchange" not in plan
    assert frame.select("v").where("k = 7").collect() == [("5",)]


def test_only_columns_asked_are_read(spark: SparkSession, tmp_path: Path) -> None:
    write_table(tmp_path / "t", MERGES["choices"][0], INSERTS)
    plan = alluvium.read(spark, str(tmp_path / "t")).select("k", "i")._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<k:bigint,_SEQUENCE_NUMBER" not in plan
    assert "`s`" not in plan.split("ReadSchema")[1]
    assert "s:string" not in plan


def test_rows_that_take_back_and_are_not_counted(spark: SparkSession, tmp_path: Path) -> None:
    """As pypaimon writes them, by `rowkind.field`: read, and compacted."""
    schema = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64()), ("op", pa.string())])
    table = HandWritten(tmp_path / "t", schema, ["k"], **{"rowkind.field": "op"})
    table.commit([{"k": k, "v": k, "op": "+I"} for k in (1, 3, 4)])
    table.commit([{"k": 9, "v": 9, "op": "-D"}], ["-D"], counts_deletes=False)
    table.commit([{"k": 3, "v": 3, "op": "-D"}], ["-D"], counts_deletes=False)
    url = str(tmp_path / "t")
    for _ in range(2):
        frame = alluvium.read(spark, url)
        assert sorted(row.k for row in frame.collect()) == [1, 4]
        assert (frame.count(), frame.where("k = 9").count()) == (2, 0)
        assert sorted(alluvium.open(url).to_arrow()["k"].to_pylist()) == [1, 4]
        PaimonTable.forPath(url).compact(spark=spark)


@pytest.mark.parametrize(
    ("options", "kinds", "why"),
    [
        ({**AGGREGATION, **functions(m="collect")}, INSERTS, "collect"),
        # A key that begins with an ignored deletion begins with its values.
        ({**PARTIAL, "ignore-delete": "true"}, ANY, "rows of partial-update that take others back"),
        ({**AGGREGATION, **functions(s="theta_sketch")}, INSERTS, "theta_sketch"),
        ({**AGGREGATION, **functions(m="max")}, INSERTS, "max"),
        ({**AGGREGATION, **functions(i="sum")}, ANY, "take others back"),
        ({**PARTIAL, "partial-update.remove-record-on-delete": "true"}, ANY, "take others back"),
        ({**PARTIAL, "sequence.field": "g", "sequence.field.sort-order": "descending"}, INSERTS, "descending"),
    ],
)
def test_what_spark_cannot_say_is_left_to_workers(
    options: dict[str, str], kinds: Sequence[str], why: str, tmp_path: Path
) -> None:
    write_table(tmp_path / "t", options, kinds)
    assert why in (unmergeable(plan_of(tmp_path / "t")) or "")

"""Names that are one in upper case and two in lower case, as Spark and Delta compare them: `ß` is no `ss`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import alluvium
from alluvium import DeltaTable
from alluvium.api.delta.portable.delta_table import PortableDeltaTable

ROWS = pa.table({"Maß": pa.array([1, 2]), "MASS": pa.array([10, 20])})


def table_of(way: str, request: pytest.FixtureRequest, url: str) -> Any:
    if way == "alone":
        alluvium.write(ROWS, url)
        return PortableDeltaTable.forPath(url)
    spark: SparkSession = request.getfixturevalue("spark")
    alluvium.write(spark.createDataFrame([(1, 10), (2, 20)], "`Maß` bigint, MASS bigint"), url)
    return DeltaTable.forPath(spark, url)


@pytest.mark.parametrize("way", ["alone", pytest.param("session", marks=pytest.mark.spark)])
def test_both_are_columns_of_one_table(way: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    table = table_of(way, request, url)
    table.update("mass = 10", {"`maß`": "`Maß` + mass"})
    table.delete("`MAß` = 2")
    rows = ROWS if way == "alone" else request.getfixturevalue("spark").createDataFrame(ROWS)
    source = (rows, "t.`maß` = s.mass + 1", "s") if way == "alone" else (rows.alias("s"), "t.`maß` = s.mass + 1")
    table.alias("t").merge(*source).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    found = alluvium.open(url).to_arrow(where="mass < 100").select(["Maß", "MASS"]).to_pylist()
    assert sorted(found, key=lambda row: row["Maß"]) == [{"Maß": 1, "MASS": 10}, {"Maß": 2, "MASS": 20}]
    alluvium.alter(url).add_columns({"ẞ": "int"})
    assert [f.name for f in alluvium.open(url).schema.fields] == ["Maß", "MASS", "ẞ"]

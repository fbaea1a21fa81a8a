"""The same rows written by Spark and without it: the log says the same of them, and Spark reads the same."""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import replace
from pathlib import Path
from typing import Any

import jvm
import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import alluvium
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.features.columns.generated_columns import KEY as GENERATED
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.delta.write.target import DeltaTarget
from alluvium.errors import AlluviumError
from alluvium.plan.changes import Describe, Operation, ReadScope
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import Struct
from alluvium.storage.open import open_store

pytestmark = pytest.mark.spark
UTC = dt.timezone.utc

DATA = pa.table({
    "row": pa.array([0, 1, 2, 3], pa.int32()),
    "b": pa.array([1, -128, None, 127], pa.int8()),
    "l": pa.array([2**63 - 1, 0, None, -(2**63)]),
    "f": pa.array([1.5, 3.4028234663852886e38, None, 1e-45], pa.float32()),
    "d": pa.array([1e22, 0.1, None, -1e-7]),
    "n": pa.array([decimal.Decimal("1.50"), decimal.Decimal("-0.01"), None, decimal.Decimal("12345678.90")]),
    "t": pa.array(["a=/%ü:", "x" * 40, None, " "]),
    "o": pa.array([True, False, None, True]),
    "da": pa.array([dt.date(1, 1, 1), dt.date(1969, 12, 31), None, dt.date(9999, 12, 31)]),
    "ts": pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), dt.datetime(2024, 1, 1, tzinfo=UTC), None,
                    dt.datetime(2, 1, 1, tzinfo=UTC)]),
    "tn": pa.array([dt.datetime(2024, 1, 1, 0, 0, 0, 1), dt.datetime(9999, 12, 31, 23, 59, 59), None,
                    dt.datetime(1, 1, 1)]),
    "r": pa.array([{"k": 1, "v": "x"}, {"k": None, "v": "y"}, None, {"k": 7, "v": None}]),
    "a": pa.array([[1, None], [], None, [2]]),
    "m": pa.array([[("x", 1.0)], [], None, [("y", None)]], pa.map_(pa.string(), pa.float64())),
})  # fmt: skip
#: Columns that can be partition columns.
FLAT = [f.name for f in DATA.schema if f.name not in ("row", "r", "a", "m")]


def told(url: Path) -> dict[Any, tuple[Any, Any]]:
    """What the log says of each file, by its partition."""
    found = load_snapshot(open_store(str(url))).files.to_pylist()
    return {repr(sorted(add["partitionValues"])): msgspec.json.decode(add["stats"]) for add in found}


@pytest.mark.parametrize("names", [(), *((name,) for name in FLAT)], ids=str)
def test_the_log_says_the_same(spark: SparkSession, tmp_path: Path, names: tuple[str, ...]) -> None:
    alluvium.write(DATA, tmp_path / "here", partition_by=names)
    frame = spark.createDataFrame(DATA, alluvium.read(spark, str(tmp_path / "here")).schema).coalesce(1)
    alluvium.write(frame, str(tmp_path / "spark"), partition_by=names)
    assert told(tmp_path / "here") == told(tmp_path / "spark")
    schemas = [alluvium.open(str(tmp_path / url)).metadata.schema_string for url in ("here", "spark")]
    assert schemas[0] == schemas[1]
    shown = [alluvium.read(spark, str(tmp_path / url)).orderBy("row") for url in ("here", "spark")]
    assert shown[0].collect() == shown[1].collect()
    assert alluvium.open(str(tmp_path / "here")).to_arrow().sort_by("row") == alluvium.open(
        str(tmp_path / "spark")
    ).to_arrow().sort_by("row")


#: Generation expressions whose values, some of them, only Spark knows as texts.
NEEDS_SPARK = {"cast(ts as string)", "cast(d as string)", "cast(n as string)"}


@pytest.mark.parametrize(
    ("of", "sql"),
    [
        ("date", "cast(ts as date)"), ("int", "year(ts) * 100 + month(ts)"), ("int", "hour(ts)"), ("bigint", "l div 7"),
        ("bigint", "l % 7"), ("double", "d * 2 + 1"), ("string", "upper(t)"), ("string", "substring(t, 1, 2)"),
        ("string", "concat(t, '-', cast(b as string))"), ("boolean", "o and b > 0"), ("int", "b + 1"),
        ("string", "cast(ts as string)"), ("string", "cast(d as string)"), ("string", "cast(n as string)"),
        ("decimal(12,3)", "n"), ("string", "case when b > 0 then 'p' else 'n' end"), ("int", "coalesce(r.k, -1)"),
        ("string", "date_format(ts, 'yyyy-MM')"), ("date", "date_trunc('MONTH', ts)"), ("bigint", "length(t)"),
    ],
)  # fmt: skip
def test_generated_columns_have_sparks_values_or_need_it(
    spark: SparkSession, tmp_path: Path, of: str, sql: str
) -> None:
    schema = alluvium.open(str(_made(tmp_path / "plain", "")))._snapshot.config.schema
    generated = Struct((*schema.fields, *(replace(f, metadata={GENERATED: sql}) for f in parse_fields(f"g {of}"))))
    urls = [_create(tmp_path / name, generated) for name in ("here", "spark")]
    # The session's zone is not asked for what is written here: times are in UTC.
    with jvm.having(spark, {"spark.sql.session.timeZone": "UTC"}):
        alluvium.write(spark.createDataFrame(DATA, _frame_schema(spark, tmp_path)), urls[1], mode="append")
        if sql in NEEDS_SPARK:
            with pytest.raises(AlluviumError) as caught:
                alluvium.write(DATA, urls[0], mode="append")
            assert caught.value.code == "needs-spark"
            assert alluvium.open(urls[0]).version == 0
            return
        alluvium.write(DATA, urls[0], mode="append")
        rows = [alluvium.read(spark, url).orderBy("row").select("row", "g").collect() for url in urls]
        assert rows[0] == rows[1]


def _frame_schema(spark: SparkSession, tmp_path: Path) -> Any:
    return alluvium.read(spark, str(tmp_path / "plain")).schema


def _made(path: Path, mode: str) -> Path:
    alluvium.write(DATA, path, mode=mode or "error")
    return path


def _create(path: Path, schema: Struct) -> str:
    config = table_config(NewTable(schema))
    target = DeltaTarget(open_store(str(path)), config, None)
    target.commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    return str(path)

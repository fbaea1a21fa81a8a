"""Row ids and commit versions with Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tracked_table import EXPECTED, ON, SCHEMA, make_table

import alluvium
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.schema.types import LONG, Field, Struct

pytestmark = pytest.mark.spark


def test_as_columns(spark: SparkSession, tmp_path: Path) -> None:
    url = make_table(tmp_path, ON)
    df = alluvium.read(spark, url, rowIds=True)
    assert df.columns == ["id", "p", "_row_id", "_row_commit_version"]
    assert sorted(map(tuple, df.collect())) == EXPECTED
    assert [r.id for r in df.where("_row_id in (12, 22) and p = 'y'").collect()] == [6]
    assert alluvium.read(spark, url, rowIds="false").columns == ["id", "p"]
    with pytest.raises(InvalidRequest, match="must be true or false"):
        alluvium.read(spark, url, rowIds="yes")


def test_where_they_cannot_be_relied_upon(spark: SparkSession, tmp_path: Path) -> None:
    url = make_table(tmp_path, {})
    with pytest.raises(InvalidRequest) as raised:
        alluvium.read(spark, url, rowIds=True)
    assert raised.value.code == "row-tracking-disabled"
    assert alluvium.read(spark, url).count() == 6


def test_a_file_without_them_fails_only_who_asks(spark: SparkSession, tmp_path: Path) -> None:
    url = make_table(tmp_path, ON, base=None)
    assert alluvium.read(spark, url).count() == 6
    with pytest.raises(CorruptTable) as raised:
        alluvium.read(spark, url, rowIds=True)
    assert raised.value.code == "no-row-ids"


def test_a_column_of_the_table_goes_first(spark: SparkSession, tmp_path: Path) -> None:
    schema = Struct((*SCHEMA.fields, Field("_metadata", LONG), Field("_row_id", LONG)))
    df = alluvium.read(spark, make_table(tmp_path, ON, schema))
    assert df.columns == list(schema.names)
    assert {tuple(r) for r in df.select("_metadata", "_row_id").collect()} == {(None, None)}

"""Row ids and commit versions with Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta_values import make_metadata
from pyspark.sql import SparkSession

import alluvium
from alluvium.delta.spec import Action, Add, Protocol, format_actions
from alluvium.errors import CorruptTable, InvalidRequest
from alluvium.schema.types import LONG, STRING, Field, Struct

pytestmark = pytest.mark.spark

SCHEMA = Struct((Field("id", LONG), Field("p", STRING)))
PROTOCOL = Protocol(min_reader_version=1, min_writer_version=7, writer_features=("rowTracking", "domainMetadata"))
ON = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}
EXPECTED = [(1, "x", 10, 3), (2, "x", 11, 3), (3, "x", 12, 3), (4, "y", 7, 5), (5, "y", 21, 1), (6, "y", 22, 5)]


def make_table(root: Path, properties: dict[str, str], schema: Struct = SCHEMA, base: int | None = 10) -> str:
    """Two files; the second one has some materialised values."""
    later = {"id": [4, 5, 6], "_row-id-col-1": [7, None, None], "_row-commit-version-col-1": [None, 1, None]}
    actions: list[Action] = [PROTOCOL, make_metadata(schema, ["p"], properties)]
    for name, columns, base_row_id, version in (("x", {"id": [1, 2, 3]}, base, 3), ("y", later, 20, 5)):
        path = root / f"{name}.parquet"
        pq.write_table(pa.table({n: pa.array(values, pa.int64()) for n, values in columns.items()}), path)
        actions.append(
            Add(
                path=path.name,
                partition_values={"p": name},
                modification_time=1,
                data_change=True,
                size=path.stat().st_size,
                base_row_id=base_row_id,
                default_row_commit_version=version,
            )
        )
    (root / "_delta_log").mkdir()
    (root / "_delta_log" / f"{0:020d}.json").write_bytes(format_actions(actions))
    return str(root)


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

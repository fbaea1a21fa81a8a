"""Files as we make them, read and continued by delta-spark; its own, continued by us."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from reference_engine import NEEDS_REFERENCE, judge

import alluvium
from alluvium.delta.view.snapshot import load_snapshot
from alluvium.storage.open import open_store

pytestmark = NEEDS_REFERENCE

_PARTS = "select id, cast(id % 2 as string) p from range(6)"
#: Table, its first rows, partition columns, properties.
TABLES = {
    "variants": ("select id, parse_json(concat('{\"a\":', id, '}')) v from range(6)", (), {}),
    "materialized": (_PARTS, ("p",), {"delta.enableMaterializePartitionColumnsFeature": "true"}),
    "compat": (_PARTS, ("p",), {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}),
    "compat1": (_PARTS, ("p",), {"delta.enableIcebergCompatV1": "true", "delta.columnMapping.mode": "id"}),
    "prefixes": (_PARTS, ("p",), {"delta.randomizeFilePrefixes": "true", "delta.autoOptimize.optimizeWrite": "true"}),
}
_SHOWN = {"variants": "id, to_json(v) p"}


def rows(folder: Path) -> list[tuple]:
    return sorted(tuple(row.values()) for row in pq.read_table(folder).to_pylist())


def our_rows(spark, url: str, shown: str) -> list[tuple]:
    return sorted(tuple(row) for row in alluvium.read(spark, url).selectExpr(*shown.split(", ")).collect())


@pytest.fixture(scope="module")
def continued(spark, tmp_path_factory) -> Path:
    """Every table twice: begun by us and continued by delta-spark, and the other way round."""
    root = tmp_path_factory.mktemp("files")
    jobs = []
    for name, (sql, partition_by, properties) in TABLES.items():
        alluvium.write(spark.sql(sql), str(root / name / "ours"), partition_by=partition_by, **properties)
        jobs += [
            {"do": "write", "sql": sql, "mode": "append", "table": str(root / name / "ours")},
            {
                "do": "statement",
                "table": str(root / name / "ours"),
                "sql": f"create or replace temp view t as select {_SHOWN.get(name, 'id, p')} from {{table}}",
            },
            {"do": "write_parquet", "table": "", "out": str(root / name / "rows")},
            {"do": "statement", "table": str(root / name / "ours"), "sql": "OPTIMIZE {table}"},
            {"do": "statement", "table": str(root / name / "ours"), "sql": "delete from {table} where id = 0"},
            {
                "do": "write",
                "sql": sql,
                "mode": "append",
                "table": str(root / name / "theirs"),
                "partition_by": list(partition_by),
                "options": properties,
            },
        ]
    results = judge(root, jobs)
    assert [r["error"] for r in results] == [None] * len(jobs)
    return root


@pytest.mark.parametrize("name", TABLES)
def test_each_continues_the_other(spark, continued: Path, name: str) -> None:
    sql = TABLES[name][0]
    shown = _SHOWN.get(name, "id, p")
    expected = sorted(tuple(row) for row in spark.sql(sql).selectExpr(*shown.split(", ")).collect())
    assert rows(continued / name / "rows") == sorted(expected * 2)
    left = [row for row in expected * 2 if row[0] != 0]
    assert our_rows(spark, str(continued / name / "ours"), shown) == sorted(left)
    theirs = str(continued / name / "theirs")
    alluvium.write(spark.sql(sql), theirs, mode="append")
    assert our_rows(spark, theirs, shown) == sorted(expected * 2)


@pytest.mark.parametrize("name", TABLES)
def test_the_same_protocol(continued: Path, name: str) -> None:
    ours, theirs = (load_snapshot(open_store(str(continued / name / who)), 0).config for who in ("ours", "theirs"))
    assert set(ours.protocol.writer_features or ()) == set(theirs.protocol.writer_features or ())
    assert ours.protocol.min_reader_version == theirs.protocol.min_reader_version
    assert ours.metadata.configuration == theirs.metadata.configuration


@pytest.mark.parametrize("name", ["materialized", "compat", "compat1"])
def test_the_same_columns_in_the_files(continued: Path, name: str) -> None:
    """ "placed after the data columns in the parquet schema" """
    for who in ("ours", "theirs"):
        url = continued / name / who
        snapshot = load_snapshot(open_store(str(url)), 0)
        physical = [f.name for f in snapshot.config.physical_schema.fields]
        for path in snapshot.files.column("path").to_pylist():
            assert pq.read_schema(url / path).names == physical


def test_statistics_of_variants(continued: Path) -> None:
    for who in ("ours", "theirs"):
        files = load_snapshot(open_store(str(continued / "variants" / who)), 0).files
        for text in files.column("stats").to_pylist():
            stats = json.loads(text)
            assert stats["nullCount"] == {"id": 0, "v": 0} and "v" not in stats["minValues"]

"""Rows that were written without Spark: delta-spark reads them, and goes on with the tables."""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from reference_engine import NEEDS_REFERENCE, judge

import alluvium
from alluvium.api.delta.portable.delta_table import PortableDeltaTable
from alluvium.delta.description.create import NewTable, table_config
from alluvium.delta.features.columns.generated_columns import KEY as GENERATED
from alluvium.delta.features.columns.identity_columns import ALLOW_EXPLICIT_INSERT, START, STEP
from alluvium.delta.write.target import DeltaTarget
from alluvium.plan.changes import Describe, Operation, ReadScope
from alluvium.schema.ddl import parse_fields
from alluvium.schema.types import Struct
from alluvium.storage.open import open_store

pytestmark = NEEDS_REFERENCE

DDL = (
    "id bigint, p string, x double, n decimal(20,2), day date, at timestamp, local timestamp_ntz, "
    "r struct<k: int, v: array<string>>, m map<string, int>"
)
DATA = pa.table({
    "id": pa.array([1, 2, 3, 4], pa.int64()),
    "p": ["a b/c", None, "ü=%", "a b/c"],
    "x": [1.5, None, float("nan"), 1e300],
    "n": pa.array([decimal.Decimal("1.20"), None, decimal.Decimal("-3.00"), None], pa.decimal128(20, 2)),
    "day": [dt.date(2024, 2, 29), dt.date(1900, 1, 1), None, dt.date(9999, 12, 31)],
    "at": pa.array([0, -1, None, 1_700_000_000_123_456], pa.timestamp("us", "UTC")),
    "local": pa.array([0, -1, None, 1_700_000_000_123_456], pa.timestamp("us")),
    "r": pa.array([{"k": 1, "v": ["x"]}, None, {"k": None, "v": []}, {"k": 2, "v": None}],
                  pa.struct([("k", pa.int32()), ("v", pa.list_(pa.string()))])),
    "m": pa.array([[("x", 1)], None, [], [("y", None)]], pa.map_(pa.string(), pa.int32())),
})  # fmt: skip
#: Partition columns, properties, more columns with their metadata.
TABLES: dict[str, tuple[tuple[str, ...], dict[str, str], dict[str, dict[str, Any]]]] = {
    "plain": ((), {}, {}),
    "parted": (("p", "day", "at"), {}, {}),
    "mapped": (("p",), {"delta.columnMapping.mode": "name"}, {}),
    "by_id": ((), {"delta.columnMapping.mode": "id"}, {}),
    "vectors": ((), {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}, {}),
    "feed": (("p",), {"delta.enableChangeDataFeed": "true", "delta.constraints.c": "id > 0 and (x > 0 or x is null)"}, {}),
    "made": (("month",), {}, {
        "month int": {GENERATED: "year(at) * 100 + month(at)"},
        "number bigint": {START: 5, STEP: 2, ALLOW_EXPLICIT_INSERT: False},
    }),
}  # fmt: skip
#: Those of them whose files are put together.
COMPACTED = ("parted", "by_id", "vectors")
#: What delta-spark is asked; rows are in the order of `id`.
CONDITIONS = (
    "x > 1e299",
    "day <= '1900-01-01'",
    "at < timestamp'1970-01-01 00:00:00Z'",
    "p = 'ü=%'",
    "n < 0",
    "r.k = 2",
)


def _make(url: str, name: str) -> None:
    names, properties, more = TABLES[name]
    added = [replace(f, metadata=says) for ddl, says in more.items() for f in parse_fields(ddl)]
    config = table_config(NewTable(Struct((*parse_fields(DDL), *added)), names, properties))
    DeltaTarget(open_store(url), config, None).commit(Describe(Operation("CREATE TABLE"), ReadScope.nothing()))
    alluvium.write(DATA, url, mode="append")


def _change(url: str) -> None:
    """Rows of each kind: deleted, updated, merged."""
    table = PortableDeltaTable.forPath(url)
    table.delete("id = 1")
    table.update("id = 2", {"x": "2.5", "p": "'new'", "at": "timestamp'2024-05-06 07:08:09Z'"})
    source = DATA.slice(0, 3).set_column(0, "id", pa.array([4, 8, 9]))
    merge = table.merge(source, "t.id = s.id").whenMatchedUpdate(None, {"r": "s.r", "m": "s.m", "day": "s.day"})
    merge.whenNotMatchedInsert("s.id = 8", {name: f"s.{name}" for name in DATA.column_names}).execute()


def _compacted(url: str, name: str, out: Path) -> list[dict[str, Any]]:
    """Files put together without Spark; what delta-spark is asked of them, and does with them."""
    _make(url, name)
    _change(url)
    for more in (20, 40):
        alluvium.write(DATA.set_column(0, "id", pa.array([more + n for n in range(4)])), url, mode="append")
    done = PortableDeltaTable.forPath(url).optimize().executeCompaction()
    assert isinstance(done, pa.Table) and done["metrics"][0]["numFilesAdded"].as_py() > 0
    return [
        {"do": "read", "table": url, "out": str(out / "compact")},
        {"do": "read", "table": url, "wheres": CONDITIONS, "out": str(out / "compact_found")},
        {"do": "statement", "table": url, "sql": "update {table} set n = 7 where id = 2"},
        {"do": "statement", "table": url, "sql": "delete from {table} where id = 8"},
        {"do": "statement", "table": url, "sql": "OPTIMIZE {table}"},
        {"do": "read", "table": url, "out": str(out / "compact_after")},
    ]


@pytest.fixture(scope="module")
def continued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("arrow")
    jobs: list[dict[str, Any]] = []
    for name in TABLES:
        url = str(root / name / "table")
        _make(url, name)
        jobs.append({"do": "read", "table": url, "out": str(root / name / "all")})
        jobs.append({"do": "read", "table": url, "wheres": CONDITIONS, "out": str(root / name / "found")})
        changed = str(root / name / "changed")
        _make(changed, name)
        _change(changed)
        jobs.append({"do": "read", "table": changed, "out": str(root / name / "seen")})
        if name in COMPACTED:
            jobs += _compacted(str(root / name / "compacted"), name, root / name)
        jobs.append({"do": "statement", "table": changed, "sql": "delete from {table} where id = 3"})
        jobs.append({"do": "statement", "table": changed, "sql": "OPTIMIZE {table}"})
        columns = ", ".join(DATA.column_names)
        jobs += [
            {"do": "statement", "table": url,
             "sql": f"insert into {{table}} ({columns}) select 9, {', '.join(DATA.column_names[1:])} from {{table}} where id = 1"},
            {"do": "statement", "table": url, "sql": "delete from {table} where id = 4"},
            {"do": "statement", "table": url, "sql": "update {table} set n = 7 where id = 2"},
            {"do": "statement", "table": url, "sql": "OPTIMIZE {table}"},
            {"do": "read", "table": url, "out": str(root / name / "after")},
        ]  # fmt: skip
    answers = judge(root, jobs)
    assert [(job, answer["error"]) for job, answer in zip(jobs, answers, strict=True) if answer["error"]] == []
    return root


def _rows(folder: Path) -> list[dict[str, Any]]:
    return _shown(pq.read_table(folder))


def _rows_by_condition(folder: Path) -> list[list[dict[str, Any]]]:
    rows = pq.read_table(folder)
    found = rows.drop_columns("condition")
    return [_shown(found.filter(pc.equal(rows["condition"], number))) for number in range(len(CONDITIONS))]


def _shown(rows: pa.Table) -> list[dict[str, Any]]:
    """By `id`, times as numbers, whose types in files vary; NaN as text, for it equals nothing."""
    times = [(i, f.name) for i, f in enumerate(rows.schema) if pa.types.is_timestamp(f.type)]
    for i, name in times:
        rows = rows.set_column(i, name, rows[name].cast(pa.timestamp("us")).cast(pa.int64()))
    found = sorted(rows.to_pylist(), key=lambda row: row["id"])
    return [{k: "NaN" if v != v else v for k, v in row.items()} for row in found]


@pytest.mark.parametrize("name", TABLES)
def test_delta_spark_reads_and_goes_on(continued: Path, name: str) -> None:
    url = str(continued / name / "table")
    first = alluvium.open(url, version=1).to_arrow()
    assert _rows(continued / name / "all") == _shown(first)
    assert _shown(first.select(DATA.column_names)) == _shown(DATA)
    for where, found in zip(CONDITIONS, _rows_by_condition(continued / name / "found"), strict=True):
        assert found == _shown(alluvium.open(url, version=1).to_arrow(where=where)), where
        assert len(found) >= 1, where
    after = alluvium.open(url).to_arrow()
    assert _rows(continued / name / "after") == _shown(after)
    assert [row["id"] for row in _shown(after)] == [1, 2, 3, 9]
    alluvium.write(DATA.slice(0, 1), url, mode="append")
    assert alluvium.open(url).to_arrow().num_rows == 5
    if name == "made":
        numbers = alluvium.open(url).to_arrow()["number"].to_pylist()
        assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("name", TABLES)
def test_delta_spark_reads_rows_that_we_changed(continued: Path, name: str) -> None:
    url = str(continued / name / "changed")
    assert _rows(continued / name / "seen") == _shown(alluvium.open(url, version=4).to_arrow())
    after = _shown(alluvium.open(url).to_arrow())
    assert [(row["id"], row["x"]) for row in after] == [(2, 2.5), (4, 1e300), (8, None)]
    PortableDeltaTable.forPath(url).update("id = 8", {"x": "8.5"})
    assert [row["x"] for row in _shown(alluvium.open(url).to_arrow())] == [2.5, 1e300, 8.5]


@pytest.mark.parametrize("name", COMPACTED)
def test_delta_spark_goes_on_with_files_that_we_put_together(continued: Path, name: str) -> None:
    url = str(continued / name / "compacted")
    version = next(c["version"] for c in reversed(alluvium.open(url).history()) if c["operation"] == "OPTIMIZE")
    assert isinstance(version, int)
    compact = alluvium.open(url, version=version)
    before = alluvium.open(url, version=version - 1)
    assert _rows(continued / name / "compact") == _shown(compact.to_arrow()) == _shown(before.to_arrow())
    for where, found in zip(CONDITIONS, _rows_by_condition(continued / name / "compact_found"), strict=True):
        assert found == _shown(compact.to_arrow(where=where)), where
    after = _shown(alluvium.open(url).to_arrow())
    assert _rows(continued / name / "compact_after") == after
    assert {row["id"]: row["n"] for row in after if row["id"] < 4} == {2: decimal.Decimal(7), 3: decimal.Decimal(-3)}
    assert len(after) == 11
    if name == "vectors":
        ids = [
            alluvium.open(url, version=v).to_arrow(["id", "_row_id"]).sort_by("_row_id") for v in (version - 1, version)
        ]
        assert ids[0].equals(ids[1])


def test_the_change_feed_goes_on(continued: Path) -> None:
    url = str(continued / "feed" / "table")
    kinds = [(c["_commit_version"], c["_change_type"], c["id"]) for c in alluvium.open(url).changes(1, 4).to_pylist()]
    assert sorted(kinds)[:5] == [
        (1, "insert", 1),
        (1, "insert", 2),
        (1, "insert", 3),
        (1, "insert", 4),
        (2, "insert", 9),
    ]
